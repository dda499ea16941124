"""docs/format.md and the headers say the same."""
import os
import re

import pytest

from harness import ROOT


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


FORMAT = read("src", "format", "format.h")
RECORD = read("src", "format", "record.h")
KINDS = re.findall(r"^\s*X\((\d+), (\w+), \"", FORMAT, re.M)
STATS = re.findall(r"^\s*X\(\w+, \"(\w+)\",(?:\s*\\\n)?\s*\"", RECORD.partition("#define RECORD_STATS(")[2], re.M)
ALLOCATORS = re.findall(r"X\(\w+, \"([^\"]+)\"", RECORD.partition("#define RECORD_ALLOCATORS(")[2].partition("enum record_allocator")[0])
SIZES = {"uint8_t": 1, "uint16_t": 2, "uint32_t": 4, "uint64_t": 8}


@pytest.fixture(scope="module")
def document():
    return read("docs", "format.md")


def struct_fields(name):
    """[(offset, size, name)] of a packed struct in format.h."""
    body = re.search(r"struct %s \{(.*?)\};" % name, FORMAT, re.S).group(1)
    at, fields = 0, []
    for kind, field, count in re.findall(r"(uint\d+_t) (\w+)(?:\[(\d+)\])?;", body):
        size = SIZES[kind] * int(count or 1)
        fields.append((at, size, field))
        at += size
    return fields


def table_rows(document):
    return [[c.strip().strip("`") for c in line.strip().strip("|").split("|")] for line in document.splitlines() if line.lstrip().startswith("|")]


def test_the_headers_were_read():
    assert len(KINDS) >= 18 and len(STATS) >= 25
    assert struct_fields("format_file_header")[-1] == (56, 8, "checksum")
    assert struct_fields("format_chunk_header")[-1] == (24, 8, "checksum")


@pytest.mark.parametrize("number,name", KINDS, ids=[name for _, name in KINDS])
def test_chunk_kind(document, number, name):
    assert any(number in row and name in row for row in table_rows(document)), "no row with %s and %s" % (number, name)


def test_no_other_chunk_kinds(document):
    known = dict(KINDS)
    for row in table_rows(document):
        if len(row) >= 2 and row[0].isdigit() and re.fullmatch(r"[A-Z][A-Z_]+", row[1]):
            assert known.get(row[0]) == row[1], row


@pytest.mark.parametrize("struct", ["format_file_header", "format_chunk_header"])
def test_header_fields(document, struct):
    """Each field stands with its offset, in a table row or in a drawing as "offset  type  name"."""
    for offset, _, field in struct_fields(struct):
        in_row = any(str(offset) in row and any(re.match(r"%s\b" % field, c) for c in row) for row in table_rows(document))
        drawn = re.search(r"(?m)(?:^|[ |│])%d\s+u\d+(?:\[\d+\])?\s+%s\b" % (offset, field), document)
        assert in_row or drawn, "%s.%s at %d is not in docs/format.md" % (struct, field, offset)


@pytest.mark.parametrize("name", STATS)
def test_stat(document, name):
    assert "`%s`" % name in document


def test_versions(document):
    major = re.search(r"FORMAT_VERSION_MAJOR = (\d+)", FORMAT).group(1)
    assert re.search(r"version[^\n]*\b%s\b" % major, document, re.I)


def test_allocators(document):
    text = document.partition("| allocator | |")[2].partition("Counters named")[0]
    assert len(ALLOCATORS) == 13
    for number, name in enumerate(ALLOCATORS):
        assert "%d %s" % (number, name) in text, name


# --- facts ---

WRITERS = "".join(read("src", "record", name) for name in sorted(os.listdir(os.path.join(ROOT, "src", "record"))) if name.endswith(".c"))
IMPORTS = read("src", "profile", "import.c")


def facts(document):
    """{key: what is said of it} in the table of META; a cell may name several keys."""
    table = document.partition("### META (1)")[2].partition("### ")[0]
    found = {}
    for row in table_rows(table):
        for key in re.findall(r"[\w.]+", row[0].replace("`", "")):
            found[key] = row[1]
    del found["key"]
    return {key: text for key, text in found.items() if key.strip("-")}


def test_facts(document):
    """Every key that is written is documented, and the other way round."""
    written = set(re.findall(r'(?:format_writer_meta|put_proc_field|put_patterns)\([^;"]*"([^"]+)"', WRITERS + IMPORTS))
    written |= {name + ".ID" for name in re.findall(r'sizeof key, "(\w+)\.%u"', WRITERS)}
    assert len(written) >= 20 and "calibration.ID" in written
    assert written == set(facts(document)), written ^ set(facts(document))


def test_modes_and_instruments(document):
    modes = re.findall(r'\bbegin\(&?r, \w+, "(\w+)"\)', WRITERS)
    assert sorted(modes) == ["attach", "invite", "run"]
    instruments = re.findall(r'\{RING_[\w |]+, "(\w+)"\}', WRITERS) + ["sample"]
    assert len(instruments) >= 6
    for key, words in (("mode", modes), ("instruments", instruments)):
        for word in words:
            assert re.search(r"(^|`)%s(`|$)" % word, facts(document)[key]), (key, word)  # the cell has lost its outer quotes

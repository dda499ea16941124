"""The law of the house, as ARCHITECTURE.md states it, and the taste that can be checked.

The layer table there has rows "| `src/base` | what lives there | may include |"; the last column is a
list of folders (base, format, …), with words that are no folder's name left aside.
"""
import ast
import fnmatch
import glob
import os
import re
import subprocess
import sys

import pytest

from harness import ROOT

SRC = os.path.join(ROOT, "src")
FOLDERS = sorted(f for f in os.listdir(SRC) if os.path.isdir(os.path.join(SRC, f)))
SOURCES = sorted(glob.glob(os.path.join(SRC, "**", "*.[ch]"), recursive=True))
HEADERS = [s for s in SOURCES if s.endswith(".h")]


def short(path):
    return os.path.relpath(path, ROOT)


def law():
    """{folder: set of folders it may include, or None for all}"""
    allowed = {}
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as f:
        for line in f:
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            folders = re.findall(r"`src/(\w+)`", cells[0])
            if not line.lstrip().startswith("|") or not folders or len(cells) < 3:
                continue
            may = cells[-1]
            for folder in folders:
                words = set(re.findall(r"\w+", may))
                allowed[folder] = None if re.search(r"\ball\b", may) else words & set(FOLDERS)
    return allowed


LAW = law() if os.path.exists(os.path.join(ROOT, "ARCHITECTURE.md")) else {}


def includes(path):
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if match:
                yield number, match.group(1)


def test_every_folder_is_in_the_law():
    assert FOLDERS and set(FOLDERS) <= set(LAW), set(FOLDERS) - set(LAW)


def test_the_law_is_a_law():
    """base is at the bottom, nobody includes cmd, and there is no circle."""
    assert LAW["base"] == set()
    for folder, may in LAW.items():
        assert folder == "cmd" or (may is not None and "cmd" not in may), folder
    done = set()
    while len(done) < len(LAW) - 1:
        ready = {f for f, may in LAW.items() if may is not None and f not in done and may - {f} <= done | (set(FOLDERS) - set(LAW))}
        assert ready, "a circle among %s" % (set(LAW) - done)
        done |= ready


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_includes_keep_the_law(path):
    folder = os.path.relpath(path, SRC).split(os.sep)[0]
    may = LAW[folder]
    for number, name in includes(path):
        target = name.split("/")[0]
        if "/" not in name:
            continue  # a neighbour by its bare name, or a generated header
        assert target in FOLDERS, "%s:%d: %s is no folder of src" % (short(path), number, target)
        assert target == folder or not name.endswith("/internal.h"), "%s:%d: %s is for its own folder" % (short(path), number, name)
        assert may is None or target == folder or target in may, (
            "%s:%d includes %s; ARCHITECTURE.md lets src/%s include %s" % (
                short(path), number, name, folder, ", ".join(sorted(may)) or "nothing"))


@pytest.mark.parametrize("path", HEADERS, ids=short)
def test_header_compiles_alone(path):
    done = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", SRC,
                           "-I", os.path.join(ROOT, "build"), "-x", "c", "-"], input='#include "%s"\n' % os.path.relpath(path, SRC),
                          stderr=subprocess.PIPE, encoding="utf-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", HEADERS, ids=short)
def test_header_has_a_guard(path):
    guard = "PYROMETER_" + re.sub(r"\W", "_", os.path.relpath(path, SRC)).upper()
    with open(path, encoding="utf-8") as f:
        text = f.read()
    assert "#ifndef " + guard in text or "X(" in text and "#ifndef" not in text, "expected " + guard


def code_of(path):
    """The text without comments and strings, lines kept."""
    with open(path, encoding="utf-8") as f:
        text = f.read()

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text, flags=re.S)


BANNED = ["strcpy", "strcat", "sprintf", "vsprintf", "gets", "strncpy", "strtok", "alloca", "system", "popen", "tmpnam", "mktemp"]
ONLY_CMD = ["printf", "puts", "putchar", "perror", "exit", "err", "errx", "warn", "warnx"]


def calls(path, names):
    found = []
    for number, line in enumerate(code_of(path).splitlines(), 1):
        for match in re.finditer(r"(?<![\w.>])(%s)\s*\(" % "|".join(names), line):
            found.append("%s:%d: %s" % (short(path), number, match.group(1)))
    return found


OURS = {"src/agent/interpose.c": ["system", "popen"]}  # which are defined there, for the program


@pytest.mark.parametrize("path", SOURCES, ids=short)
def test_banned_calls(path):
    assert not calls(path, [name for name in BANNED if name not in OURS.get(short(path), [])])


@pytest.mark.parametrize("path", [s for s in SOURCES if not s.startswith(os.path.join(SRC, "cmd"))], ids=short)
def test_only_commands_speak_and_exit(path):
    assert not calls(path, ONLY_CMD)
    for number, line in enumerate(code_of(path).splitlines(), 1):
        assert not re.search(r"\bstderr\b", line), "%s:%d speaks to stderr" % (short(path), number)


@pytest.mark.parametrize("path", [s for s in SOURCES if s.endswith(".h") or s[:-1] + "h" not in HEADERS], ids=short)
def test_file_says_what_it_is(path):
    """A header, or a source that has none of its own, opens with what it is."""
    with open(path, encoding="utf-8") as f:
        assert f.read(3) == "/* "


# What a library's headers are called.
LIBRARIES = {"zlib": r"zlib", "zstd": r"zstd", "xxhash": r"xxh", "ncurses": r"(n?curses|term)\.h", "SQLite": r"sqlite"}


def allowed_users():
    """{library: patterns of the files that may include its headers}, out of "(and zlib in `zip.c` alone)"."""
    allowed = {}
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as f:
        for folder, libraries, file in re.findall(r"^\| `(src/\w+)` .*\(and ([\w, ]+) in `([^`]+)` alone\) \|$", f.read(), re.M):
            for library in libraries.split(", "):
                allowed.setdefault(library, []).append("%s/%s" % (folder, file))
    return allowed


def test_every_library_has_its_place():
    assert set(allowed_users()) == set(LIBRARIES)
    assert len(allowed_users()["zlib"]) == 3


@pytest.mark.parametrize("library", LIBRARIES)
def test_libraries_stay_in_their_place(library):
    """In the files that ARCHITECTURE.md names, or in a header that only these include."""
    allowed = allowed_users()[library]

    def may(path):
        return any(fnmatch.fnmatch(short(path), pattern) for pattern in allowed)

    users = [s for s in SOURCES if re.search(r"#\s*include\s+<%s" % LIBRARIES[library], open(s, encoding="utf-8").read())]
    assert users, "nobody includes %s: is the pattern right?" % library
    for path in users:
        others = [s for s in SOURCES if os.path.relpath(path, SRC) in [name for _, name in includes(s)]] if path.endswith(".h") else [path]
        assert others and all(may(s) for s in others), "%s includes %s" % (short(path), library)


def test_the_package_knows_no_sources():
    """It starts the binary and reads its JSON: Python, the standard library, and pandas where somebody asks for it."""
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as f:
        assert "| `python/pyrometer` | the Python package: starts the binary, reads its JSON | nothing of the C sources |" in f.read()
    folder = os.path.join(ROOT, "python", "pyrometer")
    files = [f for f in os.listdir(folder) if f != "__pycache__"]
    assert "__init__.py" in files and all(f.endswith(".py") or f == "py.typed" for f in files), files
    for name in files:
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            tree = ast.parse(f.read())
        for node in ast.walk(tree):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else (
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else [])
            for module in modules:
                top = module.split(".")[0]
                assert top in sys.stdlib_module_names or top == "pandas" and node not in tree.body, "%s:%d" % (name, node.lineno)
            assert not (isinstance(node, ast.ImportFrom) and node.level > 1), "%s:%d" % (name, node.lineno)


@pytest.mark.strict
@pytest.mark.parametrize("kind, table", [("unit", "unit_tests"), ("fuzz", "fuzz_targets")])
def test_every_test_is_built(kind, table):
    """A file that Meson does not know of would rot unseen."""
    folder = os.path.join(ROOT, "tests", kind)
    prefix = {"unit": "test_", "fuzz": "fuzz_"}[kind]
    with open(os.path.join(ROOT, "tests", "meson.build"), encoding="utf-8") as f:
        text = f.read()
    named = set(re.findall(r"'(\w+)'", re.search(table + r" = \[(.*?)\]", text, re.S).group(1)))
    named |= set(re.findall(r"'%s/%s(\w+)\.c'" % (kind, prefix), text))  # those that need more than the others
    there = {name[len(prefix):-len(".c")] for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(".c")}
    assert there and there == named, there ^ named

"""`lines`: annotated source, found on the disk, in zip archives, in the recording; and what it does without."""
import csv
import io
import json
import os
import pathlib
import pty
import subprocess
import zipfile

import pytest

import harness
from harness import default_python, pyrometer, record, workload

SPIN = (
    "import time\n"
    "\n"
    "def cold():\n"
    "    return 1\n"
    "\n"
    "def hot(seconds):\n"
    "    end = time.perf_counter() + seconds\n"
    "    x = 0\n"
    "    while time.perf_counter() < end:\n"
    "        x += 1\n"
    "    if x < 0:\n"
    "        return 'never'\n"
    "    return x\n"
    "\n"
    "def other():\n"
    "    pass\n"
    "\n"
)


def lines_of(path, *args):
    return json.loads(pyrometer("lines", path, "--json", *args, check=0).stdout)


def file_of(lines, end):
    found = [f for f in lines["files"] if f["file"].endswith(end)]
    assert len(found) == 1, [f["file"] for f in lines["files"]]
    return found[0]


@pytest.fixture(scope="module")
def spin(tmp_path_factory):
    """(recording, its source): a file that will still be there."""
    folder = tmp_path_factory.mktemp("spin")
    source = folder / "spin_here.py"
    source.write_text(SPIN + "hot(1.0)\n")
    return record([default_python().path, source], folder / "x.pyro"), source


def test_annotated(spin):
    recording, source = spin
    text = pyrometer("lines", recording.path, "--match", "spin_here", check=0).stdout
    shown = {}
    for line in text.splitlines():
        cells = line.split()
        if cells and cells[0].replace(",", "").isdigit():
            number = next((c for c in cells[1:] if c.isdigit()), None)
            if number:  # else it is in no line, such as <moving>
                shown[int(number)] = line
    assert sorted(shown) == [6, 7, 8, 9, 10, 11, 12, 13, 18]  # the whole function, and where it was called
    assert shown[12].split()[0] == "0" and "%" not in shown[12] and shown[12].endswith("        return 'never'")
    assert "%" in shown[9] and "%" in shown[18]
    assert str(source) in text and "changed" not in text and "kept" not in text


def test_json(spin):
    recording, source = spin
    lines = lines_of(recording.path)
    file = file_of(lines, "spin_here.py")
    assert file["source"] == "file" and not file["changed"]
    by_number = {line["line"]: line for line in file["lines"]}
    for number, line in by_number.items():
        assert line["text"] == source.read_text().splitlines()[number - 1]
    assert by_number[12]["samples"] == by_number[12]["total_samples"] == 0 and by_number[12]["function"] is None
    assert by_number[9]["function"] == "hot" and by_number[9]["samples"] + by_number[10]["samples"] > 0.6 * lines["samples"]
    rows = {(r["name"], r["line"]): r for r in recording.rows("--by", "line") if r["file"] and r["file"].endswith("spin_here.py")}
    for (_, number), row in rows.items():
        assert by_number[number]["samples"] == row["samples"]
        assert by_number[number]["total"] == pytest.approx(row["total"])
    contract = pathlib.Path(harness.ROOT, "docs", "json.md").read_text(encoding="utf-8")
    for key in set(lines) | set(file) | set(by_number[9]):
        assert "`%s`" % key in contract, key


def test_csv(spin):
    recording, _ = spin
    table = list(csv.DictReader(io.StringIO(pyrometer("lines", recording.path, "--csv", "--match", "hot", check=0).stdout)))
    assert {row["line"] for row in table if row["file"].endswith("spin_here.py")} >= {"6", "9", "12"}
    assert [row["text"] for row in table if row["line"] == "12"] == ["        return 'never'"]


def test_context(spin):
    recording, _ = spin

    def numbers(*args):
        return [line["line"] for line in file_of(lines_of(recording.path, "--match", "spin_here.py.*hot", *args), "spin_here.py")["lines"]]

    assert numbers() == list(range(6, 14))
    seen = numbers("--context", "0")
    assert set(seen) <= set(range(6, 14)) and {9, 10} <= set(seen)  # 6: a call begins in the line of its def
    assert set(numbers("--context", "1")) == {n + d for n in seen for d in (-1, 0, 1)}
    assert numbers("--context", "99999999999") == list(range(1, 19))
    assert numbers("--min-percent", "20", "--context", "0") == [n for n in seen if n in (9, 10)] or len(seen) <= 3
    pyrometer("lines", recording.path, "--context", "-1", check=2)


def test_selection(spin):
    recording, _ = spin
    everything = lines_of(recording.path)
    assert len(lines_of(recording.path, "--min-percent", "60")["files"]) < len(everything["files"])
    assert lines_of(recording.path, "--min-samples", str(everything["samples"] + 1))["files"] == []
    assert lines_of(recording.path, "--match", "no such thing")["files"] == []
    assert "No line is left" in pyrometer("lines", recording.path, "--match", "no such thing", check=0).stdout
    selves = [f["self"] for f in everything["files"]]
    assert selves == sorted(selves, reverse=True)
    assert "more file" in pyrometer("lines", recording.path, check=0).stdout


def test_changed_since(tmp_path):
    source = tmp_path / "app_changes.py"
    source.write_text(SPIN + "hot(0.9)\n")
    recording = record([default_python().path, source], tmp_path / "x.pyro")
    before = file_of(lines_of(recording.path), "app_changes.py")
    assert before["source"] == "file" and not before["changed"]
    source.write_text("# a new line\n" + SPIN)
    after = file_of(lines_of(recording.path), "app_changes.py")
    assert after["source"] == "kept" and after["changed"]
    assert after["lines"] == before["lines"]
    assert "has changed since" in pyrometer("lines", recording.path, "--match", "app_changes", check=0).stdout
    source.unlink()
    gone = file_of(lines_of(recording.path), "app_changes.py")
    assert gone["source"] == "kept" and not gone["changed"] and gone["lines"] == before["lines"]
    assert "there is no such file" in pyrometer("lines", recording.path, "--match", "app_changes", check=0).stdout


def test_a_file_that_vanishes_while_it_runs(tmp_path):
    source = tmp_path / "ghost.py"
    source.write_text(SPIN + "import os\nhot(0.9)\nos.unlink(__file__)\nhot(0.2)\n")
    recording = record([default_python().path, source], tmp_path / "x.pyro")
    assert not source.exists()
    file = file_of(lines_of(recording.path), "ghost.py")
    assert file["source"] == "kept" and any(line["text"] == "        x += 1" for line in file["lines"])


def test_installed_packages_leave_a_print_only(tmp_path):
    package = tmp_path / "lib" / "python3.99" / "site-packages" / "installed_thing.py"
    package.parent.mkdir(parents=True)
    package.write_text(SPIN)
    recording = record([default_python().path, "-c", "import installed_thing; installed_thing.hot(0.9)"], tmp_path / "x.pyro",
                       env=dict(os.environ, PYTHONPATH=str(package.parent), PYTHONDONTWRITEBYTECODE="1"))
    assert file_of(lines_of(recording.path), "installed_thing.py")["source"] == "file"
    package.write_text(SPIN.replace("never", "NEVER"))
    file = file_of(lines_of(recording.path), "installed_thing.py")
    assert file["changed"] and file["source"] == "file"
    assert "may not fit" in pyrometer("lines", recording.path, "--match", "installed_thing", check=0).stdout
    package.unlink()
    file = file_of(lines_of(recording.path), "installed_thing.py")
    assert file["source"] is None and file["lines"] and all(line["text"] is None and line["total_samples"] for line in file["lines"])
    assert "no source" in pyrometer("lines", recording.path, "--match", "installed_thing", check=0).stdout


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_zip_import(tmp_path, method):
    archive = tmp_path / "bundle.zip"
    with zipfile.ZipFile(archive, "w", method) as z:
        z.writestr("pkg/__init__.py", "")
        z.writestr("pkg/zipped.py", SPIN)
    recording = record([default_python().path, "-c", "from pkg import zipped; zipped.hot(0.9)"], tmp_path / "x.pyro",
                       env=dict(os.environ, PYTHONPATH=str(archive)))
    file = file_of(lines_of(recording.path), "bundle.zip/pkg/zipped.py")
    assert file["source"] == "zip" and not file["changed"]
    assert [line["text"] for line in file["lines"] if line["line"] == 10] == ["        x += 1"]
    archive.unlink()
    kept = file_of(lines_of(recording.path), "bundle.zip/pkg/zipped.py")
    assert kept["source"] == "kept" and kept["lines"] == file["lines"]


def test_relative_to_the_recording(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    (work / "rel.py").write_text(SPIN + "exec(compile(open('rel2.py').read(), 'rel2.py', 'exec'))\n")
    (work / "rel2.py").write_text("hot(0.9)\n")
    recording = record([default_python().path, "rel.py"], tmp_path / "x.pyro", cwd=work)
    monkeypatch.chdir("/")
    file = file_of(lines_of(recording.path), "rel2.py")
    assert file["file"] == "rel2.py" and file["source"] == "file"
    assert file["lines"][0]["text"] == "hot(0.9)"


def test_linecache(python, tmp_path):
    """Code that was never a file, but that Python's own tracebacks can show."""
    program = tmp_path / "cells.py"
    program.write_text(
        "import linecache\n"
        "text = %r + 'hot(0.8)\\n'\n"
        "name = '<ipython-input-7-0123456789ab>'\n"
        "linecache.cache[name] = (len(text), None, text.splitlines(True), name)\n"
        "exec(compile(text, name, 'exec'))\n" % SPIN.replace("never", "n\u00e9ver \u2603"), encoding="utf-8")
    recording = record([python.path, program], tmp_path / "x.pyro")
    file = file_of(lines_of(recording.path), "<ipython-input-7-0123456789ab>")
    assert file["source"] == "kept"
    assert [line["text"] for line in file["lines"] if line["line"] == 12] == ["        return 'n\u00e9ver \u2603'"]


def test_exec_without_source(tmp_path):
    program = "exec(compile(%r + 'hot(0.9)', '<made up>', 'exec'))" % SPIN
    recording = record([default_python().path, "-c", program], tmp_path / "x.pyro")
    file = file_of(lines_of(recording.path), "<made up>")
    assert file["source"] is None and {9, 10} & {line["line"] for line in file["lines"]}


def test_large_texts_are_not_kept(tmp_path):
    source = tmp_path / "large.py"
    source.write_text(SPIN + "hot(0.9)\n" + "# padding\n" * 120000)
    recording = record([default_python().path, source], tmp_path / "x.pyro")
    assert file_of(lines_of(recording.path), "large.py")["source"] == "file"
    assert os.path.getsize(recording.path) < 500000
    source.unlink()
    assert file_of(lines_of(recording.path), "large.py")["source"] is None


def test_what_the_user_may_not_read_is_not_kept(tmp_path, is_root):
    """A recorder with more rights than the program does not lend them."""
    if not is_root:
        pytest.skip("needs root")
    secret = tmp_path / "secret.py"
    secret.write_text("the secret\n" * 100)
    secret.chmod(0o600)
    for folder in [tmp_path, *tmp_path.parents]:
        if str(folder) not in ("/", "/tmp"):
            os.chmod(folder, 0o755)
    program = "import os\nos.setgid(65534); os.setuid(65534)\nexec(compile(%r + 'hot(0.8)', %r, 'exec'))" % (SPIN, str(secret))
    recording = record(["/usr/bin/python3", "-c", program], tmp_path / "x.pyro", check=None)
    data = pathlib.Path(recording.path).read_bytes()
    secret.unlink()
    found = [f for f in lines_of(recording.path)["files"] if f["file"] == str(secret)]
    assert all(f["source"] != "kept" for f in found) and b"the secret" not in data


# --- bad days ---


def test_names_that_bite(tmp_path):
    """Control characters, HTML, right-to-left marks, a name of a megabyte: text stays text."""
    program = (
        "text = %r\n"
        "for i, name in enumerate(['\\x1b[31mred\\n', '<script>alert(1)</script>', 'a\\u202eb', 'n' * 1000000]):\n"
        "    scope = {}\n"
        "    exec(compile(text.replace('def hot', 'def hot%%d' %% i), name, 'exec'), scope)\n"
        "    scope['hot%%d' %% i](0.25)\n" % SPIN)
    recording = record([default_python().path, "-c", program], tmp_path / "x.pyro")
    out = pyrometer("lines", recording.path, "--min-percent", "0", check=0).stdout
    assert "\x1b" not in out and "\u202e" not in out and "\\x1b[31mred\\x0a" in out and "a\\u202eb" in out
    names = {f["file"] for f in lines_of(recording.path)["files"]}
    assert {"\x1b[31mred\n", "<script>alert(1)</script>", "a\u202eb"} <= names
    list(csv.reader(io.StringIO(pyrometer("lines", recording.path, "--csv", check=0).stdout)))


def test_sources_that_bite(tmp_path):
    """A source with escapes, tabs and bytes that are not UTF-8, and one that is cut short."""
    source = tmp_path / "odd.py"
    source.write_bytes(b"# -*- coding: latin-1 -*-\nimport time\ndef hot(s):\n\tend = time.perf_counter() + s\n"
                       b"\twhile time.perf_counter() < end:\n\t\tx = '\xe9\x1b[31m'\n\ty = '''\nhot(0.9)\n'''\nhot(0.9)\n")
    recording = record([default_python().path, source], tmp_path / "x.pyro")
    out = pyrometer("lines", recording.path, "--match", "odd.py", check=0).stdout
    assert "\x1b" not in out and "                x = '\\xe9\\x1b[31m'" in out
    lines_of(recording.path)


def test_too_short(tmp_path):
    recording = record([default_python().path, "-c", "pass"], tmp_path / "x.pyro", "--sample=10")
    assert "too short" in pyrometer("lines", recording.path, check=0).stdout or "no samples" in pyrometer("lines", recording.path).stdout
    lines = lines_of(recording.path)
    assert lines["too_short"] and lines["files"] == []
    assert len(pyrometer("lines", recording.path, "--csv", check=0).stdout.splitlines()) == 1


def test_bad_files(spin, tmp_path):
    recording, _ = spin
    data = pathlib.Path(recording.path).read_bytes()
    bad = tmp_path / "bad.pyro"
    bad.write_bytes(b"")
    assert "empty" in harness.one_line_error(pyrometer("lines", bad), 1)
    for cut in (70, len(data) // 3, len(data) // 2, len(data) - 3):
        bad.write_bytes(data[:cut])
        done = pyrometer("lines", bad, check=0)
        assert "torn" in done.stderr or "not finished" in done.stderr
    for place in range(64, len(data), max(1, len(data) // 60)):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        bad.write_bytes(damaged)
        assert pyrometer("lines", bad, "--json").returncode in (0, 1)


def test_usage(spin):
    recording, _ = spin
    assert "one RUN" in harness.one_line_error(pyrometer("lines", recording.path, recording.path), 2)
    assert "one too many" in harness.one_line_error(pyrometer("lines", recording.path, "--json", "--csv"), 2)
    assert "between 0 and 100" in harness.one_line_error(pyrometer("lines", recording.path, "--min-percent", "101"), 2)
    assert "regular" in harness.one_line_error(pyrometer("lines", recording.path, "--match", "("), 2)


def test_reader_that_goes_away(spin):
    recording, _ = spin
    for args in ("--min-percent 0", "--json", "--csv"):
        done = subprocess.run("set -o pipefail; '%s' lines '%s' %s | head -c 10" % (harness.PYROMETER, recording.path, args), shell=True,
                              executable="/bin/bash", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.stderr == b"", done.stderr
    with open("/dev/full", "w") as full:
        assert "cannot write" in harness.one_line_error(pyrometer("lines", recording.path, stdout=full), 1)


def test_narrow_terminal(spin):
    recording, _ = spin
    master, slave = pty.openpty()
    import fcntl
    import struct
    import termios
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 20, 0, 0))
    process = subprocess.Popen([harness.PYROMETER, "lines", recording.path], stdout=slave, stdin=slave, env=dict(os.environ, TERM="dumb"))
    os.close(slave)
    out = harness.read_to_end(master)
    os.close(master)
    assert process.wait() == 0 and b"\x1b" not in out and out


def test_same_output_twice(spin):
    recording, _ = spin
    for args in ([], ["--json"], ["--csv"]):
        assert pyrometer("lines", recording.path, *args).stdout == pyrometer("lines", recording.path, *args).stdout


def test_workload_lines(tmp_path):
    recording = record([default_python().path, workload("lines.py")], tmp_path / "x.pyro")
    assert file_of(lines_of(recording.path), "workloads/lines.py")["source"] == "file"

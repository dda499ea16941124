"""`report` and `export`: the same recording, cut in every way."""
import csv
import io
import json
import os
import re

import pytest

from harness import ROOT, Recording, frame_name, one_line_error, pyrometer, record, workload


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    from harness import default_python
    path = tmp_path_factory.mktemp("shares") / "x.pyro"
    return record([default_python().path, workload("shares.py"), "1.5"], path)


def test_unknown_sort_key_lists_those_of_the_help():
    line = one_line_error(pyrometer("report", "--sort", "bogus"), 2)
    item = re.search(r"--sort KEY\s+(.*?)The beginning", pyrometer("report", "--help", check=0).stdout, re.S).group(1)
    told = set(re.findall(r"\w+", line.partition("one of ")[2]))
    assert told and told <= set(re.findall(r"\w+", item)), (told, item)
    assert len(told) == 16 and {"self", "total", "samples", "cumtime", "ncalls", "tottime", "filename"} <= told, line


def test_one_is_not_many(tmp_path):
    """A row too many is "1 more row"."""
    (tmp_path / "x.txt").write_text("a;b 60\nc 40\n")
    assert "… and 1 more row (" in pyrometer("report", "--limit", "2", tmp_path / "x.txt", check=0).stdout
    assert "… and 2 more rows (" in pyrometer("report", "--limit", "1", tmp_path / "x.txt", check=0).stdout


def test_json_contract(shares):
    """The fields of docs/json.md, and nothing that is not what it says."""
    report = shares.report()
    assert set(report) >= {"run", "metric", "unit", "total", "rows"}
    assert report["metric"] == "wall" and report["unit"] == "seconds"
    assert report["rows"]
    for row in report["rows"]:
        assert set(row) >= {"name", "file", "line", "self", "total", "self_percent", "total_percent"}
        assert abs(row["self"] / report["total"] * 100 - row["self_percent"]) < 0.01
        assert abs(row["total"] / report["total"] * 100 - row["total_percent"]) < 0.01
        assert isinstance(row["line"], int) or row["line"] is None
    for field in set(report) | set(report["rows"][0]):
        assert "`%s`" % field in CONTRACT, "docs/json.md does not know %s" % field


with open(os.path.join(ROOT, "docs", "json.md"), encoding="utf-8") as document:
    CONTRACT = document.read()


def promised(*titles):
    """The keys in the first table behind the last of these titles, which follow each other in docs/json.md."""
    text = CONTRACT
    for title in titles:
        assert text.count("\n%s\n" % title) >= 1, title
        text = text.partition("\n%s\n" % title)[2]
    table = re.search(r"\n\| key \|.*\n\|[-|]+\n((?:\|.*\n)+)", text).group(1)
    return {key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_json_contract_of_the_parts(shares):
    """What several commands print: all of it, and nothing else."""
    for printed in (shares.report(), shares.info()):
        assert set(printed["run"]) == promised("### `run`: the recording")
        assert set(printed["sampling"]) == promised("### `sampling`: how it was sampled")
        assert set(printed["losses"]) == promised("### `losses`: what is missing")


def test_json_contract_of_info(shares):
    info = shares.info()
    assert set(info) == promised("## pyrometer info --json")
    text = CONTRACT.partition("## pyrometer info --json")[2].partition("\n## ")[0] + "\n"
    for part in ("processes", "threads", "chunks"):
        told = re.search(r"\n`%s`[:,](.*?)\n\n" % part, text, re.S).group(1)
        for key in info[part][0]:
            assert "`%s`" % key in told, "docs/json.md does not know %s of %s" % (key, part)


def test_json_contract_of_verify(shares, tmp_path):
    whole = json.loads(pyrometer("verify", "--json", shares.path, check=0).stdout)
    assert set(whole) == promised("## pyrometer verify --json")
    with open(shares.path, "rb") as f:
        (tmp_path / "torn.pyro").write_bytes(f.read()[:-9])
    torn = json.loads(pyrometer("verify", "--json", "--repair", tmp_path / "torn.pyro", check=0).stdout)
    assert set(torn) == set(whole) and torn["repaired"] == str(tmp_path / "torn-repaired.pyro")


def test_json_contract_of_dump(target):
    from harness import default_python
    one = target([default_python().path, workload("chains.py"), "10", "20000", "60"])
    dump = json.loads(pyrometer("dump", "--json", "--locals", one.pid, check=0).stdout)
    assert set(dump) == promised("## pyrometer dump --json")
    thread = dump["threads"][0]
    assert set(thread) == promised("## pyrometer dump --json", "A thread:")
    assert set(thread["frames"][0]) == promised("## pyrometer dump --json", "A frame:")


def test_sorted_by_self_and_by_total(shares):
    own = [r["self"] for r in shares.rows("--sort", "self")]
    assert own == sorted(own, reverse=True)
    total = [r["total"] for r in shares.rows("--sort", "total")]
    assert total == sorted(total, reverse=True)
    names = [r["name"] for r in shares.rows("--sort", "name")]
    assert names == sorted(names)


def test_match(shares):
    rows = shares.rows("--match", "hot_[27]0")
    assert {r["name"] for r in rows} == {"hot_20", "hot_70"}
    everything = {r["name"]: r["self_percent"] for r in shares.rows()}
    for row in rows:  # a filter of rows, not of time
        assert row["self_percent"] == everything[row["name"]]


def test_limit_and_min_percent(shares):
    done = pyrometer("report", shares.path, "--json", "--limit", "2", check=0)
    assert len(json.loads(done.stdout)["rows"]) == 2
    done = pyrometer("report", shares.path, "--json", "--min-percent", "50", check=0)
    rows = json.loads(done.stdout)["rows"]
    assert rows and all(r["total_percent"] >= 50 for r in rows)
    assert "hot_10" not in {r["name"] for r in rows}


@pytest.mark.parametrize("by", ["function", "line", "file", "module", "thread", "process"])
def test_every_cut_in_every_form(shares, by):
    text = pyrometer("report", shares.path, "--by", by, check=0).stdout
    assert text.strip() and "\x1b" not in text
    rows = shares.rows("--by", by)
    assert rows
    table = list(csv.DictReader(io.StringIO(pyrometer("report", shares.path, "--by", by, "--csv", check=0).stdout)))
    assert len(table) >= 1
    assert {"name", "self", "total", "self_percent", "total_percent"} <= set(table[0])
    assert table[0]["name"] == rows[0]["name"]
    expect = {"function": "hot_70", "line": "shares.py", "file": "shares.py", "module": "shares", "thread": "MainThread",
              "process": "shares.py"}[by]
    assert expect in text, text


def test_callers_and_callees(shares):
    # the neighbours of a function: who called hot_70, what main called
    text = pyrometer("report", shares.path, "--callers", "--match", "hot_70", check=0).stdout
    assert "main" in text
    text = pyrometer("report", shares.path, "--callees", "--match", "^main$", check=0).stdout
    for name in ("hot_70", "hot_20", "hot_10"):
        assert name in text
    rows = shares.rows("--callees", "--match", "^main$")
    callees = {c["name"]: c for r in rows for c in r["callees"]}
    assert set(callees) >= {"hot_70", "hot_20", "hot_10"}
    assert callees["hot_70"]["total"] > callees["hot_20"]["total"] > callees["hot_10"]["total"]
    rows = shares.rows("--callers", "--match", "hot_70")
    assert [c["name"] for c in rows[0]["callers"]] == ["main"]


def test_error_bars_where_the_sample_is_small(tmp_path):
    from harness import default_python, spin_text
    small = record([default_python().path, "-c", spin_text("spin", 0.3)], tmp_path / "x.pyro", "--sample=100")
    assert "±" in pyrometer("report", small.path, check=0).stdout


def test_collapsed(shares, tmp_path):
    stacks = shares.stacks()
    assert all(count > 0 for _, count in stacks)
    assert sum(count for _, count in stacks) == shares.stats()["samples"]
    hot = [(frames, count) for frames, count in stacks if frame_name(frames[-1]) == "hot_70"]
    assert sum(count for _, count in hot) > 0.4 * sum(count for _, count in stacks)
    assert [frame_name(f) for f in hot[0][0]] == ["<module>", "main", "hot_70"]
    out = tmp_path / "out.txt"
    pyrometer("export", "collapsed", shares.path, "-o", out, check=0)
    assert out.read_text(encoding="utf-8") == pyrometer("export", "collapsed", shares.path).stdout
    assert pyrometer("export", "collapsed", shares.path, "-o", out).returncode == 1  # it exists
    pyrometer("export", "collapsed", shares.path, "-o", out, "--force", check=0)


def test_hostile_names(tmp_path):
    """Names with separators, newlines, escapes and quotes in them break no output."""
    from harness import default_python
    text = (
        "import time\n"
        "def f():\n"
        "    end = time.perf_counter() + 0.4\n"
        "    while time.perf_counter() < end: pass\n"
        "code = f.__code__.replace(co_name='a;b \"c\",\\n\\x1b[31m\\x00é', co_filename='x;\\ny\\x1b')\n"
        "try:\n"
        "    code = code.replace(co_qualname=code.co_name)\n"
        "except TypeError:\n"
        "    pass\n"
        "f.__code__ = code\n"
        "f()\n"
    )
    recording = record([default_python().path, "-c", text], tmp_path / "x.pyro")
    names = [r["name"] for r in recording.rows()]
    assert 'a;b "c",\n\x1b[31m\x00é' in names
    for out in (pyrometer("report", recording.path, check=0).stdout, pyrometer("export", "collapsed", recording.path).stdout):
        assert "\x1b" not in out and "\x00" not in out
    hostile = [frames for frames, _ in recording.stacks() if any("31m" in frame for frame in frames)]
    assert hostile and all(len(frames) == 2 for frames in hostile), hostile
    rows = list(csv.reader(io.StringIO(pyrometer("report", recording.path, "--csv").stdout)))
    assert len({len(r) for r in rows}) == 1


def test_same_recording_same_output(shares):
    for args in (["report", shares.path], ["report", shares.path, "--json"], ["export", "collapsed", shares.path], ["info", shares.path]):
        assert pyrometer(*args).stdout == pyrometer(*args).stdout


def test_last_run_is_the_default(tmp_path):
    from harness import default_python
    pyrometer("run", "--quiet", "--", default_python().path, workload("shares.py"), "0.4", check=0)
    assert json.loads(pyrometer("report", "--json", check=0).stdout) == json.loads(pyrometer("report", "@", "--json").stdout)
    assert Recording("@").row("hot_70")


def test_modules_of_the_same_name(default_python, tmp_path):
    """Outside of the folders that Python knows a module is called by its file: two of them stay two."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "util.py").write_text("def work(): pass\nfor _ in range(7): work()\n", encoding="utf-8")
    text = "import runpy\nfor folder in ('one', 'two'): runpy.run_path(folder + '/util.py')"
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", "--calls", cwd=tmp_path)
    rows = [r for r in recording.report("--by", "module")["rows"] if r["name"] == "util"]
    assert sorted(os.path.dirname(r["file"]) for r in rows) == ["one", "two"]

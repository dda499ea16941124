"""Other tools' files as RUN: pstats, collapsed stacks, speedscope; good, damaged and hostile ones."""
import json
import marshal
import os
import random
import struct
import subprocess

import pytest

from harness import Recording, one_line_error, pyrometer

SCRIPT = """
import cProfile, profile, sys
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def leaf(): return sum(i * i for i in range(2000))
def left(): return [leaf() for _ in range(30)]
def right(): return [leaf() for _ in range(10)]
def main():
    left(); right(); fib(15)
for kind, path in ((cProfile, sys.argv[1]), (profile, sys.argv[2])):
    p = kind.Profile()
    p.runcall(main)
    p.dump_stats(path)
"""
VIEWS = [("report",), ("report", "--callers", "--callees"), ("export", "collapsed"), ("export", "speedscope"),
         ("export", "callgrind"), ("export", "dot"), ("export", "csv"), ("export", "json"), ("export", "pprof")]


@pytest.fixture(scope="module")
def prof(tmp_path_factory):
    """(cProfile's file, profile's file) of an interpreter; made once."""
    made = {}

    def make(python):
        if python.name not in made:
            folder = tmp_path_factory.mktemp("prof")
            subprocess.run([python.path, "-c", SCRIPT, folder / "c.prof", folder / "p.prof"], check=True)
            made[python.name] = (folder / "c.prof", folder / "p.prof")
        return made[python.name]
    return make


def row_key(row):
    return row["file"] or "", row["line"] or 0, row["name"]


def stat_key(key):
    return "" if key[0] == "~" else key[0], key[1], key[2]


def test_pstats_is_exact(python, prof):
    """Calls, times, callers: as Python's own marshal reads them, to the nanosecond."""
    for path in prof(python):
        with open(path, "rb") as f:
            stats = marshal.load(f)
        report = Recording(path).report("--callers")
        assert report["metric"] == "time" and report["unit"] == "seconds"
        rows = {row_key(r): r for r in report["rows"]}
        stats = {stat_key(k): v for k, v in stats.items() if v[1]}  # `profile` lists itself, never called
        assert set(rows) == set(stats)
        assert report["total"] == pytest.approx(sum(v[2] for v in stats.values()), rel=1e-6)
        for key, (primitive, calls, self, total, callers) in stats.items():
            row = rows[key]
            assert (row["calls"], row["primitive_calls"]) == (calls, primitive)
            assert row["self"] == pytest.approx(self, abs=2e-9) and row["total"] == pytest.approx(total, abs=2e-9)
            assert row["error_percent"] == 0
            told = {row_key(c): c for c in row["callers"]}
            callers = {stat_key(k): v for k, v in callers.items()}
            assert set(told) == set(callers)
            for caller, values in callers.items():
                if isinstance(values, tuple):
                    assert (told[caller]["calls"], told[caller]["primitive_calls"]) == values[:2]
                    assert told[caller]["total"] == pytest.approx(values[3], abs=2e-9)
                else:
                    assert told[caller]["calls"] == values


def test_pstats_in_every_view(python, prof):
    for path in prof(python):
        for view in VIEWS:
            assert pyrometer(*view, path, check=0, text=False).stdout
        assert "estimate" in pyrometer("report", path, check=0).stdout


def test_pstats_tree_keeps_the_time(python, prof):
    """The selves of the estimated tree add up to the measured whole."""
    path = prof(python)[0]
    lines = pyrometer("export", "collapsed", path, check=0).stdout.splitlines()
    whole = sum(int(line.rpartition(" ")[2]) for line in lines)
    assert whole == pytest.approx(Recording(path).report()["total"] * 1e6, rel=0.01)


def test_pstats_tree_is_shared_out(tmp_path):
    """What a function spends in its callee goes to its callers as its own total does, here 3 : 1."""
    def key(name):
        return "a.py", len(name), name
    stats = {
        key("main"): (1, 1, 1.0, 9.0, {}),
        key("left"): (1, 1, 0.0, 6.0, {key("main"): (1, 1, 0.0, 6.0)}),
        key("right"): (1, 1, 0.0, 2.0, {key("main"): (1, 1, 0.0, 2.0)}),
        key("middle"): (4, 4, 4.0, 8.0, {key("left"): (3, 3, 3.0, 6.0), key("right"): (1, 1, 1.0, 2.0)}),
        key("leaf"): (4, 4, 4.0, 4.0, {key("middle"): (4, 4, 4.0, 4.0)}),
    }
    lines = pyrometer("export", "collapsed", dump(stats, 4, tmp_path / "x.prof"), check=0).stdout.splitlines()
    tree = {tuple(f.partition(" ")[0] for f in line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2]) / 1e6 for line in lines}
    assert tree == {("main",): 1, ("main", "left", "middle"): 3, ("main", "left", "middle", "leaf"): 3,
                    ("main", "right", "middle"): 1, ("main", "right", "middle", "leaf"): 1}


def dump(value, version, path):
    path.write_bytes(marshal.dumps(value, version))
    return path


STATS = {("app.py", 3, "f"): (1, 2, 0.5, 1.5, {("app.py", 9, "main"): (2, 1, 0.5, 1.5)}),
         ("app.py", 9, "main"): (1, 1, 0.25, 1.75, {})}


@pytest.mark.parametrize("version", range(0, 5))
def test_marshal_versions(version, tmp_path):
    rows = {r["name"]: r for r in Recording(dump(STATS, version, tmp_path / "x.prof")).rows()}
    assert rows["f"]["self"] == 0.5 and rows["f"]["calls"] == 2 and rows["main"]["total"] == 1.75


def test_large_counts_and_odd_names(tmp_path):
    stats = {("\u202e.py", 1, "<script>\x1b[31m"): (2**40, 2**40, 1e-9, 3e5, {}), ("~", 0, "n" * 1000000): (1, 1, 0.0, 0.0, {})}
    report = Recording(dump(stats, 4, tmp_path / "x.prof")).report()
    assert sorted(r["calls"] for r in report["rows"]) == [1, 2**40]
    assert "\x1b" not in pyrometer("report", tmp_path / "x.prof", check=0).stdout


@pytest.mark.parametrize("stats", [
    {1: 2}, {("a", 1): (1, 1, 1.0, 1.0, {})}, {("a", 1, "b"): (1, 1, 1.0)}, {("a", 1, "b"): (1, 1, 1.0, 1.0, 5)},
    {("a", 1, "b"): (1, 1, 1.0, 1.0, {1: 2})}, {(1, "a", "b"): (1, 1, 1.0, 1.0, {})},
], ids=["numbers", "short-key", "short-value", "no-callers", "bad-caller", "key-order"])
def test_marshal_that_is_not_pstats(stats, tmp_path):
    line = one_line_error(pyrometer("report", dump(stats, 4, tmp_path / "x.prof")), 1)
    assert "pstats" in line or "not a Pyrometer recording" in line


@pytest.mark.parametrize("stats", [
    {("a", 1, "b"): (-1, -1, -1.0, float("nan"), {})}, {("a", -5, ""): (1, 1, float("inf"), 1e300, {})},
    {("a", 1, "b"): (1, 1, 1.0, 1.0, {("a", 1, "b"): (1, 1, 1.0, 1.0)})},
    {("a", 1, "b"): (1, 1, 1.0, 2.0, {("a", 1, "c"): (1, 1, 1.0, 2.0)}), ("a", 1, "c"): (1, 1, 1.0, 2.0, {("a", 1, "b"): (1, 1, 1.0, 2.0)})},
], ids=["negative", "infinite", "own-caller", "circle"])
def test_absurd_numbers(stats, tmp_path):
    path = dump(stats, 4, tmp_path / "x.prof")
    for view in VIEWS:
        pyrometer(*view, path, check=0, text=False)


def test_truncated_pstats(tmp_path):
    whole = marshal.dumps(STATS, 4)
    for cut in range(2, len(whole)):
        (tmp_path / "x.prof").write_bytes(whole[:cut])
        line = one_line_error(pyrometer("report", tmp_path / "x.prof"), 1)
        assert "pstats" in line or "not a Pyrometer" in line, (cut, line)


@pytest.mark.parametrize("evil", [
    b"{" + b"(\xff\xff\xff\x7f" * 10, b"{" * 100000, b"{(" + struct.pack("<I", 3) + b"r\0\0\0\0" * 3, b"\xfb\xa9\x03r\0\0\0\0",
    b"{)\x03u\xff\xff\xff\xff", b"{)\x03c" + b"\0" * 100, b"{(" + b"\x01\0\0\0(" * 100000,
], ids=["huge-tuple", "deep-dicts", "no-such-ref", "ref-to-itself", "huge-text", "code-object", "deep-tuples"])
def test_hostile_marshal(evil, tmp_path):
    (tmp_path / "x.prof").write_bytes(evil)
    one_line_error(pyrometer("report", tmp_path / "x.prof"), 1)


def test_nothing_is_executed(tmp_path):
    """A pickle that would run a command, and a code object, are refused or plain data."""
    import pickle

    class Evil:
        def __reduce__(self):
            return os.system, ("touch %s" % (tmp_path / "ran"),)
    (tmp_path / "x.prof").write_bytes(pickle.dumps(Evil()))
    one_line_error(pyrometer("report", tmp_path / "x.prof"), 1)
    dump({("a", 1, "b"): (1, 1, 1.0, 1.0, {("a", 1, "c"): compile("x", "y", "exec")})}, 4, tmp_path / "y.prof")
    one_line_error(pyrometer("report", tmp_path / "y.prof"), 1)
    assert not (tmp_path / "ran").exists()


def test_mutated_files(tmp_path):
    """Any byte may be wrong; the status is 0 or 1 and nothing crashes."""
    seeds = [marshal.dumps(STATS, 4), json.dumps(SPEEDSCOPE).encode(), b"a;b 3\na;c (x.py:3) 4\n"]
    dice = random.Random(5)
    for i in range(150):
        data = bytearray(seeds[i % 3])
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        (tmp_path / "x").write_bytes(data)
        assert pyrometer("report", tmp_path / "x", "--json", text=False).returncode in (0, 1)


# --- collapsed ---


def test_collapsed(tmp_path):
    (tmp_path / "x").write_text("# by hand\nmain;f (app.py:3) 30\r\n\nmain;f (app.py:4);<lambda> 10\nmain 2.6\nmain;g (a b) (c).py) 1e1\n")
    report = Recording(tmp_path / "x").report()
    assert (report["metric"], report["unit"], report["total"]) == ("samples", "count", 53)
    rows = {r["name"]: r for r in report["rows"]}
    assert rows["main"]["total"] == 53 and rows["main"]["self"] == 3
    assert rows["f"]["total"] == 40 and rows["f"]["file"] == "app.py"
    lines = {(r["name"], r["line"]): r["self"] for r in Recording(tmp_path / "x").rows("--by", "line")}
    assert lines["f", 3] == 30 and lines["f", 4] == 0
    assert pyrometer("export", "collapsed", tmp_path / "x", check=0).stdout.splitlines()[0] == "main 3"


@pytest.mark.parametrize("text", ["main;f 3\nno number here\n", "main;f 3\n\0\0 4\n", "a 1\nb -4\n", "a 1\nb 1e999\n"])
def test_bad_collapsed(text, tmp_path):
    (tmp_path / "x").write_text(text)
    assert "not a stack and a number" in one_line_error(pyrometer("report", tmp_path / "x"), 1)


def test_deep_and_wide_collapsed(tmp_path):
    (tmp_path / "x").write_text(";".join("f%d" % i for i in range(20000)) + " 5\n" + "x" * 5000000 + " 1\n")
    assert Recording(tmp_path / "x").report()["total"] == 6
    for view in VIEWS:
        pyrometer(*view, tmp_path / "x", check=0, text=False)


# --- speedscope ---

SPEEDSCOPE = {
    "profiles": [  # before "shared", as it may be
        {"weights": [1, 2, 3], "samples": [[0], [0, 1], [0, 1, 2]], "type": "sampled", "name": "A", "unit": "seconds", "startValue": 0, "endValue": 6},
        {"type": "evented", "name": "B", "unit": "milliseconds", "startValue": 0, "endValue": 100, "events": [
            {"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 2, "at": 40}, {"type": "C", "frame": 2, "at": 90},
            {"type": "C", "frame": 0, "at": 100}]}],
    "shared": {"frames": [{"name": "main", "file": "app.py", "line": 1}, {"name": "f\\u00e9 \\ud83d\\ude00"}, {"name": "g", "col": 4}]},
    "$schema": "https://www.speedscope.app/file-format-schema.json",
}


def test_speedscope(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(SPEEDSCOPE))
    run = Recording(tmp_path / "x.json")
    report = run.report()
    assert report["total"] == pytest.approx(6.1) and report["unit"] == "seconds"
    rows = {r["name"]: r["self"] for r in report["rows"]}
    assert rows["main"] == pytest.approx(1.05) and rows["g"] == pytest.approx(3.05)
    threads = {r["name"]: r["self"] for r in run.rows("--by", "thread")}
    assert threads["A"] == pytest.approx(6) and threads["B"] == pytest.approx(0.1)
    assert run.report("--thread", "B")["total"] == pytest.approx(0.1)


@pytest.mark.parametrize("unit,metric", [("none", "samples"), ("bytes", "bytes"), ("nanoseconds", "wall")])
def test_speedscope_units(unit, metric, tmp_path):
    data = json.loads(json.dumps(SPEEDSCOPE))
    data["profiles"] = data["profiles"][:1]
    data["profiles"][0]["unit"] = unit
    (tmp_path / "x.json").write_text(json.dumps(data))
    report = Recording(tmp_path / "x.json").report()
    assert report["metric"] == metric
    assert report["total"] == pytest.approx(6e-9 if metric == "wall" else 6)


@pytest.mark.parametrize("change", [
    lambda d: d["profiles"][0]["samples"][0].append(3), lambda d: d["profiles"][0]["weights"].pop(),
    lambda d: d["profiles"][0]["samples"][0].append(-1), lambda d: d["profiles"][0].update(unit="parsecs"),
    lambda d: d["profiles"][1]["events"].insert(0, {"type": "C", "frame": 0, "at": 0}), lambda d: d["profiles"][1].update(unit="bytes"),
    lambda d: d["profiles"][0]["samples"].append("x"), lambda d: d["shared"]["frames"].append(5),
], ids=["frame-range", "weights", "negative", "unit", "close", "mixed-units", "no-list", "no-frame"])
def test_bad_speedscope(change, tmp_path):
    data = json.loads(json.dumps(SPEEDSCOPE))
    change(data)
    (tmp_path / "x.json").write_text(json.dumps(data))
    assert "speedscope" in one_line_error(pyrometer("report", tmp_path / "x.json"), 1)


@pytest.mark.parametrize("text", ['{"a":1}', "[1,2]", '{"traceEvents":[]}', "{" * 1000, '{"shared":' + "[" * 100000])
def test_other_json(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    one_line_error(pyrometer("report", tmp_path / "x.json"), 1)


# --- folders ---


def test_a_folder_is_listed(tmp_path):
    dump(STATS, 4, tmp_path / "old.prof")
    (tmp_path / "x.collapsed").write_text("a;b 3\n")
    (tmp_path / "y.json").write_text(json.dumps(SPEEDSCOPE))
    (tmp_path / "notes.md").write_text("hello\n")
    out = pyrometer("report", tmp_path, check=0).stdout
    for name, kind in (("old.prof", "pstats"), ("x.collapsed", "collapsed"), ("y.json", "speedscope")):
        assert any(line.split()[:2] == [name, kind] for line in out.splitlines()), out
    assert "notes.md" not in out and "1 other" in out
    one_line_error(pyrometer("export", "csv", tmp_path), 1)
    (tmp_path / "empty").mkdir()
    assert "no profile" in one_line_error(pyrometer("report", tmp_path / "empty"), 1)

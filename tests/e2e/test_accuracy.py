"""The shares, lines and names in a report are those of the program."""
import json
import math
import re
import subprocess

import pytest

from harness import frame_name, is_marked, pyrometer, record, workload


def near(percent, truth, samples):
    """Within 3 sigma of a sample of that size, and half a point."""
    p = truth / 100
    allowed = 3 * 100 * math.sqrt(p * (1 - p) / samples) + 0.5
    return abs(percent - truth) <= allowed


@pytest.mark.serial
def test_shares(python, tmp_path):
    recording = record([python.path, workload("shares.py"), "2"], tmp_path / "x.pyro")
    truth = json.loads(recording.stdout)
    for name, share in (("hot_70", 70), ("hot_20", 20), ("hot_10", 10)):
        assert abs(truth["cpu"][name] - share) < 1.5, "the program itself missed its shares: %s" % truth
    samples = recording.stats()["samples"]
    assert samples > 500, samples
    for metric in ("wall", "cpu"):
        rows = {r["name"]: r["self"] for r in recording.rows("--metric", metric) if r["name"].startswith("hot_")}
        total = sum(rows.values())
        assert total > 0
        for name in ("hot_70", "hot_20", "hot_10"):
            got = 100 * rows.get(name, 0) / total
            # what a thread that waits for a CPU was doing counts for it: hence the wall clock's truth
            assert near(got, truth["wall"][name], samples), "%s by %s: %.2f, truly %.2f (%d samples)" % (
                name, metric, got, truth["wall"][name], samples)


ONE_LINE = """
import time
def one(): time.sleep(0.1)
class Kind:
    def method(self): return [time.sleep(0.01) for _ in range(10)]
def outer():
    return (lambda: time.sleep(0.1))()
one(), Kind().method(), outer()
"""


def test_code_on_one_line(python, tmp_path):
    """Below 3.10 such code has an empty table of lines."""
    (tmp_path / "one.py").write_text(ONE_LINE)
    recording = record([python.path, tmp_path / "one.py"], tmp_path / "x.pyro")
    rows = [r for r in recording.rows("--by", "line") if (r["file"] or "").endswith("one.py")]
    lines = {r["name"].split(".")[-1]: r["line"] for r in rows}
    assert lines.pop("<listcomp>", 5) == 5  # from 3.12 on it is no function
    lines.pop("<module>", None)
    assert lines == {"one": 3, "method": 5, "outer": 7, "<lambda>": 7}


def test_lines(python, tmp_path):
    recording = record([python.path, workload("lines.py"), "1.2"], tmp_path / "x.pyro", "--sample=2000")
    marks = json.loads(recording.stdout)
    assert set(marks) == {"plain", "spread", "long_body", "inner", "nested"}
    lines = {}
    for row in recording.rows("--by", "line"):
        if (row["file"] or "").endswith("lines.py"):
            lines.setdefault(row["line"], []).append(row)
    mine = sum(r["self"] for rows in lines.values() for r in rows)
    functions = {r["name"].split(".")[-1]: r for r in recording.rows() if (r["file"] or "").endswith("lines.py")}

    def self_on(*numbers):
        return sum(r["self"] for n in numbers for r in lines.get(n, []))

    for name, numbers in {
        "plain": [marks["plain"]],
        "spread": [marks["spread"], marks["spread"] - 1],
        "long_body": [marks["long_body"]],
        "inner": [marks["inner"]],
    }.items():
        assert functions[name]["self"] > 0.1 * mine, (name, functions)
        assert self_on(*numbers) > 0.9 * functions[name]["self"], (
            name, numbers, {n: [r["self"] for r in rows] for n, rows in lines.items()})
    # both halves of the two-line sum
    assert self_on(marks["spread"]) > 0.2 * functions["spread"]["self"]
    assert self_on(marks["spread"] - 1) > 0.2 * functions["spread"]["self"]
    # a caller's line is the line of the call
    called = sum(r["total"] for r in lines.get(marks["nested"], []))
    assert called > 0.9 * functions["inner"]["total"]


def check_boundaries(recording):
    """C code that calls back leaves no gap: its caller stands right above what it called, in every stack."""
    stacks = [[frame_name(f) for f in frames] for frames, _ in recording.stacks() if not is_marked(frames)]
    for chain in (["main", "sorts", "key_of"], ["main", "substitutes", "sub", "replacement"], ["main", "calls_c", "from_c"]):
        called = [names for names in stacks if chain[-1] in names]
        assert called, "%s is in no stack" % chain[-1]
        for names in called:
            end = names.index(chain[-1]) + 1
            assert names[:end] == ["<module>"] + chain, names


def test_names(python, tmp_path):
    recording = record([python.path, workload("names.py"), "1.4"], tmp_path / "x.pyro")
    check_boundaries(recording)
    rows = recording.rows()
    names = {r["name"] for r in rows}
    qualified = python.version >= (3, 11)
    expected = {
        "main.<locals>.<lambda>" if qualified else "<lambda>",
        "Outer.Inner.method" if qualified else "method",
        "Outer.Inner.static" if qualified else "static",
        "Outer.make.<locals>.closure" if qualified else "closure",
        "from_text",
        "générateur",
        "main",
        "<module>",
    }
    if python.version < (3, 12):  # comprehensions are part of their function from then on
        expected.add("main.<locals>.<listcomp>" if qualified else "<listcomp>")
    assert expected <= names, expected - names
    files = {r["name"]: r["file"] for r in rows}
    assert files["from_text"] == "<string>"
    assert any((r["file"] or "").startswith("<frozen importlib") for r in rows)
    lines = {r["name"].split(".")[-1]: r["line"] for r in rows}
    with open(workload("names.py"), encoding="utf-8") as f:
        source = f.read().splitlines()
    for name in ("method", "spin"):
        assert source[lines[name] - 1].strip().startswith("def %s(" % name)


def test_coroutines(python, tmp_path):
    # leaves that last for many looks: of quicker ones below 3.11 none may be believed within a second
    stacks = record([python.path, workload("coroutines.py"), "1", "3000"], tmp_path / "x.pyro").stacks()
    seen = set()
    for frames, _ in stacks:
        chain = re.findall(r"coro_([ab])_(\d)", ";".join(frames))
        assert len({letter for letter, _ in chain}) <= 1, frames
        if len(chain) == 3:
            assert [n for _, n in chain] == ["0", "1", "2"], frames
            seen.add(chain[0][0])
    assert seen == {"a", "b"}


def test_deep(python, tmp_path):
    """10,000 frames, root to leaf, none missing."""
    recording = record([python.path, workload("deep.py"), "10000", "0.8"], tmp_path / "x.pyro")
    whole = 0
    for frames, count in recording.stacks():
        names = [frame_name(f) for f in frames]
        if "bottom" in names and not is_marked(frames):
            depth = names.count("dive")
            assert depth == 10000, depth
            whole += count
    assert whole > 0
    assert recording.row("bottom")["self"] > 0
    dive = recording.row("dive")
    report = recording.report()
    assert dive["total"] <= report["total"] * 1.000001, "recursion was counted more than once"


CLASSES = """
import sys, time
class Thing:
    def __init__(self, rounds):
        mine = rounds
        self.data = work(rounds)
def work(rounds):
    if not rounds:
        print("ready", flush=True)
        time.sleep(60)
    total = 0
    for i in range(rounds):
        total += i
    return bytearray(3000 + total % 7)
def main():
    secret = "of main"
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        for rounds in [200] * 100 + [0] * (len(sys.argv) - 1):
            Thing(rounds)
main()
"""


def test_no_frame_that_nobody_wrote(python, tmp_path, target):
    """From 3.12 on a class that is called again and again is entered by way of code that is the interpreter's own."""
    (tmp_path / "classes.py").write_text(CLASSES)
    recording = record([python.path, "classes.py"], tmp_path / "x.pyro", "--memory", "--sample=2000")
    chains = [[frame_name(f).rpartition(".")[2] for f in frames] for frames, _ in recording.stacks() if not is_marked(frames)]
    below = [names[names.index("main"):] for names in chains if names[-1] == "work"]
    assert below and all(names == ["main", "__init__", "work"] for names in below), below
    rows = recording.rows("--metric", "allocated", "--by", "function", "--callers")
    assert [c["name"].rpartition(".")[2] for r in rows if r["name"] == "work" for c in r["callers"]] == ["__init__"]
    inits = [r for r in rows if r["name"].rpartition(".")[2] == "__init__" and r["callers"] and r["total"] > 1e6]
    assert [(r["file"].rpartition("/")[2], [c["name"] for c in r["callers"]]) for r in inits] == [("classes.py", ["main"])]
    # and numbers of frames are those that are shown
    process = target([python.path, "classes.py", "wait"])
    thread, = json.loads(pyrometer("dump", "--locals", "--json", str(process.pid), check=0).stdout)["threads"]
    frames = [(f["name"].rpartition(".")[2], f["locals"]) for f in thread["frames"]]
    assert [name for name, _ in frames] == ["work", "__init__", "main", "<module>"]
    assert frames[1][1]["mine"] == "0" and frames[2][1]["secret"] == "'of main'"


def test_subinterpreter(python, tmp_path):
    bare = subprocess.run([python.path, workload("subinterp.py"), "0.01"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if bare.returncode == 77:
        pytest.skip("this Python has no sub-interpreters to offer")
    recording = record([python.path, workload("subinterp.py"), "0.5"], tmp_path / "x.pyro")
    inside, outside = (recording.row(name)["self"] for name in ("inside", "outside"))
    assert inside > 0 and outside > 0
    # one thread with a state in each of the two interpreters: it is counted once, and `main` does not run while `inside` does
    report = recording.report("--by", "thread")
    assert [r["name"] for r in report["rows"]] == ["MainThread"]
    assert report["total"] <= report["run"]["elapsed_seconds"]
    main = recording.row("main", file="subinterp.py")
    assert main["self"] < 0.2 * inside


LENT = """
import sys, threading, time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
def go():
    interpreters.run_string(made, "import time\\nend = time.perf_counter() + 0.5\\nwhile time.perf_counter() < end: pass")
thread = threading.Thread(target=go, name="goer")
thread.start()
end = time.perf_counter() + 0.5
while time.perf_counter() < end:
    pass
thread.join()
"""


def test_subinterpreter_of_another_thread(python, tmp_path):
    """It goes into an interpreter that the main thread has made, below 3.12 with a state of that: each thread is counted once."""
    app = tmp_path / "lent.py"
    app.write_text(LENT, encoding="utf-8")
    bare = subprocess.run([python.path, workload("subinterp.py"), "0.01"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if bare.returncode == 77:
        pytest.skip("this Python has no sub-interpreters to offer")
    report = record([python.path, str(app)], tmp_path / "x.pyro").report("--by", "thread")
    assert {r["name"] for r in report["rows"]} == {"MainThread", "goer"}
    assert all(r["self"] <= report["run"]["elapsed_seconds"] for r in report["rows"])


def test_totals_agree(default_python, tmp_path):
    """Every cut of the same recording has the same total, and self adds up to it."""
    recording = record([default_python.path, workload("threads.py"), "0.8"], tmp_path / "x.pyro")
    for metric in ("wall", "cpu", "gil"):
        totals = {}
        for by in ("function", "line", "file", "module", "thread", "process"):
            report = recording.report("--by", by, "--metric", metric)
            assert report["metric"] == metric and report["unit"] == "seconds"
            totals[by] = report["total"]
            assert math.isclose(sum(r["self"] for r in report["rows"]), report["total"], rel_tol=1e-6, abs_tol=1e-6), by
            for row in report["rows"]:
                assert 0 <= row["self"] <= row["total"] * 1.000001 + 1e-9
                assert 0 <= row["total_percent"] <= 100.0001
        assert max(totals.values()) - min(totals.values()) < 1e-6, totals

"""What the views say of memory, on recordings whose numbers were worked out on paper, and on a real one.

The recordings are made of texts by tests/tools/make_recording.c."""
import collections
import csv
import io
import json
import os
import pathlib
import re
import subprocess

import pytest

import harness
import tmux
from harness import pyrometer, record

MAKER = os.path.join(os.path.dirname(harness.PYROMETER), "tests", "make_recording")
SECOND = 10**9

APP = """import json

def grow(keep):
    keep.append(bytearray(1000))
    tmp = bytearray(50)
    return tmp

def main():
    keep = []
    for i in range(8):
        grow(keep)
    return keep

main()
"""


def make(path, text):
    if not os.access(MAKER, os.X_OK):
        pytest.skip("no make_recording beside the binary")
    subprocess.run([MAKER, str(path)], input=text, encoding="utf-8", check=True)
    return str(path)


def ask(*args):
    return json.loads(pyrometer(*args, "--json", check=0).stdout)


def table(*args):
    return list(csv.DictReader(io.StringIO(pyrometer(*args, "--csv", check=0).stdout)))


def iterating(folder, flags=0, worker=True, marks=True):
    """Eight iterations that keep 1000 bytes each and waste 50; imports keep 3000, the interpreter 2000. The peak is in
    the last one. A second process has 64 bytes."""
    app = folder / "app.py"
    app.write_text(APP, encoding="utf-8")
    lines = ["meta command app.py", "meta instruments memory", "process 1 100 python", "process 2 200 worker",
             "thread 1 1 100 MainThread", "thread 2 2 200 Worker",
             "code <module> %s 1" % app, "code main %s 8" % app, "code grow %s 3" % app,
             "code get_code /lib/python3.8/importlib/_bootstrap_external.py 900",
             "stack 0 1 14", "stack 1 2 11", "stack 2 3 4", "stack 2 3 5", "stack 0 1 1", "stack 5 4 950",
             "counter 1 memory.rss %d 10000" % (SECOND // 2), "counter 1 memory.rss %d 30000" % (4 * SECOND),
             "checkpoint 1 %d %d 5000 3 5000 %d" % (flags, SECOND // 2, SECOND // 3),
             "sizes 0 10 3 5000",
             "site 1 6 0 2 3000 0 0 0 0 2 3000 0 0 40000", "site 1 0 0 1 2000 0 0 0 0 1 2000 0 0 0"]
    for i in range(1, 9):
        lines += ["mark 1 step %d 0" % (i * SECOND)] * marks
        lines += ["checkpoint 1 %d %d %d %d %d %d" % (flags | 1, i * SECOND, 5000 + 1000 * i, 3 + i, 5050 + 1000 * i,
                                                      i * SECOND - 5),
                  "sizes 0 9 1 1000", "sizes 0 5 1 50",
                  "site 1 3 0 1 1000 0 0 0 0 %d %d 0 %d 10000" % (i, 1000 * i, 10000 * i), "site 1 4 0 1 50 1 50 1 50 1 50 0 0 0"]
    if worker:
        lines += ["checkpoint 2 %d %d 64 1 64 %d" % (flags | 2, 2 * SECOND, SECOND), "sizes 8 6 1 64",
                  "site 2 1 8 1 64 0 0 0 0 1 64 0 0 0"]
    lines += ["checkpoint 1 %d %d 13000 11 13050 %d" % (flags | 2, 9 * SECOND, 8 * SECOND - 5)]
    return make(folder / "x.pyro", "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return iterating(tmp_path_factory.mktemp("memory"))


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    return iterating(tmp_path_factory.mktemp("sampled"), flags=4)


def known(contract, value):
    """Every key, at any depth, is in the contract."""
    if isinstance(value, list):
        for item in value:
            known(contract, item)
    elif isinstance(value, dict):
        for key, item in value.items():
            assert "`%s`" % key in contract, "docs/json.md does not know %s" % key
            known(contract, item)


@pytest.mark.parametrize("part", ["summary", "leaks", "temporary", "stats", "lines", "plot"])
def test_contract(run, sampled, part):
    contract = pathlib.Path(harness.ROOT, "docs", "json.md").read_text(encoding="utf-8")
    for path in (run, sampled):
        said = ask("memory", part, path)
        assert said["run"]["path"] == path
        known(contract, said)


def test_peak_is_the_default_metric(run):
    report = ask("report", run)
    assert (report["metric"], report["unit"], report["total"]) == ("peak", "bytes", 13050 + 64)
    assert report["memory"] == {"sampled": False, "error": 0, "processes": 2, "moment": None, "unfinished": False}
    assert sum(r["self"] for r in report["rows"]) == report["total"]
    text = pyrometer("report", run, check=0).stdout
    assert "peak 12.8 KiB in 13 blocks; each of 2 processes at its own peak" in text
    assert "±" not in text


@pytest.mark.parametrize("metric, total, blocks", [
    ("peak", 13114, 13), ("leaked", 13064, 12), ("allocated", 13464, 20), ("count", 20, 20), ("temporary", 400, 8)])
def test_every_view_agrees(run, tmp_path, metric, total, blocks):
    assert ask("report", run, "--metric", metric)["total"] == total
    assert ask("report", run, "--metric", metric)["samples"] == blocks
    assert ask("tree", run, "--metric", metric)["total"] == total
    assert ask("memory", "summary", run, "--metric", metric)["total"] == total
    assert ask("lines", run, "--metric", metric)["total"] == total
    for by in ("line", "file", "module", "thread", "process"):
        assert sum(r["self"] for r in ask("report", run, "--metric", metric, "--by", by)["rows"]) == total
    collapsed = pyrometer("export", "collapsed", run, "--metric", metric, check=0).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in collapsed.splitlines()) == total
    rows = list(csv.DictReader(io.StringIO(pyrometer("export", "csv", run, "--metric", metric, check=0).stdout)))
    assert sum(int(r["self"]) for r in rows) == total
    scope = json.loads(pyrometer("export", "speedscope", run, "--metric", metric, check=0).stdout)
    assert sum(sum(p["weights"]) for p in scope["profiles"]) == total
    for command, name in (("flame", "x.html"), ("flame", "x.svg"), ("graph", "g.svg")):
        pyrometer(command, run, "--metric", metric, "-o", str(tmp_path / name), check=0)
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))
    assert sum(data["self"]) == data["whole"] == total and "blocks" in page
    amount = re.search(metric + " (.*?) in ", pyrometer("report", run, "--metric", metric, check=0).stdout).group(1)
    assert ">%s %s " % (amount, metric) in (tmp_path / "x.svg").read_text(encoding="utf-8")


def test_moments(run):
    def live(at, *more):
        return ask("report", run, "--at", at, *more)
    assert live("0.1")["total"] == 0
    assert live("2")["total"] == 5000 + 2000 + 64
    assert live("3.99")["total"] == 5000 + 3000  # the other process has ended
    assert live("3.99")["memory"]["moment"] == 3
    assert live("99")["total"] == 13000
    assert "live 7.81 KiB in 6 blocks, at 3.00 s" in pyrometer("report", run, "--at", "3.99", check=0).stdout
    summary = ask("memory", "summary", run, "--at", "3.99", "--by", "line", "--match", "grow")
    assert [(r["line"], r["self"], r["count"]) for r in summary["rows"]] == [(4, 3000, 3)]


@pytest.mark.parametrize("is_seen", [True, False])
def test_past_the_end_is_the_end_of_the_last_process(is_seen, tmp_path):
    """A child ended before its parent, and its last checkpoint was taken after the parent's, as happens when both are gone by the time
    the recorder looks. Without knowing when they ended, checkpoints must do."""
    ends = (3 * SECOND, 2 * SECOND) if is_seen else (0, 0)
    lines = ["meta command app.py", "meta instruments memory", "process 1 100 parent %d" % ends[0], "process 2 200 child %d" % ends[1],
             "thread 1 1 100 MainThread", "thread 2 2 200 MainThread",
             "checkpoint 1 2 %d 1000 1 1000 %d" % (3 * SECOND, SECOND), "site 1 0 0 1 1000 0 0 0 0 1 1000",
             "checkpoint 2 2 %d 64 1 64 %d" % (3 * SECOND + is_seen, SECOND), "site 2 0 0 1 64 0 0 0 0 1 64"]
    path = make(tmp_path / "x.pyro", "\n".join(lines) + "\n")
    assert ask("report", path, "--at", "99")["total"] == (1000 if is_seen else 1064)
    assert ask("report", path, "--at", "99", "--process", "200")["total"] == (0 if is_seen else 64)


def test_ranges_are_cut_at_checkpoints(run):
    def allocated(a_to_b):
        return ask("report", run, "--metric", "allocated", "--range", a_to_b)["total"]
    assert allocated(":1") == 5000 + 1050
    assert allocated("1:2") == 1050 + 64
    assert allocated(":1") + allocated("1:2.5") + allocated("2.5:") == 13464


@pytest.mark.parametrize("options, words", [
    (["report", "--metric", "peak", "--range", "1:2"], "has no range"),
    (["report", "--metric", "peak", "--at", "2"], "--metric live"),
    (["report", "--metric", "live"], "--at SECONDS"),
    (["report", "--at", "1", "--range", "1:2"], "do not go together"),
    (["memory", "leaks", "--at", "1"], "no --at"),
    (["memory", "leak"], "did you mean leaks?"),
    (["memory", "leaks", "--mark", "nobody"], "not 5 marks"),
    (["memory", "summary", "--metric", "wall"], "not of memory"),
    (["memory", "plot", "-o", "x.jpg"], ".svg or .png")])
def test_wrong_questions(run, options, words):
    done = pyrometer(*options, run)
    assert done.returncode in (1, 2) and words in done.stderr and done.stderr.count("\n") == 1


def test_summary(run):
    rows = {r["name"]: r for r in ask("memory", "summary", run)["rows"]}
    assert (rows["grow"]["self"], rows["grow"]["count"]) == (8050, 9)
    assert (rows["main"]["self"], rows["main"]["total"], rows["main"]["total_count"]) == (0, 8050, 9)
    assert rows["<no Python frame>"]["special"]
    assert pyrometer("memory", run).stdout == pyrometer("memory", "summary", run).stdout
    assert ask("memory", "summary", run, "--process", "200")["total"] == 64
    assert ask("memory", "summary", run, "--thread", "Worker")["total"] == 64


def test_leaks_tell_the_interpreter_apart(run):
    leaks = ask("memory", "leaks", run)
    assert leaks["total"] == 8064
    assert leaks["runtime"] == {"shown": False, "bytes": 5000, "count": 3, "no_python_bytes": 2000,
                                "no_python_count": 1}
    assert [r["name"] for r in leaks["rows"]] == ["grow", "<module>"]
    everything = ask("memory", "leaks", run, "--all")
    assert everything["total"] == 13064 and everything["runtime"]["shown"]
    assert {r["name"] for r in everything["rows"]} == {"grow", "<module>", "get_code", "<no Python frame>"}
    text = pyrometer("memory", "leaks", run, check=0).stdout
    assert "4.88 KiB in 3 blocks" in text and "(--all shows it)" in text


def test_growth(run):
    leaks = ask("memory", "leaks", run)
    growth = leaks["growth"]
    assert (growth["mark"], growth["pid"], growth["iterations"], growth["points"]) == ("step", 100, 8, 8)
    assert growth["slope"] == pytest.approx(1000) and growth["low"] == pytest.approx(1000)
    assert leaks["rows"][0]["name"] == "grow" and leaks["rows"][0]["growth"] == pytest.approx(1000)
    assert leaks["rows"][1]["growth"] == 0
    assert "an iteration ('step', 8 of them)" in pyrometer("memory", "leaks", run, check=0).stdout


@pytest.mark.parametrize("wobble", [0, 500])
def test_no_growth_is_told(wobble, tmp_path):
    """What is given back by the end, and does not grow from mark to mark: that is said, with the slope and its interval."""
    lines = ["meta command app.py", "meta instruments memory", "meta memory.mode heap", "process 1 100 python", "thread 1 1 100 MainThread",
             "code <module> app.py 1", "stack 0 1 14"]
    alive = 0
    for i in range(1, 9):
        now = 1000 + wobble * (i % 2)
        lines += ["mark 1 step %d 0" % (i * SECOND), "checkpoint 1 1 %d %d 1 2000 %d" % (i * SECOND, now, SECOND),
                  "site 1 1 0 1 %d 1 %d 0 0 1 2000" % (now, alive)]
        alive = now
    lines += ["checkpoint 1 2 %d 0 0 2000 %d" % (9 * SECOND, SECOND), "site 1 1 0 0 0 1 %d 0 0 1 2000" % alive]
    path = make(tmp_path / "x.pyro", "\n".join(lines) + "\n")
    text = pyrometer("memory", "leaks", path, check=0).stdout
    assert "has given back all" in text and "it grows" not in text and "Small objects" not in text
    if wobble:
        assert re.search(r"^does not surely grow: -?[\d.]+ B an iteration \('step', 8 of them\), 95 %: -\d.* B to \d.* B$", text, re.M)
    else:
        assert "\ndoes not grow: 0 B an iteration ('step', 8 of them), 95 %: 0 B to 0 B\n" in text


@pytest.mark.parametrize("mode", ["heap", "objects"])
def test_arenas_are_told_apart(mode, tmp_path):
    """Of the heap alone a leak of small objects is whole arenas, on whichever line needed one."""
    lines = ["meta command app.py", "meta instruments memory", "meta memory.mode " + mode, "process 1 100 python",
             "thread 1 1 100 MainThread", "code <module> app.py 1", "code grow app.py 3", "stack 0 1 14", "stack 1 2 4", "stack 1 2 5",
             "checkpoint 1 2 %d 9000000 9 9000000 %d" % (2 * SECOND, SECOND),
             "site 1 2 8 3 %d 0 0 0 0 3 %d" % (3 << 20, 3 << 20), "site 1 2 0 1 5000 0 0 0 0 1 5000",
             "site 1 3 8 1 2000000 0 0 0 0 1 2000000", "site 1 1 8 2 %d 0 0 0 0 2 %d" % (512 << 10, 512 << 10)]
    path = make(tmp_path / "x.pyro", "\n".join(lines) + "\n")
    rows = {(r["name"], r["line"]): r for r in ask("memory", "leaks", path, "--by", "line")["rows"]}
    text = pyrometer("memory", "leaks", path, check=0).stdout
    if mode == "heap":
        assert {key: r["arenas"] for key, r in rows.items()} == {("grow", 4): 3, ("grow", 5): 0, ("<module>", 14): 2}
        assert "5 blocks have the size of the arenas" in text and "--memory=objects" in text
    else:
        assert "arenas" not in rows["grow", 4] and "arenas" not in text


def test_growth_of_the_heap_points_to_objects(tmp_path):
    text = pyrometer("memory", "leaks", iterating(tmp_path), check=0).stdout
    assert "it grows" in text and "arenas" not in text, "the mode is not known"
    app = tmp_path / "app.py"
    app.write_text("import sys\nsys.path.insert(0, %r)\nimport pyrometer\nkept = []\nfor i in range(8):\n    kept.append(bytearray(100000))\n"
                   "    pyrometer.mark('step')\n" % os.path.join(harness.ROOT, "python"), encoding="utf-8")
    for mode, is_told in (("heap", True), ("objects", False)):
        recording = record([harness.default_python().path, str(app)], tmp_path / (mode + ".pyro"), "--memory=" + mode)
        text = pyrometer("memory", "leaks", recording.path, check=0).stdout
        assert "it grows" in text and ("arenas" in text and "--memory=objects" in text) == is_told, text


def test_growth_of_estimates_knows_their_error(run, sampled):
    exact, estimated = (ask("memory", "leaks", path)["growth"] for path in (run, sampled))
    assert estimated["iterations"] == exact["iterations"] == 8
    assert exact["high"] == exact["low"] == 1000
    half = 1.96 * (1.2 * 7 * 10000) ** 0.5 / 7  # seven blocks of the variance 10,000 came between the first mark and the last
    assert (estimated["low"], estimated["slope"], estimated["high"]) == pytest.approx((1000 - half, 1000, 1000 + half), rel=1e-4)


def test_temporary(run):
    rows = ask("memory", "temporary", run, "--by", "line")["rows"]
    first = rows[0]
    assert (first["line"], first["self"], first["count"], first["allocations"]) == (5, 400, 8, 8)
    assert first["temporary_percent"] == 100
    by_function = {r["name"]: r for r in ask("memory", "temporary", run)["rows"]}
    assert by_function["grow"]["allocations"] == 16 and by_function["grow"]["temporary_percent"] == 50


def test_stats(run):
    stats = ask("memory", "stats", run)
    first, second = stats["processes"]
    assert first == {"pid": 100, "peak_bytes": 13050, "peak_time": pytest.approx(8, abs=1e-6), "live_bytes": 13000,
                     "live_count": 11, "allocated_bytes": 13400, "allocations": 19, "freed_bytes": 400, "frees": 8,
                     "ended": True, "command": "python"}
    assert (second["pid"], second["peak_time"]) == (200, 1)
    sizes = {s["from"]: s for s in stats["sizes"]}
    assert sizes[512] == {"from": 512, "to": 1023, "count": 8, "bytes": 8000}
    assert sizes[128]["count"] == 0
    assert sum(s["count"] for s in stats["sizes"]) == stats["samples"]
    assert {a["name"]: a["bytes"] for a in stats["allocators"]} == {"malloc": 13400, "mmap": 64}
    assert stats["by_size"][0]["name"] == stats["by_count"][0]["name"] == "grow"
    assert "█" in pyrometer("memory", "stats", run, check=0).stdout


def test_stats_as_csv(run):
    """One table with the numbers of the JSON."""
    def table(*options):
        text = pyrometer("memory", "stats", run, "--csv", *options, check=0).stdout
        sections = collections.defaultdict(list)
        for row in csv.DictReader(io.StringIO(text, newline="")):
            assert list(row) == ["section", "name", "file", "line", "bytes", "count"]
            sections[row["section"]].append(row)
        return sections
    stats, sections = ask("memory", "stats", run), table()
    assert list(sections) == ["peak", "live", "allocated", "freed", "sizes", "allocators", "by_size", "by_count"]

    def numbers(section):
        return [(r["name"], r["file"], int(r["bytes"]), int(r["count"])) for r in sections[section]]
    assert [(r["name"], r["bytes"], r["count"]) for r in sections["peak"]] == [
        (str(p["pid"]), str(p["peak_bytes"]), "") for p in stats["processes"]]
    assert numbers("live") == [(str(p["pid"]), "", p["live_bytes"], p["live_count"]) for p in stats["processes"]]
    assert numbers("allocated") == [(str(p["pid"]), "", p["allocated_bytes"], p["allocations"]) for p in stats["processes"]]
    assert numbers("freed") == [(str(p["pid"]), "", p["freed_bytes"], p["frees"]) for p in stats["processes"]]
    assert numbers("sizes") == [("%d-%d" % (s["from"], s["to"]), "", s["bytes"], s["count"]) for s in stats["sizes"]]
    assert numbers("allocators") == [(a["name"], "", a["bytes"], a["count"]) for a in stats["allocators"]]
    for order in ("by_size", "by_count"):
        assert numbers(order) == [(r["name"], r["file"] or "", r["self"], r["count"]) for r in stats[order]]
        assert [r["line"] for r in sections[order]] == [str(r["line"] or "") for r in stats[order]]
    assert [r["name"] for r in table("--process", "200")["peak"]] == ["200"]
    assert len(table("--limit", "1")["by_count"]) == 1


def test_lines(run):
    lines = {r["line"]: r for r in table("memory", "lines", run, "--match", "app.py")}
    assert (lines["4"]["increment"], lines["4"]["occurrences"], lines["4"]["held"]) == ("8000", "8", "8000")
    assert (lines["5"]["increment"], lines["5"]["allocated"], lines["5"]["peak"]) == ("0", "400", "50")
    assert (lines["11"]["increment"], lines["11"]["occurrences"], lines["11"]["held"]) == ("8000", "16", "0")
    assert lines["4"]["text"].strip() == "keep.append(bytearray(1000))"
    text = pyrometer("memory", "lines", run, check=0).stdout
    assert "increment" in text and "tmp = bytearray(50)" in text
    assert "def grow" in text and "def grow" not in pyrometer("memory", "lines", run, "--min-percent", "100", check=0).stdout
    assert pyrometer("memory", "stats", run, "--min-percent", "3", check=2).stderr.strip() == "pyrometer: memory stats has no --min-percent"


def test_time_and_memory_side_by_side(run, tmp_path):
    app = tmp_path / "app.py"
    app.write_text(APP, encoding="utf-8")
    path = make(tmp_path / "both.pyro", "\n".join(
        ["meta command app.py", "process 1 100 python", "thread 1 1 100 MainThread", "code grow %s 3" % app,
         "stack 0 1 4", "stack 0 1 5", "code spin /srv/spin.py 3", "stack 0 2 7"]
        + ["sample 1 %d %d 100000000 1" % (1 if i % 4 else 2, i * 10**8) for i in range(40)]
        + ["sample 1 3 %d 100000000 1" % (i * 10**8) for i in range(40, 60)]
        + ["checkpoint 1 2 %d 1000 1 1000 5" % SECOND, "site 1 1 0 1 1000 0 0 0 0 1 1000"]) + "\n")
    assert ask("report", path)["metric"] == "wall"
    lines = {r["line"]: r for r in table("lines", path, "--metric", "peak")}
    assert (lines["4"]["self"], float(lines["4"]["time_self"])) == ("1000", pytest.approx(3.0))
    assert (lines["5"]["self"], float(lines["5"]["time_self"])) == ("0", pytest.approx(1.0))
    spin = lines["7"]  # of a file that has no memory at all
    assert (spin["file"], spin["function"], spin["self"], float(spin["time_self"])) == ("/srv/spin.py", "spin", "0", pytest.approx(2.0))
    text = pyrometer("lines", path, "--metric", "peak", check=0).stdout
    assert "time %" in text and "50.0 %" in text and "33.3 %" in text and "/srv/spin.py" in text and "more file" not in text
    assert "time %" not in pyrometer("lines", run, "--metric", "peak", check=0).stdout


def test_plot(run, tmp_path):
    plot = ask("memory", "plot", run)
    assert [p["pid"] for p in plot["processes"]] == [100, 200]
    assert [m["time"] for m in plot["marks"]] == list(range(1, 9))
    assert max(r["allocated"] for r in plot["rows"] if r["pid"] == 100 and r["allocated"] is not None) == 13050
    assert [r["rss"] for r in plot["rows"] if r["rss"] is not None] == [10000, 30000]
    text = pyrometer("memory", "plot", run, "--process", "100", check=0).stdout
    assert "peak 12.7 KiB at 8.00 s; marks: step ×8" in text and "resident (RSS)" in text
    pyrometer("memory", "plot", run, "--ascii", "--range", "2:6", check=0)
    svg, png = tmp_path / "x.svg", tmp_path / "x.png"
    pyrometer("memory", "plot", run, "-o", str(svg), check=0)
    pyrometer("memory", "plot", run, "-o", str(png), check=0)
    assert ">step<" in svg.read_text(encoding="utf-8") and png.read_bytes().startswith(b"\x89PNG")
    unmarked, without = iterating(tmp_path, marks=False), tmp_path / "without.png"
    pyrometer("memory", "plot", unmarked, "-o", str(without), check=0)
    assert ask("memory", "plot", unmarked)["rows"] == plot["rows"], "the same curves"
    assert without.read_bytes().startswith(b"\x89PNG") and without.read_bytes() != png.read_bytes(), "the marks are drawn"


@pytest.mark.parametrize("objects", [True, False])
def test_plot_knows_what_is_between_checkpoints(objects, tmp_path):
    """There are checkpoints at the start and at the end, and in between a block that comes and goes twice: it is in the curve, which
    is the sum of what C and Python have; and without Python's it is drawn once."""
    lines = ["meta command app.py", "meta instruments memory", "process 1 100 python", "thread 1 1 100 MainThread"]
    truth = {}
    for i in range(1, 40):
        heap, small = 1000, 5000 if i // 10 % 2 else 100
        lines += ["counter 1 memory.heap %d %d" % (i * SECOND // 10, heap)]
        lines += ["counter 1 memory.objects %d %d" % (i * SECOND // 10, small)] * objects
        truth[i] = heap + small * objects
    lines += ["checkpoint 1 0 %d %d 1 6000 %d" % (SECOND // 10, truth[1], SECOND),
              "checkpoint 1 2 %d 900 1 6000 %d" % (4 * SECOND, SECOND)]
    path = make(tmp_path / "x.pyro", "\n".join(lines) + "\n")
    rows = [r for r in ask("memory", "plot", path)["rows"] if r["allocated"] is not None]
    seen = {round(r["time"] * 10): r["allocated"] for r in rows}
    truth[10], truth[40] = 6000, 900  # the peak, and the end
    assert seen == truth
    text = pyrometer("memory", "plot", path, "--ascii", check=0).stdout
    assert ("heap of the C library" in text) == objects and "allocated and not given back" in text


@pytest.mark.parametrize("command", [
    ["memory", "summary"], ["memory", "summary", "--by", "line"], ["memory", "summary", "--at", "4"], ["memory", "leaks"],
    ["memory", "leaks", "--all"], ["memory", "temporary"], ["memory", "plot"], ["memory", "tree"], ["memory", "lines"],
    *[["report", "--metric", metric, "--by", by] for metric, by in (("peak", "line"), ("leaked", "function"), ("count", "thread"))],
    ["lines", "--metric", "allocated"], ["diff", "OTHER", "--metric", "leaked", "--by", "line"]], ids=" ".join)
def test_csv_says_what_json_says(run, sampled, tmp_path, command):
    """The same rows in the same order, and in each the same values under the same names."""
    for path in (run, sampled):
        args = [iterating(tmp_path, worker=False) if a == "OTHER" else a for a in command] + [path]
        rows, told = rows_of(ask(*args)), table(*args)
        assert len(told) == len(rows) > 0
        for got, wanted in zip(told, rows):
            assert set(got) == set(wanted) - {"children"}
            for name, text in got.items():
                value = "" if wanted[name] is None else wanted[name]  # a boolean is 0 or 1
                assert text == value or (value != "" and float(text) == pytest.approx(float(value), rel=1e-5)), (name, text, value)


def rows_of(said):
    """A row for each node of a tree, parents first; for each line of each file; else rows as they are."""
    if "files" in said:
        return [dict(line, file=file["file"]) for file in said["files"] for line in file["lines"]]
    return [node for row in said["rows"] for node in (row, *rows_of({"rows": row.get("children", [])}))]


def test_tree_is_tree(run, sampled):
    assert {n["total_error_percent"] for n in ask("tree", run)["rows"]} == {0}
    assert {n["total_error_percent"] for n in ask("tree", sampled)["rows"]} == {None}
    assert pyrometer("memory", "tree", run, check=0).stdout == pyrometer("tree", "--metric", "peak", run, check=0).stdout
    assert ask("memory", "tree", run, "--at", "3.99")["total"] == 8000
    assert pyrometer("memory", "--json", "tree", run).returncode == 2


def test_estimates_have_errors(sampled):
    report = ask("report", sampled)
    rows = {r["name"]: r for r in report["rows"]}
    assert rows["get_code"]["error"] == pytest.approx(1.96 * 200, rel=1e-3)
    assert rows["grow"]["error"] == pytest.approx(196, rel=1e-3)
    assert rows["<module>"]["error"] == 0
    assert rows["<module>"]["total_error"] == pytest.approx(1.96 * 50000**0.5, rel=1e-3)
    assert report["memory"]["sampled"] and report["memory"]["error"] == pytest.approx(1.96 * 50000**0.5, rel=1e-3)
    text = pyrometer("report", sampled, check=0).stdout
    assert "estimated from a sample of the allocations, ± 438 B (95 %)" in text and " ± " in text
    assert ask("report", sampled, "--metric", "count")["memory"]["error"] is None
    callers = ask("report", sampled, "--callers")["rows"]
    assert all(c["error"] is None for r in callers for c in r["callers"])


def test_diff_by_site(run, tmp_path):
    other = iterating(tmp_path, worker=False)
    diff = ask("diff", run, other, "--metric", "leaked", "--by", "line")
    rows = {(r["name"], r["line"]): r for r in diff["rows"]}
    changed = [r for r in rows.values() if r["self_change"]]
    assert [(r["name"], r["self_change"]) for r in changed] == [("<module>", -64)]


def test_diff_of_memory_speaks_of_memory(run, tmp_path):
    """Rates of sampling and seconds are not what two peaks are compared by; and what is equal is no noise."""
    app = tmp_path / "app.py"
    app.write_text("import sys, time\ndef same():\n    return bytearray(3000000)\nkept = same(), bytearray(int(sys.argv[1]))\n"
                   "time.sleep(0.3)\n", encoding="utf-8")
    paths = [record([harness.default_python().path, str(app), str(size)], tmp_path / ("%d.pyro" % size), "--memory", "--sample=%d" % hz).path
             for size, hz in ((1000000, 100), (50000000, 1000))]
    assert any("different rates" in note for note in ask("diff", *paths, "--metric", "wall")["notes"]), "of time that matters"
    notes = ask("diff", *paths, "--metric", "peak")["notes"]
    assert len(notes) == 1 and re.fullmatch(r"The second has [\d.]+ times as many bytes \(peak\)\.", notes[0])
    rows = ask("diff", *paths, "--metric", "peak", "--match", "^same$")["rows"]
    assert rows[0]["self_change"] == 0 and not rows[0]["self_within_noise"]
    text = pyrometer("diff", *paths, "--metric", "peak", "--by", "line", check=0).stdout
    assert notes[0] in text and "noise" not in text and "seconds" not in text and "Hz" not in text
    text = pyrometer("diff", run, run, "--metric", "peak", check=0).stdout
    assert "noise" not in text and "as the whole" not in text


def test_lines_that_were_counted_beside_memory(tmp_path):
    """The blocks of a line are blocks, and not how often it was reached."""
    app = tmp_path / "app.py"
    app.write_text("kept = []\nfor i in range(50):\n    i + 1\nkept.append(bytearray(5000000))\n", encoding="utf-8")
    path = record([harness.default_python().path, str(app)], tmp_path / "x.pyro", "--memory", "--lines").path
    heading = [pyrometer("report", path, "--metric", "peak", "--by", by, "--match", "app", check=0).stdout.splitlines() for by in ("function", "line")]
    assert heading[0][1] == heading[1][1] and re.fullmatch(r"peak [\d.]+ MiB in [\d,]+ blocks, at [\d.]+ m?s", heading[0][1])
    columns = next(line for line in heading[1] if "self %" in line).split()
    assert "blocks" in columns and "hits" not in columns
    rows = {r["line"]: r for r in ask("report", path, "--metric", "peak", "--by", "line")["rows"] if r["file"] == str(app)}
    assert rows[4]["samples"] >= 1 and rows[4]["self"] >= 5000000 and rows[4]["hits"] == 1
    assert "hits" in table("report", path, "--metric", "peak", "--by", "line")[0]
    nowhere = [r for r in ask("report", path, "--metric", "peak", "--by", "line")["rows"] if r["special"]]
    assert nowhere and all(r["hits"] is None for r in nowhere)


def test_lines_of_estimates_have_errors(run, sampled):
    """As in the report, where a row is a line: in JSON, CSV and text; and none of them where nothing is estimated."""
    report = {r["line"]: r for r in ask("report", sampled, "--metric", "peak", "--by", "line", "--match", "grow")["rows"]}
    data = ask("lines", sampled, "--metric", "peak", "--match", "grow")
    lines = {line["line"]: line for file in data["files"] for line in file["lines"]}
    assert lines[4]["error"] == pytest.approx(report[4]["error"]) == pytest.approx(1.96 * 100, rel=0.001)
    assert lines[4]["total_error"] == pytest.approx(report[4]["total_error"])
    rows = {int(r["line"]): r for r in table("lines", sampled, "--metric", "peak", "--match", "grow")}
    assert float(rows[4]["error"]) == pytest.approx(report[4]["error"])
    memory = {line["line"]: line for file in ask("memory", "lines", sampled)["files"] for line in file["lines"]}
    assert memory[4]["peak_error"] == pytest.approx(report[4]["error"])
    assert {"error", "total_error", "increment_error"} <= set(memory[4])
    for command, count in ((["lines", "--metric", "peak"], 2), (["memory", "lines"], 3)):
        heading = [line for line in pyrometer(*command, sampled, "--match", "grow", check=0).stdout.splitlines() if line.endswith("source")]
        assert heading and heading[0].split().count("±") == count
        assert "±" not in pyrometer(*command, run, "--match", "grow", check=0).stdout
    assert "error" not in ask("memory", "lines", run)["files"][0]["lines"][0]


def test_trees_of_estimates_have_errors(run, sampled):
    """A node's is that of its row where the row has one node; a level of threads has none."""
    report = {r["name"]: r["total_error"] for r in ask("report", sampled, "--metric", "peak", "--thread", "MainThread")["rows"]}

    def nodes(*args):
        rows = ask("memory", "tree", sampled, "--thread", "MainThread", "--limit", "0", *args)["rows"]
        while rows:
            row = rows.pop()
            rows += row["children"]
            yield row
    errors = {r["name"]: r["total_error"] for r in nodes()}
    assert errors == pytest.approx(report) and errors["grow"] == pytest.approx(196, rel=0.001)
    assert {r["name"]: r["total_error"] for r in nodes("--bottom-up") if r["depth"] == 1}["grow"] == pytest.approx(196, rel=0.001)
    assert all(r["total_error"] is None for r in nodes("--by-thread"))
    assert re.search(r"total % +total +± ", pyrometer("memory", "tree", sampled, check=0).stdout)
    assert "±" not in pyrometer("memory", "tree", run, check=0).stdout and "total_error" not in ask("memory", "tree", run)["rows"][0]


def test_diff_of_estimates_knows_noise(run, sampled):
    """The same numbers, with variances and without: only the latter are sure."""
    exact, estimated = ([r["self_error_points"] for r in ask("diff", path, path)["rows"]] for path in (run, sampled))
    assert max(exact) < 1e-6 and max(estimated) > 0.1


def test_a_torn_recording_says_so(tmp_path):
    text = "\n".join(["process 1 100 python", "thread 1 1 100 MainThread", "code f /x.py 1", "stack 0 1 4",
                      "checkpoint 1 0 %d 1000 1 1000 5" % SECOND, "site 1 1 0 1 1000 0 0 0 0 1 1000", "torn"])
    path = make(tmp_path / "torn.pyro", text + "\n")
    assert ask("memory", "leaks", path)["memory"]["unfinished"]
    assert "alive where the recording ends" in pyrometer("memory", "leaks", path, check=0).stdout


def test_no_memory_in_it(tmp_path):
    path = make(tmp_path / "none.pyro", "process 1 100 python\nthread 1 1 100 MainThread\n")
    done = pyrometer("memory", path)
    assert done.returncode == 1 and "run --memory" in done.stderr
    assert "run --memory" in pyrometer("report", path, "--metric", "peak", check=0).stdout


def test_info(run, sampled):
    assert ask("info", run)["memory"] == {"mode": "heap", "allocations": 20, "checkpoints": 11, "site_records": 19}
    assert ask("info", sampled)["memory"]["mode"] == "sampled"
    assert "heap: 20 allocations, 11 checkpoints" in pyrometer("info", run, check=0).stdout


def test_a_real_recording(tmp_path):
    """Iterations of a real program: what each keeps is found to the byte, line and iteration."""
    app = tmp_path / "app.py"
    app.write_text("import sys\nsys.path.insert(0, %r)\nimport pyrometer\nkeep = []\nfor i in range(10):\n"
                   "    keep.append(bytearray(100000))\n    pyrometer.mark('step')\n"
                   % os.path.join(harness.ROOT, "python"), encoding="utf-8")
    run = record([harness.default_python().path, str(app)], tmp_path / "x.pyro", "--memory").path
    leaks = ask("memory", "leaks", run, "--by", "line")
    grows = leaks["rows"][0]
    assert (grows["file"], grows["line"], grows["growth"]) == (str(app), 6, pytest.approx(100001))
    assert leaks["growth"]["points"] == 10
    peak = {(r["file"], r["line"]): r for r in ask("report", run, "--by", "line", "--metric", "peak")["rows"]}
    assert peak[str(app), 6]["self"] >= 10 * 100001
    stats = ask("memory", "stats", run)
    for process in stats["processes"]:
        assert process["allocated_bytes"] - process["freed_bytes"] == process["live_bytes"]
        assert process["peak_bytes"] <= process["allocated_bytes"]
    assert sum(r["self"] for r in ask("memory", "summary", run)["rows"]) == sum(
        p["peak_bytes"] for p in stats["processes"])


CLEAN = """
import collections, ctypes, decimal, json, queue, re, sys, textwrap, threading
sys.path.insert(0, %r)
import pyrometer
def step(n):
    text = json.dumps([{"id": i, "name": "name %%d" %% i} for i in range(n)])
    found = collections.Counter(re.findall("[a-z]+", text))
    first = sorted(json.loads(text), key=lambda r: r["name"])[0]
    return textwrap.fill(text[:2000]), found, first, decimal.Decimal(n).sqrt()
def worker(orders):
    while orders.get():
        step(50)
orders = queue.Queue()
threads = [threading.Thread(target=worker, args=(orders,)) for _ in range(3)]
for thread in threads:
    thread.start()
for n in range(10):
    orders.put(n + 1)
for thread in threads:
    orders.put(0)
for thread in threads:
    thread.join()
for turn in range(20):
    step(100)
    pyrometer.mark("turn")
if sys.argv[1:]:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc(100000)  # leak
""" % os.path.join(harness.ROOT, "python")


@pytest.mark.long
@pytest.mark.parametrize("mode", ["heap", "objects"])
def test_clean_programs_do_not_leak(python, mode, tmp_path):
    """A program that uses the library as programs do and keeps nothing: what is left is the interpreter's, but for some small caches, and
    its loop does not grow, though it filled them. A leak that was put in is the first row."""
    app = tmp_path / "app.py"
    app.write_text(CLEAN, encoding="utf-8")
    clean = ask("memory", "leaks", record([python.path, str(app)], tmp_path / "clean.pyro", "--memory=" + mode).path, "--by", "line")
    leaky = ask("memory", "leaks", record([python.path, str(app), "leak"], tmp_path / "leaky.pyro", "--memory=" + mode).path, "--by", "line")
    left = [r["self"] % (256 << 10) for r in clean["rows"]]  # what is whole is one of Python's arenas, which some line has to take
    assert sum(left) < 30000 and max(left, default=0) < 10000 and clean["runtime"]["bytes"] > 1 << 20, clean["rows"][:5]
    assert clean["growth"]["points"] == 20 and clean["growth"]["low"] <= 0
    assert not [r for r in clean["rows"] if r["growth_low"] > 0], clean["rows"][:5]
    first = [r for r in leaky["rows"] if r["self"] % (256 << 10)][0]
    assert (first["file"], first["self"]) == (str(app), 100000) and CLEAN.splitlines()[first["line"] - 1].endswith("# leak")


CURVES = """
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
child = os.fork()
megabytes = 50 if child else 20
time.sleep(0.1)
kept = [b"x" * (1 << 20) for _ in range(megabytes)]
time.sleep(0.15)
blocks = [libc.malloc(1 << 20) for _ in range(megabytes)]
for block in blocks:
    libc.memset(block, 1, 1 << 20)
time.sleep(0.15)
if child:
    os.waitpid(child, 0)
    print(os.getpid(), child, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("mode", ["objects", "heap"])
def test_curves_of_real_processes(mode, tmp_path):
    """Two processes keep so many MB of objects, then of C's blocks, all of it touched: each curve of each rises by what is its own."""
    app = tmp_path / "app.py"
    app.write_text(CURVES, encoding="utf-8")
    recording = record([harness.default_python().path, str(app)], tmp_path / "x.pyro", "--memory=" + mode)
    parent, child = (int(pid) for pid in recording.stdout.split())
    rows = ask("memory", "plot", recording.path)["rows"]
    assert {r["pid"] for r in rows} == {parent, child}
    for pid, megabytes in ((parent, 50 << 20), (child, 20 << 20)):
        curve = {name: [r[name] for r in rows if r["pid"] == pid and r[name] is not None]
                 for name in ("heap", "objects", "rss", "allocated")}

        def rises(name, by, more):
            assert by <= max(curve[name]) - curve[name][0] <= by + more, (pid, name, curve[name])

        # beside the MB there is what the interpreter loads, and what it has in reserve
        rises("rss", 1.9 * megabytes, 32 << 20)
        rises("allocated", 2 * megabytes, 16 << 20)
        if mode == "heap":
            assert not curve["objects"]
            rises("heap", 2 * megabytes, 16 << 20)
            continue
        rises("objects", megabytes, 8 << 20)
        rises("heap", megabytes, 8 << 20)
        full = [r for r in rows if r["pid"] == pid and r["objects"] and r["objects"] >= megabytes]
        assert full[0]["heap"] < megabytes / 2 and full[-1]["heap"] >= megabytes, "objects come first, then C's blocks"


def test_time_and_memory_of_a_real_program(tmp_path):
    """One line is busy, another allocates: each has its own in one table."""
    app = tmp_path / "app.py"
    app.write_text("import time\ndef busy():\n    end = time.perf_counter() + 0.6\n    while time.perf_counter() < end: pass\n"
                   "def greedy():\n    return [bytes(1000000) for i in range(50)]\nbusy()\nkept = greedy()\n", encoding="utf-8")
    run = record([harness.default_python().path, str(app)], tmp_path / "x.pyro", "--sample", "--memory").path
    rows = table("lines", run, "--metric", "peak", "--match", "app.py")
    lines = {int(r["line"]): r for r in rows if r["line"]}  # a module's very first instruction has none
    assert 50 * 1000033 <= int(lines[6]["self"]) <= 50 * 1000033 + 4096, "the list is there, too"
    assert float(lines[4]["time_self"]) > 0.4 and float(lines[6]["time_self"]) < 0.1
    assert int(lines[4]["self"]) == 0 and int(lines[8]["total"]) >= int(lines[6]["self"])
    assert "time %" in pyrometer("lines", run, "--metric", "peak", check=0).stdout


@pytest.mark.skipif(not tmux.HAS_TMUX, reason="no tmux")
def test_tree_in_a_terminal(run, tmp_path):
    """Interactive with the peak; the next metric is another one that the recording has, and none needs a moment."""
    with tmux.Terminal(tmp_path) as t:
        t.type("%s memory tree %s" % (harness.PYROMETER, run))
        t.keys("Enter")
        t.wait("peak 12.8 KiB", "grow")
        for metric in ("leaked", "allocated", "count", "temporary", "peak"):
            t.keys("m")
            t.wait(metric + " ")
        t.keys("q")


def test_any_moment_where_events_were_kept(tmp_path):
    """Between two checkpoints only the events know: a plateau that is there for a moment is shown to the byte."""
    app = tmp_path / "app.py"
    app.write_text("import time\ntime.sleep(1)\nkept = [bytes(100000) for i in range(50)]\ntime.sleep(0.2)\n"
                   "del kept\ntime.sleep(1)\n")
    path = tmp_path / "x.pyro"
    pyrometer("run", "--memory", "--memory-events", "--quiet", "--no-history", "-o", path, "--", harness.default_python().path, app, check=0)
    stats = json.loads(pyrometer("memory", "stats", path, "--json", check=0).stdout)
    peak, moment = stats["processes"][0]["peak_bytes"], stats["processes"][0]["peak_time"]

    def live(at):
        return json.loads(pyrometer("memory", "summary", path, "--at", str(at), "--by", "line", "--json", check=0).stdout)

    there, before, after = live(moment + 0.1), live(moment - 0.5), live(moment + 0.7)
    line = [r for r in there["rows"] if r["file"] == str(app) and r["line"] == 3][0]
    assert there["total"] == peak and line["self"] >= 50 * 100033
    for other in (before, after):
        assert other["total"] < peak - 50 * 100033 + 10000, "the plateau has not begun, or is over"
    at = ["--at", str(moment + 0.1)]
    assert ask("tree", path, *at)["total"] == ask("lines", path, *at)["total"] == peak
    assert sum(int(line.rsplit(" ", 1)[1]) for line in pyrometer("export", "collapsed", path, *at, check=0).stdout.splitlines()) == peak
    diff = ask("diff", path, path, *at)
    assert diff["before"]["total"] == diff["after"]["total"] == peak
    pyrometer("flame", path, *at, "-o", tmp_path / "x.svg", check=0)
    amount = re.search("live (.*?) in ", pyrometer("report", path, *at, check=0).stdout).group(1)
    assert ">%s live " % amount in (tmp_path / "x.svg").read_text(encoding="utf-8")


MOMENTS = """
import os, sys, time
sys.path.insert(0, %r)
import pyrometer
from truth import PAGE, free, malloc, mmap, munmap, reserve
kept = reserve()
block = pages = there = back = pid = begin = other = None
def now(name):
    time.sleep(0.02)
    print(name, time.monotonic(), flush=True)
    time.sleep(0.02)
if len(sys.argv) > 1:
    other = malloc(2 << 20)  # executed
    now("executed")
    os._exit(0)
begin = time.monotonic()
pyrometer.mark("begin")
print("begin", (begin + time.monotonic()) / 2)
now("nothing")
block = malloc(5 << 20)  # block
now("block")
pages = mmap(100 * PAGE)  # pages
now("pages")
munmap(pages + 40 * PAGE, 20 * PAGE)
now("hole")
there, back = os.pipe(), os.pipe()
pid = os.fork()
if not pid:
    kept = malloc(3 << 20)  # child
    os.write(there[1], b"x")
    os.read(back[0], 1)
    os._exit(0)
os.read(there[0], 1)
now("child")
os.write(back[1], b"x")
os.waitpid(pid, 0)
time.sleep(0.2)  # a death is looked for every 20 ms
now("childless")
free(block)
now("freed")
os.execv(sys.executable, [sys.executable, __file__, "again"])
""" % os.path.join(harness.ROOT, "python")


def test_moments_of_several_processes(truth_env, tmp_path):
    """By every event: a mapping with a hole in it, a child, and another program that the process has executed. (Its names are all there
    from the beginning, so that the module's dict grows in no line that counts.)"""
    app = tmp_path / "app.py"
    app.write_text(MOMENTS, encoding="utf-8")
    recording = record([harness.default_python().path, str(app)], tmp_path / "x.pyro", "--memory", "--memory-events", env=truth_env)
    when = {name: float(moment) for name, moment in (line.split() for line in recording.stdout.splitlines())}
    begin = ask("memory", "plot", recording.path)["marks"][0]["time"] - when["begin"]
    line = {text.partition("# ")[2]: number for number, text in enumerate(MOMENTS.splitlines(), 1) if "  # " in text and "20 ms" not in text}
    block, pages = ("block", 5 << 20), ("pages", 100 * 4096)
    for name, wanted in {"nothing": [], "block": [block], "pages": [block, pages], "hole": [block, ("pages", 80 * 4096)],
                         "child": [block, ("pages", 80 * 4096), ("child", 3 << 20)], "childless": [block, ("pages", 80 * 4096)],
                         "freed": [("pages", 80 * 4096)], "executed": [("executed", 2 << 20)]}.items():
        rows = ask("memory", "summary", recording.path, "--at", "%.6f" % (begin + when[name]), "--by", "line", "--match", "app.py")["rows"]
        got = {r["line"]: r["self"] for r in rows}
        for place, number in line.items():
            assert got.get(number, 0) == dict(wanted).get(place, 0), (name, place)


SPIKE = """
import time
from truth import free, malloc
small = [malloc(1000) for _ in range(10)]
time.sleep(0.05)
for size in (20 << 20, 50 << 20, 30 << 20):
    block = malloc(size)
    end = time.perf_counter() + 0.0005
    while time.perf_counter() < end: pass
    free(block)
"""


def test_short_spikes_have_their_moment(truth_env, tmp_path):
    """Half a millisecond is less than what small blocks have a time for; a block that matters has its own."""
    app = tmp_path / "spike.py"
    app.write_text(SPIKE)
    for _ in range(3):
        path = tmp_path / "x.pyro"
        record([harness.default_python().path, str(app)], path, "--memory", "--memory-events", "--force", env=truth_env)
        process = ask("memory", "stats", path)["processes"][0]
        alive = lambda after: ask("memory", "summary", "--at", "%.9f" % (process["peak_time"] + after), path)["total"]
        assert alive(0) == process["peak_bytes"] > 50 << 20
        assert alive(-0.0002) < 40 << 20 and alive(0.0003) > 50 << 20


def test_what_lives_on_is_not_leaked(tmp_path):
    """The recording ends before the program: what it has then it may still give back."""
    text = "import time\nheld = bytearray(5000000)\ntime.sleep(0.8)\ndel held\nprint('given back')"
    recording = record([harness.default_python().path, "-c", text], tmp_path / "x.pyro", "--memory", "--for", "0.3")
    assert recording.stdout == "given back\n"
    assert ask("memory", "leaks", recording.path)["memory"]["unfinished"]
    assert "alive where the recording ends" in pyrometer("memory", "leaks", recording.path, check=0).stdout
    assert [p["ended"] for p in ask("memory", "stats", recording.path)["processes"]] == [False]


SMALL_LEAK = """
import sys
sys.path.insert(0, %r)
import pyrometer
kept = []
for _ in range(60):
    kept.append(bytearray(1000))
    pyrometer.mark("turn")
""" % os.path.join(harness.ROOT, "python")


def test_a_leak_that_no_sample_has_met(tmp_path):
    """60 KB of 128 for one sample on average: mostly nothing of it is told, and then it is not told either that nothing grows."""
    app = tmp_path / "app.py"
    app.write_text(SMALL_LEAK, encoding="utf-8")
    for _ in range(5):
        path = record([harness.default_python().path, str(app)], tmp_path / "x.pyro", "--memory=sampled", "--force").path
        growth = ask("memory", "leaks", path)["growth"]
        assert growth["low"] <= 1057 <= growth["high"]
        assert "does not grow" not in pyrometer("memory", "leaks", path, check=0).stdout

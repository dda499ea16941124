"""`diff`: two runs, what changed between them, and what is only noise."""
import csv
import io
import json
import pathlib
import subprocess

import pytest

import harness
from harness import default_python, one_line_error, pyrometer, record, workload

PROGRAM = (
    "import time\n"
    "def spin(seconds):\n"
    "    end = time.process_time() + seconds\n"
    "    while time.process_time() < end:\n"
    "        pass\n"
    "def steady():\n"
    "    spin(0.5)\n"
    "def slower():\n"
    "    spin({slower})\n"
    "{extra}"
    "steady()\n"
    "slower()\n"
)


def diff(before, after, *args):
    return json.loads(pyrometer("diff", before, after, "--json", *args, check=0).stdout)


def row_of(result, name):
    found = [r for r in result["rows"] if r["name"] == name]
    assert len(found) == 1, found
    return found[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Recordings of the same file before and after an edit that moved and slowed a function."""
    folder = tmp_path_factory.mktemp("diff")
    source = folder / "app.py"
    made = []
    for i, (slower, extra) in enumerate([("0.25", "def old():\n    spin(0.2)\nold()\n"), ("1.0", "\n\n\ndef young():\n    spin(0.2)\nyoung()\n")]):
        source.write_text(PROGRAM.format(slower=slower, extra=extra))
        made.append(record([default_python().path, source], folder / ("%d.pyro" % i)).path)
    return made


def test_what_changed(runs):
    result = diff(*runs)
    slower = row_of(result, "slower")
    assert slower["total_change"] > 0.3 and slower["total_points"] > 10 and not slower["total_within_noise"]
    assert slower["total_change"] == pytest.approx(slower["total_after"] - slower["total_before"])
    assert slower["total_points"] == pytest.approx(slower["total_after_percent"] - slower["total_before_percent"])
    old, young = row_of(result, "old"), row_of(result, "young")
    assert old["total_after"] == 0 and old["total_before"] > 0.1 and young["total_before"] == 0 and young["total_after"] > 0.1
    changes = [abs(r["self_change"]) for r in result["rows"]]
    assert changes == sorted(changes, reverse=True)
    for row in result["rows"]:
        assert row["self_within_noise"] == (abs(row["self_points"]) <= row["self_error_points"])
    assert sum(r["self_change"] for r in result["rows"]) == pytest.approx(result["after"]["total"] - result["before"]["total"])
    contract = pathlib.Path(harness.ROOT, "docs", "json.md").read_text(encoding="utf-8")
    for key in set(result) | set(slower):
        assert "`%s`" % key in contract, key


def test_the_other_way_round(runs):
    there, back = diff(runs[0], runs[1]), diff(runs[1], runs[0])
    for name in ("steady", "slower", "old", "young"):
        assert row_of(there, name)["total_change"] == pytest.approx(-row_of(back, name)["total_change"])


def test_agrees_with_report(runs):
    result = diff(*runs)
    for side, path in zip(("before", "after"), runs):
        report = harness.Recording(path).report()
        assert result[side]["total"] == report["total"]
        for name in ("spin", "steady"):
            row = next(r for r in report["rows"] if r["name"] == name)
            assert row_of(result, name)["total_" + side] == pytest.approx(row["total"])


def test_text(runs):
    out = pyrometer("diff", *runs, "--match", "app.py", check=0).stdout
    assert out.startswith("before  run ") and "\nafter   run " in out
    by_name = {line.split()[-2]: line for line in out.splitlines() if "app.py:" in line}
    assert "new" in by_name["young"] and "gone" in by_name["old"] and "+" in by_name["slower"]
    assert "times as much" in out and "\x1b" not in out


def test_same_run_is_noise(runs):
    result = diff(runs[0], runs[0])
    assert all(r["self_change"] == 0 and r["self_within_noise"] and r["total_within_noise"] for r in result["rows"])
    assert result["notes"] == []
    assert "within noise" in pyrometer("diff", runs[0], runs[0], check=0).stdout


def test_a_repeated_run_is_mostly_noise(tmp_path):
    for name in ("a", "b"):
        record([default_python().path, workload("shares.py"), "1.0"], tmp_path / (name + ".pyro"))
    result = diff("a.pyro", "b.pyro", "--match", "hot_")
    assert len(result["rows"]) == 3
    assert all(r["self_error_points"] > 0 for r in result["rows"])


@pytest.mark.parametrize("by", ["function", "line", "file", "module", "thread", "process"])
def test_every_cut(runs, by):
    result = diff(*runs, "--by", by)
    assert result["by"] == by and result["rows"]
    assert pyrometer("diff", *runs, "--by", by, check=0).stdout
    table = list(csv.DictReader(io.StringIO(pyrometer("diff", *runs, "--by", by, "--csv", check=0).stdout)))
    assert [r["name"] for r in table] == [r["name"] for r in result["rows"]]
    if by == "file":
        app = [r for r in result["rows"] if r["name"].endswith("app.py")]
        assert len(app) == 1 and app[0]["self_before"] > 0 and app[0]["self_after"] > 0


def test_options(runs):
    assert len(diff(*runs, "--limit", "2")["rows"]) == 2
    assert {r["name"] for r in diff(*runs, "--match", "^(old|young)$")["rows"]} == {"old", "young"}
    totals = [abs(r["total_change"]) for r in diff(*runs, "--sort", "total")["rows"]]
    assert totals == sorted(totals, reverse=True)
    names = [r["name"] for r in diff(*runs, "--sort", "name")["rows"]]
    assert names == sorted(names)
    assert diff(*runs, "--include", "slower")["before"]["total"] < diff(*runs)["before"]["total"]
    assert diff(*runs, "--metric", "cpu")["metric"] == "cpu"


def test_default_runs(tmp_path):
    for _ in range(2):
        pyrometer("run", "--quiet", "--", default_python().path, workload("shares.py"), "0.4", check=0)
    assert diff("@~1", "@") == json.loads(pyrometer("diff", "--json", check=0).stdout)
    assert diff("@~1", "@") == json.loads(pyrometer("diff", "@~1", "--json", check=0).stdout)


def test_across_versions(tmp_path):
    pythons = harness.two_pythons(harness.find_pythons())
    if len(pythons) < 2:
        pytest.skip("one Python only")
    text = "import json\nt = json.dumps(list(range(20000)))\nimport time\nend = time.time() + 0.8\nwhile time.time() < end:\n    json.JSONDecoder().decode(t)\n"
    for i, python in enumerate(pythons):
        record([python.path, "-c", text], tmp_path / ("%d.pyro" % i))
    result = diff("0.pyro", "1.pyro")
    assert any("different Pythons" in note for note in result["notes"])
    decode = [r for r in result["rows"] if r["name"].endswith("raw_decode")]
    assert len(decode) == 1 and decode[0]["total_before"] > 0 and decode[0]["total_after"] > 0


# --- bad days ---


def test_too_short(runs, tmp_path):
    record([default_python().path, "-c", "pass"], tmp_path / "short.pyro", "--sample=10")
    for pair in (("short.pyro", runs[0]), (runs[0], "short.pyro"), ("short.pyro", "short.pyro")):
        result = diff(*pair)
        assert result["too_short"] and result["rows"] == []
        out = pyrometer("diff", *pair, check=0).stdout
        assert "too short" in out or "no samples" in out


def test_bad_files(runs, tmp_path):
    data = pathlib.Path(runs[0]).read_bytes()
    bad = tmp_path / "bad.pyro"
    bad.write_bytes(b"")
    for pair in ((bad, runs[0]), (runs[0], bad)):
        assert "empty" in one_line_error(pyrometer("diff", *pair), 1)
    bad.write_bytes(data[: len(data) * 2 // 3])
    done = pyrometer("diff", bad, runs[1], check=0)
    assert "torn" in done.stderr or "not finished" in done.stderr  # the cut may fall between two chunks
    for place in range(64, len(data), max(1, len(data) // 40)):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        bad.write_bytes(damaged)
        assert pyrometer("diff", runs[1], bad, "--json").returncode in (0, 1)


def test_calls_have_no_lines(runs, tmp_path):
    """Functions are no lines."""
    calls = record([default_python().path, "-c", "def f(): pass\nf()"], tmp_path / "calls.pyro", "--calls").path
    for sides in ((calls, calls), (runs[0], calls)):
        assert "leave out --by line" in one_line_error(pyrometer("diff", *sides, "--by", "line"), 1)
    assert "f" in {r["name"] for r in diff(calls, calls)["rows"]}


def test_usage(runs):
    assert "two RUNs" in one_line_error(pyrometer("diff", *runs, runs[0]), 2)
    assert "function" in one_line_error(pyrometer("diff", *runs, "--by", "joy"), 2)
    assert "self" in one_line_error(pyrometer("diff", *runs, "--sort", "joy"), 2)
    assert "one too many" in one_line_error(pyrometer("diff", *runs, "--json", "--csv"), 2)


def test_reader_that_goes_away(runs):
    for args in ("--limit 0", "--json", "--csv"):
        done = subprocess.run("'%s' diff '%s' '%s' %s | head -c 10" % (harness.PYROMETER, *runs, args), shell=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.stderr == b"", done.stderr
    with open("/dev/full", "w") as full:
        assert "cannot write" in one_line_error(pyrometer("diff", *runs, stdout=full), 1)


def test_names_that_bite(tmp_path):
    for i in range(2):
        program = (
            "import time\n"
            "def spin():\n"
            "    end = time.perf_counter() + 0.2\n"
            "    while time.perf_counter() < end: pass\n"
            "for name in ('\\x1b[31m', '<b>&', 'a\\u202eb', 'n' * 1000000):\n"
            "    exec(compile('def f():\\n spin()\\nf()', name, 'exec'))\n")
        record([default_python().path, "-c", program], tmp_path / ("%d.pyro" % i))
    out = pyrometer("diff", "0.pyro", "1.pyro", "--limit", "0", check=0).stdout
    assert "\x1b" not in out and "\u202e" not in out
    assert "\x1b[31m" in {r["file"] for r in diff("0.pyro", "1.pyro")["rows"]}

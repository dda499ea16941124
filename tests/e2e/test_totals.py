"""Every view of a recording tells the same sum, whatever the filters: one language, one pass."""
import json
import re

import pytest

from harness import Recording, default_python, pyrometer, record, workload

FILTERS = [
    [],
    ["--metric", "cpu"],
    ["--metric", "gil"],
    ["--range", "0.5:1.2"],
    ["--range", ":0.7"],
    ["--range", "0.9:"],
    ["--include", "hot_70"],
    ["--include", r"shares\.py:[0-9]+\(main\)"],
    ["--exclude", "hot_(20|10)"],
    ["--include", "^main$", "--exclude", "^hot_70$"],
    ["--include", "/shares[.]py$", "--range", "0.2:1.0", "--metric", "cpu"],
    ["--thread", "{tid}"],
    ["--process", "{pid}", "--exclude", "hot_70"],
    ["--include", "nothing has this name"],
]


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    return record([default_python().path, workload("shares.py"), "1.5"], tmp_path_factory.mktemp("totals") / "x.pyro")


def filled(recording, filters):
    thread = recording.info()["threads"][0]
    return [f.format(tid=thread["tid"], pid=thread["pid"]) for f in filters]


def lines_of(recording, *args):
    return json.loads(pyrometer("lines", recording.path, "--json", *args, check=0).stdout)


def nodes_of(rows):
    """Every node of a call tree."""
    return [node for row in rows for node in [row, *nodes_of(row["children"])]]


def check_graph(recording, whole, path, filters):
    """The boxes of the call graph, nothing pruned: their totals are the report's, and their selves are the whole."""
    pyrometer("graph", recording.path, "-o", path, "--min-percent", "0", *filters, check=0)
    tips = re.findall(r'<g class="n[^>]*><title>([^<]*)', path.read_text(encoding="utf-8"))
    totals = sorted(float(t) for tip in tips for t in re.findall(r"\ntotal [^\n]* \(([\d.]+) %", tip))
    selves = [int(n.replace(",", "")) for tip in tips for n in re.findall(r"\nself .*, ([\d,]+) samples?\)", tip)]
    rows = [r for r in whole["rows"] if r["total"]]
    assert totals == pytest.approx(sorted(100 * r["total"] / whole["total"] for r in rows), abs=0.06)
    assert sum(selves) == whole["samples"]


@pytest.mark.parametrize("filters", FILTERS, ids=lambda f: " ".join(f) or "none")
@pytest.mark.once
def test_all_views_agree(shares, tmp_path, filters):
    filters = filled(shares, filters)
    whole = shares.report(*filters)
    total, samples = whole["total"], whole["samples"]
    if "nothing" not in " ".join(filters):
        assert samples > 0
    else:
        assert samples == 0
    for by in ("function", "line", "file", "module", "thread", "process"):
        report = shares.report("--by", by, *filters)
        assert (report["total"], report["samples"]) == (total, samples), by
        assert sum(r["self"] for r in report["rows"]) == pytest.approx(total, rel=1e-9, abs=1e-12), by
        assert sum(r["samples"] for r in report["rows"]) == samples, by
        assert all(r["total"] <= total * (1 + 1e-9) for r in report["rows"]), by

    lines = lines_of(shares, *filters)
    assert (lines["total"], lines["samples"]) == (total, samples)
    everything = [line for f in lines["files"] for line in f["lines"]] + lines["special"]
    assert sum(line["samples"] for line in everything) == samples
    assert sum(line["self"] for line in everything) == pytest.approx(total, rel=1e-9, abs=1e-12)
    files = {f["file"]: f for f in lines["files"]}
    for row in shares.rows("--by", "file", *filters):
        if not row["special"]:
            assert files[row["name"]]["samples"] == row["samples"]
            assert files[row["name"]]["total"] == pytest.approx(row["total"])

    for mode in ([], ["--bottom-up"], ["--by-line"], ["--by-thread"]):
        tree = json.loads(pyrometer("tree", shares.path, "--json", *mode, *filters, check=0).stdout)
        assert (tree["total"], tree["samples"]) == (total, samples), mode
        nodes = nodes_of(tree["rows"])
        assert sum(n["self"] for n in nodes) == pytest.approx(total, rel=1e-9, abs=1e-12), mode
        assert sum(n["samples"] for n in nodes) == samples, mode
        assert sum(n["total"] for n in tree["rows"]) == pytest.approx(total, rel=1e-9, abs=1e-12), mode

    plain = [f for i, f in enumerate(filters) if f != "--metric" and (i == 0 or filters[i - 1] != "--metric")]
    if plain == filters:  # without a metric the export counts samples
        out = pyrometer("export", "collapsed", shares.path, *filters, check=0).stdout
        assert sum(int(line.rpartition(" ")[2]) for line in out.splitlines()) == samples
    out = pyrometer("export", "collapsed", shares.path, *plain, "--metric", whole["metric"], check=0).stdout
    stacks = [line.rpartition(" ") for line in out.splitlines()]
    assert sum(int(us) for _, _, us in stacks) == pytest.approx(total * 1e6, rel=1e-3, abs=len(stacks))

    if samples:
        check_graph(shares, whole, tmp_path / "x.svg", filters)

    diff = json.loads(pyrometer("diff", shares.path, shares.path, "--json", *filters, check=0).stdout)
    assert diff["after"]["total"] == total and diff["before"]["samples"] == samples
    assert sum(r["self_after"] for r in diff["rows"]) == pytest.approx(total, rel=1e-9, abs=1e-12)
    assert all(r["self_change"] == 0 and r["self_within_noise"] for r in diff["rows"])


def test_filters_are_what_they_say(shares):
    """Include and exclude split the whole; ranges side by side cover it."""
    whole = shares.report()
    parts = [shares.report(*f) for f in (["--include", "hot_70"], ["--exclude", "hot_70"])]
    assert sum(p["samples"] for p in parts) == whole["samples"]
    assert sum(p["total"] for p in parts) == pytest.approx(whole["total"])
    assert {r["name"] for r in parts[0]["rows"]} >= {"hot_70", "main"}
    assert "hot_70" not in {r["name"] for r in parts[1]["rows"]}
    parts = [shares.report("--range", r) for r in (":0.4", "0.4:0.9", "0.9:")]
    assert sum(p["total"] for p in parts) == pytest.approx(whole["total"])
    assert shares.report("--range", ":")["total"] == whole["total"]
    assert parts[1]["total"] <= 0.51 * max(1, len(shares.info()["threads"]))
    for frames, _ in [(line.rpartition(" ")[0].split(";"), 0) for line in pyrometer(
            "export", "collapsed", shares.path, "--include", "^hot_20$", check=0).stdout.splitlines()]:
        assert any(re.match("hot_20 ", f) for f in frames)


def test_a_line_of_a_stack_can_be_named(shares):
    row = max((r for r in shares.rows("--by", "line") if r["name"] == "hot_70"), key=lambda r: r["total"])
    only = shares.report("--include", r"shares\.py:%d\(hot_70\)" % row["line"])
    assert only["samples"] == row["total_samples"]


@pytest.mark.parametrize("command", [["report"], ["tree"], ["lines"], ["diff"], ["export", "collapsed"],
                                     ["graph", "-o", "never-made.svg"]], ids=lambda c: c[0])
@pytest.mark.parametrize("wrong,word", [
    (["--range", "5"], "A:B"), (["--range", "a:b"], "A:B"), (["--range", "3:1"], "empty"), (["--range", "-1:2"], "A:B"),
    (["--range", "1:2:3"], "A:B"), (["--range", "nan:"], "A:B"), (["--range", "0x1:2"], "A:B"), (["--range", "1:1"], "empty"),
    (["--include", "("], "regular expression"), (["--exclude", "[z-a]"], "regular expression"), (["--metric", "joy"], "wall"),
    (["--process", "0"], "process id"),
], ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_wrong_filters(shares, command, wrong, word):
    runs = [shares.path] * (2 if command == ["diff"] else 1)
    done = pyrometer(*command, *runs, *wrong, check=2)
    assert done.stdout == "" and len(done.stderr.splitlines()) == 1 and word in done.stderr, done.stderr


def test_nothing_is_left(shares):
    for command in (["report"], ["tree"], ["lines"]):
        assert "left by the filters" in pyrometer(*command, shares.path, "--range", "1000:", check=0).stdout
    assert pyrometer("export", "collapsed", shares.path, "--range", "1000:", check=0).stdout == ""
    for command in (["report"], ["tree"], ["lines"], ["export", "collapsed"]):
        assert "no thread" in pyrometer(*command, shares.path, "--thread", "nobody", check=1).stderr
    assert "no thread" in pyrometer("diff", shares.path, shares.path, "--thread", "nobody", check=1).stderr


def test_several_threads(tmp_path):
    threads = record([default_python().path, workload("threads.py")], tmp_path / "x.pyro")
    whole = threads.report("--by", "thread")
    if len(whole["rows"]) < 2:
        pytest.skip("one thread only")
    total = 0
    for row in whole["rows"]:
        part = threads.report("--thread", str(row["tid"]))
        assert part["total"] == pytest.approx(row["total"])
        assert lines_of(threads, "--thread", str(row["tid"]))["samples"] == part["samples"]
        total += part["total"]
    assert total == pytest.approx(whole["total"])
    assert isinstance(threads, Recording)

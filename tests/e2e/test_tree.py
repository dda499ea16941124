"""`tree`: the text, its sums and its bad days; and the screen in a real terminal (tmux).

Most stacks here are collapsed ones written by hand, so that every number is known; those that are about metrics or
losses are recorded.
"""
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import harness
from harness import PYROMETER, one_line_error, pyrometer, record, workload
from tmux import HAS_TMUX, Terminal

HAND = """\
main;alpha;beta 500
main;gamma 100
main;gamma;beta 150
main;gamma;delta 50
main;zeta 90
main 10
other 100
"""

needs_tmux = pytest.mark.skipif(not HAS_TMUX, reason="no tmux")


@pytest.fixture
def hand(tmp_path):
    path = tmp_path / "hand.txt"
    path.write_text(HAND)
    return str(path)


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    return record([harness.default_python().path, workload("shares.py"), "1.0"], tmp_path_factory.mktemp("tree") / "x.pyro")


def tree_of(path, *args):
    return json.loads(pyrometer("tree", path, "--json", *args, check=0).stdout)


def walk(rows):
    """Every node, parents first."""
    for row in rows:
        yield row
        yield from walk(row["children"])


def drawn(path, *args):
    """The table of the text, without numbers and places."""
    out = pyrometer("tree", path, *args, check=0).stdout
    table = out[out.index("total %"):].splitlines()
    begin, end = table[0].index("function"), table[0].index("file:line")
    return [line[begin:end].rstrip() for line in table[1:] if " % " in line[:9]]


# --- text ---


def test_text(hand):
    assert drawn(hand) == [
        "├ main",
        "│ ├ alpha",
        "│ │ beta",
        "│ ├ gamma",
        "│ │ ├ beta",
        "│ │ └ delta",
        "│ └ zeta",
        "└ other",
    ]
    out = pyrometer("tree", hand, check=0).stdout
    assert "\x1b" not in out and "samples 1,000" in out
    assert re.search(r"^ 30.0 % +300 +10.0 % +100  │ ├ gamma$", out, re.M), out


def test_bottom_up(hand):
    assert drawn(hand, "--bottom-up") == [
        "├ beta", "│ ├ alpha", "│ │ main", "│ └ gamma", "│   main", "├ gamma", "│ main", "├ other", "├ zeta", "│ main",
        "├ delta", "│ gamma", "│ main", "└ main"]


def test_limits_fold_and_say_so(hand):
    out = pyrometer("tree", hand, "--limit", "3", check=0).stdout
    assert "… and " in out and "more branches" in out and "--limit 0 shows all" in out
    assert len(drawn(hand, "--limit", "3")) == 3 + out.count(" more\n")
    assert drawn(hand, "--min-percent", "30") == ["├ main", "│ ├ alpha", "│ │ beta", "│ ├ gamma", "│ │ … 2 more", "│ └ … 1 more", "└ … 1 more"]
    assert drawn(hand, "--max-depth", "1") == ["├ main", "│ … 3 more", "└ other"]
    for args in (["--limit", "3"], ["--min-percent", "30"], ["--max-depth", "1"], ["--max-depth", "2", "--bottom-up"]):
        tree = tree_of(hand, *args)
        assert sum(r["self"] for r in walk(tree["rows"])) == tree["total"] == 1000
        assert tree["folded"] == sum(r["folded"] for r in walk(tree["rows"])) > 0
        assert tree["folded_total"] == sum(r["total"] for r in walk(tree["rows"]) if r["folded"])


def test_default_is_what_matters(tmp_path):
    (tmp_path / "x.txt").write_text("".join("main;f%d %d\n" % (i, 1000 - i) for i in range(100)) + "main;tiny 1\n")
    assert len(drawn(tmp_path / "x.txt")) == 60 + 1
    assert "tiny" not in pyrometer("tree", tmp_path / "x.txt", check=0).stdout
    assert "tiny" in pyrometer("tree", tmp_path / "x.txt", "--limit", "0", check=0).stdout


def test_moving_has_its_line(tmp_path):
    (tmp_path / "x.txt").write_text("main 100\nmain;<moving> 30\n")
    assert drawn(tmp_path / "x.txt") == ["main", "<moving>"]


# --- JSON and CSV ---


@pytest.mark.parametrize("mode", [[], ["--bottom-up"], ["--by-line"], ["--by-thread"], ["--by-thread", "--bottom-up"]], ids=" ".join)
def test_json_contract(shares, mode):
    tree = tree_of(shares.path, *mode)
    report = shares.report()
    assert (tree["total"], tree["samples"], tree["metric"], tree["unit"]) == tuple(report[k] for k in ("total", "samples", "metric", "unit"))
    nodes = list(walk(tree["rows"]))
    assert sum(r["total"] for r in tree["rows"]) == pytest.approx(tree["total"])
    assert sum(r["self"] for r in nodes) == pytest.approx(tree["total"])
    assert sum(r["samples"] for r in nodes) == tree["samples"]
    for node in nodes:
        assert node["total"] == pytest.approx(node["self"] + sum(c["total"] for c in node["children"]))
        assert node["total_percent"] == pytest.approx(node["total"] / tree["total"] * 100)
        weights = [c["total"] for c in node["children"]]
        assert weights == sorted(weights, reverse=True)
        assert all(c["depth"] == node["depth"] + 1 for c in node["children"])
    contract = pathlib.Path(harness.ROOT, "docs", "json.md").read_text(encoding="utf-8")
    part = contract[contract.index("## pyrometer tree --json"):].split("\n## ")[0]
    for field in set(tree) | set(nodes[0]):
        assert "`%s`" % field in part, "docs/json.md does not know %s" % field
    if "--by-thread" in mode and "--bottom-up" not in mode:
        assert {r["tid"] for r in tree["rows"]} == {r["tid"] for r in shares.rows("--by", "thread")}


def test_selves_are_the_reports(shares):
    selves = {}
    for node in walk(tree_of(shares.path)["rows"]):
        selves[node["name"], node["file"]] = selves.get((node["name"], node["file"]), 0) + node["self"]
    report = {}
    for row in shares.rows():
        report[row["name"], row["file"]] = report.get((row["name"], row["file"]), 0) + row["self"]
    assert selves == pytest.approx(report)


def test_csv_is_the_json(shares):
    rows = list(csv.DictReader(io.StringIO(pyrometer("tree", shares.path, "--csv", check=0).stdout)))
    nodes = list(walk(tree_of(shares.path)["rows"]))
    assert [(r["name"], int(r["depth"]), int(r["total_samples"])) for r in rows] == [
        (n["name"], n["depth"], n["total_samples"]) for n in nodes]
    assert set(rows[0]) == set(nodes[0]) - {"children"}


def test_imports(tmp_path):
    program = tmp_path / "p.py"
    program.write_text("import cProfile\ndef f():\n    return sum(range(10000))\ndef g():\n    return [f() for _ in range(50)]\n"
                       "cProfile.run('g()', 'x.prof')\n")
    subprocess.run([harness.default_python().path, str(program)], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    tree = tree_of(tmp_path / "x.prof")
    assert tree["metric"] == "time" and {"f", "g"} <= {n["name"] for n in walk(tree["rows"])}
    assert all(n["total_error_percent"] is None for n in walk(tree["rows"]))
    assert tree["total"] == json.loads(pyrometer("report", tmp_path / "x.prof", "--json", check=0).stdout)["total"]
    assert "estimated" in pyrometer("tree", tmp_path / "x.prof", check=0).stdout
    (tmp_path / "h.txt").write_text(HAND)
    scope = tmp_path / "x.json"
    pyrometer("export", "speedscope", tmp_path / "h.txt", "-o", scope, check=0)
    assert drawn(scope) == drawn(tmp_path / "h.txt")


# --- bad days ---


def test_too_short_and_nothing_left(tmp_path, shares):
    short = record([harness.default_python().path, "-c", "pass"], tmp_path / "s.pyro", "--sample=1")
    out = pyrometer("tree", short.path, check=0).stdout
    assert "too short" in out or "no samples" in out
    tree = tree_of(short.path)
    assert tree["too_short"] is True and tree["rows"] == []
    assert "left by the filters" in pyrometer("tree", shares.path, "--range", "1000:", check=0).stdout
    assert tree_of(shares.path, "--range", "1000:")["rows"] == []
    assert "no thread" in one_line_error(pyrometer("tree", shares.path, "--thread", "nobody"), 1)


def test_one_sample(tmp_path):
    (tmp_path / "x.txt").write_text("alone 1\n")
    assert drawn(tmp_path / "x.txt") == ["alone"]
    assert drawn(tmp_path / "x.txt", "--bottom-up") == ["alone"]


def test_bad_files(tmp_path, shares):
    (tmp_path / "empty.pyro").write_bytes(b"")
    assert "empty" in one_line_error(pyrometer("tree", tmp_path / "empty.pyro"), 1)
    assert "no such" in one_line_error(pyrometer("tree", tmp_path / "none.pyro"), 1)
    data = pathlib.Path(shares.path).read_bytes()
    (tmp_path / "torn.pyro").write_bytes(data[:len(data) * 2 // 3])
    done = pyrometer("tree", tmp_path / "torn.pyro", check=0)
    assert "torn" in done.stderr or "cut" in done.stderr or "damaged" in done.stdout, (done.stdout, done.stderr)
    for at in range(100, len(data), max(1, len(data) // 40)):
        broken = bytearray(data)
        broken[at] ^= 0x55
        (tmp_path / "broken.pyro").write_bytes(broken)
        assert pyrometer("tree", tmp_path / "broken.pyro", "--limit", "0").returncode in (0, 1)


EVIL = ["esc\x1b[31m\x07end", "\u202etxt.exe\u202c", "<script>alert(1)</script>", "\u2028line", "日本語" * 30, "e\u0301" * 20, "n" * (1 << 20)]


@pytest.fixture
def evil(tmp_path):
    path = tmp_path / "evil.txt"
    path.write_text("".join("main;%s 10\n" % name for name in EVIL) + "".join("main;%s;inner 1\n" % name for name in EVIL))
    return str(path)


def test_hostile_names(evil):
    out = pyrometer("tree", evil, check=0).stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\u2028]", out)
    assert "\\x1b[31m" in out and "\\u202e" in out and "<script>" in out and "n" * 1000 in out
    names = {n["name"] for n in walk(tree_of(evil)["rows"])}
    assert set(EVIL) <= names
    pyrometer("tree", evil, "--csv", "--bottom-up", check=0)


def test_deep_stacks(tmp_path):
    stack = ["f%d" % (i % 7) for i in range(5000)]
    with open(tmp_path / "deep.txt", "w", encoding="utf-8") as f:
        for end in range(1, len(stack), 10):
            f.write(";".join(stack[:end]) + " 1\n")
            f.write(";".join(stack[:end]) + ";side 1\n")
    out = pyrometer("tree", tmp_path / "deep.txt", "--limit", "0", check=0).stdout
    assert max(len(line) for line in out.splitlines()) < 300
    assert "⋯" in out
    tree = tree_of(tmp_path / "deep.txt")
    assert sum(n["self"] for n in walk(tree["rows"])) == tree["total"]
    assert max(n["depth"] for n in walk(tree["rows"])) == 121  # the last is what was folded
    assert tree["folded"] > 0
    rows = list(csv.DictReader(io.StringIO(pyrometer("tree", tmp_path / "deep.txt", "--csv", check=0).stdout)))
    assert max(int(r["depth"]) for r in rows) > 4900


@pytest.mark.parametrize("args,word", [
    (["--json", "--csv"], "one of them"), (["--text", "--json"], "one of them"), (["--min-percent", "101"], "between"),
    (["--limit", "x"], "--limit"), (["--metric", "joy"], "wall"), (["a", "b"], "one RUN"), (["--nonsense"], "--nonsense"),
], ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_wrong_usage(args, word):
    assert word in one_line_error(pyrometer("tree", *args), 2)


def test_outputs_that_fail(hand):
    with open("/dev/full", "wb") as full:
        one_line_error(pyrometer("tree", hand, stdout=full), 1)
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen([PYROMETER, "tree", hand], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    _, err = process.communicate(timeout=harness.HANG)
    assert err == b"" and process.returncode in (-signal.SIGPIPE, 1)


# --- on the screen ---


class Tree(Terminal):
    def __init__(self, folder, path, *options, **kwargs):
        super().__init__(folder, **kwargs)
        self.type("clear; echo before; stty -a >%s/before; %s tree %s %s; echo status $?; stty -a >%s/after" % (
            folder, PYROMETER, path, " ".join(options), folder))
        self.keys("Enter")

    def left(self, status=0):
        """The program has gone with that status, and the terminal is what it was."""
        text = self.wait("status %d" % status)
        self.until(lambda _: os.path.exists(self.folder + "/after") and os.path.getsize(self.folder + "/after"), "stty")
        assert re.sub("rows [0-9]+; columns [0-9]+", "", open(self.folder + "/before").read()) == re.sub(
            "rows [0-9]+; columns [0-9]+", "", open(self.folder + "/after").read())
        words = [line for line in text.splitlines() if line.strip()]
        assert words[0] == "before" and words[1].startswith("status"), text
        assert self.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == ["0", "1"]


def names_on(terminal):
    """[(mark, name)] of the lines of the tree, with their indentation."""
    found = [re.match(r" *[\d.]+ %(?: +[\d.]+ %)?(?: +[\d,.]+(?: [mµ]?s)?)? ( *[▸▾ ] .*?)(?:   .*)?$", line) for line in terminal.lines()]
    return [m.group(1).rstrip() for m in found if m]


@needs_tmux
def test_walking(hand, tmp_path):
    with Tree(tmp_path, hand) as t:
        t.wait("top down", "by total", "samples 1,000", "?=help 1/6")
        assert names_on(t) == ["▾ main", "  ▾ alpha", "    beta", "  ▸ gamma", "    zeta", "  other"]
        t.keys("Down", "j", "Down", "Right")
        t.wait("?=help 4/8", "delta")
        assert names_on(t) == ["▾ main", "  ▾ alpha", "    beta", "  ▾ gamma", "      beta", "      delta", "    zeta", "  other"]
        t.keys("Left")
        t.wait("?=help 4/6")
        t.keys("h")
        t.wait("?=help 1/6")
        t.keys("Space")
        t.wait("?=help 1/2")
        assert names_on(t) == ["▸ main", "  other"]
        t.keys("e")
        t.wait("?=help 3/6")
        t.keys("End")
        t.wait("?=help 6/6")
        t.keys("Home")
        t.wait("?=help 1/6")
        t.keys("q")
        t.left()


@needs_tmux
def test_hottest_and_order(hand, tmp_path):
    with Tree(tmp_path, hand) as t:
        t.wait("?=help 1/6")
        t.keys("H")
        t.wait("?=help 3/6")
        t.keys("H")
        t.wait("?=help 5/8", "delta")
        t.keys("s")
        t.wait("by self")
        assert names_on(t) == ["  other", "▾ main", "  ▾ gamma", "      beta", "      delta", "    zeta", "  ▾ alpha", "    beta"]
        t.keys("s")
        t.wait("by name")
        t.keys("s")
        t.wait("by total")
        t.keys("q")
        t.left()


@needs_tmux
def test_searching(hand, tmp_path):
    with Tree(tmp_path, hand) as t:
        t.wait("?=help 1/6")
        t.keys("n")
        t.wait("nothing was searched for")
        t.type("/^DEL")
        t.wait("/^DEL")
        t.keys("BSpace", "BSpace", "BSpace")
        t.type("delta")
        t.keys("Enter")
        t.wait("1 found", "?=help 6/8")
        t.type("/beta")
        t.keys("Enter")
        t.wait("2 found", "?=help 3/8")
        t.keys("n")
        t.wait("?=help 5/8")
        t.keys("N")
        t.wait("?=help 3/8")
        t.type("/(")
        t.keys("Enter")
        t.wait("not a regular expression")
        t.type("/nobody")
        t.keys("Enter")
        t.wait("nothing matches")
        t.type("/q")
        t.wait("/q")
        t.keys("Escape")
        t.wait("?=help")
        t.keys("?")
        t.wait("heaviest way", "quit")
        t.keys("x")
        t.wait("?=help")
        t.keys("q")
        t.left()


@needs_tmux
def test_metric_and_turning(shares, tmp_path):
    with Tree(tmp_path, shares.path) as t:
        t.wait("wall ", "hot_70", "top down")
        t.type("/hot_20")
        t.keys("Enter")
        t.wait("1 found")
        line = t.wait("?=help").split("?=help ")[1].split("/")[0]
        t.keys("m")
        t.wait("cpu ", "time on a CPU")
        t.keys("Left")
        t.wait("1 found")
        assert line
        total = json.loads(pyrometer("report", shares.path, "--metric", "cpu", "--json", check=0).stdout)["total"]
        shown = re.match(r"cpu ([\d.]+) (m?s)", t.text())
        assert float(shown.group(1)) * (1 if shown.group(2) == "s" else 1e-3) == pytest.approx(total, rel=0.01)
        t.keys("m")
        t.wait("gil ")
        t.keys("m")
        t.wait("wall ")
        t.keys("b")
        t.wait("bottom up", "who called it")
        hottest = max(shares.rows(), key=lambda r: r["self"])["name"]
        assert names_on(t)[0].strip("▸▾ ") == hottest
        t.keys("b")
        t.wait("top down")
        t.keys("q")
        t.left()


@needs_tmux
def test_other_metrics_are_missing(hand, tmp_path):
    with Tree(tmp_path, hand) as t:
        t.wait("?=help 1/6")
        t.keys("m")
        t.wait("no other metric")
        t.keys("q")
        t.left()


@needs_tmux
@pytest.mark.parametrize("width,height", [(20, 5), (10, 3), (5, 2), (2, 1), (300, 100)])
def test_sizes(evil, tmp_path, width, height):
    with Tree(tmp_path, evil) as t:
        t.wait("?=help 1/")
        t.resize(width, height)
        t.until(lambda text: len(text.split("\n")) == height + 1 and all(len(x) <= width for x in text.split("\n")), "the size")
        if width >= 20:
            t.wait("100.0 %", "main")
        t.keys("j", "j", "l", "/", "i", "n", "Enter", "n", "s", "b", "?", "j", "k", "x", "H", "e", "G", "PgUp", "b", "k")
        t.resize(100, 24)
        t.wait("?=help", "top down", "by self")
        t.keys("q")
        t.wait("status 0")


@needs_tmux
def test_starts_in_a_small_terminal(hand, tmp_path):
    with Tree(tmp_path, hand, width=20, height=5) as t:
        t.wait("90.0 %", "main", "?=help 1/6")
        assert len(t.lines()) <= 5
        t.keys("End")
        t.wait("other")
        t.keys("q")
        t.wait("status 0")


@needs_tmux
@pytest.mark.parametrize("how", ["C-c", "TERM", "HUP", "INT"])
def test_signals_restore(hand, tmp_path, how):
    with Tree(tmp_path, hand) as t:
        t.wait("?=help 1/6")
        if how == "C-c":
            t.keys("C-c")
            # the shell, too, was interrupted and forgot the rest of the line
            t.wait_prompt("total %")
            t.run("echo status $?; stty -a >after")
            t.wait("status 130")
            assert pathlib.Path(tmp_path, "after").read_text() == pathlib.Path(tmp_path, "before").read_text()
            assert "before" in t.text()
            return
        shell = int(t.tmux("display-message", "-p", "#{pane_pid}"))
        child = int(subprocess.run(["ps", "-o", "pid=", "--ppid", str(shell)], stdout=subprocess.PIPE, check=True).stdout.split()[0])
        number = getattr(signal, "SIG" + how)
        os.kill(child, number)
        if how == "INT":
            t.wait_prompt("total %")
            return
        text = t.wait("status %d" % (128 + number))
        assert "before" in text and "total %" not in text
        t.until(lambda _: os.path.exists(t.folder + "/after") and os.path.getsize(t.folder + "/after"), "stty")
        assert pathlib.Path(tmp_path, "after").read_text() == pathlib.Path(tmp_path, "before").read_text()


@needs_tmux
def test_stopped_and_continued(hand, tmp_path):
    with Terminal(tmp_path) as t:
        t.run("clear; %s tree %s" % (PYROMETER, hand))
        t.wait("?=help 1/6")
        t.keys("C-z")
        t.until(lambda text: "topped" in text and "total %" not in text, "the shell")
        t.run("clear; fg")
        t.wait("?=help 1/6")
        t.keys("j")
        t.wait("?=help 2/6")
        t.keys("q")
        t.wait_gone("total %")


@needs_tmux
def test_no_colour_without_colour(hand, tmp_path):
    with Tree(tmp_path, hand) as t:
        t.wait("?=help 1/6")
        assert re.search(r"\x1b\[(\d+;)*3[13]m", t.attributes())
        t.keys("q")
    folder = tmp_path / "plain"
    folder.mkdir()
    with Tree(folder, hand, NO_COLOR="1") as t:
        t.wait("?=help 1/6")
        assert not re.search(r"\x1b\[(\d+;)*3[13]m", t.attributes())
        t.keys("q")
        t.left()


@needs_tmux
@pytest.mark.parametrize("term,options", [("dumb", ""), ("no-such-terminal", ""), ("", ""), ("screen", "--text"), ("screen", "</dev/null")])
def test_plain_where_there_is_no_screen(hand, tmp_path, term, options):
    with Terminal(tmp_path, height=40) as t:
        t.run("clear; TERM='%s' %s tree %s %s; echo status $?" % (term, PYROMETER, hand, options))
        text = t.wait("status 0")
        assert "│ └ zeta" in text and "?=help" not in text
    (tmp_path / "two").mkdir()
    with Terminal(tmp_path / "two", height=40) as t:
        t.run("clear; %s tree %s | head -n 2; echo done" % (PYROMETER, hand))
        assert "?=help" not in t.wait("done", "samples 1,000")


@needs_tmux
def test_short_recordings_are_told(tmp_path):
    short = record([harness.default_python().path, "-c", "pass"], tmp_path / "s.pyro", "--sample=1")
    with Terminal(tmp_path) as t:
        t.run("clear; %s tree %s; echo status $?" % (PYROMETER, short.path))
        text = t.wait("status 0")
        assert "too short" in text or "no samples" in text

"""--trace: every call with its begin and end, and the same calls in the timeline and the exports."""
import collections
import json
import os
import re

import pytest

import harness
from harness import ROOT, one_line_error, pyrometer, workload

FLAGS_OPEN = 3


def record(python, mode, *options, check=0):
    pyrometer("run", "--quiet", "--trace", *options, "-o", "trace.pyro", "--force", "--", python.path, workload("trace.py"), mode,
              check=check)
    return "trace.pyro"


class Call:
    def __init__(self, event):
        self.name, self.begin, self.duration = event["name"], event["ts"], event["dur"]
        self.thread = event["pid"], event["tid"]
        self.end = event.get("args", {}).get("end")
        self.file = event.get("args", {}).get("file")
        self.parent = None


def strict(text):
    """Chrome's trace events, by the letter of the format, properly nested. Returns calls and names of threads."""
    def refuse(constant):
        raise AssertionError(constant)

    document = json.loads(text, parse_constant=refuse)
    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"} and document["displayTimeUnit"] == "ns"
    names, lanes = {}, collections.defaultdict(list)
    for event in document["traceEvents"]:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and isinstance(event["name"], str)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name") and isinstance(event["args"]["name"], str)
            if event["name"] == "thread_name":
                names[event["pid"], event["tid"]] = event["args"]["name"]
            continue
        if event["ph"] in "ibeC":  # told by the program
            continue
        assert event["ph"] == "X" and set(event) <= {"ph", "cat", "name", "pid", "tid", "ts", "dur", "args"}
        assert event["cat"] in ("python", "c") and event["ts"] >= 0 and event["dur"] >= 0
        call = Call(event)
        lanes[call.thread].append(call)
    for lane in lanes.values():
        # an event is written when it ends: what ended later and began earlier is around it
        assert [round(1000 * (c.begin + c.duration)) for c in lane] == sorted(round(1000 * (c.begin + c.duration)) for c in lane)
        waiting = []
        for call in lane:
            while waiting and waiting[-1].begin >= call.begin:
                waiting.pop().parent = call
            assert not waiting or round(1000 * (waiting[-1].begin + waiting[-1].duration)) <= round(1000 * call.begin)
            waiting.append(call)
    return [c for lane in lanes.values() for c in lane], names


def chrome(path, *options):
    return strict(pyrometer("export", "chrome", "--all", *options, path, check=0).stdout)


def named(calls, name):
    return [c for c in calls if c.name == name]


@pytest.mark.strict
def test_counts_are_exact(python):
    calls, names = chrome(record(python, "count"))
    assert len(named(calls, "leaf")) == 1000 and len(named(calls, "many")) == 1
    many, = named(calls, "many")
    # one that takes no ns at all may seem to be inside of the next
    assert all(c.parent is many or c.duration == 0 for c in named(calls, "leaf"))
    assert any(name.startswith("MainThread") for name in names.values())


def test_durations_and_order(python):
    calls, _ = chrome(record(python, "nest"))
    around, within = named(calls, "around"), named(calls, "within")
    assert len(around) == 2 and len(within) == 4
    sleeps = [c for c in calls if "sleep" in c.name]
    assert len(sleeps) == 6
    assert all(c.duration >= 30000 for c in within) and all(c.duration >= 80000 for c in around)
    assert [c.parent for c in within] == [around[0], around[0], around[1], around[1]]
    assert around[0].begin + around[0].duration <= around[1].begin


def test_sums_agree_with_calls(python):
    """The same recording has the sums of --calls: as many calls, and as much time."""
    path = record(python, "nest")
    calls, _ = chrome(path)
    rows = json.loads(pyrometer("report", "--json", "--metric", "calls", "--limit", "1000000", "--min-percent", "0", path, check=0).stdout)["rows"]
    counted = {row["name"]: row["self"] for row in rows}
    for name in ("around", "within", "nest"):
        assert len(named(calls, name)) == counted[name]


@pytest.mark.strict
def test_threads_have_lanes(python):
    calls, names = chrome(record(python, "threads"))
    per_thread = collections.Counter(c.thread for c in named(calls, "leaf"))
    assert sorted(per_thread.values()) == [500, 500, 500]
    assert len({c.thread for c in calls} & set(names)) >= 4


@pytest.mark.parametrize("mode,expected", [("fork", [100, 100]), ("spawn", [100, 1000])])
@pytest.mark.strict
def test_processes(python, mode, expected):
    calls, _ = chrome(record(python, mode))
    per_process = collections.Counter(c.thread[0] for c in named(calls, "leaf"))
    assert sorted(per_process.values()) == expected


@pytest.mark.parametrize("mode,begins,ends", [("fork", "<built-in method posix.fork>", "<built-in method posix.waitpid>"), ("spawn", "run", "run")])
@pytest.mark.strict
def test_one_clock(python, mode, begins, ends):
    """What a child does is done after its parent began to make it, and before the parent has seen its end."""
    calls, _ = chrome(record(python, mode))
    leaves = named(calls, "leaf")
    (first,), (last,) = ([c for c in calls if c.name == name and c.thread[0] == c.thread[1] and not c.end] for name in (begins, ends))
    parent = first.thread[0]
    child = [c for c in leaves if c.thread[0] != parent]
    assert len(child) >= 100
    assert first.begin <= min(c.begin for c in child)
    assert max(c.begin + c.duration for c in child) <= last.begin + last.duration + 0.001  # which is a rounding


@pytest.mark.strict
def test_generators_are_suspended(python):
    calls, _ = chrome(record(python, "generator"))
    pieces = named(calls, "numbers")
    assert [c.end for c in pieces] == ["suspended"] * 5 + [None]


@pytest.mark.strict
def test_exceptions(python):
    calls, _ = chrome(record(python, "exceptions"))
    assert [c.end for c in named(calls, "bad")] == ["exception"] * 7


@pytest.mark.parametrize("mode,status", [("leave", 3), ("kill", 137)])
@pytest.mark.strict
def test_nothing_written_is_lost(python, mode, status):
    path = record(python, mode, check=status)
    calls, _ = chrome(path)
    assert len(named(calls, "leaf")) == 300
    assert named(calls, mode)[0].end == "not seen"
    pyrometer("verify", path, check=0)


@pytest.mark.strict
def test_deep(python):
    calls, _ = chrome(record(python, "deep"))
    found = len([c for c in calls if c.name.endswith("descend")])
    # below 3.11 a thread that is deep in its C stack is not traced until it is back
    assert found == 2001 if python.version >= (3, 11) else 1000 < found <= 2001


def test_with_samples_and_calls(default_python):
    path = record(default_python, "nest", "--sample", "--calls")
    info = json.loads(pyrometer("info", "--json", path, check=0).stdout)
    assert info["stats"]["samples"] > 10 and info["stats"]["events_traced"] > 10
    assert len(named(chrome(path)[0], "within")) == 4


def test_min_duration(default_python):
    path = record(default_python, "nest", "--min-duration", "0.01")
    calls, _ = chrome(path)
    assert all(c.duration >= 10000 or c.end == "not seen" for c in calls)
    assert len(named(calls, "within")) == 4 and len(named(calls, "around")) == 2
    full = json.loads(pyrometer("info", "--json", record(default_python, "count"), check=0).stdout)["stats"]
    path = record(default_python, "count", "--min-duration", "0.5")
    calls, _ = chrome(path)
    left = json.loads(pyrometer("info", "--json", path, check=0).stdout)["stats"]
    assert not named(calls, "leaf")
    assert left["events_left_out"] >= 1000 and full["events_left_out"] == 0


def test_max_depth(default_python):
    path = record(default_python, "count", "--max-depth", "3")
    calls, _ = chrome(path)
    stats = json.loads(pyrometer("info", "--json", path, check=0).stdout)["stats"]
    assert named(calls, "many") and not named(calls, "leaf") and stats["events_left_out"] >= 1000


@pytest.mark.parametrize("options", [["--min-duration", "0.5"], ["--max-depth", "3"]], ids=" ".join)
def test_what_was_to_be_left_out_is_told(default_python, options):
    path = record(default_python, "count", *options)
    count = json.loads(pyrometer("info", "--json", path, check=0).stdout)["stats"]["events_left_out"]
    assert count >= 1000 and timeline(path)["calls_left_out"] == count
    text = "{:,} calls are left out, as run --min-duration or --max-depth asked".format(count)
    for command in (["timeline", "-o", "left.svg"], ["timeline", "-o", "left.html"]):
        pyrometer(*command, "--force", path, check=0)
        assert text in open(command[-1], encoding="utf-8").read(), command
    for form in ("chrome", "perfetto"):
        assert text in pyrometer("export", form, "-o", "left.out", "--force", path, check=0).stderr
    whole = record(default_python, "count")
    assert timeline(whole)["calls_left_out"] == 0
    assert "left out" not in pyrometer("export", "chrome", "-o", "left.out", "--force", whole, check=0).stderr


def test_filters_need_trace(default_python):
    done = pyrometer("run", "--max-depth", "3", default_python.path, "-c", "pass", check=2)
    assert "--trace" in done.stderr


# --- the timeline ---


def timeline(path, *options):
    return json.loads(pyrometer("timeline", "--json", *options, path, check=0).stdout)


def boxes_of(view, name):
    numbers = [i for i, f in enumerate(view["functions"]) if f["name"] == name]
    return [b for t in view["threads"] for row in t["rows"] for b in row if b[2] in numbers]


def check_rows(view):
    for thread in view["threads"]:
        for row in thread["rows"]:
            assert all(a[1] <= b[0] for a, b in zip(row, row[1:])), "boxes of a row overlap"
            assert all(view["from_seconds"] <= b[0] <= b[1] <= view["to_seconds"] + 1e-9 for b in row)


def test_timeline_shows_the_calls(python):
    path = record(python, "nest")
    view = timeline(path)
    check_rows(view)
    within = boxes_of(view, "within")
    assert len(within) == 4 and all(b[3] == 1 and b[1] - b[0] >= 0.03 for b in within)


def test_timeline_counts_what_it_merges(default_python):
    path = record(default_python, "count")
    calls, _ = chrome(path)
    for pixels in ("1", "30", "100000"):
        view = timeline(path, "--pixels", pixels)
        check_rows(view)
        assert sum(b[3] for t in view["threads"] for row in t["rows"] for b in row) == len(calls)


def test_timeline_range(default_python):
    path = record(default_python, "nest")
    first = boxes_of(timeline(path), "within")[0]
    view = timeline(path, "--range", "%.9f:%.9f" % (first[0] + 0.01, first[0] + 0.02))
    check_rows(view)
    piece, = boxes_of(view, "within")
    assert piece[5] & FLAGS_OPEN == FLAGS_OPEN and abs(piece[1] - piece[0] - 0.01) < 1e-6


LOOP = "def leaf(): pass\ndef work(n):\n    for _ in range(n): leaf()\nfor _ in range(40): work(25000)\n"


@pytest.fixture(scope="module")
def long_recording(tmp_path_factory):
    """Two million events: many blocks, and levels over them."""
    import harness
    path = str(tmp_path_factory.mktemp("trace") / "long.pyro")
    pyrometer("run", "--quiet", "--trace", "--no-c-calls", "-o", path, "--", harness.default_python().path, "-c", LOOP, check=0)
    return path


@pytest.mark.strict
def test_the_index_says_what_the_events_say(long_recording):
    """The same pictures, coarse ones from summaries and fine ones from events: as many calls in each."""
    whole = timeline(long_recording)
    assert whole["read"]["blocks"] == 0 and whole["read"]["summaries"] > 0
    fine = timeline(long_recording, "--pixels", "1000000")
    assert fine["read"]["blocks"] > 0  # how many depends on how long the program took
    for view in (whole, fine):
        check_rows(view)
        assert sum(b[3] for b in boxes_of(view, "work")) == 40
        assert sum(b[3] for row in view["threads"][0]["rows"] for b in row) >= 1000040
    assert whole["read"]["bytes"] < os.path.getsize(long_recording) / 4


def test_bytes_per_event(long_recording):
    info = json.loads(pyrometer("info", "--json", long_recording, check=0).stdout)
    assert info["stats"]["events_traced"] >= 2000080
    assert os.path.getsize(long_recording) <= 4 * info["stats"]["events_traced"]


@pytest.mark.strict
def test_a_torn_file_keeps_its_timeline(long_recording, tmp_path):
    """Without the directory at the end, what is there is found and shown; a repaired copy, too."""
    torn = str(tmp_path / "torn.pyro")
    with open(long_recording, "rb") as f:
        data = f.read()
    with open(torn, "wb") as f:
        f.write(data[:len(data) * 2 // 3])
    view = timeline(torn)
    check_rows(view)
    assert 5 < sum(b[3] for b in boxes_of(view, "work")) < 40
    pyrometer("verify", "--repair", "-o", str(tmp_path / "whole.pyro"), torn)
    repaired = timeline(str(tmp_path / "whole.pyro"))
    assert repaired["threads"] == view["threads"]


def test_one_output(default_python):
    assert "one too many" in one_line_error(pyrometer("timeline", "--json", "-o", "x.svg", "nothing.pyro"), 2)
    assert "needs -o" in one_line_error(pyrometer("timeline", "nothing.pyro"), 2)


def test_pictures(default_python):
    import xml.dom.minidom
    path = record(default_python, "nest")
    pyrometer("timeline", "-o", "t.svg", path, check=0)
    pyrometer("timeline", "-o", "t.html", path, check=0)
    xml.dom.minidom.parse("t.svg")
    with open("t.html", encoding="utf-8") as f:
        page = f.read()
    assert "http-equiv=\"Content-Security-Policy\"" in page and "within" in page


# A recorder that is halted for longer than it is waited for: records are dropped.
HALTED = (
    "import os, signal\n"
    "def f(): pass\n"
    "recorder = int(os.environ['PYROMETER_ACTIVE'])\n"
    "os.kill(recorder, signal.SIGSTOP)\n"
    "for _ in range(500000): f()\n"
    "os.kill(recorder, signal.SIGCONT)\n"
)


def test_losses_are_told_everywhere(default_python):
    import xml.dom.minidom
    whole = record(default_python, "nest")
    done = pyrometer("run", "--trace", "--lines", "--no-c-calls", "--no-history", "-o", "lossy.pyro", "--", default_python.path, "-c", HALTED, check=0)
    lost = re.search("lost: (.* events dropped)", pyrometer("report", "lossy.pyro", check=0).stdout).group(1)
    assert "; %s\n" % lost in done.stderr

    for command in (["tree"], ["lines"], ["lines", "--style", "line_profiler"], ["report", "--by", "line"], ["diff", whole]):
        assert "\nlost: %s\n" % lost in pyrometer(*command, "lossy.pyro", check=0).stdout, command
    assert re.search("^lost +%s$" % lost, pyrometer("info", "lossy.pyro", check=0).stdout, re.M)
    for command in (["flame", "-o", "f.svg"], ["flame", "-o", "f.html"], ["graph", "-o", "g.svg"]):
        pyrometer(*command, "lossy.pyro", check=0)
        assert "the recording: " + lost in open(command[-1], encoding="utf-8").read(), command
    for command in (["report"], ["report", "--by", "line"], ["lines"], ["tree"], ["diff", whole]):  # a table has no place for words
        assert pyrometer(*command, "--csv", "lossy.pyro", check=0).stderr.endswith("the recording: %s\n" % lost), command
        assert "line" in command[-1] or not pyrometer(*command, "--csv", whole, check=0).stderr, command

    pyrometer("timeline", "-o", "whole.svg", whole, check=0)
    pyrometer("timeline", "-o", "lossy.svg", "lossy.pyro", check=0)
    picture = xml.dom.minidom.parse("lossy.svg")
    line, = [t for t in picture.getElementsByTagName("text") if t.getAttribute("class") == "lost"]
    assert line.firstChild.data == "the recording: " + lost
    assert int(line.getAttribute("y")) < int(picture.documentElement.getAttribute("height"))
    assert 'class="lost"' not in open("whole.svg", encoding="utf-8").read()

    pyrometer("timeline", "-o", "whole.html", whole, check=0)
    pyrometer("timeline", "-o", "lossy.html", "lossy.pyro", check=0)
    assert '<p id="losses">the recording: %s</p>' % lost in open("lossy.html", encoding="utf-8").read()
    assert '<p id="losses"></p>' in open("whole.html", encoding="utf-8").read()

    done = pyrometer("export", "chrome", "lossy.pyro", check=0)
    assert json.loads(done.stdout)["otherData"]["lost"] == lost and "the recording: " + lost in done.stderr
    done = pyrometer("export", "chrome", whole, check=0)
    assert "lost" not in json.loads(done.stdout)["otherData"] and not done.stderr

    done = pyrometer("export", "perfetto", "-o", "lossy.pftrace", "lossy.pyro", check=0)
    assert "the recording: " + lost in done.stderr
    assert "the recording: " + lost in pyrometer("export", "pstats", "-o", "lossy.prof", "lossy.pyro", check=0).stderr
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    with open("lossy.pftrace", "rb") as f:
        trace.ParseFromString(f.read())
    assert [(m.name, m.string_value) for p in trace.packet for m in p.chrome_events.metadata] == [("lost", lost)]
    read_perfetto(trace)


HOSTILE = "</script><img src=x>\"&]]>\u202e"


def test_hostile_names_stay_text(default_python):
    import xml.dom.minidom
    code = "import time\nf = (lambda: time.sleep(0.01))\nf = type(f)(f.__code__.replace(co_name=%r, co_qualname=%r), globals())\nf()" % (HOSTILE, HOSTILE)
    pyrometer("run", "--quiet", "--trace", "-o", "h.pyro", "--", default_python.path, "-c", code, check=0)
    pyrometer("timeline", "-o", "h.html", "h.pyro", check=0)
    pyrometer("timeline", "-o", "h.svg", "h.pyro", check=0)
    with open("h.html", encoding="utf-8") as f:
        assert "<img" not in f.read()
    xml.dom.minidom.parse("h.svg")
    assert any(c.name == HOSTILE for c in chrome("h.pyro")[0])


def test_no_timeline(default_python):
    pyrometer("run", "--quiet", "-o", "s.pyro", "--", default_python.path, "-c", "pass", check=0)
    for command in (["timeline", "--json"], ["export", "chrome"], ["export", "perfetto"]):
        assert "--trace" in pyrometer(*command, "s.pyro", check=1).stderr


# --- what the program says of itself ---

MARKS = """
import sys
sys.path.insert(0, sys.argv[1])
import pyrometer
pyrometer.mark("ready")
for i in range(3):
    pyrometer.counter("queue", i * 1.5)
with pyrometer.span("load"):
    with pyrometer.span("p\u00e4rse"):
        pass
try:
    with pyrometer.span("fails"):
        raise ValueError
except ValueError:
    print("passed on")
"""


def marks_program(python, *command):
    return [*command, python.path, "-c", MARKS, os.path.join(ROOT, "python")]


def test_marks(python):
    done = pyrometer(*marks_program(python, "run", "--quiet", "--trace", "-o", "m.pyro", "--"), check=0)
    assert done.stdout == "passed on\n"
    pyrometer("verify", "m.pyro", check=0)
    events = json.loads(pyrometer("export", "chrome", "--all", "m.pyro", check=0).stdout)["traceEvents"]
    told = [e for e in events if e["ph"] in "ibeC"]
    assert [e["name"] for e in told if e["ph"] == "i"] == ["ready"]
    assert [e["args"]["value"] for e in told if e["ph"] == "C" and e["name"] == "queue"] == [0, 1.5, 3]
    begins = {e["id"]: e for e in told if e["ph"] == "b"}
    ends = {e["id"]: e for e in told if e["ph"] == "e"}
    assert sorted(e["name"] for e in begins.values()) == ["fails", "load", "p\u00e4rse"] and set(begins) == set(ends)
    at = {begins[i]["name"]: (begins[i]["ts"], ends[i]["ts"]) for i in begins}
    assert at["load"][0] <= at["p\u00e4rse"][0] <= at["p\u00e4rse"][1] <= at["load"][1] <= at["fails"][0]


TASKS = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import pyrometer
async def work(name, before, inside):
    await asyncio.sleep(before)
    with pyrometer.span(name):
        await asyncio.sleep(inside)
        with pyrometer.span("brief"):
            pass
async def main():
    await asyncio.gather(work("request", 0, 1.2), work("request", 0.2, 0.3), work("other", 0.3, 1.2))
asyncio.new_event_loop().run_until_complete(main())
"""


def told_in_perfetto(path):
    """[(name, begin, end)] of spans, in seconds, as the format's rules have it: what ends on a track is what has begun last."""
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = protos.Trace()
    pyrometer("export", "perfetto", "-o", "told.pftrace", "--force", path, check=0)
    with open("told.pftrace", "rb") as f:
        trace.ParseFromString(f.read())
    parents = {p.track_descriptor.uuid for p in trace.packet if p.HasField("track_descriptor")}
    told = [p for p in trace.packet if p.HasField("track_event") and not p.sequence_flags and p.track_event.type in (1, 2)]
    found, open_spans = [], collections.defaultdict(list)
    for p in sorted(told, key=lambda p: (p.timestamp, p.track_event.type == 1)):
        assert p.track_event.track_uuid in parents
        track = open_spans[p.track_event.track_uuid]
        if p.track_event.type == 1:
            track.append((p.track_event.name, p.timestamp * 1e-9))
        else:
            found.append((*track.pop(), p.timestamp * 1e-9))
    return found


def test_spans_of_tasks(python):
    """They overlap: each has its own end, whoever began last."""
    pyrometer("run", "--quiet", "--trace", "-o", "tasks.pyro", "--", python.path, "-c", TASKS, os.path.join(ROOT, "python"), check=0)
    pyrometer("verify", "tasks.pyro", check=0)
    events = json.loads(pyrometer("export", "chrome", "--all", "tasks.pyro", check=0).stdout)["traceEvents"]
    begins, ends = ({e["id"]: e for e in events if e["ph"] == ph} for ph in "be")
    spans = sorted((begins[i]["name"], begins[i]["ts"] * 1e-6, ends[i]["ts"] * 1e-6) for i in begins)
    assert [s[0] for s in spans] == ["brief"] * 3 + ["other", "request", "request"]
    (_, first, first_end), (_, second, second_end) = spans[4:]
    other, other_end = spans[3][1:]
    assert first < second < other and second_end < first_end < other_end, spans
    assert first_end - first >= 1.19 and 0.29 <= second_end - second < 1.1 and other_end - other >= 1.19
    rows = [[(b[2], b[0], b[1]) for b in row] for t in timeline("tasks.pyro", "--pixels", "1000000")["threads"] for row in t["spans"]]
    for row in rows:
        assert all(a[2] <= b[1] for a, b in zip(row, row[1:])), "boxes of a row overlap"
    assert len(rows) == 4 and len(sum(rows, [])) == 6
    for told in (sorted(sum(rows, [])), sorted(told_in_perfetto("tasks.pyro"))):
        assert [t[0] for t in told] == [s[0] for s in spans]
        assert [t[2] - t[1] for t in told] == pytest.approx([s[2] - s[1] for s in spans], abs=1e-5)


def test_marks_without_a_listener(python):
    import subprocess
    done = subprocess.run(marks_program(python), stdout=subprocess.PIPE, check=True, encoding="utf-8")
    assert done.stdout == "passed on\n"


SILENT = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import pyrometer
span = pyrometer.span("one for all")
for wrong in (KeyError("k"), SystemExit(3), KeyboardInterrupt()):
    try:
        with pyrometer.span("a"), span, span:
            raise wrong
    except BaseException as error:
        assert error is wrong, error
    else:
        raise AssertionError("swallowed")
def leave():
    for i in range(3):
        with pyrometer.span("b"):
            if i == 1:
                return i
assert leave() == 1
inside, both, out = threading.Event(), threading.Event(), []
def other():
    with span, pyrometer.span("c"):
        inside.set()
        both.wait(60)
        out.append(1)
thread = threading.Thread(target=other)
with span:
    thread.start()
    assert inside.wait(60), "a thread waits for the other's span"
    both.set()
thread.join()
assert out == [1]
print("silent")
"""


def test_silent_spans(python):
    """Nested, the same one again and in two threads at once; whatever is raised inside is passed on."""
    import subprocess
    command = [python.path, "-c", SILENT, os.path.join(ROOT, "python")]
    assert subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout == "silent\n"
    # and it is no other with a listener
    assert pyrometer("run", "--quiet", "--trace", "-o", "s.pyro", "--", *command, check=0).stdout == "silent\n"


REFUSED = """
import sys
sys.path.insert(0, sys.argv[1])
import pyrometer
for call in (lambda: pyrometer.mark(name="x"), lambda: pyrometer.counter("x", value=1), lambda: pyrometer.span(name="x"), lambda: pyrometer.mark("x", 2)):
    try:
        call()
        print("taken")
    except TypeError:
        pass
with pyrometer.span("a") as inside:
    with pyrometer.span("b"), pyrometer.span("a"):
        print(pyrometer.mark("m"), pyrometer.counter("c", 1.5), pyrometer.counter("c", None), pyrometer.counter("c", "one"))
"""


def test_marks_are_the_same_with_and_without_a_listener(python):
    """What one refuses the other must not take: a program is tried alone and recorded later."""
    import subprocess
    command = [python.path, "-c", REFUSED, os.path.join(ROOT, "python")]
    alone = subprocess.run(command, stdout=subprocess.PIPE, check=True, encoding="utf-8").stdout
    assert alone == "None None None None\n"
    assert pyrometer("run", "--quiet", "--trace", "-o", "r.pyro", "--", *command, check=0).stdout == alone


# --- exports ---


@pytest.mark.long_only
def test_thinning_is_told(default_python):
    """Past a million calls the shortest go, and a line says how many."""
    pyrometer("run", "--quiet", "--trace", "--no-c-calls", "-o", "big.pyro", "--", default_python.path, "-c",
              LOOP.replace("range(40)", "range(50)"), check=0)
    done = pyrometer("export", "chrome", "big.pyro", check=0)
    calls, _ = strict(done.stdout)
    assert "left out" in done.stderr and "--all" in done.stderr and 0 < len(calls) <= 1000000
    assert len(named(calls, "work")) == 50
    done = pyrometer("export", "chrome", "--all", "big.pyro", check=0)
    assert "left out" not in done.stderr and len(strict(done.stdout)[0]) > 1250000


def test_perfetto(python):
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    path = record(python, "threads")
    pyrometer("export", "perfetto", "-o", "t.pftrace", "--force", path, check=0)
    trace = protos.Trace()
    with open("t.pftrace", "rb") as f:
        trace.ParseFromString(f.read())
    slices, tracks = read_perfetto(trace)
    calls, _ = chrome(path)
    assert len(slices) == len(calls)
    assert collections.Counter(s[1] for s in slices) == collections.Counter(c.name for c in calls)
    ours = sorted((c.thread[1], c.name, round(1000 * c.begin), round(1000 * c.duration)) for c in calls)
    theirs = sorted((tracks[track].tid, name, begin, end - begin) for track, name, begin, end in slices)
    assert ours == theirs


@pytest.mark.strict
def test_calls_say_where_their_functions_stand(default_python):
    """Many a call is named <module> or <lambda>: each says its file and line, and C functions say none."""
    with open("one.py", "w", encoding="utf-8") as f:
        f.write("first = lambda: abs(-1)\n\nsecond = lambda: first()\nsecond()\n")
    program = "import one\n(lambda: one.first())()\nexec(compile('x = 1', 'odd\\u00e4\\n\"name\"', 'exec'))\n"
    pyrometer("run", "--quiet", "--trace", "-o", "where.pyro", "--", default_python.path, "-c", "import sys\nsys.path.insert(0, '.')\n" + program,
              check=0)
    calls, _ = chrome("where.pyro")
    places = [c.file for c in named(calls, "<lambda>")]
    assert sorted(os.path.basename(p) for p in places) == ["<string>:4", "one.py:1", "one.py:1", "one.py:3"]
    modules = [c.file for c in named(calls, "<module>")]
    assert os.path.realpath(next(m for m in modules if m.endswith("one.py:1"))[:-2]) == os.path.realpath("one.py")
    assert "<string>:1" in modules and 'odd\u00e4\n"name":1' in modules
    assert all(c.file is None for c in calls if c.name.startswith("<built-in"))

    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    pyrometer("export", "perfetto", "-o", "where.pftrace", "where.pyro", check=0)
    trace = protos.Trace()
    with open("where.pftrace", "rb") as f:
        trace.ParseFromString(f.read())
    read_perfetto(trace)
    names, known, seen = {}, {}, []
    for packet in trace.packet:
        names.update((n.iid, n.name) for n in packet.interned_data.event_names)
        known.update((s.iid, s) for s in packet.interned_data.source_locations)
        if packet.track_event.type != packet.track_event.TYPE_SLICE_BEGIN:
            continue
        name, place = names[packet.track_event.name_iid], None
        if packet.track_event.HasField("source_location_iid"):
            place = known[packet.track_event.source_location_iid]
            assert place.function_name == name
        seen.append((name, place and "%s:%d" % (place.file_name, place.line_number)))
    ours = [(c.name, c.file and c.file.replace("\n", "_")) for c in calls]  # Perfetto's texts are of one line
    assert sorted(seen, key=str) == sorted(ours, key=str)


def read_perfetto(trace):
    """Slices and threads by track, as the format's rules have it: incremental clock, interned names, nesting."""
    state, open_slices, slices, tracks = {}, collections.defaultdict(list), [], {}
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        assert sequence
        if packet.HasField("track_descriptor"):
            if packet.track_descriptor.HasField("thread"):
                tracks[packet.track_descriptor.uuid] = packet.track_descriptor.thread
            continue
        if packet.HasField("chrome_events"):
            continue
        if packet.sequence_flags & 1:
            clocks = {c.clock_id: c for c in packet.clock_snapshot.clocks}
            assert clocks[64].is_incremental and clocks[6].timestamp == clocks[64].timestamp
            state[sequence] = {"now": clocks[64].timestamp, "names": {}, "track": packet.trace_packet_defaults.track_event_defaults.track_uuid}
            assert packet.trace_packet_defaults.timestamp_clock_id == 64
        s = state[sequence]
        for name in packet.interned_data.event_names:
            s["names"][name.iid] = name.name
        if not packet.HasField("track_event"):
            continue
        if not packet.sequence_flags:  # told by the program
            continue
        assert packet.sequence_flags == 2
        s["now"] += packet.timestamp
        if packet.track_event.type == packet.track_event.TYPE_SLICE_BEGIN:
            open_slices[s["track"]].append((s["names"][packet.track_event.name_iid], s["now"]))
        else:
            assert packet.track_event.type == packet.track_event.TYPE_SLICE_END
            name, begin = open_slices[s["track"]].pop()
            slices.append((s["track"], name, begin, s["now"]))
    assert not any(open_slices.values())
    return slices, tracks


def test_nothing_but_the_program(python, tmp_path):
    """What the guest imports for itself is not the program's (from 3.13 on `-c` imports some, which is)."""
    traced, called = ([(r["name"], r["calls"]) for r in harness.record([python.path, "-S", "-c", "x = 1"], tmp_path / (option + ".pyro"),
                                                                       option).report("--sort", "name")["rows"]]
                      for option in ("--trace", "--calls"))
    assert traced == called and ("<module>", 1) in called

"""--trace in detail: what is left out, what is known of single calls, what the program told, the last seconds."""
import collections
import json
import os
import xml.dom.minidom

import pytest

from harness import ROOT, pyrometer, workload
from test_trace import boxes_of, check_rows, chrome, marks_program, named, read_perfetto, timeline


def record(python, mode, *options, more=(), check=0):
    done = pyrometer("run", "--quiet", "--trace", *options, "-o", "details.pyro", "--force", "--", python.path, workload("details.py"),
                     mode, *more, check=check)
    pyrometer("verify", "details.pyro", check=0)
    return "details.pyro", done


def calls_of(path):
    events = json.loads(pyrometer("export", "chrome", "--all", path, check=0).stdout)["traceEvents"]
    return [e for e in events if e["ph"] == "X"]


def notes(path, name, key):
    """What is known of the calls of a function, in the order of their begins."""
    calls = sorted((c["ts"], c.get("args", {}).get(key)) for c in calls_of(path) if c["name"].split(".")[-1] == name)
    return [note for _, note in calls]


def info(path):
    return json.loads(pyrometer("info", "--json", path, check=0).stdout)


# --- what is left out ---


def test_exclude(python):
    path, _ = record(python, "filters", "--exclude", "^unwanted")
    calls, _ = chrome(path)
    assert not [c for c in calls if c.name.startswith("unwanted")]
    assert not [c for c in calls if "len" in c.name and c.parent.name == "wanted"], "what is called from code that is left out"
    below = named(calls, "wanted_below")
    assert len(below) == 100 and len({id(c.parent) for c in below}) == 1 and below[0].parent.name == "wanted"
    assert len([c for c in calls if "time.time" in c.name and c.parent.name == "wanted_below"]) == 100
    known = info(path)
    assert known["stats"]["functions_left_out"] == 4 and known["meta"]["exclude"] == "^unwanted"


def test_include(python):
    path, _ = record(python, "filters", "--include", "details.py:[0-9]+\\(wanted", "--include", "^filters$", "--exclude", "built-in method time")
    calls, _ = chrome(path)
    ours = collections.Counter(c.name for c in calls)
    assert {name for name in ours if not name.startswith("<")} == {"wanted", "wanted_below", "filters"} and ours["wanted_below"] == 100
    assert not [name for name in ours if "time" in name]
    assert info(path)["meta"]["include"] == "(details.py:[0-9]+\\(wanted)|(^filters$)"


def test_filters_apply_to_sums(python):
    path, _ = record(python, "filters", "--exclude", "^unwanted", "--no-c-calls")
    rows = json.loads(pyrometer("report", "--json", "--metric", "calls", "--limit", "100000", "--min-percent", "0", path, check=0).stdout)["rows"]
    counted = {row["name"]: row["self"] for row in rows}
    assert counted["wanted_below"] == 100 and not [name for name in counted if name.startswith("unwanted")]


def test_what_is_left_out_is_free(pythons_with_monitoring):
    """From 3.12 on nothing is heard of it any more, not even to be thrown away: events do not grow with its calls."""
    def events(n):
        code = "def f(): return g()\ndef g(): return len(())\nfor _ in range(%d): f()" % n
        pyrometer("run", "--quiet", "--trace", "--exclude", "<string>:.*\\([fg]\\)", "-o", "free.pyro", "--force", "--",
                  pythons_with_monitoring.path, "-c", code, check=0)
        return info("free.pyro")["stats"]["events"]
    assert abs(events(100000) - events(10)) < 200


def test_filters_go_with_calls(default_python):
    done = pyrometer("run", "--include", "x", default_python.path, "-c", "pass", check=2)
    assert "--trace" in done.stderr
    assert "regular expression" in pyrometer("run", "--trace", "--exclude", "(", default_python.path, "-c", "pass", check=2).stderr


@pytest.fixture
def pythons_with_monitoring(python):
    if python.version < (3, 12):
        pytest.skip("the interpreter cannot be told to be silent")
    return python


# Events come by different ways: with C functions, without (on 3.11 an evaluation function's), with lines (below 3.12 a trace function's).
EVERY_WAY = pytest.mark.parametrize("options", [[], pytest.param(["--no-c-calls"], marks=pytest.mark.long_only),
                                                pytest.param(["--lines"], marks=pytest.mark.long_only),
                                                pytest.param(["--lines", "--no-c-calls"], marks=pytest.mark.long_only)],
                                    ids=lambda o: " ".join(o) or "all")


# --- arguments and results ---


@EVERY_WAY
def test_arguments(python, options):
    path, _ = record(python, "args", "--args", *options)
    first, second = notes(path, "take", "args")[:2]
    assert first == "a=1, b=2, key='k', *rest=tuple[0], **more=dict[0]"
    assert second == "a='h\u00e9llo\\n\\'q\\'', b=b'ab\\x00\\xff', key=1.5, *rest=tuple[2], **more=dict[1]"
    expected = ["None", "True", "False", "-7", "<int above 2**63>", "<int below -2**63>", "0.1", "1.0", "inf", "'%s\u2026' (1000)" % ("x" * 40),
                "b'%s\u2026' (1000)" % ("y" * 40), "list[3]", "tuple[0]", "dict[1]", "set[2]", "frozenset[1]", "bytearray[3]", "<Odd>",
                "<OddInt>", "<OddStr>", "<OddList>", "<type>", "'?\U0001f600'"]
    assert notes(path, "one", "args") == ["value=" + text for text in expected]
    assert notes(path, "one", "result") == expected
    assert notes(path, "kept", "args") == ["value=42"]
    assert notes(path, "values", "result") == ["1", "'two'", "None"]
    assert all(len(text) < 520 for text in notes(path, "take", "args"))
    assert "args" in info(path)["meta"]["instruments"]


def test_arguments_with_a_minimum(default_python):
    """Notes of calls that are held back come or go with them."""
    code = "import time\ndef f(n): time.sleep(n)\ndef g(x): f(x)\nfor x in (0, 0.02, 0): g(x)"
    pyrometer("run", "--quiet", "--trace", "--args", "--min-duration", "0.01", "-o", "m.pyro", "--", default_python.path, "-c", code, check=0)
    assert notes("m.pyro", "f", "args") == ["n=0.02"] and notes("m.pyro", "g", "args") == ["x=0.02"] and notes("m.pyro", "g", "result") == ["None"]


def test_arguments_in_the_timeline(default_python):
    path, _ = record(default_python, "args", "--args")
    view = timeline(path, "--pixels", "100000")
    check_rows(view)
    box, = boxes_of(view, "kept")
    assert box[6] == {"args": "value=42", "result": "42"}
    pyrometer("timeline", "-o", "a.svg", "--pixels", "100000", path, check=0)
    titles = [t.firstChild.data for t in xml.dom.minidom.parse("a.svg").getElementsByTagName("title")]
    assert any(t.startswith("kept") and "args: value=42; result: 42" in t for t in titles)
    pyrometer("timeline", "-o", "a.html", "--pixels", "100000", path, check=0)
    with open("a.html", encoding="utf-8") as f:
        assert "value=42" in f.read()


def test_arguments_in_perfetto(default_python):
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    path, _ = record(default_python, "args", "--args")
    pyrometer("export", "perfetto", "-o", "a.pftrace", path, check=0)
    trace = protos.Trace()
    with open("a.pftrace", "rb") as f:
        trace.ParseFromString(f.read())
    read_perfetto(trace)
    told = [(a.name, a.string_value) for p in trace.packet if p.HasField("track_event") for a in p.track_event.debug_annotations]
    assert ("args", "value=42") in told and ("result", "42") in told and told.count(("result", "'two'")) == 1


def test_arguments_need_a_timeline(default_python):
    assert "--trace" in pyrometer("run", "--args", default_python.path, "-c", "pass", check=2).stderr


# --- exceptions, collections, names ---


@EVERY_WAY
def test_exception_types(python, options):
    path, _ = record(python, "exceptions", *options)
    calls = [c for c in calls_of(path) if c["name"] == "bad"]
    assert [c["args"]["end"] for c in calls] == ["exception"] * 3
    assert [c["args"].get("exception") for c in calls] == ["Trouble"] * 3
    assert [c.get("args", {}).get("exception") for c in calls_of(path) if c["name"] == "caught"] == [None]


RAISED_AGAIN = """
import sys
def other():
    try: raise ValueError
    except ValueError: pass
def bare():
    try: raise KeyError
    except KeyError:
        other()
        raise
def at_last():
    try: raise KeyError
    finally: other()
class Context:
    def __enter__(self): pass
    def __exit__(self, *exception): other()
def within():
    with Context(): raise KeyError
def replaced():
    try: raise KeyError
    except KeyError: raise OSError
def passed(): replaced()
def mixed():
    try: raise KeyError
    except KeyError:
        try: raise ValueError
        except ValueError: pass
        raise
def generator():
    try:
        yield
        raise KeyError
    except KeyError:
        yield
        raise
def consumes():
    for _ in generator(): other()
def caught():
    try: raise KeyError
    except KeyError: pass
def callers():
    raise
def with_callers():
    try: raise KeyError
    except KeyError: callers()
def swallows(n):
    try: deep(n)
    except KeyError: pass
def deep(n=9):
    try: raise KeyError
    except KeyError:
        n and swallows(n - 1)
        raise
def foreign():
    raise OSError
for f in bare, at_last, within, passed, mixed, consumes, caught, with_callers, deep:
    try: f()
    except Exception: pass
sys.settrace(lambda *args: None)
try: foreign()
except OSError: pass
sys.settrace(None)
"""


@EVERY_WAY
@pytest.mark.strict
def test_exceptions_raised_again(python, options):
    """What others were caught meanwhile must not be taken for it."""
    pyrometer("run", "--quiet", "--trace", *options, "-o", "again.pyro", "--", python.path, "-c", RAISED_AGAIN, check=0)
    expected = dict.fromkeys(("bare", "at_last", "within", "mixed", "consumes", "callers", "with_callers"), ["KeyError"])
    expected.update(replaced=["OSError"], passed=["OSError"], caught=[None], generator=[None, None, "KeyError"], foreign=["OSError"], deep=["KeyError"] * 10)
    if python.version < (3, 12) and options == ["--lines", "--no-c-calls"]:  # the program has taken the only hook's place
        expected.update(foreign=[])
    assert {name: notes("again.pyro", name, "exception") for name in expected} == expected
    assert set(notes("again.pyro", "other", "exception")) == {None}


LEAVING = """
import sys, threading
class Meta(type):
    def refuse(self, *args): raise SystemExit("code of the program was run")
    __name__ = property(refuse)
    __repr__ = __getattribute__ = __hash__ = __eq__ = refuse
class Odd(Exception, metaclass=Meta): pass
class Trouble(Exception):
    def __init__(self, a, b): pass
def odd(): raise Odd
def even(): raise Trouble(1, 2)
def passes(f): f()
def worker(f):
    for _ in range(50):
        try: passes(f)
        except Exception: pass
def generator():
    try: yield
    except KeyError: raise Trouble(1, 2)
def thrown():
    running = generator()
    next(running)
    running.throw(KeyError("x"))
def inner():
    yield
    raise OSError(2, "x")
def outer(): yield from inner()
def driven(): list(outer())
async def coroutine(): await awaited()
async def awaited(): raise TimeoutError
def sends(): coroutine().send(None)
def deep(n): deep(n - 1) if n else odd()
def endless(): endless()
def key(value): raise IndexError
def sorts(): sorted([1, 2], key=key)
def maps(): return [*map(key, (1,))]
class Compared:
    def __lt__(self, other): raise BufferError
def compares(): sorted([Compared(), Compared()])
def converts(): int("x")
def looks_up(): {}[1]
def asks(): None.x
def exhausts(): next(iter(()))
def names(): no_such_name
def imports(): import no_such_module
def asserts(): assert False
def bare(): raise
def again():
    try: even()
    except Trouble: bare()
def anew():
    try: converts()
    except ValueError as e: raise e.with_traceback(None)
def instead():
    try: converts()
    except ValueError as e: raise EOFError from e
def finds_none():
    try: converts()
    except ValueError: return 1
threads = [threading.Thread(target=worker, args=(f,)) for f in (odd, even, odd, even)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.setrecursionlimit(700)
for f in (thrown, driven, sends, endless, sorts, maps, compares, converts, looks_up, asks, exhausts, names, imports, asserts, again, anew, instead,
          finds_none):
    try: f()
    except Exception: pass
try: deep(300)
except Exception: pass
def ends(): sys.exit()
ends()
"""


@EVERY_WAY
@pytest.mark.strict
def test_exceptions_leave_everywhere(python, options):
    pyrometer("run", "--quiet", "--trace", *options, "-o", "leaving.pyro", "--", python.path, "-c", LEAVING, check=0)
    calls = collections.defaultdict(list)
    for c in calls_of("leaving.pyro"):
        calls[c["name"].split(".")[-1]].append(c.get("args", {}).get("exception"))
    assert calls["odd"] == ["Odd"] * 101 and calls["deep"] == ["Odd"] * 301
    assert collections.Counter(calls["passes"]) == {"Odd": 100, "Trouble": 100}
    assert set(calls["endless"]) == {"RecursionError"} and len(calls["endless"]) > 500
    assert set(calls["finds_none"] + calls["worker"]) == {None}
    expected = dict(thrown="Trouble", driven="FileNotFoundError", sends="TimeoutError", awaited="TimeoutError", coroutine="TimeoutError", sorts="IndexError",
                    maps="IndexError", compares="BufferError", __lt__="BufferError", looks_up="KeyError", asks="AttributeError",
                    exhausts="StopIteration", names="NameError", imports="ModuleNotFoundError", asserts="AssertionError", bare="Trouble",
                    again="Trouble", anew="ValueError", instead="EOFError", ends="SystemExit")
    assert {name: calls[name] for name in expected} == {name: [kind] for name, kind in expected.items()}
    assert set(calls["converts"]) == {"ValueError"} and set(calls["even"]) == {"Trouble"} and set(calls["key"]) == {"IndexError"}
    assert calls["generator"].count("Trouble") == 1 and calls["inner"].count("FileNotFoundError") == 1 and calls["outer"].count("FileNotFoundError") == 1


STRANGER = """
import ctypes, sys
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p
place = ctypes.pythonapi.PyThreadState_Get() + (64 if sys.version_info >= (3, 11) else 56)
call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_int, ctypes.c_void_p)(ctypes.c_void_p.from_address(place).value)
def told(times):
    for _ in range(times):
        call(None, sys._getframe(), 0, None)
        call(None, sys._getframe(), 3, None)
told(100)
"""


@pytest.mark.strict
def test_who_else_calls_the_hook(python):
    """As code made by Cython does. The type is not where the interpreter has it, and nothing else is taken for it."""
    if python.version >= (3, 12):
        pytest.skip("there is no profile function")
    pyrometer("run", "--quiet", "--trace", "-o", "stranger.pyro", "--", python.path, "-c", STRANGER, check=0)
    ends = [c.get("args", {}) for c in calls_of("stranger.pyro") if c["name"] == "told"]
    assert len([e for e in ends if e.get("end") == "exception"]) == 100 and not [e for e in ends if "exception" in e]


KEEPS = """
import asyncio, _asyncio, sys
names = [name for name in ("Task", "current_task", "_get_running_loop", "_current_tasks") if hasattr(_asyncio, name)]
def references(): return [sys.getrefcount(getattr(_asyncio, name)) for name in names]
before = references()
async def main(): pass
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
after = references()
print([name for name, b, a in zip(names, before, after) if a <= b and name != "Task"])
"""


@pytest.mark.strict
def test_asyncio_is_kept(python):
    """What we remember of asyncio to find the names of tasks stays, though the program may throw it away."""
    done = pyrometer("run", "--quiet", "--trace", "-o", "keeps.pyro", "--", python.path, "-c", KEEPS, check=0)
    assert done.stdout == "[]\n"
    assert "Task-1" in notes("keeps.pyro", "main", "task")


@EVERY_WAY
def test_collections(python, options):
    path, done = record(python, "collect", *options)
    assert done.stdout == "[] 2 [('start', 2), ('stop', 2), ('start', 0), ('stop', 0), ('start', 1), 'ZeroDivisionError', ('stop', 1), 'ZeroDivisionError'] []\n"
    calls, _ = chrome(path)
    def asked_for(call):
        by = call.parent and (call.parent if "--no-c-calls" in options else call.parent.parent)
        return by and by.name == "collect"
    ours = [c for c in calls if c.name.startswith("<garbage collection") and asked_for(c)]
    assert [c.name for c in ours] == ["<garbage collection, generation %d>" % n for n in (2, 0, 1)]
    counts = [int(e["args"]["collected"]) for e in calls_of(path) if e["name"].startswith("<garbage")]
    assert any(n >= 10 for n in counts)
    assert [c for c in calls if c.parent and c.parent.name.startswith("<garbage") and "lambda" in c.name], "the program's callbacks run inside of it"


def test_collections_are_not_in_sums(default_python):
    path, _ = record(default_python, "collect")
    assert "garbage collection" not in pyrometer("report", "--metric", "calls", "--limit", "10000", "--min-percent", "0", path, check=0).stdout


@EVERY_WAY
def test_task_names(python, options):
    path, _ = record(python, "tasks", *options)
    calls = [c for c in calls_of(path) if c["cat"] == "python"]
    tasks = collections.defaultdict(set)
    for c in calls:
        tasks[c["name"].split(".")[-1]].add(c.get("args", {}).get("task"))
    assert len(tasks["sleeper"]) == 3 and "n\u00e4med" in tasks["sleeper"] and None not in tasks["sleeper"]
    assert tasks["inner"] == {None} and tasks["everything"] == {None}, "only the outermost says it"
    assert len(tasks["main"] - {None}) == 1
    steps = collections.Counter(c["args"]["task"] for c in calls if c["name"].split(".")[-1] == "sleeper")
    assert set(steps.values()) == {3}, "every time it goes on"


def test_thread_names(python):
    path, done = record(python, "names")
    assert done.stdout == "0\n"
    _, names = chrome(path)
    found = {name.split(" [pid")[0] for name in names.values()}
    assert {"MainThread", "w\u00f6rker-0", "w\u00f6rker-1", "w\u00f6rker-2", "asked"} <= found


# --- what the program told ---


def test_marks_in_the_timeline(python):
    pyrometer(*marks_program(python, "run", "--quiet", "--trace", "-o", "m.pyro", "--"), check=0)
    view = timeline("m.pyro", "--pixels", "1000000")
    thread, = [t for t in view["threads"] if t["spans"]]
    assert [m[1:] for m in thread["marks"]] == [["ready", 1]]
    rows = [[(b[2], b[3]) for b in row] for row in thread["spans"]]
    assert rows == [[("load", 1), ("fails", 1)], [("p\u00e4rse", 1)]]
    load, inside = thread["spans"][0][0], thread["spans"][1][0]
    assert load[0] <= inside[0] <= inside[1] <= load[1]
    counter, = view["counters"]
    assert counter["name"] == "queue" and [p[1] for p in counter["points"]] == [0, 1.5, 3]
    assert all(view["from_seconds"] <= p[0] <= view["to_seconds"] for p in counter["points"])
    pyrometer("timeline", "-o", "m.svg", "--pixels", "1000000", "m.pyro", check=0)
    pyrometer("timeline", "-o", "m.html", "m.pyro", check=0)
    texts = xml.dom.minidom.parse("m.svg").toxml()
    for name in ("ready", "load", "p\u00e4rse", "fails", "queue"):
        assert name in texts
    with open("m.html", encoding="utf-8") as f:
        assert "\"ready\"" in f.read()


def test_marks_of_a_range(default_python):
    code = ("import sys, time\nsys.path.insert(0, sys.argv[1])\nimport pyrometer\n"
            "with pyrometer.span('whole'):\n for i in range(50):\n  pyrometer.mark('m')\n  pyrometer.counter('c', i)\n  time.sleep(0.002)\n")
    pyrometer("run", "--quiet", "--trace", "-o", "r.pyro", "--", default_python.path, "-c", code, os.path.join(ROOT, "python"), check=0)
    view = timeline("r.pyro", "--pixels", "100000")
    span = view["threads"][0]["spans"][0][0]
    middle = (span[0] + span[1]) / 2
    assert sum(m[2] for m in view["threads"][0]["marks"]) == 50
    half = timeline("r.pyro", "--range", "%.9f:" % middle)
    assert half["threads"][0]["spans"][0][0][5] & 1 and 0 < sum(m[2] for m in half["threads"][0]["marks"]) < 50
    first, second = half["counters"][0]["points"][:2]
    assert abs(first[0] - middle) < 1e-6 and second[1] == first[1] + 1, "the value that it has where the range begins"
    one = timeline("r.pyro", "--pixels", "1")
    assert sum(m[2] for m in one["threads"][0]["marks"]) == 50 and len(one["threads"][0]["marks"]) <= 3
    assert len(one["counters"][0]["points"]) <= 4


# --- the last seconds ---


@pytest.mark.long
@pytest.mark.parametrize("end,status", [((), 0), (("kill",), 137)])
def test_last(python, end, status):
    path, _ = record(python, "last", "--last", "0.5", more=("1.6", *end), check=status)
    known = info(path)
    assert known["stats"]["events_forgotten"] > 0 and known["meta"]["last_ns"] == "500000000"
    start = int(known["meta"]["window_start_ns"]) / 1e9
    view = timeline(path)
    check_rows(view)
    assert abs(view["from_seconds"] - start) < 1e-6 and abs(view["to_seconds"] - start - 0.5) < 1e-6
    assert abs(view["window_from_seconds"] - start) < 1e-6
    assert "is forgotten, as run --last asked" in pyrometer("export", "chrome", path, check=0).stderr
    assert {t["name"] for t in view["threads"]} == {"MainThread"}, "a thread that ended long before is forgotten"
    for name in ("around", "busy"):
        box, = boxes_of(view, name)
        assert abs(box[0] - start) < 1e-6 and box[5] & 1, "what was open is cut where the window begins"
    calls, _ = chrome(path)
    assert not named(calls, "early") and len(named(calls, "late")) == 1
    assert named(calls, "step")
    assert all(c.begin >= start * 1e6 - 0.01 for c in calls)
    cut = [c for c in calls_of(path) if c.get("args", {}).get("begin") == "earlier"]
    assert "around" in {c["name"] for c in cut}
    rows = json.loads(pyrometer("report", "--json", "--metric", "calls", "--limit", "100000", "--min-percent", "0", path, check=0).stdout)["rows"]
    assert {row["name"]: row["self"] for row in rows}["early"] == 2, "sums are those of the whole run"


def test_last_keeps_a_short_run(default_python):
    path, _ = record(default_python, "args", "--last", "100", "--args")
    assert notes(path, "kept", "args") == ["value=42"] and info(path)["stats"]["events_forgotten"] == 0


def test_last_keeps_the_file_small(default_python):
    code = "import time\ndef leaf(): pass\nend = time.monotonic() + %s\nwhile time.monotonic() < end: leaf()"
    sizes = []
    for options in ([], ["--last", "0.1"]):
        pyrometer("run", "--quiet", "--trace", *options, "-o", "s.pyro", "--force", "--", default_python.path, "-c", code % 2, check=0)
        sizes.append(os.path.getsize("s.pyro"))
    assert sizes[1] < sizes[0] / 2


def test_last_marks(default_python):
    code = ("import sys, time\nsys.path.insert(0, sys.argv[1])\nimport pyrometer\n"
            "for i in range(100):\n pyrometer.mark('m%d' % i)\n time.sleep(0.01)\n")
    pyrometer("run", "--quiet", "--trace", "--last", "0.3", "-o", "lm.pyro", "--", default_python.path, "-c", code, os.path.join(ROOT, "python"), check=0)
    marks = [m[1] for t in timeline("lm.pyro", "--pixels", "100000")["threads"] for m in t["marks"]]
    assert "m99" in marks and "m0" not in marks and len(marks) < 60


# --- in a browser ---

HOVER = """
const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect(), texts = new Set();
for (let y = 2; y < box.height; y += 8)
    for (let x = 1; x < box.width; x += 6) {
        canvas.dispatchEvent(new MouseEvent("mousemove", {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
        texts.add(document.getElementById("told").textContent);
    }
return [...texts];
"""


def test_the_page_tells(browser, default_python, tmp_path):
    code = ("import sys, time\nsys.path.insert(0, sys.argv[1])\nimport pyrometer\n"
            "def f(x):\n time.sleep(x)\n raise ValueError\n"
            "pyrometer.counter('queue', 3)\nwith pyrometer.span('load'):\n pyrometer.mark('ready')\n try: f(0.3)\n except ValueError: pass\n")
    path = str(tmp_path / "page.pyro")
    pyrometer("run", "--quiet", "--trace", "--args", "-o", path, "--", default_python.path, "-c", code, os.path.join(ROOT, "python"), check=0)
    pyrometer("timeline", "-o", str(tmp_path / "page.html"), path, check=0)
    browser.open(tmp_path / "page.html")
    told = browser.driver.execute_script(HOVER)
    assert any(t.startswith("ready at ") for t in told) and any(t.startswith("load: ") for t in told)
    assert any(t.startswith("f: ") and "args: x=0.3" in t and ("exception: ValueError" in t or default_python.version < (3, 12)) for t in told)
    browser.quiet()

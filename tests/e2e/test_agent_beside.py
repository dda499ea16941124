"""Exact calls beside other tools in the same interpreter: coverage, debuggers, tracers, other users of sys.monitoring. Each says with
us what it says without, and we count what we count without it, where the interpreter lets two tools listen at all."""
import os
import re
import shutil
import subprocess

import pytest

from harness import record
from test_agent import whole

pytestmark = pytest.mark.strict


def bare(command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", check=True, **kwargs)


def same(command, path, text="", **kwargs):
    """The recording of a command that prints with us what it prints without. `text` is its standard input."""
    alone = bare(command, input=text, **kwargs)
    with open("stdin", "w", encoding="utf-8") as f:
        f.write(text)
    with open("stdin", encoding="utf-8") as f:
        recording = record(command, path, "--calls", stdin=f, **kwargs)
    assert (recording.stdout, recording.done.stderr) == (alone.stdout, alone.stderr)
    recording.verify()
    return recording


# --- coverage ---


PROGRAM = """
import threading
def even(n):
    if n % 2:
        return False
    return True
def never():
    return 1
def generate(n):
    for i in range(n):
        yield i
def work(n):
    total = 0
    for i in generate(n):
        if even(i): total += 1
        else: total += 2
    try:
        raise KeyError(total)
    except KeyError:
        return total
    return never()
threads = [threading.Thread(target=work, args=(50,)) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
print(work(100), *(even(i) for i in range(3)))
"""
CALLS = {"even": 2 * 50 + 100 + 3, "work": 3, "generate": 3}


COVERAGE = """
import coverage, os, runpy, sys
for branch in (False, True):
    os.environ["COVERAGE_CORE"] = "sysmon" if sys.version_info >= ((3, 14) if branch else (3, 12)) else ""
    measured = coverage.Coverage(data_file=None, branch=branch, include="prog.py")
    measured.start()
    runpy.run_path("prog.py")
    measured.stop()
    data = measured.get_data()
    print(dict(measured.sys_info())["core"], measured.analysis("prog.py"))
    print([(sorted(data.lines(name)), sorted(data.arcs(name) or [])) for name in data.measured_files()])
"""


@pytest.fixture(scope="session")
def coverage(tmp_path_factory):
    """A folder with the one of the tests' own environment, and nothing else of it. Its C part fits one version; others do without."""
    package = pytest.importorskip("coverage")
    folder = tmp_path_factory.mktemp("coverage")
    shutil.copytree(os.path.dirname(package.__file__), folder / "coverage")
    return str(folder)


def test_beside_coverage(python, tmp_path, coverage):
    """Lines and branches: by sys.monitoring, where coverage can, and by a trace function."""
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "measure.py").write_text(COVERAGE)
    env = dict(os.environ, PYTHONPATH=coverage)
    if subprocess.run([python.path, "-c", "import coverage"], env=env, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("this coverage is not for CPython " + python.name)
    recording = same([python.path, "measure.py"], tmp_path / "x.pyro", env=env)
    _, core, lines, _, branch_core, branches = recording.stdout.splitlines()
    assert core.startswith("SysMonitor") == (python.version >= (3, 12)) and branch_core.startswith("SysMonitor") == (python.version >= (3, 14))
    assert len(lines) > 50 and len(branches) > 100
    found = {r["name"]: r["calls"] for r in recording.rows() if (r["file"] or "").endswith("prog.py")}
    assert {name: found.get(name) for name in CALLS} == {name: 2 * calls for name, calls in CALLS.items()}
    whole(recording)


# --- debuggers and tracers ---


PDB = """\
break even, n == 3
break generate
commands 2
where
continue
end
continue
args
up
p total, n
step
tbreak 19
continue
next
p locals()['total']
disable 2
clear 1
continue
"""


def test_beside_a_debugger(python, tmp_path):
    """pdb, by a script of commands: steps, conditions, temporary stops."""
    (tmp_path / "prog.py").write_text(PROGRAM)
    recording = same([python.path, "-m", "pdb", "prog.py"], tmp_path / "x.pyro", text=PDB)
    assert "The program finished" in recording.stdout and recording.stdout.count("(Pdb)") > 15
    if python.version >= (3, 12):
        found = {r["name"]: r["calls"] for r in recording.rows() if (r["file"] or "").endswith("prog.py")}
        assert {name: found.get(name) for name in CALLS} == CALLS


BDB = """
import bdb, sys
def leaf(n): return n
def work():
    total = 0
    for n in range(20):
        total += leaf(n)
    return total
class Watcher(bdb.Bdb):
    seen = []
    def user_line(self, frame):
        self.seen.append((frame.f_code.co_name, frame.f_lineno))
        self.set_step() if len(self.seen) < 30 else self.set_continue()
    def user_return(self, frame, value): self.seen.append((frame.f_code.co_name, value))
    def user_exception(self, frame, info): self.seen.append("exception")
work()
watcher = Watcher()
watcher.runcall(work)
print(watcher.seen)
print(sys.gettrace())
work()
"""


def test_beside_bdb(python, tmp_path):
    """A tracer that comes and goes: it is told what it is told without us. The calls are counted all the while: it takes another place
    than ours, which stays."""
    recording = same([python.path, "-c", BDB], tmp_path / "x.pyro")
    assert recording.row("leaf", file="<string>")["calls"] == 60
    whole(recording)


def test_beside_trace(python, tmp_path):
    """`python -m trace`, which counts lines by sys.settrace in all threads."""
    (tmp_path / "prog.py").write_text(PROGRAM)
    recording = same([python.path, "-m", "trace", "--count", "--summary", "--missing", "-C", "covers", "--ignore-dir",
                      os.path.dirname(os.__file__), "prog.py"], tmp_path / "x.pyro")
    found = {r["name"]: r["calls"] for r in recording.rows() if (r["file"] or "").endswith("prog.py")}
    assert {name: found.get(name) for name in CALLS} == CALLS
    whole(recording)


# --- other users of sys.monitoring ---


TOOL = """
import sys
monitoring, events = sys.monitoring, sys.monitoring.events
heard = {}
def tool(number, name, off):
    monitoring.use_tool_id(number, name)
    for event in ("PY_START", "PY_RETURN", "PY_YIELD", "PY_RESUME", "LINE", "JUMP", "CALL", "INSTRUCTION", "PY_UNWIND", "RAISE"):
        def hear(code, *rest, event=event):
            if code.co_filename == __file__:
                key = name + " " + event
                heard[key] = heard.get(key, 0) + 1
            return monitoring.DISABLE if off and event not in ("PY_UNWIND", "RAISE") else None
        monitoring.register_callback(number, getattr(events, event), hear)
    mask = events.PY_START | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME | events.LINE | events.JUMP | events.CALL
    monitoring.set_events(number, mask | events.PY_UNWIND | events.RAISE)
def leaf(n):
    return abs(n)
def bad():
    raise KeyError
def walk(n):
    for i in range(n): yield leaf(i)
def work():
    for n in range(40):
        list(walk(2))
        try: bad()
        except KeyError: pass
tool(1, "once", True)
tool(3, "always", False)
work()
monitoring.set_local_events(1, leaf.__code__, events.INSTRUCTION)
work()
monitoring.restart_events()
work()
monitoring.set_events(3, 0)
monitoring.free_tool_id(3)
work()
monitoring.set_events(1, 0)
work()
print(sorted(heard.items()))
"""


def test_beside_other_tools(python, tmp_path):
    """One that switches each place off at once, and one that hears all: as many callbacks as without us, and none at a place that was
    switched off."""
    if python.version < (3, 12):
        pytest.skip("no sys.monitoring")
    (tmp_path / "prog.py").write_text(TOOL)
    alone = bare([python.path, "prog.py"]).stdout
    heard = dict(re.findall(r"\('([\w ]+)', (\d+)\)", alone))
    assert int(heard["always PY_START"]) > 300 and int(heard["once PY_START"]) < 20
    for options in (["--calls"], ["--lines"], ["--calls", "--lines", "--match", "nothing"], ["--trace"]):
        recording = record([python.path, "prog.py"], tmp_path / "x.pyro", "--force", *options)
        assert recording.stdout == alone, options
        if options == ["--calls"]:
            rows = {r["name"]: r["calls"] for r in recording.rows() if (r["file"] or "").endswith("prog.py")}
            assert (rows["leaf"], rows["walk"], rows["bad"], rows["work"]) == (400, 200, 200, 5)
        whole(recording)


FIRED = r"""
import ctypes, sys
api = ctypes.pythonapi
PY_START, PY_RETURN = 0, 2
states, version = (ctypes.c_uint8 * 4)(), ctypes.c_uint64()
begin, leave = api._PyMonitoring_FirePyStartEvent, api._PyMonitoring_FirePyReturnEvent
begin.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_int32]
leave.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_int32, ctypes.py_object]
def call(code):
    api.PyMonitoring_EnterScope(states, ctypes.byref(version), (ctypes.c_uint8 * 2)(PY_START, PY_RETURN), 2)
    if states[0]: assert begin(ctypes.addressof(states), code, 0) == 0
    if states[2]: assert leave(ctypes.addressof(states) + 2, code, 0, None) == 0
    api.PyMonitoring_ExitScope()
    states[:], version.value = [0] * 4, 0
def compiled(): pass
for _ in range(50): call(compiled.__code__)
for thing in (b"\xff" * 1000, "not code", object(), compiled, 3.5): call(thing)
print("well")
"""


def test_events_fired_by_c_code(python, tmp_path):
    """C code may say that it is a function (as Cython's does): with a code object it is counted; with anything else it is left in peace."""
    if python.version < (3, 13):
        pytest.skip("no events from C code")
    for options in (["--calls"], ["--calls", "--exclude", "nothing"], ["--trace", "--args"], ["--lines"]):
        recording = record([python.path, "-c", FIRED], tmp_path / "x.pyro", "--force", *options)
        assert recording.stdout == "well\n", options
        if "--calls" in options:
            assert recording.row("compiled")["calls"] == 50, options
        whole(recording)

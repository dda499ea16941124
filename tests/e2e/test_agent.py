"""The guest inside the program: exact calls, and a program that cannot tell that it has one."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

import harness
from harness import PYROMETER, pyrometer, record, workload

# function: (calls, primitive calls) in tests/workloads/calls.py
EXPECTED = {
    "work": (8, 8),
    "leaf": (1000 + 4 * 100 + 100 + 100 + 100 + 10, 1710),
    "<built-in method builtins.abs>": (1710, 1710),
    "<built-in method builtins.hex>": (10, 10),
    "by_name": (20, 20),
    "generate": (1, 1),
    "descend": (51, 1),
    "boom": (10, 10),
    "catch": (10, 10),
    "raw": (1, 1),
    "entered": (1, 1),
    "main": (1, 1),
}


def counts(recording):
    found = {}
    for r in recording.rows():
        if r["file"] and not r["file"].endswith("calls.py"):
            continue
        name = r["name"] if r["name"].startswith("<") else r["name"].split(".")[-1]
        assert name not in found, name
        found[name] = (r["calls"], r["primitive_calls"])
    return found


def whole(recording):
    stats = recording.stats()
    assert stats["events_lost"] == 0 and stats["events_damaged"] == 0 and stats["threads_refused"] == 0, stats


# --- exact ---


def also(*options):
    """Other options, in the long tier."""
    return pytest.param(list(options), marks=pytest.mark.long_only, id=" ".join(options))


every_hook = pytest.mark.parametrize("options", [["--calls"], also("--calls", "--no-c-calls"), also("--lines"), also("--trace")], ids=" ".join)


@pytest.mark.parametrize("options", [["--calls"], also("--trace"), also("--calls", "--lines")], ids=" ".join)
@pytest.mark.strict
def test_every_call_is_counted(python, tmp_path, options):
    recording = record([python.path, workload("calls.py")], tmp_path / "x.pyro", *options)
    found = counts(recording)
    assert {name: found.get(name) for name in EXPECTED} == EXPECTED
    whole(recording)


@pytest.mark.parametrize("options", [["--calls", "--no-c-calls"], also("--trace", "--no-c-calls"), also("--lines")], ids=" ".join)
@pytest.mark.strict
def test_without_c_functions(python, tmp_path, options):
    recording = record([python.path, workload("calls.py")], tmp_path / "x.pyro", *options)
    found = counts(recording)
    assert {name: found.get(name) for name in EXPECTED if "built-in" not in name} == {
        name: n for name, n in EXPECTED.items() if "built-in" not in name}
    assert not [name for name in found if "built-in" in name]


@pytest.mark.strict
def test_as_cprofile_counts(python, tmp_path):
    """A program with one thread: the same functions and counts as cProfile's."""
    text = (
        "import json\n"
        "def encode(n): return json.dumps({'a': [n] * 5})\n"
        "def run():\n"
        "    for i in range(200): encode(i)\n"
    )
    (tmp_path / "prog.py").write_text(text + "run()\n")
    (tmp_path / "under.py").write_text(
        text + "import cProfile, pstats, sys, json as j\np = cProfile.Profile()\np.enable()\nrun()\np.disable()\n"
        "s = pstats.Stats(p).stats\nprint(j.dumps([[k[2], v[1], v[0]] for k, v in s.items()]))\n")
    expected = {}
    for name, calls, primitive in json.loads(subprocess.run([python.path, str(tmp_path / "under.py")], check=True,
                                                            stdout=subprocess.PIPE).stdout):
        expected[name] = (expected.get(name, (0, 0))[0] + calls, expected.get(name, (0, 0))[1] + primitive)
    recording = record([python.path, str(tmp_path / "prog.py")], tmp_path / "x.pyro", "--calls")
    ours = {}
    for r in recording.rows():
        if r["file"] and not r["file"].endswith("prog.py") and "json" not in r["file"]:
            continue
        name = r["name"] if r["name"].startswith("<") else r["name"].split(".")[-1]
        ours[name] = (ours.get(name, (0, 0))[0] + r["calls"], ours.get(name, (0, 0))[1] + r["primitive_calls"])
    for name in ("encode", "run", "dumps", "iterencode", "encode"):
        if name in expected:
            assert ours.get(name) == expected[name], name
    builtin = [name for name in expected if name.startswith("<") and "Profiler" not in name]
    assert builtin
    for name in builtin:
        # importing json itself calls some of them, too
        assert ours.get(name, (0, 0))[0] >= expected[name][0], name


GENERATORS = '''
import asyncio
def gen(n):
    for i in range(n): yield i
def outer(n): yield from gen(n)
async def mid():
    await asyncio.sleep(0.02)
async def amain():
    await asyncio.gather(mid(), mid())
list(outer(5))
list(x for x in gen(3))
closed = gen(5)
next(closed)
closed.close()
thrown = gen(5)
next(thrown)
try: thrown.throw(KeyError)
except KeyError: pass
asyncio.run(amain())
'''


@pytest.mark.parametrize("options", [[], ["--no-c-calls"]], ids=["c", "no-c"])
@pytest.mark.strict
def test_generators_are_called_once(python, tmp_path, options):
    (tmp_path / "gens.py").write_text(GENERATORS)
    recording = record([python.path, str(tmp_path / "gens.py")], tmp_path / "x.pyro", "--calls", *options)
    for name, calls in (("gen", 4), ("outer", 1), ("mid", 2), ("amain", 1), ("<genexpr>", 1)):
        assert recording.row(name, file="gens.py")["calls"] == calls, name
    whole(recording)


def test_call_paths(default_python, tmp_path):
    """A function is charged by the path that led to it, not by who calls it."""
    text = (
        "import time\n"
        "def sleepy(s): time.sleep(s)\n"
        "def middle(s): sleepy(s)\n"
        "def short(): middle(0.02)\n"
        "def long(): middle(0.2)\n"
        "short(); long()\n"
    )
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    tree = json.loads(harness.pyrometer("tree", recording.path, "--json", check=0).stdout)
    by_path = {}

    def walk(rows, path):
        for row in rows:
            if row["name"] == "<built-in method time.sleep>":
                by_path[tuple(path)] = row["total"]
            walk(row.get("children", []), path + [row["name"]])
    walk(tree["rows"], [])
    by_path = {path[1]: total for path, total in by_path.items() if path[-2:] == ("middle", "sleepy")}
    assert by_path["long"] > 5 * by_path["short"], by_path


IDENTITY = (
    "for i in range(5000):\n"
    "    space = {}\n"
    "    exec('def f_%d(): pass' % i, space)\n"
    "    for _ in range(1 + i % 3): space['f_%d' % i]()\n"
)


@pytest.mark.parametrize("options", [["--calls"], also("--calls", "--no-c-calls"), also("--trace"), also("--lines")], ids=" ".join)
@pytest.mark.strict
def test_code_that_dies_young(python, tmp_path, options):
    """Functions that are made, called and forgotten: the next code object is often where the last was, and is another all the same."""
    recording = record([python.path, "-c", IDENTITY], tmp_path / "x.pyro", *options)
    found = {r["name"]: r["calls"] for r in recording.rows() if r["name"].startswith("f_")}
    assert found == {"f_%d" % i: 1 + i % 3 for i in range(5000)}
    whole(recording)


WAYS = {
    "file": ["main.py"],
    "module": ["-m", "package"],
    "command": ["-c", "import mod"],
    "stdin": [],
    "directory": ["folder"],
    "zip": ["folder.zip"],
}


@pytest.mark.long
@pytest.mark.parametrize("way", sorted(WAYS))
@pytest.mark.strict
def test_from_the_first_line(python, tmp_path, way):
    """However a program is started: its main module once, the modules that it imports once, and what they call meanwhile."""
    mod = "def f(): pass\nfor _ in range(3): f()\n"
    for folder, main, module in (("", "main.py", "mod"), ("package", "__main__.py", "package.mod"), ("folder", "__main__.py", "mod")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / main).write_text("import %s\n" % module)
        (tmp_path / folder / "mod.py").write_text(mod)
    shutil.make_archive("folder", "zip", tmp_path / "folder")
    with open("main.py") as f:
        recording = record([python.path, *WAYS[way]], tmp_path / "x.pyro", "--calls", stdin=f)
    inside = {"module": "package/", "directory": "folder/", "zip": "folder.zip/"}.get(way, "")
    main = {"file": "main.py", "command": "<string>", "stdin": "<stdin>"}.get(way, inside + "__main__.py")
    assert recording.row("<module>", file=main)["calls"] == 1
    assert recording.row("<module>", file=inside + "mod.py")["calls"] == 1
    assert recording.row("f", file="mod.py")["calls"] == 3


@pytest.mark.strict
def test_until_the_last(python, tmp_path):
    """What runs when the main program has ended: an exit function, a destructor that the end of the interpreter calls."""
    text = (
        "import atexit\n"
        "def at_exit(): pass\n"
        "def gone(): pass\n"
        "atexit.register(at_exit)\n"
        "class A:\n"
        "    def __del__(self, gone=gone): gone()\n"
        "a = A()\n"
    )
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert (recording.row("at_exit")["calls"], recording.row("gone")["calls"]) == (1, 1)
    whole(recording)


def test_greenlets_are_told(tmp_path):
    """They take turns in one thread, and the guest does not see it. (With the tests' own Python, which has the package.)"""
    text = (
        "import greenlet\n"
        "def one(): two_green.switch()\n"
        "def two(): one_green.switch()\n"
        "one_green, two_green = greenlet.greenlet(one), greenlet.greenlet(two)\n"
        "one_green.switch()\n"
    )
    recording = record([sys.executable, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.report()["losses"]["greenlets_unseen"] is True
    assert "switches of greenlets" in pyrometer("report", recording.path, check=0).stdout
    for instrument, program in (("--sample", text), ("--calls", "import json")):
        recording = record([sys.executable, "-c", program], tmp_path / "y.pyro", instrument, "--force")
        assert recording.report()["losses"]["greenlets_unseen"] is False


@pytest.mark.strict
def test_sub_interpreters_are_told(python, tmp_path):
    """There are no hooks in them; that they were there is told."""
    text = (
        "try: import _interpreters as interpreters\n"
        "except ImportError: import _xxsubinterpreters as interpreters\n"
        "def outside(): pass\n"
        "for _ in range(2):\n"
        "    interpreter = interpreters.create()\n"
        "    interpreters.run_string(interpreter, 'def inside(): pass\\nfor _ in range(9): inside()')\n"
        "    interpreters.destroy(interpreter)\n"
        "    outside()\n"
    )
    if not python.has("_interpreters") and not python.has("_xxsubinterpreters"):
        pytest.skip("no sub-interpreters to be had")
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.row("outside", file="<string>")["calls"] == 2 and recording.row("inside") is None
    assert recording.stats()["interpreters_untraced"] == recording.report()["losses"]["interpreters_untraced"] == 2
    assert "lost: 2 sub-interpreters not traced" in pyrometer("report", recording.path, check=0).stdout


@pytest.mark.strict
def test_many_threads_lose_nothing(python, tmp_path):
    text = (
        "import threading\n"
        "def tiny(): pass\n"
        "def run():\n"
        "    for _ in range(3000): tiny()\n"
        "threads = [threading.Thread(target=run) for _ in range(64)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
    )
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.row("tiny")["calls"] == 64 * 3000
    whole(recording)


def test_together_with_samples(python, tmp_path):
    recording = record([python.path, workload("shares.py"), "0.4"], tmp_path / "x.pyro", "--calls", "--sample")
    assert recording.report()["metric"] == "wall"
    assert recording.report("--metric", "time")["metric"] == "time"
    threads = [t for t in recording.info()["threads"] if t["name"] == "MainThread"]
    assert len(threads) == 1, threads  # one thread, however many look at it


# --- children ---

CHILD = "def child(): pass\nfor _ in range(7): child()"


@pytest.mark.parametrize("how", [
    "subprocess.run([sys.executable, '-c', CHILD])",
    "subprocess.run([sys.executable, '-c', CHILD], env={})",
    "subprocess.run(COMMAND, shell=True, env={})",
    "os.environ.clear(); status = os.system(COMMAND + '; exit 3'); assert status >> 8 == 3",
    "os.environ.clear(); os.environ['LD_PRELOAD'] = ''; assert os.system(COMMAND) == 0",
    "os.environ.clear(); os.popen(COMMAND).close()",
    "os.posix_spawn(sys.executable, [sys.executable, '-c', CHILD], {}); os.wait()",
    "os.fork() or os.execve(sys.executable, [sys.executable, '-c', CHILD], {}); os.wait()",
    "os.spawnv(os.P_WAIT, sys.executable, [sys.executable, '-c', CHILD])",
    "subprocess.run([sys.executable, '-c', CHILD], env={'PYROMETER_AGENT': '%d:3:1' % 2**30})",  # of a recorder that is no more
], ids=["subprocess", "emptied", "shell", "system", "system-preload", "popen", "posix_spawn", "exec", "spawnv", "stale"])
@pytest.mark.strict
def test_children(python, tmp_path, how):
    text = "import os, shlex, subprocess, sys\nCHILD = %r\nCOMMAND = sys.executable + ' -c ' + shlex.quote(CHILD)\n%s\n" % (CHILD, how)
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.row("child")["calls"] == 7


EXECUTES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char *none[] = {NULL}, command[4096], line[64] = "";
    (void)argc, (void)none;
    snprintf(command, sizeof command, "%s -c '%s'", argv[1], argv[2]);
    clearenv();
    HOW;
    return 1;
}
"""


@pytest.mark.parametrize("how", [
    "execl(argv[1], argv[1], \"-c\", argv[2], NULL)", "execlp(argv[1], argv[1], \"-c\", argv[2], NULL)",
    "execle(argv[1], argv[1], \"-c\", argv[2], NULL, none)",
    "FILE *f = popen(command, \"r\"); fgets(line, sizeof line, f); fputs(line, stdout); return pclose(f)"], ids=lambda how: how.split("(")[0].split()[-1])
@pytest.mark.strict
def test_children_of_c(default_python, tmp_path, how):
    """Functions of libc that call others of it by names of its own, in a program that has emptied its environment."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "host.c").write_text(EXECUTES.replace("HOW", how))
    subprocess.run([compiler, "-D_GNU_SOURCE", "-o", "host", "host.c"], check=True)
    recording = record([str(tmp_path / "host"), default_python.path, CHILD + "\nimport sys; print(len(sys.argv))"], tmp_path / "x.pyro", "--calls")
    assert recording.stdout == "1\n" and recording.row("child")["calls"] == 7
    whole(recording)


@pytest.mark.parametrize("options", [["--calls"], ["--memory"]], ids=lambda o: o[0][2:])
@pytest.mark.strict
def test_recorded_within(python, tmp_path, options):
    """A recorded program records another: that one's calls are in the inner recording, its own in the outer one."""
    text = ("import subprocess\ndef outer(): pass\nfor _ in range(5): outer()\n"
            "subprocess.run(%r, check=True)\n" % ([PYROMETER, "run", "--quiet", "--no-history", "--calls", "-o", "inner.pyro", "--", python.path, "-c",
                                                  CHILD + "\nimport subprocess, sys\n" "subprocess.run([sys.executable, '-c', %r], env={})" % CHILD],))
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", *options)
    inner = harness.Recording("inner.pyro")
    assert inner.row("child")["calls"] == 14 and inner.row("outer", file="<string>") is None
    whole(inner)
    if options == ["--calls"]:
        assert recording.row("outer", file="<string>")["calls"] == 5 and recording.row("child") is None
        whole(recording)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.strict
def test_multiprocessing(python, tmp_path, method):
    (tmp_path / "pool.py").write_text(
        "import multiprocessing\n"
        "def job(i): return i\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context(%r).Pool(2) as pool:\n"
        "        assert pool.map(job, range(50), chunksize=5) == list(range(50))\n" % method)
    recording = record([python.path, str(tmp_path / "pool.py")], tmp_path / "x.pyro", "--calls")
    assert recording.row("job", file="pool.py")["calls"] == 50  # workers are ended by SIGTERM: nothing is lost
    whole(recording)


# --- the program cannot tell ---

SEES = r"""
import sys, os, json
print(sorted(k for k in globals()))
print(__name__, __builtins__.__name__, sys.argv, sys.path, sys.getrecursionlimit(), sys.flags)
print(sys.getprofile(), sys.gettrace(), sorted(m for m in sys.modules if 'pyro' in m))
def depth(n=0):
    try: return depth(n + 1)
    except RecursionError: return n
print(depth())
try: {}['x']
except KeyError:
    import traceback; traceback.print_exc(file=sys.stdout)
print(sorted(os.listdir('/proc/self/task')) == [str(os.getpid())])
sys.exit(7)
"""


def seems_bare(command, path, *options):
    """It prints and ends as it does without us."""
    bare = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    recording = record(command, path, "--force", *options, check=bare.returncode)
    assert (recording.stdout, recording.done.stderr) == (bare.stdout, bare.stderr)
    return recording


@pytest.mark.parametrize("options", [["--calls"], also("--lines"), also("--trace", "--args"), also("--calls", "--no-c-calls")], ids=" ".join)
@pytest.mark.strict
def test_the_program_sees_no_difference(python, tmp_path, options):
    (tmp_path / "sees.py").write_text(SEES)
    recording = seems_bare([python.path, str(tmp_path / "sees.py"), "an argument"], tmp_path / "x.pyro", *options)
    assert "KeyError: 'x'" in recording.stdout and recording.done.returncode == 7
    (tmp_path / "fails.py").write_text("def f(n): return 1 / n if not n else f(n - 1)\nclass E(Exception): pass\n"
                                       "try: f(3)\nexcept ZeroDivisionError as e: raise E('ended') from e\n")
    recording = seems_bare([python.path, str(tmp_path / "fails.py")], tmp_path / "x.pyro", *options)
    assert "ZeroDivisionError" in recording.done.stderr and recording.done.stderr.endswith("E: ended\n")


@pytest.mark.parametrize("ending,status", [
    ("raise SystemExit(3)", 3), ("os._exit(4)", 4), ("os.kill(os.getpid(), 9)", 137), ("os.abort()", 134),
    ("import ctypes; ctypes.string_at(0)", 139), ("1 / 0", 1), ("sys.exit('text')", 1)])
@pytest.mark.strict
def test_however_it_ends(python, tmp_path, ending, status):
    text = "import os, sys\ndef counted(): pass\nfor _ in range(100): counted()\n" + ending
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls", check=status)
    assert recording.row("counted")["calls"] == 100
    assert "whole" in recording.verify().stdout


@pytest.mark.strict
def test_another_kind_of_program(tmp_path):
    bare = subprocess.run(["sh", "-c", "ls /; exit 5"], stdout=subprocess.PIPE)
    recording = record(["sh", "-c", "ls /; exit 5"], tmp_path / "x.pyro", "--calls", check=5)
    assert recording.stdout == bare.stdout.decode()
    assert recording.done.stderr == ""


# Words of the interpreter's state that point into the data of ours: its list of audit hooks, if we are in it.
LISTENS = r"""
import ctypes, re, struct
maps = [re.match(r"(\w+)-(\w+) \S+ \S+ \S+ \d+\s*(\S*)", line).groups() for line in open("/proc/self/maps")]
maps = [(int(begin, 16), int(end, 16), name) for begin, end, name in maps]
agent = next(m for m in maps if "libpyrometer-agent" in m[2])
head = open(agent[2], "rb").read(4096)  # by its program headers: what is mapped behind it may be anybody's
first, count = struct.unpack_from("<Q", head, 32)[0], struct.unpack_from("<H", head, 56)[0]
parts = [struct.unpack_from("<IIQQQQQQ", head, first + 56 * i) for i in range(count)]
ours = [(agent[0] + address, agent[0] + address + size) for kind, flags, _, address, _, _, size, _ in parts if kind == 1 and flags & 2]
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
end = next(m[1] for m in maps if m[0] <= runtime < m[1])
words = (ctypes.c_size_t * ((end - runtime) // 8)).from_address(runtime)
print(len(ours) > 0, sum(any(m[0] <= word < m[1] for m in ours) for word in words))
"""


@pytest.mark.strict
def test_nobody_listens_to_audit_events(python):
    """While anybody does, the interpreter makes a tuple of each, and id() is one. Only where others may take our place we have to."""
    def found(*instruments):
        return pyrometer("run", "--quiet", "--no-history", "--force", "-o", "x.pyro", *instruments, "--", python.path, "-c", LISTENS, check=0).stdout

    assert found("--memory=heap") == "True 0\n"
    assert found("--calls") == ("True 0\n" if python.version >= (3, 12) else "True 1\n")


@pytest.mark.strict
def test_tool_and_selection_have_names(python, tmp_path):
    """Who looks for us in sys.monitoring finds us, and the recording says whose lines were asked for."""
    text = "import sys\ndef f(): pass\nf()\nprint('pyrometer' in [sys.monitoring.get_tool(i) for i in range(6)] if sys.version_info >= (3, 12) else True)"
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--lines", "--function", "__main__:f", "--match", "string")
    assert recording.stdout == "True\n"
    meta = recording.info()["meta"]
    assert (meta["lines_function"], meta["lines_match"]) == ("__main__:f", "string")


@pytest.mark.strict
def test_beside_another_tool(python, tmp_path):
    """cProfile in the program works as ever; above 3.11 we count on beside it."""
    text = (
        "import cProfile, pstats\n"
        "def f(): pass\n"
        "def g():\n"
        "    for _ in range(50): f()\n"
        "g()\n"
        "p = cProfile.Profile()\np.enable()\ng()\np.disable()\n"
        "print([v[1] for k, v in pstats.Stats(p).stats.items() if k[2] == 'f'])\n"
        "g()\n"
    )
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.stdout == "[50]\n"
    if python.version >= (3, 12):
        assert recording.row("f", file="<string>")["calls"] == 150
    else:
        assert recording.row("f", file="<string>")["calls"] == 100  # not while cProfile had the interpreter's one slot
        assert recording.stats()["event_paused_ns"] > 0


def test_another_profiler_is_told(python, tmp_path):
    """Below 3.12 the interpreter has one place for a profile function: for how long it was another's, summary and report say."""
    if python.version >= (3, 12):
        pytest.skip("there is room for all")
    text = "import cProfile, time\ndef f(): pass\np = cProfile.Profile()\np.enable()\ntime.sleep(0.3)\np.disable()\nf()\n"
    done = pyrometer("run", "--calls", "--no-history", "-o", "x.pyro", "--", python.path, "-c", text, check=0)
    recording = harness.Recording("x.pyro")
    paused = recording.report()["losses"]["event_paused_seconds"]
    assert 0.3 <= paused and recording.row("f", file="<string>")["calls"] == 1
    words = "threads that could not be traced for "
    assert words in done.stderr and "lost: " + words in pyrometer("report", "x.pyro", check=0).stdout


def test_another_profiler_to_the_end(python, tmp_path):
    """A pause that lasts when the recording ends is told, too."""
    if python.version >= (3, 12):
        pytest.skip("there is room for all")
    text = "import cProfile, time\ndef f(): pass\nf()\np = cProfile.Profile()\np.enable()\ntime.sleep(1)\n"
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls", "--for", "0.3")
    assert recording.stats()["event_paused_ns"] > 0


# --- bad days ---

LONG = (
    "import os, sys, time\n"
    "def f(): pass\n"
    "end = time.monotonic() + float(sys.argv[1])\n"
    "print('ready', flush=True)\n"
    "while time.monotonic() < end:\n"
    "    for _ in range(100): f()\n"
    "print('done', flush=True)\n"
    "os._exit(42)\n"
)


INSTRUMENTS = ["--calls", "--trace", "--lines"]


@pytest.mark.strict
def test_recorder_killed(python, tmp_path, scale):
    """At any moment, from before there is a file to after the program's end: the target goes on, unharmed; what was written can be read."""
    command = ["sh", "-c", "echo started; \"$@\"; echo $?", "sh", python.path, "-c", LONG, "0.3"]
    for turn in range(scale(1, 34)):
        running = []
        for i, instrument in enumerate(2 * INSTRUMENTS):
            path = str(tmp_path / ("%d-%d.pyro" % (turn, i)))
            running.append((path, subprocess.Popen([PYROMETER, "run", instrument, "--quiet", "-o", path, "--", *command],
                                                   stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")))
        random.shuffle(running)
        for path, process in running[:-1]:
            time.sleep(random.uniform(0, 0.1))
            process.kill()
        path, process = running[-1]  # of which something must be left
        harness.wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > harness.FILE_HEADER, "a part of the recording")
        process.kill()
        for path, process in running:
            # it may have been killed before there was a target; one that has started goes on to its end
            assert process.stdout.read() in ("", "started\nready\ndone\n42\n")
            process.wait()
            assert harness.can_be_saved(path) or path != running[-1][0]


# hooked(): is anything of us in the interpreter? Of sys.monitoring a tool, below 3.12 a profile or a trace function, or on 3.11 an
# evaluation function.
HOOKED = (
    "import ctypes, os, sys, time\n"
    "def hooked():\n"
    "    if sys.version_info >= (3, 12):\n"
    "        return any(sys.monitoring.get_tool(i) for i in range(6))\n"
    "    api, pointer = ctypes.pythonapi, ctypes.c_void_p\n"
    "    api.PyThreadState_Get.restype = api.PyInterpreterState_Main.restype = pointer\n"
    "    at = api.PyThreadState_Get() + (64 if sys.version_info >= (3, 11) else 56)\n"
    "    if sys.version_info >= (3, 11):\n"
    "        api._PyInterpreterState_GetEvalFrameFunc.restype = pointer\n"
    "        evaluate = api._PyInterpreterState_GetEvalFrameFunc(pointer(api.PyInterpreterState_Main()))\n"
    "        if evaluate != ctypes.cast(api._PyEval_EvalFrameDefault, pointer).value: return True\n"
    "    return any(pointer.from_address(at + 8 * i).value for i in range(2))\n"
    "def f(): pass\n"
    "assert hooked()\n"
)


@every_hook
def test_leaves_when_the_recorder_is_gone(python, tmp_path, options):
    """Within 100 ms nothing of us is in the way: below 3.12 the hook is out, above the tool's number is free."""
    text = HOOKED + (
        "print('ready', flush=True)\n"
        "parent = os.getppid()\n"
        "while os.getppid() == parent: f()\n"
        "end = time.monotonic() + 0.1\n"
        "while time.monotonic() < end: f()\n"
        "print(hooked(), flush=True)\n"
    )
    process = subprocess.Popen([PYROMETER, "run", *options, "--quiet", "-o", str(tmp_path / "x.pyro"), "--", python.path, "-c", text],
                               stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, encoding="utf-8")
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.kill()
    assert process.stdout.read() == "False\n"
    process.wait()


@every_hook
def test_leaves_when_the_time_is_up(default_python, tmp_path, options):
    """--for: the recorder lives on, until the program ends, but nobody waits for it, and nothing of us is left."""
    text = HOOKED + (
        "last = time.monotonic()\n"
        "end, longest = last + 30, 0\n"
        "while hooked() and last < end:\n"
        "    for _ in range(3000): f()\n"
        "    longest, last = max(longest, time.monotonic() - last), time.monotonic()\n"
        "print(hooked(), longest < 1.5)\n"
    )
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", *options, "--for", "0.3")
    assert recording.stdout == "False True\n"
    assert recording.row("f")["calls"] > 3000
    whole(recording)


def test_recorder_stopped(default_python, tmp_path):
    """A recorder that does not empty the rings is waited for, up to a bound: then records are dropped, and that is told."""
    text = (
        "import os, signal, sys\n"
        "def f(): pass\n"
        "def late(): pass\n"
        "recorder = int(os.environ['PYROMETER_ACTIVE'])\n"
        "os.kill(recorder, signal.SIGSTOP)\n"
        "for _ in range(500000): f()\n"
        "late()\n"
        "os.kill(recorder, signal.SIGCONT)\n"
        "for _ in range(10): f()\n"
        "for _ in range(500000): late()\n"
    )
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    stats = recording.stats()
    assert stats["events_lost"] > 0 and stats["event_wait_ns"] > 1e9, stats
    assert recording.row("f")["calls"] < 500010
    assert 0 < recording.row("late")["calls"] < 500001  # its name was not lost with its first call


ODD = {
    "closes_all": "os.closerange(3, 1000)\n",
    "limits": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4, 4))\n",
    "address_space": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n",
    "memory_error": "try: x = bytearray(1 << 60)\nexcept MemoryError: pass\n",
    "no_memory": "import resource\nbefore = resource.getrlimit(resource.RLIMIT_AS)\n"
                 "with open('/proc/self/statm') as s: most = 4096 * int(s.read().split()[0]) + (16 << 20)\n"
                 "resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))\n"
                 "def fill(size):\n    held = []\n    try:\n        while True: held.append(bytearray(size))\n    except MemoryError: return 1\n"
                 "assert sum(fill(1 << 14 + i % 8) for i in range(50)) == 50\n"
                 "resource.setrlimit(resource.RLIMIT_AS, before)\n",
    "fork_loop": "for _ in range(30):\n    pid = os.fork()\n    if pid == 0:\n        f(); os._exit(0)\n    os.waitpid(pid, 0)\n",
    "chdir": "os.chdir('/')\nos.environ.clear()\n",
    "own_profile": "sys.setprofile(lambda *a: None)\nf()\nsys.setprofile(None)\n",
    "signals": "import signal\nsignal.signal(signal.SIGALRM, lambda *a: f())\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
               "t = time.monotonic() + 0.05\nwhile time.monotonic() < t: pass\nsignal.setitimer(signal.ITIMER_REAL, 0)\n",
    "gc": "import gc\ngc.set_threshold(1)\nx = [object() for _ in range(100)]\n",
    "exec": "exec(compile('def g(): pass\\nfor _ in range(9): g()', 'made', 'exec'))\n",
}


@pytest.mark.parametrize("odd", [pytest.param(odd, marks=[pytest.mark.long_only] if odd == "no_memory" else []) for odd in sorted(ODD)])
@pytest.mark.strict
def test_odd_programs(python, tmp_path, odd):
    text = ("import os, sys, time, threading\ndef f(): pass\nfor _ in range(50): f()\n" + ODD[odd] +
            "t = threading.Thread(target=f)\nt.start()\nt.join()\nfor _ in range(50): f()\nprint('well')\n")
    if odd == "address_space":
        text = text.replace("t = threading.Thread(target=f)\nt.start()\nt.join()\n", "")
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.stdout == "well\n"
    calls = recording.row("f", file="<string>")["calls"]
    assert calls >= (50 if odd == "own_profile" and python.version < (3, 12) else 101 if odd != "address_space" else 100), calls


@pytest.mark.long
@pytest.mark.strict
def test_a_hundred_processes(default_python, tmp_path):
    text = (
        "import subprocess, sys\n"
        "children = [subprocess.Popen([sys.executable, '-S', '-c', 'def each(): pass\\nfor _ in range(5): each()']) for _ in range(100)]\n"
        "assert not any(c.wait() for c in children)\n"
    )
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.row("each")["calls"] == 500
    whole(recording)


@pytest.mark.strict
def test_rights_dropped(default_python, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to drop it")
    text = ("import os, threading\ndef f(): pass\nos.setuid(65534)\nfor _ in range(50): f()\n"
            "t = threading.Thread(target=f)\nt.start()\nt.join()\nprint('well')\n")
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.stdout == "well\n"
    assert recording.row("f", file="<string>")["calls"] == 51


# --- threads that C code makes ---

# make_thread() makes a thread, make_thread_at_exit() does when main() has returned. The name of Python's is in the way of who asks for
# it: it counts how often that was done with and without the interpreter lock.
MAKES_THREADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
int with_lock, without_lock;
void *PyInterpreterState_ThreadHead(void *interpreter)
{
    void *(*next)(void *) = dlsym(RTLD_NEXT, "PyInterpreterState_ThreadHead");
    void *(*holder)(void) = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    void *(*mine)(void) = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    *(mine() && holder() == mine() ? &with_lock : &without_lock) += 1;
    return next(interpreter);
}
static void *idle(void *arg) { return arg; }
int make_thread(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, idle, NULL) || pthread_join(thread, NULL);
}
static void at_the_end(void)
{
    printf("%d\n", make_thread());
}
int make_thread_at_exit(void) { return atexit(at_the_end); }
"""


def library(folder, text):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    (folder / "library.c").write_text(text)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "library.so"), str(folder / "library.c"), "-ldl", "-lpthread"], check=True)
    return str(folder / "library.so")


@pytest.mark.strict
def test_threads_made_after_the_end(python, tmp_path):
    """The interpreter is gone, and with it what says who holds its lock."""
    text = "import ctypes\ndef f(): pass\nf()\nctypes.CDLL(%r).make_thread_at_exit()\n" % library(tmp_path, MAKES_THREADS)
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls")
    assert recording.stdout == "0\n" and recording.row("f", file="<string>")["calls"] == 1
    whole(recording)


@pytest.mark.strict
def test_threads_made_without_the_lock(python, tmp_path):
    """Nobody may look at Python's threads who has not got the interpreter lock; once there was another interpreter, Python says of everybody that he has."""
    if python.version >= (3, 12):
        pytest.skip("nobody looks: there is one hook for all threads")
    made = library(tmp_path, MAKES_THREADS)
    text = (
        "import ctypes, threading\n"
        "import _xxsubinterpreters as interpreters\n"
        "library = ctypes.CDLL(%r)\n"
        "def f(): pass\n"
        "interpreters.destroy(interpreters.create())\n"
        "for _ in range(5): assert library.make_thread() == 0\n"
        "t = threading.Thread(target=f)\nt.start()\nt.join()\n"
        "seen = [ctypes.c_int.in_dll(library, name).value for name in ('with_lock', 'without_lock')]\n"
        "print(seen[0] > 0, seen[1])\n" % made)
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--calls", env=dict(os.environ, LD_PRELOAD=made))
    looked, without_lock = recording.stdout.split()
    if looked == "False":
        pytest.skip("Python's own name comes first: it is in the program itself")
    assert without_lock == "0" and recording.row("f", file="<string>")["calls"] == 1
    whole(recording)


# --- where it cannot get in ---


def summary(*command, check=0, **kwargs):
    """What `run --calls` into x.pyro prints after the program."""
    return pyrometer("run", "--calls", "--no-history", "--force", "-o", "x.pyro", "--", *command, check=check, **kwargs)


def refusals(recording):
    stats = recording.stats()
    return stats["agents_refused"], stats["agents_unhooked"]


def runs_untraced(python, why, counted, **env):
    """The program runs as ever; summary and report say why nothing is known of it, and give no other reason."""
    done = summary(python.path, "-c", "print('well')", env=dict(os.environ, **env))
    assert done.stdout == "well\n"
    assert re.findall("process not traced(?:, or not to its end)?: (.*)", done.stderr) == [why]
    assert refusals(harness.Recording("x.pyro")) == counted
    report = pyrometer("report", "x.pyro", check=0).stdout
    assert why in report and "too short" not in report


SET_ASIDE = "hooks could not be set, or were taken out (all ids of sys.monitoring taken, or ours given free?)"


def test_no_monitoring_id_left(python, tmp_path):
    """All six tools of sys.monitoring are others': the program runs as ever, and it is told why nothing is known of it."""
    if python.version < (3, 12):
        pytest.skip("no sys.monitoring")
    image = subprocess.run([python.path, "-c", "import os; print(os.readlink('/proc/self/exe'))"], stdout=subprocess.PIPE,
                           encoding="utf-8", check=True).stdout
    if not os.path.basename(image).startswith("python"):
        pytest.skip("a program that embeds Python lets us in before it runs any of the site's code")
    (tmp_path / "sitecustomize.py").write_text("import sys\nfor i in range(6): sys.monitoring.use_tool_id(i, 'other %d' % i)\n")
    runs_untraced(python, SET_ASIDE, (0, 1), PYTHONPATH=str(tmp_path))


GIVEN_FREE = """
import sys
monitoring, heard = sys.monitoring, []
def before(): pass
def after(): pass
before()
monitoring.free_tool_id(5)
if sys.argv[1] == "taken":
    monitoring.use_tool_id(5, "other")
    monitoring.register_callback(5, monitoring.events.PY_START, lambda *args: heard.append(args))
    monitoring.set_events(5, monitoring.events.PY_START)
for _ in range(10):
    after()
print(len(heard), monitoring.get_tool(5))
"""


@pytest.mark.parametrize("how", ["free", "taken"])
@pytest.mark.parametrize("option", ["--calls", "--lines"])
def test_our_monitoring_id_is_given_free(python, tmp_path, option, how):
    """A program that gives the id free which we have taken, for itself or in a loop over all of them: what is not seen from then on is
    told, and if somebody else has the id by then, its events are its own."""
    if python.version < (3, 12):
        pytest.skip("no sys.monitoring")
    recording = record([python.path, "-c", GIVEN_FREE, how], tmp_path / "x.pyro", option)
    assert recording.stdout == ("10 other\n" if how == "taken" else "0 None\n")
    rows = {r["name"]: r["calls"] for r in recording.rows() if r["file"] == "<string>"}
    goes_on = how == "free" and python.version < (3, 14)
    assert rows["before"] == 1 and rows.get("after", 0) == (10 if goes_on else 0)
    # there events go on, but lines of what has not run yet can be asked for no more
    assert refusals(recording) == (0, 0 if goes_on and option == "--calls" else 1)
    assert (SET_ASIDE in pyrometer("report", recording.path, check=0).stdout) == (refusals(recording)[1] == 1)
    recording.verify()


def test_agent_of_another_version(python, tmp_path):
    """It counts itself at a place that no version moves, and leaves the program alone."""
    other = os.path.join(os.path.dirname(PYROMETER), "tests", "libpyrometer-agent-other.so")
    if not os.path.exists(other):
        pytest.skip("no agent of another version beside the binary")
    runs_untraced(python, "an agent of another version", (1, 0), PYROMETER_AGENT_LIBRARY=other)
    done = summary("sh", "-c", "echo well", env=dict(os.environ, PYROMETER_AGENT_LIBRARY=other))
    nothing_was_traced(done)
    assert done.stdout == "well\n" and refusals(harness.Recording("x.pyro")) == (0, 0)


def nothing_was_traced(done):
    """Told as what it is, and not as a program that was too short for samples that nobody asked for."""
    assert "nothing was traced: no Python program was seen" in done.stderr and "too short" not in done.stderr
    assert "hottest" not in done.stderr and "next:" not in done.stderr
    report = pyrometer("report", "x.pyro", check=0).stdout
    assert report == "There is nothing in it: no Python program was seen.\n"
    assert harness.Recording("x.pyro").stats()["processes_python"] == 0


@pytest.mark.parametrize("options", [["--calls"], ["--lines"], ["--trace"], ["--memory"]], ids=lambda o: o[0])
def test_no_python(options):
    done = pyrometer("run", *options, "--no-history", "-o", "x.pyro", "--", "sh", "-c", "echo well; exit 7", check=7)
    assert done.stdout == "well\n"
    nothing_was_traced(done)


def compiled(tmp_path, *flags):
    """A program that says who it is, and whether the agent is in it."""
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(
        "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"
        "int main(void) {\n"
        "    char line[4096]; int agent = 0; FILE *maps = fopen(\"/proc/self/maps\", \"r\");\n"
        "    while (maps && fgets(line, sizeof line, maps)) agent |= strstr(line, \"pyrometer-agent\") != NULL;\n"
        "    printf(\"%d %d %s\\n\", (int)getuid(), (int)geteuid(), !maps ? \"unknown\" : agent ? \"agent\" : \"none\");\n"
        "    return 7; }\n")
    if subprocess.run([compiler, *flags, "-o", str(program), str(source)], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("cannot link with %s" % (flags,))
    return str(program)


def test_static_program(tmp_path):
    program = compiled(tmp_path, "-static")
    done = summary(program, check=7)
    assert done.stdout == "%d %d none\n" % (os.getuid(), os.geteuid())
    nothing_was_traced(done)


def test_setuid_program(tmp_path):
    """The loader ignores our library where rights are gained, and the program has its rights as ever."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to give a program its rights")
    folder = tempfile.mkdtemp()  # pytest's own are closed to others
    os.chmod(folder, 0o777)

    def drop():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        program = compiled(pathlib.Path(folder))
        os.chmod(program, 0o4755)
        if subprocess.run([program], stdout=subprocess.PIPE, preexec_fn=drop).stdout.split()[:2] != [b"65534", b"0"]:
            pytest.skip("programs gain no rights there")
        done = summary(program, check=7, preexec_fn=drop, cwd=folder)
        assert done.stdout == "65534 0 none\n"
        shutil.copy(os.path.join(folder, "x.pyro"), "x.pyro")
        nothing_was_traced(done)
    finally:
        shutil.rmtree(folder)


def test_few_calls_are_enough(python):
    done = pyrometer("run", "--calls", "--include", "^only$", "--no-history", "-o", "x.pyro", "--", python.path, "-c",
                     "def only(): return sum(range(100000))\nonly()", check=0)
    assert "too short" not in done.stderr and done.stderr.count(" only  <string>") == 1


INSTRUMENTS_IN_THE_DEPTH = [["--calls"], also("--calls", "--no-c-calls"), also("--lines"), also("--trace")]


def pauses_in_the_depth(python, options):
    """Where calls take C stack: on 3.11 where there is an evaluation function of ours, below always."""
    return python.version < (3, 11) or (python.version < (3, 12) and "--no-c-calls" in options)


DOWN = (
    "import sys, threading\n"
    "sys.setrecursionlimit(1000000)\n"
    "def down(n): return 0 if n == 0 else 1 + down(n - 1)\n"
    "def run(): print(down(int(sys.argv[1])))\n"
)


@pytest.mark.parametrize("stack", [0, pytest.param(512, marks=pytest.mark.long_only)], ids=["main", "small"])
@pytest.mark.parametrize("options", INSTRUMENTS_IN_THE_DEPTH, ids=" ".join)
def test_deep_recursion(python, tmp_path, options, stack):
    """What survives without us survives with us: nearly to the end of the C stack, where it is used at all; in a thread with a small one, too."""
    text = DOWN + ("threading.stack_size(%d << 10)\nt = threading.Thread(target=run)\nt.start()\nt.join()\n" % stack if stack else "run()\n")

    def survives(n):
        done = subprocess.run([python.path, "-c", text, str(n)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        return done.returncode == 0 and done.stdout == "%d\n" % n
    good, bad = (200 if stack else 10000), 60000
    if survives(bad):
        good = 10000
    else:
        while bad - good > max(20, good // 50):
            middle = (good + bad) // 2
            good, bad = (middle, bad) if survives(middle) else (good, middle)
        good = int(good * (0.93 if stack else 0.96))
    recording = record([python.path, "-c", text, str(good)], tmp_path / "x.pyro", *options)
    assert recording.stdout == "%d\n" % good
    calls, paused = recording.row("down")["calls"], recording.stats()["event_paused_ns"]
    if pauses_in_the_depth(python, options):
        assert 40 < calls < good + 1 and paused > 0
    else:
        assert calls == good + 1 and not paused


@pytest.mark.parametrize("options", INSTRUMENTS_IN_THE_DEPTH, ids=" ".join)
def test_back_from_the_depth(python, tmp_path, options):
    """A thread that is too deep is not traced; when it is back, it is."""
    text = (
        "import sys, time\n"
        "sys.setrecursionlimit(1000000)\n"
        "def down(n): return 0 if n == 0 else 1 + down(n - 1)\n"
        "def tiny(): pass\n"
        "def after():\n"
        "    end = time.monotonic() + 0.5\n"
        "    while time.monotonic() < end: tiny()\n"
        "down(int(sys.argv[1]))\n"
        "after()\n"
    )
    depth = 8000 if python.version < (3, 11) else 40000
    recording = record([python.path, "-c", text, str(depth)], tmp_path / "x.pyro", *options)
    assert recording.row("tiny")["calls"] > 1000
    if pauses_in_the_depth(python, options):
        assert 100 < recording.row("down")["calls"] < depth + 1
        assert recording.stats()["event_paused_ns"] > 0
    else:
        assert recording.row("down")["calls"] == depth + 1
        assert recording.stats()["event_paused_ns"] == 0


@pytest.mark.parametrize("options", INSTRUMENTS_IN_THE_DEPTH, ids=" ".join)
@pytest.mark.strict
def test_fork_in_the_depth(python, tmp_path, options):
    """Where a thread is not traced, its child has nobody who would see it come back: it is traced at once."""
    text = (
        "import os, sys\n"
        "sys.setrecursionlimit(1000000)\n"
        "def tiny(): pass\n"
        "def down(n): return os.fork() if n == 0 else down(n - 1)\n"
        "pid = down(8000)\n"
        "if pid:\n"
        "    os.waitpid(pid, 0)\n"
        "    print(pid)\n"
        "else:\n"
        "    for _ in range(1000): tiny()\n"
        "    os._exit(0)\n"
    )
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", *options)
    child = {r["name"]: r["calls"] for r in recording.rows("--process", recording.stdout.strip())}
    assert child["tiny"] == 1000
    whole(recording)


@pytest.mark.strict
def test_threads_with_the_smallest_stack(python, tmp_path):
    """32 KiB, or from 3.14 on 52: the least that Python lets a thread have. What we need of it must be little."""
    text = ("import sys, threading\ndef leaf(): pass\ndef run():\n    for _ in range(10): leaf()\n"
            "for size in 32, 64:\n    try: threading.stack_size(size << 10)\n    except ValueError: continue\n    break\n"
            "t = threading.Thread(target=run)\nt.start()\nt.join()\nprint('well')\n")
    for options in (["--calls"], ["--lines"], ["--trace", "--args"]):
        recording = record([python.path, "-c", text], tmp_path / "x.pyro", "--force", *options)
        assert recording.stdout == "well\n" and recording.row("leaf")["calls"] == 10


def test_the_library_needs_libc_alone():
    """Of Python it finds what it needs by name when it is inside: one library serves all versions, and programs that have none."""
    readelf = shutil.which("readelf")
    library = os.path.join(os.path.dirname(PYROMETER), "libpyrometer-agent.so")
    if not readelf or not os.path.exists(library):
        pytest.skip("no readelf, or no library beside the binary")
    dynamic = subprocess.run([readelf, "--dynamic", "--wide", library], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    assert "libc.so.6" in needed and needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0"}
    symbols = subprocess.run([readelf, "--dyn-syms", "--wide", library], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    undefined = re.findall(r" UND (\w+)", symbols)
    assert len(undefined) > 20 and not [name for name in undefined if re.match("_?Py", name)]


@pytest.mark.parametrize("options", [["--calls", "--memory=objects"], ["--trace"], ["--lines"], ["--memory=sampled"]], ids=lambda o: o[-1][2:])
def test_debugging_allocators(python, options, tmp_path):
    """-X dev puts allocators below everything that look at each block which is given back, also at those that were taken before them."""
    program = tmp_path / "app.py"
    program.write_text("import json, threading\nt = threading.Thread(target=json.dumps, args=([1],))\nt.start()\nt.join()\nprint(json.dumps({}))\n")
    command = [python.path, "-X", "dev", str(program)]
    bare = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", *options, "--", *command)
    assert (done.stdout, done.stderr, done.returncode) == (bare.stdout, bare.stderr, 0)

"""`with pyrometer.memory() as m:` in a program of its own: what the block allocated, held and had at most, on every CPython."""
import json
import os
import subprocess

from harness import PYROMETER, ROOT, default_python, pyrometer

HEAD = """
import json, os, sys, threading
sys.path.insert(0, %r)
import pyrometer
""" % os.path.join(ROOT, "python")


def run(python, text, *before, status=0):
    env = dict(os.environ, PYROMETER_BINARY=PYROMETER)
    done = subprocess.run([*before, python.path, "-c", HEAD + text], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, env=env)
    assert done.returncode == status, done.stderr
    return done


BLOCK = """
results = []
for turn in range(3):
    with pyrometer.memory() as m:
        large = [bytes(100000) for i in range(50)]
        kept = [bytes(1000) for i in range(100)]
        del large
    results.append([m.peak, m.net, m.allocated, m.count, [[r.name, r.line, r.self] for r in m.top],
                    [[r.name, r.line, r.self] for r in m.top_at_peak]])
    del kept
print(json.dumps(results))
"""
LARGE, KEPT = 50 * 100033, 100 * 1033  # a bytes object has 33 more


def test_a_block(python):
    for peak, net, allocated, count, top, top_at_peak in json.loads(run(python, BLOCK).stdout):
        # beside the bytes there are the two lists, which grow, and what the interpreter needs for the block
        assert KEPT <= net <= KEPT + 4000 and LARGE + KEPT <= peak <= LARGE + KEPT + 8000
        assert peak <= allocated <= peak + 20000 and count >= 152
        assert abs(top[0][2] - KEPT) < 3000 and abs(top_at_peak[0][2] - LARGE) < 3000
        assert top[0][1] == top_at_peak[0][1] + 1, "the line after"


def test_threads_count_too(python):
    text = """
def work():
    kept.append(bytes(50000))
kept = []
with pyrometer.memory() as m:
    threads = [threading.Thread(target=work) for i in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
print(json.dumps([m.net, [[r.name, r.self] for r in m.top]]))
"""
    net, top = json.loads(run(python, text).stdout)
    assert top[0][0] == "work" and 4 * 50033 <= top[0][1] <= 4 * 50033 + 500 and net >= top[0][1]  # the list grows, too


def test_after_it_python_has_its_own_allocators_again(python):
    text = """
import ctypes
class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]
def all_of_them():
    found = []
    for domain in range(3):
        a = Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(domain, ctypes.byref(a))
        found.append([getattr(a, f[0]) for f in Allocator._fields_])
    return found
before = all_of_them()
with pyrometer.memory() as m:
    x = [bytes(1000) for i in range(10)]
    inside = all_of_them()
print(before == all_of_them(), before == inside)
"""
    assert run(python, text).stdout.split() == ["True", "False"]


TRACEMALLOC = """
import tracemalloc
results = []
def block(name, before, after):
    with pyrometer.memory(keep=sys.argv[1] + name) as m:
        before()
        kept = [bytes(1000) for i in range(100)]
        after()
    losses = json.loads(subprocess.check_output([os.environ["PYROMETER_BINARY"], "report", "--json", "--metric", "peak", sys.argv[1] + name]))["losses"]
    results.append([m.net, losses["agents_unhooked"]])
def nothing():
    pass
import subprocess
block("started inside", tracemalloc.start, nothing)
block("above us", nothing, nothing)
block("stopped inside", nothing, tracemalloc.stop)
block("stopped", nothing, nothing)
tracemalloc.start()
block("below us", nothing, nothing)
block("below us, stopped inside", nothing, tracemalloc.stop)
block("stopped again", nothing, nothing)
block("both", tracemalloc.start, tracemalloc.stop)
print(json.dumps(results))
"""


def test_tracemalloc_comes_and_goes(python, tmp_path):
    """It stands above our hooks, or below them, and takes them out with itself: no call goes round in a ring, and what was not
    watched to the end is told."""
    env = dict(os.environ, PYROMETER_BINARY=PYROMETER)
    done = subprocess.run([python.path, "-c", HEAD + TRACEMALLOC, str(tmp_path / "x")], stdout=subprocess.PIPE, env=env, check=True)
    results = json.loads(done.stdout)
    assert [unhooked for _, unhooked in results] == [0, 0, 0, 0, 0, 1, 0, 0]
    assert all(net >= KEPT for net, _ in results)
    for n in (3, 6):  # what tracemalloc keeps of each block is not there
        assert results[n][0] <= KEPT + 4000


def test_an_exception_passes(python):
    done = run(python, "with pyrometer.memory() as m:\n    x = bytes(5000)\n    raise KeyError('mine')\n", status=1)
    assert "KeyError: 'mine'" in done.stderr and "memory.py" not in done.stderr


def test_numbers_until_an_exception(python):
    text = """
class Mine(BaseException): pass
try:
    with pyrometer.memory() as m:
        kept = bytes(100000)
        raise Mine
except Mine as error:
    print(error.__context__, m.net >= 100033, m.peak >= 100033, m.count > 0, m.top[0].self >= 100033)
with pyrometer.memory() as again:
    kept = bytes(100000)
print(again.net >= 100033)
"""
    assert run(python, text).stdout.splitlines() == ["None True True True True", "True"]


def test_an_exception_is_not_hidden_by_another(default_python):
    text = """
try:
    with pyrometer.memory() as m:
        m._recorder.kill()
        m._recorder.wait()
        raise KeyError("mine")
except KeyError as error:
    print(error, m.net)
"""
    assert run(default_python, text).stdout == "'mine' None\n"


def test_a_block_inside_of_another_leaves_it_alone(default_python):
    """Of the same thread or of another: it is refused, and the outer one watches on."""
    text = """
def other():
    try:
        with pyrometer.memory():
            refused.append(0)
    except pyrometer.PyrometerError as error:
        refused.append("another block" in str(error))
refused = []
with pyrometer.memory() as m:
    before = bytes(100000)
    other()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    kept = bytes(200000)
with pyrometer.memory() as again:
    third = bytes(300000)
print(refused, m.net >= 300066, again.net >= 300033)
"""
    assert run(default_python, text).stdout == "[True, True] True True\n"


def test_a_limit_is_checked_before_the_block(default_python):
    text = """
for limit in (-1, "3", 2.5):
    try:
        with pyrometer.memory(limit=limit):
            print("never")
    except (TypeError, ValueError) as error:
        print(type(error).__name__, "number of rows" in str(error))
"""
    assert run(default_python, text).stdout.splitlines() == ["ValueError True", "TypeError True", "TypeError True"]


def test_the_recording_can_be_kept(tmp_path):
    path = tmp_path / "kept.pyro"
    run(default_python(), "with pyrometer.memory(keep=%r, limit=1) as m:\n    x = bytes(5000)\nassert len(m.top) == 1\n" % str(path))
    report = json.loads(pyrometer("report", path, "--metric", "peak", "--json", check=0).stdout)
    assert report["metric"] == "peak" and report["total"] >= 5033


def test_refusals(tmp_path):
    python = default_python()
    recorded = run(python, "with pyrometer.memory() as m: pass", PYROMETER, "run", "--memory", "--quiet", "-o", str(tmp_path / "x.pyro"),
                   "--", status=1)
    assert "recorded from inside already" in recorded.stderr
    nested = run(python, "with pyrometer.memory() as m:\n  with pyrometer.memory() as n: pass", status=1)
    assert "another block of pyrometer.memory() is being watched in this process" in nested.stderr
    emptied = run(python, "del os.environ['PYROMETER_AGENT']\nwith pyrometer.memory() as m: pass", PYROMETER, "run", "--memory", "--quiet",
                  "-o", str(tmp_path / "y.pyro"), "--", status=1)
    assert "recorded from inside already" in emptied.stderr
    assert "pyrometer.memory()" in pyrometer("attach", "--memory", str(os.getpid()), check=2).stderr


def test_a_program_of_a_similar_name(python, tmp_path):
    """Only what the package itself allocates is left out."""
    path = tmp_path / "bench_memory.py"
    path.write_text(HEAD + "def work():\n    return [bytes(1000) for i in range(100)]\nwith pyrometer.memory() as m:\n    kept = work()\n"
                    "print(json.dumps([m.net, m.count, m.top[0].name]))\n")
    done = subprocess.run([python.path, path], stdout=subprocess.PIPE, check=True, env=dict(os.environ, PYROMETER_BINARY=PYROMETER))
    net, count, name = json.loads(done.stdout)
    assert net >= KEPT and count >= 100 and name in ("work", "<listcomp>", "work.<locals>.<listcomp>")


def test_a_block_while_an_exception_is_handled(default_python):
    text = """
try:
    1 / 0
except ZeroDivisionError:
    with pyrometer.memory() as m:
        kept = bytes(100000)
print(m.net >= 100000)
"""
    assert run(default_python, text).stdout == "True\n"


def test_a_child_leaves_by_its_parents_door(default_python):
    """A forked child that unwinds through the block does not end it for its parent."""
    text = """
with pyrometer.memory() as m:
    pid = os.fork()
    if not pid:
        sys.exit(7)
    assert os.waitpid(pid, 0)[1] >> 8 == 7
    kept = [bytes(1000) for i in range(2000)]
print(m.net >= 2000 * 1033)
"""
    assert run(default_python, text).stdout == "True\n"


def test_children_do_not_count(python):
    """Neither those that Python knows of nor those that C code forks."""
    text = """
import ctypes
results = []
for fork in (os.fork, ctypes.PyDLL(None).fork):
    with pyrometer.memory() as m:
        kept = bytes(100000)
        pid = fork()
        if not pid:
            more = bytes(5000000)
            os._exit(0)
        os.waitpid(pid, 0)
    results.append([m.peak, m.net, m.allocated, m.top[0].self, m.top_at_peak[0].self])
    assert len({r.line for r in m.top if r.self > 50000}) == 1
print(json.dumps(results))
"""
    results = json.loads(run(python, text).stdout)
    assert len(results) == 2 and all(100033 <= number <= 110000 for numbers in results for number in numbers), results


def test_a_pool_does_not_count(default_python):
    text = """
import multiprocessing.pool
def work(n):
    return len(bytes(50000000))
with pyrometer.memory() as m:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(work, range(4)) == [50000000] * 4)
print(m.peak < 50000000, m.allocated < 50000000)
"""
    assert run(default_python, text).stdout.split() == ["True", "True", "True"]


def test_a_child_has_blocks_of_its_own(python):
    """While another thread of its parent, which it has not, is inside of one."""
    text = """
begun, forked = threading.Event(), threading.Event()
def other():
    try:
        with pyrometer.memory() as m:
            kept = bytes(100000)
            begun.set()
            forked.wait()
    finally:
        begun.set()  # nobody waits for a block that could not begin
    numbers.append(m.top[0].self)  # the main thread counts, too, with the warning of its fork
numbers = []
thread = threading.Thread(target=other)
thread.start()
begun.wait()
pid = os.fork()
if not pid:
    for turn in range(2):
        with pyrometer.memory() as m:
            kept = bytes(200000)
        assert 200033 <= m.net <= 210000, m.net
        del kept
    os._exit(0)
status = os.waitpid(pid, 0)[1]
forked.set()
thread.join()
print(status, 100033 <= numbers[0] <= 110000)
"""
    assert run(python, text).stdout == "0 True\n"


def test_a_childs_block_inside_of_its_parents(python):
    """The end of the parent's block does not end it, nor does it let another one begin."""
    text = """
m = pyrometer.memory()
m.__enter__()
pid = os.fork()
if not pid:
    own, another = pyrometer.memory(), pyrometer.memory()
    own.__enter__()
    kept = bytes(200000)
    m.__exit__(None, None, None)
    more = bytes(100000)
    try:
        another.__enter__()
    except pyrometer.PyrometerError as error:
        assert "another block" in str(error)
    else:
        assert False, "two at a time"
    own.__exit__(None, None, None)
    assert 300066 <= own.net <= 310000 and m.net is None
    with another:
        kept = bytes(200000)
    assert 200033 <= another.net <= 210000
    os._exit(0)
status = os.waitpid(pid, 0)[1]
kept = bytes(100000)
m.__exit__(None, None, None)
print(status, 100033 <= m.net <= 110000)
"""
    assert run(python, text).stdout == "0 True\n"


def test_a_block_ends_once(default_python):
    text = """
def end(m):
    try:
        m.__exit__(None, None, None)
    except pyrometer.PyrometerError as error:
        print(error)
end(pyrometer.memory())
with pyrometer.memory() as m:
    kept = bytes(100000)
end(m)
with pyrometer.memory() as again:
    end(m)
    kept = bytes(200000)
print(100033 <= m.net <= 110000, 200033 <= again.net <= 210000)
"""
    says = "this block of pyrometer.memory() cannot end: "
    assert run(default_python, text).stdout.splitlines() == [says + "it was not begun", says + "it has ended already",
                                                             says + "it has ended already", "True True"]


def test_a_block_may_go_elsewhere(default_python, tmp_path):
    """To another directory and another environment: the recording and the binary are those of its beginning."""
    (tmp_path / "elsewhere").mkdir()
    text = """
os.environ["PYROMETER_BINARY"] = os.path.relpath(os.environ["PYROMETER_BINARY"])
for keep in ("kept.pyro", "@kept.pyro", "-kept.pyro", None):
    environment = dict(os.environ)
    with pyrometer.memory(keep=keep) as m:
        kept = bytes(100000)
        os.chdir("elsewhere")
        os.environ.clear()
        os.environ["PYROMETER_BINARY"] = "/nowhere/pyrometer"
    os.chdir("..")
    os.environ.update(environment)
    print(m.net >= 100033, keep is None or os.path.isfile(keep))
"""
    assert run(default_python, text).stdout == "True True\n" * 4
    assert not list((tmp_path / "elsewhere").iterdir())


def test_ctrl_c_is_for_the_program(default_python):
    text = """
import signal
def on_signal(*_): pass
signal.signal(signal.SIGINT, on_signal)
os.setpgid(0, 0)
with pyrometer.memory() as m:
    os.killpg(0, signal.SIGINT)
    kept = [bytes(1000) for i in range(2000)]
print(m.net >= 2000 * 1033)
"""
    assert run(default_python, text).stdout == "True\n"


def test_recorder_ended_too_early(default_python):
    text = """
import signal
try:
    with pyrometer.memory() as m:
        m._recorder.kill()
        m._recorder.wait()
except pyrometer.PyrometerError as error:
    print(error, m.net)
"""
    out = run(default_python, text).stdout
    assert "not watched to the end" in out and out.endswith("None\n")

"""Bad days with `run --memory`: no memory left, kills, crashes in malloc, allocators that are not libc's, storms.

After each: the program has printed and ended as it does without us, the report opens, and what was counted is right.
"""
import collections
import glob
import json
import math
import os
import random
import signal
import subprocess
import time
import uuid

import pytest

import harness
from harness import FILE_HEADER, PYROMETER, Recording, can_be_saved, pyrometer, wait_until

pytest.importorskip("xxhash")
pytest.importorskip("zstandard")
import memory_oracle as oracle  # noqa: E402  (its decoder needs both)
from memory_oracle import Memory, alive, check_program, check_sums, program, sizes_of  # noqa: E402

MODES = ["heap", "objects"]
ALL_MODES = MODES + [pytest.param("sampled", marks=pytest.mark.long_only)]


def pytest_generate_tests(metafunc):
    """What runs on every CPython takes the mode that watches most, and both only in the long tier."""
    if metafunc.function.__name__ in ("test_crowd", "test_storm_of_signals"):
        metafunc.parametrize("mode", MODES if metafunc.config.getoption("--tier") == "long" else ["objects"])


def bare(command, **kwargs):
    """stdout, stderr and the status as a shell tells it, without us."""
    done = subprocess.run([str(a) for a in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="surrogateescape", timeout=harness.HANG, **kwargs)
    return done.stdout, done.stderr, done.returncode if done.returncode >= 0 else 128 - done.returncode


def same(command, path, mode, *options, plain=lambda text: text, **kwargs):
    """The command with us, after it without: the same output and the same end. What differs in every run, `plain` takes out."""
    out, err, status = bare(command, **kwargs)
    done = pyrometer("run", "--quiet", "-o", path, "--memory=" + mode, *options, "--", *command, **kwargs)
    assert (plain(done.stdout), plain(done.stderr), done.returncode) == (plain(out), plain(err), status)
    recording = Recording(path, done)
    recording.verify()
    return recording


def opens(recording):
    """The report of it, for whatever there is in it."""
    report = recording.report("--metric", "peak", "--by", "line")
    assert report["total"] == sum(r["self"] for r in report["rows"]) > 0
    memory = Memory(recording.path)
    check_sums(memory)
    return memory


INTERVAL = 128 << 10  # bytes of which sampling tells one


def near(sums, sizes):
    """An estimate that is off by five times what the dice do to blocks of these sizes is wrong, and no bad luck. Where hardly one is
    drawn, the dice know no sigma: three more than that happen once in a million."""
    chances = {n: -math.expm1(-n / INTERVAL) for n in set(sizes)}
    sigma = sum(n * n * (1 - chances[n]) / chances[n] for n in sizes) ** 0.5
    assert abs(sums["bytes"] - sum(sizes)) <= 5 * sigma + 3 * INTERVAL, (sums, sum(sizes), sigma)


def line_of(text, mark):
    """The number of the line of a program that has this in it."""
    return [n for n, line in enumerate(text.splitlines(), 1) if mark in line][0]


def script(folder, text):
    path = folder / "bad.py"
    path.write_text(text)
    return str(path)


def of_line(memory, text, mark, allocator="malloc", **kwargs):
    return memory.of_line("/bad.py", line_of(text, mark), **kwargs)[allocator]


# --- no memory left ---


EXHAUSTED = """
import resource, sys
from truth import malloc
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (256 << 20),) * 2)
for name, action in (("bytearray", lambda: bytearray(1 << 30)), ("list", lambda: [0] * (1 << 28)), ("text", lambda: "x" * (1 << 30))):
    try:
        action()
    except MemoryError:
        print(name, "MemoryError")
held = []
while True:
    p = malloc(8 << 20)  # here
    if p is None:
        break
    held.append(p)
print("full", 10 <= len(held) <= 32)
try:
    held = [bytes(1 << 20) for _ in range(1000)]
except MemoryError:
    print("MemoryError again")
raise SystemExit(5)
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
def test_out_of_memory(python, mode, truth_env, tmp_path):
    """A limit on the address space, reached: MemoryError as without us, and nothing is counted that was not given."""
    recording = same([python.path, script(tmp_path, EXHAUSTED)], tmp_path / "x.pyro", mode, env=truth_env)
    assert recording.done.stdout.splitlines() == ["bytearray MemoryError", "list MemoryError", "text MemoryError", "full True",
                                                  "MemoryError again"]
    assert recording.done.returncode == 5
    sums = of_line(opens(recording), EXHAUSTED, "# here")
    assert sums["bytes"] == sums["count"] * (8 << 20) and 10 <= sums["count"] <= 32


@pytest.mark.parametrize("room", [8, 64], ids="{}MB".format)
def test_no_room_for_us(default_python, room, truth_env, tmp_path):
    """A limit so tight that there is room for the program, but none for rings: the program must not be the one that lacks it."""
    text = "import threading\nx = [bytes(100) for _ in range(1000)]\nprint(len(x), open('/proc/self/status').read().split('VmPeak:')[1].split()[0])\n"
    path = script(tmp_path, text)
    needs = int(bare([default_python.path, path], env=truth_env)[0].split()[1]) + room * 1024
    command = ["sh", "-c", "ulimit -v %d; exec '%s' '%s'" % (needs, default_python.path, path)]
    same(command, tmp_path / "x.pyro", "objects", env=truth_env, plain=lambda text: text.split()[:1])


KILLED = """
import os, sys
from truth import malloc, free, brief
def fill():
    return [malloc(1 << 20) for _ in range(50)]  # here
held = fill()
brief(1000, 300)  # there
print("now", flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
@pytest.mark.strict
def test_killed(python, mode, truth_env, tmp_path):
    """SIGKILL in the midst of it: what was told before is in the file, to the byte."""
    recording = same([python.path, script(tmp_path, KILLED)], tmp_path / "x.pyro", mode, env=truth_env)
    assert recording.done.returncode == 128 + 9
    memory = opens(recording)
    assert of_line(memory, KILLED, "# here")["bytes"] == 50 << 20
    assert of_line(memory, KILLED, "# here")["peak_bytes"] == 50 << 20
    assert (of_line(memory, KILLED, "# there")["count"], alive(of_line(memory, KILLED, "# there"))) == (1000, (0, 0))


@pytest.fixture
def cgroup():
    """A memory control group of 64 MB, for whoever writes his pid into it: the path of its cgroup.procs."""
    name = "pyrometer-test-" + uuid.uuid4().hex[:8]
    for base, limit, swap in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
                              ("/sys/fs/cgroup", "memory.max", "memory.swap.max")):
        folder = os.path.join(base, name)
        try:
            os.mkdir(folder)
            with open(os.path.join(folder, limit), "w") as f:
                f.write(str(64 << 20))
        except OSError:
            if os.path.isdir(folder):
                os.rmdir(folder)
            continue
        try:
            with open(os.path.join(folder, swap), "w") as f:
                f.write(str(64 << 20) if "memsw" in swap else "0")
        except OSError:
            pass
        yield os.path.join(folder, "cgroup.procs")

        def gone():
            try:
                os.rmdir(folder)
                return True
            except OSError:
                return False
        wait_until(gone, "the end of the control group")
        return
    pytest.skip("no control groups can be made here")


GREEDY = """
import ctypes, sys
from truth import malloc
print("begins", flush=True)
while True:
    p = malloc(1 << 20)  # here
    ctypes.memset(p, 1, 1 << 20)
"""


@pytest.mark.long
def test_killed_by_the_kernel(default_python, truth_env, cgroup, tmp_path):
    """The OOM killer of a control group: what it had when it died is told."""
    command = ["sh", "-c", "echo $$ >%s; exec %s %s" % (cgroup, default_python.path, script(tmp_path, GREEDY))]
    recording = same(command, tmp_path / "x.pyro", "heap", env=truth_env)
    assert recording.done.returncode == 128 + 9
    sums = of_line(opens(recording), GREEDY, "# here")
    assert (20 << 20) <= sums["bytes"] <= (80 << 20) and sums["peak_bytes"] == sums["bytes"]


# --- crashes in malloc ---


CRASHES = {
    "double_free": ("p = malloc(100)\nfree(p)\nfree(p)\n", signal.SIGABRT),
    "wild_pointer": ("p = malloc(5000)\nfree(p + 8)\n", signal.SIGABRT),
    "no_pointer": ("free(0x1000)\n", signal.SIGSEGV),
    "smashed_header": ("p = malloc(2000)\nctypes.memset(p - 8, 0x41, 8)\nfree(p)\n", signal.SIGABRT),
    "smashed_realloc": ("p = malloc(5000)\nctypes.memset(p - 8, 0x41, 8)\nrealloc(p, 9000)\n", signal.SIGABRT),
    "abort": ("os.abort()\n", signal.SIGABRT),
    "fatal": ("ctypes.string_at(0)\n", signal.SIGSEGV),
}


@pytest.mark.parametrize("crash", sorted(CRASHES))
@pytest.mark.strict
def test_crash(default_python, crash, truth_env, tmp_path):
    """The same signal, and glibc's own words; what came before is in the report."""
    body, number = CRASHES[crash]
    text = ("import ctypes, os\nfrom truth import brief, free, malloc, realloc\nkept = malloc(12345)  # kept\nbrief(100, 64)  # brief\n"
            "print('now', flush=True)\n" + body + "print('never')\n")
    recording = same([default_python.path, script(tmp_path, text)], tmp_path / "x.pyro", "heap", env=truth_env)
    assert recording.done.returncode == 128 + number and recording.done.stdout == "now\n"
    memory = opens(recording)
    assert alive(of_line(memory, text, "# kept")) == (1, 12345)
    assert of_line(memory, text, "# brief")["count"] == 100


ENDS = """
import os, threading
from truth import brief, malloc
def end():
    print("now", flush=True)
    os._exit(7)
def churn():
    while True:
        brief(1000, 100)  # churn
kept = malloc(54321)  # kept
for _ in range(3):
    threading.Thread(target=churn, daemon=True).start()
brief(100000, 32)  # brief
threading.Thread(target=end).start()
churn()
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
@pytest.mark.strict
def test_ends_inside_an_allocation(python, mode, truth_env, tmp_path):
    """os._exit() by one thread while four others are in malloc."""
    recording = same([python.path, script(tmp_path, ENDS)], tmp_path / "x.pyro", mode, env=truth_env)
    assert recording.done.returncode == 7
    memory = opens(recording)
    assert alive(of_line(memory, ENDS, "# kept")) == (1, 54321)
    assert of_line(memory, ENDS, "# brief")["count"] == 100000
    churn = of_line(memory, ENDS, "# churn")
    assert churn["count"] - churn["freed"] <= 4 and churn["bytes"] == 100 * churn["count"]


# --- other allocators ---


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
@pytest.mark.strict
def test_allocators_replaced_at_run_time(python, mode, truth_env, tmp_path):
    """PyMem_SetAllocator, by the program: above what is there, and taken away again. Nothing is counted twice or not at all."""
    text = ("import truthmodule, pymem, truth, os\nkept = truth.reserve()\ntruthmodule.replace(0)\npymem.main()\ntruthmodule.restore(0)\n"
            "x = [bytes(n) for n in range(1000)]\ndel x\nprint('well', flush=True)\nos._exit(0)\n")
    recording = same([python.path, script(tmp_path, text)], tmp_path / "x.pyro", mode, env=truth_env)
    check_program(opens(recording), program("pymem"), mode)


POOLS = """
import os, sys
import truthmodule as m
for _ in range(int(sys.argv[1])):
    m.mem_malloc(440)  # small
    m.mem_keep(0)
os._exit(0)
"""


@pytest.mark.strict
def test_tables_of_the_pools(python, truth_env, tmp_path):
    """Small blocks for which Python needs many new arenas: the tables in which it keeps those are asked for in the raw domain, inside of a
    request for a block, and are not the program's. The first table was there before that domain was watched, and counts until it is
    given back for a larger one."""
    few, memory = (opens(same([python.path, script(tmp_path, POOLS), str(count)], tmp_path / ("%d.pyro" % count), "objects", env=truth_env))
                   for count in (1000, 50000))
    small = {a: (s["count"], s["bytes"]) for a, s in memory.of_line("/bad.py", line_of(POOLS, "# small")).items() if s["count"]}
    assert small.pop("mem") == (50000, 50000 * 440)
    assert set(small) <= {"object"}  # numbers
    left = [sum((alive(s)[1] for s in m.without_python("realloc").values())) for m in (few, memory)]
    assert left[0] - left[1] == 16 * 48


@pytest.mark.strict
def test_allocators_replaced_before_us(python, truth_env, tmp_path):
    """An allocator that is not Python's own, there when we come: what it takes from libc for a block is not counted beside the block,
    however small that is."""
    if python.name.endswith("-sid"):
        pytest.skip("started by a loader of its own it is taken for a program that embeds Python, where we come before site")
    (tmp_path / "sitecustomize.py").write_text("import truthmodule\ntruthmodule.keep_books(0)\n")
    env = dict(truth_env, PYTHONPATH="%s:%s" % (tmp_path, truth_env["PYTHONPATH"]))
    text = "import pymem, truth, os\nkept = truth.reserve()\npymem.main()\nprint('well', flush=True)\nos._exit(0)\n"
    recording = same([python.path, script(tmp_path, text)], tmp_path / "x.pyro", "objects", env=env)
    check_program(opens(recording), program("pymem"), "objects")


@pytest.mark.parametrize("mode", ["objects", "sampled"])
def test_set_aside(python, mode, truth_env, tmp_path):
    """tracemalloc that ran before us, stopped by the program: it puts back what it had found, and with it goes what we had put
    above. That is told; not so if it runs to the end, where the interpreter stops it."""
    for stop in (True, False):
        text = "import tracemalloc\nx = [bytes(n) for n in range(1000)]\n" + "tracemalloc.stop()\n" * stop + "x = [bytes(n) for n in range(1000)]\n"
        recording = same([python.path, script(tmp_path, text)], tmp_path / ("%d.pyro" % stop), mode, env=dict(truth_env, PYTHONTRACEMALLOC="1"))
        assert recording.stats()["agents_unhooked"] == stop
        assert ("hooks could not be set, or were taken out" in pyrometer("memory", "summary", recording.path, check=0).stdout) == stop


@pytest.mark.parametrize("mode", ["objects"])
def test_own_malloc_loaded_late(default_python, mode, truth_env, tmp_path):
    """A library with a malloc of its own, loaded at run time: its blocks are not ours to count, and it does not notice us."""
    text = ("import ctypes, os\nown = ctypes.CDLL(os.environ['TRUTH_OWN'], mode=os.RTLD_NOW | getattr(os, 'RTLD_DEEPBIND', 8))\n"
            "own.own_block.restype = ctypes.c_void_p\nown.own_calls.restype = ctypes.c_size_t\n"
            "before = own.own_calls()\nfor n in range(100):\n    assert own.own_block(n)\nprint(own.own_calls() - before)\n")
    recording = same([default_python.path, script(tmp_path, text)], tmp_path / "x.pyro", mode, env=truth_env)
    assert recording.done.stdout == "100\n"
    opens(recording)


ASKED = """
import ctypes, os, sys
own = ctypes.CDLL(os.environ["LD_PRELOAD"].split(":")[-1])
own.own_calls.restype = own.own_bytes.restype = ctypes.c_size_t
def work():
    kept = [bytes(n) for n in range(2000)], [{n: str(n)} for n in range(500)], [[n] * n for n in range(100)]
work()
calls, size = own.own_calls(), own.own_bytes()
work()
print(own.own_calls() - calls, own.own_bytes() - size)
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.strict
def test_nothing_is_added_to_a_block(default_python, mode, truth_env, tmp_path):
    """The malloc below us is asked as often as without us, and for the same sizes: there is no header, and nothing of ours. Each
    Python object is a call of it here."""
    if "PYROMETER_SANITIZED" in os.environ:
        pytest.skip("a sanitized recorder will have nobody preloaded before its own runtime")
    env = dict(truth_env, LD_PRELOAD=truth_env["TRUTH_OWN"], PYTHONMALLOC="malloc")
    recording = same([default_python.path, script(tmp_path, ASKED)], tmp_path / "x.pyro", mode, env=env)
    calls, size = (int(n) for n in recording.done.stdout.split())
    assert calls > 3000 and size > 2000 * 1000


UNTOUCHED = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.malloc_usable_size.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
print([libc.malloc_usable_size(libc.malloc(n)) for n in (0, 1, 24, 25, 100, 1000, 5000, 200000)])
print(sys.getprofile(), sys.gettrace())
if hasattr(sys, "monitoring"):
    print([(sys.monitoring.get_tool(i), sys.monitoring.get_events(i)) for i in range(6) if sys.monitoring.get_tool(i)])
"""


@pytest.mark.parametrize("mode", [*MODES, "sampled"])
@pytest.mark.strict
def test_nothing_is_hooked_between_allocations(default_python, mode, truth_env, tmp_path):
    """Blocks have the room that they have without us, and the interpreter tells nobody of calls or lines."""
    recording = same([default_python.path, script(tmp_path, UNTOUCHED)], tmp_path / "x.pyro", mode, env=truth_env)
    assert recording.done.stdout.splitlines()[1:] == ["None None", "[]"][:1 + (default_python.version >= (3, 12))]


PLAIN_PROGRAMS = ["generators", "threads", "polymorphic", "exceptions", "recursion", "pymem"]


def find_library(name):
    found = sorted(glob.glob("/usr/lib/*/%s.so.*" % name) + glob.glob("/usr/lib*/%s.so.*" % name))
    return found[0] if found else pytest.skip("no %s: apt-get install libjemalloc2 libtcmalloc-minimal4" % name)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["libjemalloc", "libtcmalloc_minimal", "own_malloc"])
@pytest.mark.strict
def test_preloaded_allocator(default_python, name, mode, truth_env, tmp_path):
    """Somebody else's malloc, preloaded: it is used as without us, and what it takes from the system inside is not counted too."""
    if "PYROMETER_SANITIZED" in os.environ:
        pytest.skip("a sanitized recorder will have nobody preloaded before its own runtime")
    library = truth_env["TRUTH_OWN"] if name == "own_malloc" else find_library(name)
    truth_env = dict(truth_env, LD_PRELOAD=library)
    text = ("import all_but_the_end\nimport re\nprint(sorted(set(re.findall('(?:jemalloc|tcmalloc|own_malloc)', open('/proc/self/maps').read()))),"
            " flush=True)\nimport os\nos._exit(0)\n")
    (tmp_path / "all_but_the_end.py").write_text(
        "import truth, %s\nkept = truth.reserve()\n%s\n" % (", ".join(PLAIN_PROGRAMS), "\n".join(p + ".main()" for p in PLAIN_PROGRAMS)))
    recording = same([default_python.path, script(tmp_path, text)], tmp_path / "x.pyro", mode, env=truth_env)
    assert name.replace("lib", "").replace("_minimal", "") in recording.done.stdout
    memory = opens(recording)
    for one in PLAIN_PROGRAMS:
        if one != "pymem" or mode == "objects":
            check_program(memory, program(one), mode)
    own_new = name != "own_malloc"  # of C++, which need not come by malloc: it is told
    assert recording.stats()["own_new"] == own_new
    words = pyrometer("memory", "summary", recording.path, check=0).stdout
    assert ("1 process whose allocator (%s) has a C++ new" % os.path.basename(library) in words) == own_new, words
    assert recording.info()["meta"]["memory.allocator"] == os.path.basename(library)


EARLY = """
import ctypes, os
from truth import brief, malloc
kept = malloc(12345)  # kept
brief(100, 64)  # brief
for _ in range(100):
    os.getppid()  # own
for _ in range(20):
    try:
        ctypes.CDLL(None).there_is_none
    except AttributeError:
        pass
print(ctypes.CDLL(os.environ["TRUTH_EARLY"]).early_end(), flush=True)
os._exit(0)
"""


@pytest.mark.strict
@pytest.mark.parametrize("mode", ["heap", "objects", "sampled"])
@pytest.mark.long
def test_allocations_before_we_are_ready(python, mode, truth_env, tmp_path):
    """By a library's constructor before ours, inside the dlsym by which we look for libc's malloc, on its error path, and in a function
    that we call ourselves: every block is as it was left, can be given back, and what comes later is counted."""
    if "PYROMETER_SANITIZED" in os.environ:
        pytest.skip("a sanitized recorder will have nobody preloaded before its own runtime")
    recording = same([python.path, script(tmp_path, EARLY)], tmp_path / "x.pyro", mode, env=dict(truth_env, LD_PRELOAD=truth_env["TRUTH_EARLY"]))
    assert recording.done.stdout == "0\n"
    if mode == "sampled":  # estimates, whose sum is rounded
        assert recording.report("--metric", "peak", "--by", "line")["total"] > 0
        return
    memory = opens(recording)
    assert alive(of_line(memory, EARLY, "# kept")) == (1, 12345)
    assert of_line(memory, EARLY, "# brief")["count"] == 100
    assert alive(of_line(memory, EARLY, "# own")) == (100, 77700)


def kinds_of(python):
    kinds = ["malloc", "malloc_debug", "debug", "pymalloc", "pymalloc_debug"]
    return kinds + ["mimalloc", "mimalloc_debug"] if python.version >= (3, 13) else kinds


@pytest.mark.long
@pytest.mark.strict
@pytest.mark.once
def test_pythonmalloc(python, truth_env, tmp_path):
    """PYTHONMALLOC of every kind: what Python asks its domains for is the same, whoever gives it."""
    names = ["pymem", "pyobjects", "generators", "threads"]
    tried = 0
    for kind in kinds_of(python):
        env = dict(truth_env, PYTHONMALLOC=kind)
        if bare([python.path, "-c", ""], env=env)[2]:
            assert "mimalloc" in kind  # a build may come without it
            continue
        memory = opens(same([python.path, program("all"), *names], tmp_path / (kind + ".pyro"), "objects", env=env))
        for one in names:
            check_program(memory, program(one), "objects", **sizes_of(python))
        if kind in ("malloc", "debug"):
            opens(same([python.path, program("all"), "blocks", "polymorphic"], tmp_path / (kind + "-heap.pyro"), "heap", env=env))
        tried += 1
    assert tried >= 5


# --- children ---


CHILD = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
library.truth_malloc.restype = ctypes.c_void_p
library.truth_malloc.argtypes = [ctypes.c_size_t]
kept = library.truth_malloc(int(sys.argv[2]))  # here
sys.stdout.write(sys.argv[2] + "\\n")
sys.stdout.flush()
os._exit(0)
"""
FAMILY = """
import multiprocessing, os, subprocess, sys
child, library = sys.argv[1:]
def command(n):
    return [sys.executable, child, library, str(n)]
def waited(pid):
    assert os.waitpid(pid, 0)[1] == 0
def in_fork(n):
    pid = os.fork()
    if not pid:
        os.execve(sys.executable, command(n), {})
    waited(pid)
if __name__ == "__main__":
    subprocess.run(command(100001), check=True)
    subprocess.run(command(100002), check=True, env={})
    subprocess.run(" ".join(command(100003)), check=True, shell=True, env={})
    subprocess.run(["/usr/bin/env", "-i", *command(100004)], check=True)
    assert os.spawnve(os.P_WAIT, sys.executable, command(100005), {}) == 0
    waited(os.posix_spawn(sys.executable, command(100006), {}))
    in_fork(100007)
    assert os.system("exec env -i " + " ".join(command(100008))) == 0
    subprocess.Popen(command(100009), env={"LD_PRELOAD": ""}, start_new_session=True, close_fds=True).wait()
    process = multiprocessing.get_context("fork").Process(target=in_fork, args=(100010,))
    process.start()
    process.join()
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
@pytest.mark.strict
def test_children(python, mode, truth_env, tmp_path):
    """However a child is made, and with whatever environment: its allocation is in the report, in a process of its own."""
    (tmp_path / "bad.py").write_text(CHILD)
    (tmp_path / "family.py").write_text(FAMILY)
    command = [python.path, tmp_path / "family.py", tmp_path / "bad.py", truth_env["TRUTH_LIBRARY"]]
    recording = same(command, tmp_path / "x.pyro", mode, env=truth_env)
    memory = opens(recording)
    found = collections.Counter()
    for process in memory.last:
        sums = of_line(memory, CHILD, "# here", pid=memory.pid(process))
        if sums["count"]:
            assert alive(sums) == (sums["count"], sums["bytes"])
            found[sums["bytes"], sums["count"]] += 1
    assert found == {(n, 1): 1 for n in range(100001, 100011)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
@pytest.mark.strict
def test_a_hundred_children(python, mode, truth_env, tmp_path):
    recording = same([python.path, program("forks")], tmp_path / "x.pyro", mode, env=truth_env, plain=lambda text: len(text.split()))
    memory = opens(recording)
    check_program(memory, program("forks"), mode, peaks=True, COUNT=100)
    pids = [int(pid) for pid in recording.done.stdout.split()]
    assert {memory.pid(p) for p in memory.last} == set(pids)
    for n, pid in enumerate(pids[1:]):
        sums = memory.of_function("child", pid=pid)
        assert (sums["bytes"], *alive(sums)) == (1010 + 2 * n, 1, 10 + n)


FORKS_AMONG_THREADS = """
import os, threading
from truth import churn, churn_end, malloc
def work(seed):
    churn(20000, seed)  # churn
threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads:
    t.start()
for n in range(20):
    pid = os.fork()
    if not pid:
        kept = malloc(1000 + n)  # child
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
for t in threads:
    t.join()
churn_end()
print("well", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.long
@pytest.mark.strict
def test_forks_while_threads_allocate(python, mode, truth_env, tmp_path):
    recording = same([python.path, "-W", "ignore", script(tmp_path, FORKS_AMONG_THREADS)], tmp_path / "x.pyro", mode, env=truth_env)
    memory = opens(recording)
    child = of_line(memory, FORKS_AMONG_THREADS, "# child")
    assert (child["count"], child["bytes"]) == (20, sum(range(1000, 1020)))
    parent = next(memory.pid(p) for p in memory.last if of_line(memory, FORKS_AMONG_THREADS, "# churn", pid=memory.pid(p))["count"])
    churn = of_line(memory, FORKS_AMONG_THREADS, "# churn", pid=parent)
    assert churn["count"] == 60000 and alive(churn) == (0, 0)


# --- not Python ---


STATIC = """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    void *volatile block = malloc(1000);
    free(block);
    puts("static");
    return 3;
}
"""


@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize("what", ["ls", "sh", "static", "missing"])
@pytest.mark.strict
def test_not_python(what, mode, tmp_path):
    """Programs that are no Python run untouched."""
    (tmp_path / "folder" / "empty").mkdir(parents=True)
    command = {"ls": ["ls", "-lR", str(tmp_path / "folder")], "sh": ["sh", "-c", "echo x; exit 4"], "missing": [str(tmp_path / "none")]}.get(what)
    if what == "static":
        source, command = tmp_path / "static.c", [str(tmp_path / "static")]
        source.write_text(STATIC)
        if subprocess.run(["cc", "-static", source, "-o", command[0]], stderr=subprocess.DEVNULL).returncode:
            pytest.skip("no static libc")
    if what == "missing":
        assert pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", "--memory=" + mode, "--", *command).returncode == 127
        return
    same(command, tmp_path / "x.pyro", mode)


# --- the recorder dies, or does not listen ---


LONELY = """
import os, sys, threading
from truth import brief, churn, churn_end, free, malloc
def work(seed):
    while not os.path.exists(sys.argv[1]):
        churn(1000, seed)
        free(malloc(100000))
        x = [bytes(n) for n in range(600)]
threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for t in threads:
    t.start()
print("ready", flush=True)
for t in threads:
    t.join()
churn_end()
print("done", flush=True)
"""


@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.long
@pytest.mark.strict
def test_recorder_killed(python, mode, truth_env, tmp_path):
    """The program goes on, unharmed; what was written can be read."""
    stop, path = tmp_path / "stop", tmp_path / "x.pyro"
    process = subprocess.Popen([PYROMETER, "run", "--quiet", "--memory=" + mode, "-o", str(path), "--", python.path,
                                script(tmp_path, LONELY), str(stop)], env=truth_env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               encoding="utf-8")
    assert process.stdout.readline() == "ready\n"
    wait_until(lambda: os.path.getsize(path) > FILE_HEADER, "a part of the recording")
    process.kill()
    process.wait()
    stop.touch()
    assert process.stdout.read() == "done\n"
    assert can_be_saved(path, "--metric", "allocated")


@pytest.mark.strict
@pytest.mark.long
def test_recorder_killed_at_any_moment(python, truth_env, tmp_path, scale):
    """Before there is a file, while the interpreter starts, in the midst of it."""
    stop, running = tmp_path / "stop", []
    for i in range(scale(4, 100)):
        path = tmp_path / ("%d.pyro" % i)
        mode = [*MODES, "sampled"][i % 3]
        running.append((path, subprocess.Popen([PYROMETER, "run", "--quiet", "--memory=" + mode, "-o", str(path), "--", python.path,
                                                script(tmp_path, LONELY), str(stop)], env=truth_env, stdout=subprocess.PIPE,
                                               stdin=subprocess.DEVNULL, encoding="utf-8")))
        time.sleep(random.uniform(0, 0.1))
        running[random.randrange(len(running))][1].kill()
    stop.touch()
    for path, process in running:
        process.kill()
        assert process.stdout.read() in ("", "ready\ndone\n")
        process.wait()
        can_be_saved(path, "--metric", "allocated")


STEADY = """
import os, sys, time
from truth import malloc
n = 0
while not os.path.exists(sys.argv[1]):
    kept = malloc(1000)  # here
    n += 1
    print(n, time.monotonic(), flush=True)
    time.sleep(0.01)
"""


@pytest.mark.long_only
def test_a_killed_recorder_loses_a_second(default_python, truth_env, tmp_path):
    """What the program had asked for more than a second before is in the file, as docs/memory.md says, whenever somebody looks: what the
    file has is what it would have if the recorder were killed then, and at last it is. A fifth of a second is for the machine."""
    path, out, stop = tmp_path / "x.pyro", tmp_path / "out", tmp_path / "stop"
    with open(out, "w") as f:
        process = subprocess.Popen([PYROMETER, "run", "--quiet", "--memory=heap", "-o", str(path), "--", default_python.path,
                                    script(tmp_path, STEADY), str(stop)], env=truth_env, stdout=f, stdin=subprocess.DEVNULL)

    def behind():
        now = time.monotonic()
        said = [line.split() for line in out.read_text().rpartition("\n")[0].splitlines()]  # whole ones
        counted = of_line(Memory(str(path)), STEADY, "# here")["count"]
        return max([now - float(moment) for n, moment in said if int(n) > counted], default=0)

    wait_until(lambda: out.read_text().count("\n") > 100, "a second of the program")
    found, end = [], time.monotonic() + 8
    while time.monotonic() < end:
        found.append(behind())
        time.sleep(0.03)
    process.kill()
    process.wait()
    found.append(behind())
    stop.touch()
    assert max(found) <= 1.2 and max(found) > 0.5, sorted(found)[-5:]


@pytest.mark.long
def test_recorder_stopped(default_python, truth_env, tmp_path):
    """A recorder that does not listen is waited for, up to a bound: then it is told how much is missing, by every report."""
    text = ("import os, signal\nfrom truth import brief, malloc\nrecorder = int(os.environ['PYROMETER_ACTIVE'])\n"
            "os.kill(recorder, signal.SIGSTOP)\nbrief(3000000, 50)  # brief\nos.kill(recorder, signal.SIGCONT)\nkept = malloc(99999)  # kept\n"
            "print('well', flush=True)\nos._exit(0)\n")
    recording = oracle.record_memory([default_python.path, script(tmp_path, text)], tmp_path / "x.pyro", "heap", env=truth_env)
    assert recording.stdout == "well\n"
    memory = Memory(recording.path)
    brief, stats = of_line(memory, text, "# brief"), recording.stats()
    lost, missing = stats["events_lost"], 3000000 - brief["count"]
    # a ring is far too small for them all. Of each block that was not counted both events are in the count of losses, but one at the
    # edge; and a few more, of what the interpreter does until there is room again
    assert missing > 0 and -1 <= lost - 2 * missing <= 5000, (brief, stats)
    assert brief["bytes"] == 50 * brief["count"] and 0 <= brief["count"] - brief["freed"] <= 1
    assert stats["events"] >= brief["count"] + brief["freed"]
    check_sums(memory)
    for command in (["report"], ["memory", "summary"], ["memory", "stats"], ["memory", "plot"]):
        words = pyrometer(*command, recording.path, check=0).stdout
        assert ("lost: {:,} event".format(lost) in words) == (lost > 0), words
        assert json.loads(pyrometer(*command, recording.path, "--json", check=0).stdout)["losses"]["events_lost"] == lost


# --- many threads, many signals ---


CROWD = """
import os, threading
from truth import array, churn, churn_end, empty, fill, free, malloc
def work(n, ready):
    ready.wait()
    blocks = array(100)
    fill(blocks, 100, 1000 + n)  # fill
    churn(1000, n)  # churn
    empty(blocks, 90)
    for _ in range(50):
        free(malloc(n + 1))  # single
ready = threading.Barrier(64)
threads = [threading.Thread(target=work, args=(n, ready)) for n in range(64)]
for t in threads:
    t.start()
for t in threads:
    t.join()
churn_end()
def short(n):
    return malloc(n)  # short
for n in range(300):
    t = threading.Thread(target=short, args=(n,))
    t.start()
    t.join()
print("well", flush=True)
os._exit(0)
"""


@pytest.mark.strict
def test_crowd(python, mode, truth_env, tmp_path):
    """64 threads at once, and 300 one after the other: all is counted, each block with its own."""
    memory = opens(same([python.path, script(tmp_path, CROWD)], tmp_path / "x.pyro", mode, env=truth_env))
    fill = of_line(memory, CROWD, "# fill")
    assert (fill["count"], fill["bytes"]) == (6400, sum(100 * (1000 + n) for n in range(64)))
    assert alive(fill) == (640, sum(10 * (1000 + n) for n in range(64)))
    churn = of_line(memory, CROWD, "# churn")
    assert (churn["count"], alive(churn)) == (64000, (0, 0))
    single = of_line(memory, CROWD, "# single")
    assert (single["count"], single["bytes"], alive(single)) == (3200, 50 * sum(range(1, 65)), (0, 0))
    short = of_line(memory, CROWD, "# short")
    assert (short["count"], *alive(short)) == (300, 300, sum(range(300)))


STORM = """
import os, signal, sys
from truth import free, malloc, signals_seen, storm
made = storm(200000, 5000)  # storm
assert signals_seen() > 0
handled = []  # a sum could be taken by one handler in the midst of another
def handler(number, frame):
    handled.append(number)
    free(malloc(777))  # handler
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
blocks = 0
while len(handled) < 200:
    free(malloc(64))  # loop
    x = [bytes(n) for n in range(10)]
    blocks += 1
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(made, len(handled), blocks, flush=True)
os._exit(0)
"""


@pytest.mark.strict
def test_storm_of_signals(python, mode, truth_env, tmp_path):
    """Signals in the midst of malloc, whose handler maps pages; then handlers in Python that allocate."""
    recording = oracle.record_memory([python.path, script(tmp_path, STORM)], tmp_path / "x.pyro", mode, env=truth_env)
    made, handled, blocks = (int(n) for n in recording.stdout.split())
    memory = opens(recording)
    storm = of_line(memory, STORM, "# storm")
    assert (storm["count"], storm["bytes"], alive(storm)) == (made, 48 * made, (0, 0))
    assert alive(of_line(memory, STORM, "# storm", "mmap")) == (0, 0)
    handler, loop = of_line(memory, STORM, "# handler"), of_line(memory, STORM, "# loop")
    assert (handler["count"], handler["bytes"], alive(handler)) == (handled, 777 * handled, (0, 0))
    assert (loop["count"], loop["bytes"], alive(loop)) == (blocks, 64 * blocks, (0, 0))


LATE = """
import os
from truth import late_threads
assert late_threads(50, 4321) == 0  # late
os._exit(0)
"""


def test_blocks_given_back_while_threads_end(default_python, truth_env, tmp_path):
    """Destructors of other keys come after ours, in several rounds: what they do with memory counts still."""
    memory = opens(same([default_python.path, script(tmp_path, LATE)], tmp_path / "x.pyro", "heap", env=truth_env))
    ours = collections.Counter()
    for (_, _, stack, _), site in memory.sites.items():
        if stack == 0 and site["count"] and site["bytes"] == 4321 * site["count"]:
            ours.update(site)
    assert (ours["count"], ours["freed"]) == (100, 100)


DAEMON = """
import sys, threading, time
from truth import for_ever
for n in range(3):
    threading.Thread(target=for_ever, args=(100 + n,), daemon=True).start()
time.sleep(0.05)
print("the end")
"""


def test_daemon_threads_allocate_while_the_interpreter_ends(python, truth_env, tmp_path):
    """Their states are freed then, and with PYTHONMALLOC=debug filled with rubbish: nobody may look into them."""
    for turn in range(3):
        recording = same([python.path, script(tmp_path, DAEMON)], tmp_path / ("%d.pyro" % turn), "heap", "--force",
                         env=dict(truth_env, PYTHONMALLOC="debug"))
        opens(recording)


INSIDE = """
import sys
kept = [bytearray(2 << 20) for _ in range(8)]  # large
for n in range(3000):
    bytearray(2000)  # small
if sys.version_info < (3, 12):  # later ones take ctypes into few interpreters
    from truth import malloc
    for n in range(10):
        malloc(1 << 20)  # without the GIL
"""
OUTSIDE = """
import sys, threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
from truth import malloc
def run(one):
    interpreters.run_string(one, "exec(compile(open(%r).read(), %r, 'exec'))")  # outside
def beside():
    return malloc(1 << 20)  # beside
one = interpreters.create()
run(one)
kept = [bytearray(2 << 20) for _ in range(8)]  # between
other = threading.Thread(target=run, args=(one,))  # its state has the first thread's number
other.start()
while other.is_alive():
    beside()
interpreters.destroy(one)
kept.append(malloc(3 << 20))  # after
"""


@pytest.mark.parametrize("mode", ["heap", "objects", "sampled"])
@pytest.mark.strict
def test_inside_of_other_interpreters(python, mode, truth_env, tmp_path):
    """What runs in them is charged to their lines, and never to the line that has called them; where nobody knows whether they run,
    to none."""
    if not python.has("_interpreters") and not python.has("_xxsubinterpreters"):
        pytest.skip("no sub-interpreters to be had")
    path = tmp_path / "inside.py"
    path.write_text(INSIDE)
    text = OUTSIDE % (str(path), str(path))
    recording = same([python.path, script(tmp_path, text)], tmp_path / "x.pyro", mode, env=truth_env)
    memory = Memory(recording.path) if mode == "sampled" else opens(recording)  # estimates' sums are rounded
    of = lambda name, source, mark: sum(memory.of_line(name, line_of(source, mark)).values(), collections.Counter())
    large, small, free = (of("/inside.py", INSIDE, mark) for mark in ("# large", "# small", "# without"))
    between, beside, after = (of("/bad.py", text, mark) for mark in ("# between", "# beside", "# after"))
    assert of("/bad.py", text, "# outside")["bytes"] < 1 << 20
    if mode == "sampled":
        near(large, [2 << 20] * 16)  # of that size the dice miss one in ten million
        near(small, [2000] * 6000)
        near(between, [2 << 20] * 8)
        return
    assert large["bytes"] - 16 * (2 << 20) in range(10000) and between["bytes"] - 8 * (2 << 20) in range(10000)
    assert small["bytes"] - 6000 * 2000 in range(6000 * 200)
    assert after["bytes"] - (3 << 20) in range(1000)
    if python.version >= (3, 12):
        assert beside["bytes"] >= 1 << 20
    else:
        assert free["bytes"] < 1 << 20 and sum(s["bytes"] for s in memory.without_python().values()) > 20 << 20


PAUSE = """
import os, sys, threading, time
sys.path.insert(0, %r)
import pyrometer
from truth import churn, churn_end
for turn in range(2):
    time.sleep(1.2)
    pyrometer.mark("turn")
    threads = [threading.Thread(target=churn, args=(100000, n)) for n in range(2)]
    for t in threads: t.start()
    for t in threads: t.join()
churn_end()
time.sleep(2.5)
pyrometer.mark("end")
churn(300000, 7)  # after
churn_end()
os._exit(0)
""" % os.path.join(harness.ROOT, "python")


@pytest.mark.once
@pytest.mark.long
def test_marks_after_a_pause(default_python, truth_env, tmp_path):
    """A mark is a stamp like any other: what comes after it is not dated into the future, where the recorder would let it wait."""
    recording = same([default_python.path, script(tmp_path, PAUSE)], tmp_path / "x.pyro", "heap", env=truth_env)
    assert recording.info()["losses"]["events_lost"] == 0
    after = of_line(opens(recording), PAUSE, "# after")
    assert (after["count"], alive(after)) == (300000, (0, 0))


def test_of_samples_no_temporaries(default_python, truth_env, tmp_path):
    recording = same([default_python.path, "-c", "x = [bytes(n) for n in range(20000)]"], tmp_path / "x.pyro", "sampled", env=truth_env)
    for command in (["memory", "temporary"], ["report", "--metric", "temporary"]):
        refused = pyrometer(*command, recording.path, check=1)
        assert refused.stderr.count("\n") == 1 and "--memory=heap" in refused.stderr


HALT = """
import ctypes, os, sys
library = ctypes.CDLL(os.environ["TRUTH_HALT"])
places = ctypes.c_int()
for locked in (0, 1):
    times = int(sys.argv[1]) if not locked else 5
    done = library.halt(sys.argv[2].encode(), times, 50000, locked, ctypes.byref(places))
    print(done, times, places.value, flush=True)
os._exit(0)
"""


@pytest.mark.once
@pytest.mark.parametrize("mode", ["heap", "objects", "sampled"])
def test_no_lock_for_all(default_python, mode, truth_env, tmp_path, scale):
    """Wherever in our hooks a thread is halted, the three others go on: there is no lock on malloc and free that all of them need. In
    the control they need one that the halted thread has."""
    times = scale(20, 400)
    path = tmp_path / "x.pyro"
    done = pyrometer("run", "--quiet", "-o", path, "--memory=" + mode, "--", default_python.path, script(tmp_path, HALT), times,
                     "libpyrometer-agent.so", env=truth_env, check=0)
    (went_on, _, places), (locked_out, control, _) = ([int(n) for n in line.split()] for line in done.stdout.splitlines())
    assert went_on == 3 * times and places > min(times / 5, 20), "at %d places" % places  # sampling is but a few instructions
    assert locked_out < 3 * control, "the control does not notice a lock"
    recording = Recording(path, done)
    recording.verify()
    if mode != "sampled":  # whose sums are estimates
        opens(recording)


# --- the same days, sampled ---


def programs_text(*names):
    mains = "\n".join(n + ".main()" for n in names)
    return "import os\nimport truth, %s\nkept = truth.reserve()\n%s\nos._exit(0)\n" % (", ".join(names), mains)


SAMPLED_DAYS = {  # text of a program, its arguments, and of marked lines the sizes
    "out_of_memory": (EXHAUSTED, [], {}),
    "killed": (KILLED, [], {"# here": [1 << 20] * 50, "# there": [300] * 1000}),
    "ends_inside": (ENDS, [], {"# kept": [54321], "# brief": [32] * 100000}),
    "replaced_allocators": ("import truthmodule\ntruthmodule.replace(0)\n" + programs_text("pymem"), [], {}),
    "children": (FAMILY, ["child.py", "LIBRARY"], {}),
    "forks_among_threads": (FORKS_AMONG_THREADS, [], {"# churn": [100, 116, 132, 148] * 15000, "# child": list(range(1000, 1020))}),
    "crowd": (CROWD, [], {"# fill": [1000 + n for n in range(64)] * 100, "# churn": [100, 116, 132, 148] * 16000,
                          "# short": list(range(1, 300))}),
    "own_malloc": (programs_text(*PLAIN_PROGRAMS), [], {}),
}


@pytest.mark.long_only
@pytest.mark.strict
@pytest.mark.parametrize("day", SAMPLED_DAYS)
def test_sampled(python, day, truth_env, tmp_path):
    """The program is as without us, its report opens, and its lines are near the truth."""
    text, arguments, lines = SAMPLED_DAYS[day]
    if day == "own_malloc":
        if "PYROMETER_SANITIZED" in os.environ:
            pytest.skip("a sanitized recorder will have nobody preloaded before its own runtime")
        truth_env = dict(truth_env, LD_PRELOAD=truth_env["TRUTH_OWN"])
    (tmp_path / "child.py").write_text(CHILD)
    arguments = [{"LIBRARY": truth_env["TRUTH_LIBRARY"], "child.py": str(tmp_path / "child.py")}[a] for a in arguments]
    recording = same([python.path, "-W", "ignore", script(tmp_path, text), *arguments], tmp_path / "x.pyro", "sampled", env=truth_env)
    report = recording.report("--metric", "peak", "--by", "line")
    assert report["memory"]["sampled"] and report["total"] > 0
    assert report["total"] == pytest.approx(sum(r["self"] for r in report["rows"]), abs=1000)  # each is rounded
    memory = Memory(recording.path)
    for mark, sizes in lines.items():
        near(of_line(memory, text, mark), sizes)
    if day == "children":
        sums = sum((memory.of_line("/child.py", line_of(CHILD, "# here"))[a] for a in oracle.ALLOCATORS), collections.Counter())
        near(sums, list(range(100001, 100011)))
    if day == "crowd":
        assert abs(alive(of_line(memory, text, "# fill"))[1]) < 2 << 20, "nine of ten blocks were given back, 650 kB are left"


@pytest.mark.long_only
@pytest.mark.strict
def test_a_hundred_sampled_children(python, truth_env, tmp_path):
    recording = same([python.path, program("forks")], tmp_path / "x.pyro", "sampled", env=truth_env, plain=lambda text: len(text.split()))
    memory = Memory(recording.path)
    near(memory.of_function("child"), [size for n in range(100) for size in (1000 + n, 10 + n)])
    assert recording.report("--metric", "peak")["memory"]["processes"] == 101


# --- together with the other instruments ---


@pytest.mark.parametrize("others", ["--calls", "--lines", "--trace", pytest.param("--sample", marks=pytest.mark.long_only),
                                    pytest.param("--sample --calls --lines --trace", marks=pytest.mark.long_only)])
@pytest.mark.long
@pytest.mark.strict
def test_with_other_instruments(python, others, truth_env, tmp_path):
    """What other guests of the program allocate is not the program's, and does not change what its lines are charged with. (Objects that
    CPython itself makes to tell those guests of something are: so what the domains are asked for is not looked at here.)"""
    names = ["generators", "polymorphic", "exceptions", "reallocs", "blocks"]
    for mode in MODES:
        recording = same([python.path, program("all"), *names], tmp_path / (mode + ".pyro"), mode, *others.split(), env=truth_env)
        memory = Memory(recording.path)
        for one in names:
            check_program(memory, program(one), mode)


@pytest.mark.long_only
def test_samples_with_other_instruments(python, truth_env, tmp_path):
    """Estimates, with all else that can be recorded: they are near the truth, and the other instruments have their say."""
    recording = same([python.path, program("mixture")], tmp_path / "x.pyro", "sampled", "--sample", "--calls", "--lines", "--trace",
                     env=truth_env)
    memory = Memory(recording.path)
    for (_, line), truth in oracle.truths(program("mixture")).items():
        near(memory.of_line("/mixture.py", line)["malloc"], truth.told["malloc"])
    assert [r["calls"] for r in recording.rows("--metric", "calls") if r["name"] == "main" and r["file"].endswith("/mixture.py")] == [1]
    assert recording.report("--metric", "wall")["total"] > 0


def test_a_thread_is_one_for_all_instruments(default_python, truth_env, tmp_path):
    """Calls and memory come by rings of their own, samples from outside: each thread has one number all the same, and those after it
    that the system gives the same identity have theirs."""
    text = ("import threading, time\ndef work(n):\n    kept.append(bytes(1000 + n))\n    time.sleep(0.02)\nkept = []\n"
            "for n in range(3):\n    t = threading.Thread(target=work, args=(n,), name='worker-%d' % n)\n    t.start()\n    t.join()\n")
    recording = same([default_python.path, script(tmp_path, text)], tmp_path / "x.pyro", "objects", "--trace", "--sample=1000", env=truth_env)
    names = sorted(t["name"] for t in recording.info()["threads"])
    assert names == ["MainThread", "worker-0", "worker-1", "worker-2"]
    for n in range(3):
        rows = recording.report("--metric", "allocated", "--thread", "worker-%d" % n, "--by", "line", "--limit", "0")["rows"]
        assert [r["self"] for r in rows if r["file"].endswith("bad.py") and r["line"] == 3 and r["self"] >= 1033 + n]


EXECUTES = """
import os, sys, time
kept = bytearray(5000000)
try: os.execv("/nowhere", ["nowhere"])
except OSError: pass
time.sleep(0.5)
if sys.argv[1:]: os.execv(sys.argv[1], sys.argv[1:])
os._exit(0)
"""


@pytest.mark.parametrize("mode", ["heap", "objects"])
@pytest.mark.parametrize("command", [["/bin/true"], ["/bin/sh", "-c", "sleep 0.6"], []], ids=" ".join)
def test_executes_a_program_without_us(python, mode, command, tmp_path):
    """What it held is gone with it, unless the exec has failed."""
    recording = harness.record([python.path, "-c", EXECUTES, *command], tmp_path / "x.pyro", "--memory=" + mode)
    held = lambda *options: json.loads(pyrometer("report", "--json", *options, recording.path, check=0).stdout)["total"]
    assert (held("--metric", "leaked") < 1000000) == bool(command) and held("--metric", "peak") > 5000000
    points = [p["allocated"] for p in json.loads(pyrometer("memory", "plot", "--json", recording.path, check=0).stdout)["rows"]]
    assert max(points) > 5000000 and (points[-1] < 1000000) == bool(command)

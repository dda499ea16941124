"""Bad days with the guest inside (`run --calls`): limits, kills in the midst of a hook, exec and fork among threads, the end.

How often a function was called, the program itself counts in a file that survives it: after each call. So what was recorded is that
number, or one more if the end came between the call and the count.
"""
import json
import mmap
import os
import shutil
import signal
import struct
import subprocess

import pytest

import harness
from harness import PYROMETER, Recording, one_line_error, record
from test_agent import whole

pytestmark = pytest.mark.strict

COUNTS = """
import ctypes, mmap, os, random, sys, threading, time
file = open("counts", "r+b")
counts = (ctypes.c_uint64 * 1024).from_buffer(mmap.mmap(file.fileno(), 8192))
"""


def script(folder, text):
    (folder / "bad.py").write_text(COUNTS + text)
    with open("counts", "wb") as f:
        f.truncate(8192)
    return str(folder / "bad.py")


def counts():
    with open("counts", "rb") as f, mmap.mmap(f.fileno(), 8192, prot=mmap.PROT_READ) as memory:
        return struct.unpack("1024Q", memory[:])


def calls_in(recording, *args):
    """{function of the program: calls}"""
    return {r["name"]: r["calls"] for r in recording.rows(*args) if (r["file"] or "").endswith("bad.py")}


# --- no room ---


LIMITED = """
import resource, signal, threading
def f(): pass
def work(ready):
    ready.wait()
    for _ in range(100): f()
ready = threading.Barrier(8)
threads = [threading.Thread(target=work, args=(ready,)) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
ignored = [line for line in open("/proc/self/status") if "SigIgn" in line]
print(resource.getrlimit(resource.RLIMIT_FSIZE), ignored)
raise SystemExit(5)
"""


def limited(kilobytes, *command):
    return ["bash", "-c", "ulimit -f %d; exec \"$@\"" % kilobytes, "bash", *command]


def bound():
    """Even root may not lift the limit."""
    if os.geteuid():
        return []
    return [shutil.which("setpriv"), "--bounding-set=-sys_resource"]


@pytest.mark.long
def test_limit_on_the_size_of_files(python, tmp_path):
    """Rings are memory and no file, but the limit counts them. It is lifted for them alone; the program has it as before."""
    bare = subprocess.run(limited(8192, python.path, "-c", LIMITED), stdout=subprocess.PIPE, encoding="utf-8")
    done = subprocess.run(["bash", "-c", "ulimit -S -f 8192; exec \"$@\"", "bash", PYROMETER, "run", "--quiet", "--calls", "-o", "x.pyro", "--",
                           *limited(8192, python.path, "-c", LIMITED)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert (done.stdout, done.stderr, done.returncode) == (bare.stdout, "", 5)
    recording = Recording(tmp_path / "x.pyro")
    assert recording.row("f")["calls"] == 800
    whole(recording)


def test_limit_that_cannot_be_lifted(default_python, tmp_path):
    """Then there is room for a few threads only. The others are not watched, and that is told."""
    command = [*bound(), PYROMETER, "run", "--quiet", "--calls", "-o", "x.pyro", "--", default_python.path, "-c", LIMITED]
    done = subprocess.run(limited(4096, *command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    harness.not_broken(done)
    assert done.returncode == 5, done.stderr
    recording = Recording(tmp_path / "x.pyro")
    recording.verify()
    refused = recording.stats()["threads_refused"]
    assert 0 < refused < 8 and recording.row("f")["calls"] == 100 * (8 - refused)
    done = subprocess.run(limited(100, *command[:-4], "--force", *command[-4:]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert done.stdout == "" and "size limit" in one_line_error(done, 1)


def test_recording_reaches_the_limit(default_python, tmp_path):
    """As when the disk is full: the program goes on to its own end, and what was written can be read. Its calls are drawn by lot, for
    what repeats itself takes so little room that a quick machine does not reach the limit."""
    text = ("import random\nfor i in range(64): exec('def f%d(): pass' % i)\nfs = random.choices([globals()['f%d' % i] for i in range(64)], k=2500000)\n"
            "print('begun', flush=True)\nfor f in fs: f()\nprint('finished')\nraise SystemExit(7)\n")
    done = subprocess.run(limited(1200, *bound(), PYROMETER, "run", "--trace", "--no-c-calls", "-o", "x.pyro", "--", default_python.path, "-c", text),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    harness.not_broken(done)
    assert (done.stdout, done.returncode) == ("begun\nfinished\n", 7), done.stderr
    assert "size limit" in done.stderr and os.path.getsize("x.pyro") <= 1200 << 10
    assert harness.can_be_saved(tmp_path / "x.pyro")
    rows = Recording(tmp_path / "x.pyro").rows("--metric", "calls")
    assert sum(row["calls"] for row in rows if row["name"].startswith("f")) > 100000


def test_no_shared_memory_on_the_system(default_python, tmp_path):
    """Rings are not in /dev/shm: it may be full, or not writable."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no right to make a mount namespace")
    text = ("import errno, os\ndef f(): pass\nfor _ in range(500): f()\n"
            "try: open('/dev/shm/x', 'w')\nexcept OSError as error: print(errno.errorcode[error.errno])\n")
    inside = "mount -t tmpfs -o ro,size=4k none /dev/shm && exec \"$@\""
    done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", inside, "sh", PYROMETER, "run", "--quiet", "--calls",
                           "-o", "x.pyro", "--", default_python.path, "-c", text],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    assert (done.stdout, done.stderr, done.returncode) == ("EROFS\n", "", 0)
    recording = Recording(tmp_path / "x.pyro")
    assert recording.row("f")["calls"] == 500
    whole(recording)


# --- kills, exec, fork ---


WORKERS = """
def f0(): pass
def f1(): pass
def f2(): pass
def work(function, at):
    while True:
        function()
        counts[at] += 1
"""


KILLED = WORKERS + """
rounds = int(sys.argv[1])
for i in range(rounds):
    pid = os.fork()
    if not pid:
        for n, function in enumerate((f0, f1, f2)):
            threading.Thread(target=work, args=(function, 3 * i + n), daemon=True).start()
        time.sleep(60)
        os._exit(1)
    while not counts[3 * i + random.randrange(3)]:
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.01))
    os.kill(pid, 9)
    assert os.waitpid(pid, 0)[1] == 9
    print(pid)
"""


def test_killed_in_a_hook(python, tmp_path, scale):
    """SIGKILL to three threads at whatever they are at, most often the hook: all that they did is in the recording."""
    rounds = scale(12, 300)
    recording = record([python.path, script(tmp_path, KILLED), str(rounds)], tmp_path / "x.pyro", "--calls")
    pids, done = recording.stdout.split(), counts()
    assert len(set(pids)) == rounds
    for i, pid in enumerate(pids):
        found = calls_in(recording, "--process", pid)
        for n in range(3):
            assert 0 <= found.get("f%d" % n, 0) - done[3 * i + n] <= 1, (found, done[3 * i:3 * i + 3])
    assert sum(done) > 100 * rounds
    whole(recording)
    recording.verify()


EXECS = WORKERS + """
def f(): pass
def replace():
    for _ in range(30): f()
    while counts[0] < 100 or counts[1] < 100: pass
    os.execv(sys.executable, [sys.executable, "-c", "def after(): pass\\nfor _ in range(7): after()\\nprint('after')"])
threading.Thread(target=work, args=(f0, 0), daemon=True).start()
threading.Thread(target=replace).start()
work(f1, 1)
"""


def test_exec_by_a_thread(python, tmp_path):
    """Another thread than the first calls exec: the rest is gone at once, with all they did told; the new program is watched too."""
    recording = record([python.path, script(tmp_path, EXECS)], tmp_path / "x.pyro", "--calls")
    assert recording.stdout == "after\n"
    assert recording.row("after")["calls"] == 7
    found, done = calls_in(recording), counts()
    assert found["f"] == 30
    for n in range(2):
        assert 0 <= found["f%d" % n] - done[n] <= 1, (found, done[:2])
    whole(recording)
    recording.verify()


FORKS = """
lock = threading.Lock()
def f(): pass
def g(): pass
def work():
    for _ in range(4000):
        with lock: f()
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for i in range(20):
    pid = os.fork()
    if not pid:
        mine = threading.Thread(target=lambda: [g() for _ in range(10)])
        mine.start()
        mine.join()
        for _ in range(5): g()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
for t in threads: t.join()
print("well")
"""


def test_forks_among_threads(python, tmp_path):
    """Children are born while other threads are in our hooks and hold locks of their own: no child waits for one of ours."""
    recording = record([python.path, "-W", "ignore", script(tmp_path, FORKS)], tmp_path / "x.pyro", "--calls")
    assert recording.stdout == "well\n"
    found = calls_in(recording)
    assert (found["f"], found["g"]) == (12000, 300)
    whole(recording)


NESTED = """
def f(): pass
def work(n):
    for _ in range(5):
        for _ in range(100): f()
        time.sleep(0.02)
    counts[n] = os.getpid()
def child(n):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file: file.write(str(4000000 + 10 * n))
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
        return
    thread = threading.Thread(target=work, args=(n,))
    thread.start()
    work(n)
    thread.join()
    if n: child(n - 1)
    os._exit(0)
child(1)
work(2)
"""


@pytest.mark.parametrize("instrument", ["--calls", "--memory"])
def test_numbers_of_a_container(python, is_root, tmp_path, instrument):
    """In a pid namespace processes have numbers that nobody has outside, or somebody else: they are no dead ones, nor other ones."""
    if not is_root:
        pytest.skip("a namespace needs root")
    command = ["unshare", "--pid", "--fork", "--kill-child", python.path, "-W", "ignore", script(tmp_path, NESTED)]
    recording = record(command, tmp_path / "x.pyro", instrument)
    assert counts()[:3] == (4000001, 4000011, 1)
    known = recording.info()
    inside = [p for p in known["processes"] if p["kind"] == "python"]
    # what was `unshare` at one look may have ended as Python by the next; its threads are known all the same
    assert 2 <= len(inside) <= 3 and known["stats"]["threads_seen"] == 5, (known["processes"], known["threads"])
    assert not {p["pid"] for p in inside} & {1, 4000001, 4000011}
    if instrument == "--calls":
        assert calls_in(recording)["f"] == 5 * 500
        whole(recording)


# --- the end ---


DAEMONS = WORKERS + """
import atexit
atexit.register(print, "at exit")
for n, function in enumerate((f0, f1, f2)):
    threading.Thread(target=work, args=(function, n), daemon=True).start()
while not all(counts[n] for n in range(3)): pass
raise SystemExit(3)
"""


def test_daemon_threads_at_the_end(python, tmp_path, scale):
    """The interpreter goes down around threads that are in our hooks. Some versions let a thread that waits for the interpreter lock
    touch what is no more, about once in a hundred ends, and in some moments of a busy machine in every twentieth: what crashes so
    must crash so without us, and as often."""
    died = died_bare = 0
    for _ in range(scale(4, 100)):
        program = script(tmp_path, DAEMONS)
        recording = record([python.path, program], tmp_path / "x.pyro", "--calls", "--force", check=None)
        if recording.done.returncode == 128 + signal.SIGSEGV:
            died += 1
        else:
            assert recording.done.returncode == 3
        assert (recording.stdout, recording.done.stderr) == ("at exit\n", "")
        found, done = calls_in(recording), counts()
        for n in range(3):
            assert 0 <= found["f%d" % n] - done[n] <= 1, (found, done[:3])
        whole(recording)
        recording.verify()
        died_bare += subprocess.run([python.path, program], stdout=subprocess.DEVNULL).returncode == -signal.SIGSEGV
    assert died <= 4 + 2 * died_bare
    bare = (subprocess.run([python.path, program], stdout=subprocess.DEVNULL).returncode for _ in range(1500))
    assert not died or died_bare or -signal.SIGSEGV in bare


OPEN = """
import os, signal, threading, time
def waits(): time.sleep(60)
def works():
    while True: pass
async def coroutine(): ends()
def ends():
    threading.Thread(target=waits, daemon=True).start()
    threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGKILL)).start()
    works()
coroutine().send(None)
"""


@pytest.mark.strict
@pytest.mark.parametrize("options", [["--calls"], ["--trace"], ["--trace", "--last", "0.3"], ["--trace", "--min-duration", "0.1"]], ids=" ".join)
def test_what_runs_at_the_end_has_run_until_then(python, tmp_path, options):
    """No event tells that it ends. Threads that wait, loops that call nothing, coroutines. As stamped: of a loop on 3.10 and 3.11
    what it lost is taken out, which is most of it."""
    recording = harness.record([python.path, "-c", OPEN], tmp_path / "x.pyro", *options, check=137)
    recording.verify()
    rows = {r["name"]: r for r in recording.rows("--metric", "raw")}
    assert all(0.5 < rows[name]["total"] < 3 for name in ("waits", "works", "ends"))
    assert 0.5 < rows["coroutine"]["alive"] < 3
    if options[0] == "--trace":
        calls = json.loads(harness.pyrometer("export", "chrome", recording.path, check=0).stdout)["traceEvents"]
        lengths = {e["name"]: e["dur"] / 1e6 for e in calls if e["ph"] == "X"}
        assert all(lengths[name] > 0.25 for name in ("waits", "works", "ends"))


def test_what_runs_when_the_recording_ends(python, tmp_path):
    text = "import time\ndef waits(): time.sleep(1.2)\nwaits()\nprint('well')"
    recording = harness.record([python.path, "-c", text], tmp_path / "x.pyro", "--calls", "--for", "0.6")
    assert recording.stdout == "well\n" and 0.3 < recording.row("waits")["total"] < 1

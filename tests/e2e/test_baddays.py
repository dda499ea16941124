"""Bad days: the wrong process, kills, full disks, missing rights, broken memory.

After each: a clear message, the right exit status, nothing lost that was written, no crash, no hang, and
a target that runs on as if nothing had been.
"""
import contextlib
import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

import pytest

import harness
from harness import (PYROMETER, Recording, Target, forbid_process_vm_readv, one_line_error, process_state, pyrometer, record, spin_text,
                     task_states, wait_until, workload)


def free_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


# --- the wrong process ---


@pytest.mark.parametrize("command", ["attach", "dump"])
def test_pid_that_does_not_exist(command, virgin):
    line = one_line_error(pyrometer(command, free_pid()), 1)
    assert re.search("no (such )?process", line), line
    assert not list(virgin.iterdir()), "nothing is made for a recording that cannot begin"


@pytest.mark.parametrize("command", ["attach", "dump"])
@pytest.mark.parametrize("pid", ["0", "-1", "abc", "", "99999999999999999999", "1.5", "12x"])
def test_pid_that_is_none(command, pid):
    done = pyrometer(command, "--", pid)
    one_line_error(done, 2 if done.returncode == 2 else 1)


@pytest.mark.parametrize("command", ["attach", "dump"])
def test_number_of_a_thread(command, default_python, virgin):
    """The kernel would take it for its process, and a recording would have a process that there is not."""
    program = ("import threading, time\nt = threading.Thread(target=time.sleep, args=(300,), daemon=True)\nt.start()\n"
               "print(t.native_id, flush=True)\ntime.sleep(300)\n")
    with subprocess.Popen([default_python.path, "-c", program], stdout=subprocess.PIPE, encoding="ascii") as process:
        try:
            tid = int(process.stdout.readline())
            line = one_line_error(pyrometer(command, tid), 1)
            assert "%d is a thread of process %d" % (tid, process.pid) in line
            assert not list(virgin.iterdir())
        finally:
            process.kill()


@pytest.mark.parametrize("command", ["attach", "dump"])
def test_not_python(command, target):
    with Target(["sleep", "300"], ready=None) as one:
        line = one_line_error(pyrometer(command, one.pid), 1)
        assert "not a Python process" in line
        assert one.alive()


@pytest.fixture
def removed_interpreter(python, target, tmp_path):
    """A process whose interpreter, and its library if it has one, was taken from the disk since: what an upgrade does to a server."""
    facts = """import json, sys, sysconfig
command = open("/proc/self/cmdline").read().split("\\0")
print(json.dumps([command[:command.index("-c")], sys.base_prefix, sysconfig.get_config_var("LIBDIR")]))"""
    (*loader, image), prefix, folder = json.loads(subprocess.check_output([python.path, "-c", facts]))
    copy = tmp_path / ("python%d.%d" % python.version[:2])  # the loader is there where it runs on a libc of its own
    shutil.copy(os.path.realpath(image), str(copy))
    libraries = [tmp_path / name for name in os.listdir(folder) if name.startswith("libpython3.") and ".so" in name]
    for path in libraries:
        shutil.copy(os.path.join(folder, path.name), str(path))
    one = target([*loader, str(copy), "-c", SLEEPER], env=dict(os.environ, PYTHONHOME=prefix, LD_LIBRARY_PATH=str(tmp_path)))
    with open("/proc/%d/maps" % one.pid) as maps:  # Debian has a library that its own python does not use
        one.is_mapped = bool(loader) or "libpython3." in maps.read()  # the interpreter is not what the kernel executed
    for path in [copy, *libraries]:
        path.unlink()
    return one


def test_interpreter_that_was_removed(removed_interpreter, is_root, tmp_path):
    if removed_interpreter.is_mapped and not is_root:
        pytest.skip("a library that has no name any more can be read by root alone")
    assert "<module>" in pyrometer("dump", removed_interpreter.pid, check=0).stdout
    pyrometer("attach", "--for", "0.3", "-o", tmp_path / "x.pyro", removed_interpreter.pid, check=0)
    assert any("<module>" in stack[-1] for stack, _ in Recording(tmp_path / "x.pyro").stacks())


def test_interpreter_that_was_removed_and_may_not_be_read(removed_interpreter, is_root, virgin):
    if not removed_interpreter.is_mapped:
        pytest.skip("the executable can be read by all who may read the process")
    without = ["setpriv", "--bounding-set=-sys_admin,-checkpoint_restore", "--inh-caps=-sys_admin,-checkpoint_restore"] if is_root else []
    done = subprocess.run([*without, PYROMETER, "attach", str(removed_interpreter.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", timeout=harness.HANG)
    assert "was replaced or removed" in one_line_error(done, 1)
    assert not list(virgin.iterdir())


@pytest.mark.parametrize("command", ["attach", "dump"])
def test_zombie(command, default_python):
    process = subprocess.Popen([default_python.path, "-c", "pass"])
    wait_until(lambda: process_state(process.pid) == "Z", "a zombie")
    one_line_error(pyrometer(command, process.pid), 1)
    process.wait()


@pytest.mark.parametrize("command", [["attach", "--quiet"], ["dump"]], ids=["attach", "dump"])
def test_exits_meanwhile(command, default_python, tmp_path, scale):
    """Processes that end while they are looked at: a result or one line, never more."""
    rng = random.Random(11)
    for i in range(scale(15, 150)):
        process = subprocess.Popen([default_python.path, "-S", "-c", "import time; time.sleep(%f)" % rng.uniform(0, 0.03)])
        time.sleep(rng.uniform(0, 0.05))
        more = ["-o", str(tmp_path / ("%d.pyro" % i))] if command[0] == "attach" else []
        done = pyrometer(*command, *more, process.pid)
        if done.returncode != 0:
            one_line_error(done, 1)
        process.wait()


def test_starting_interpreter(default_python, scale):
    """A look at an interpreter at any moment of its start."""
    rng = random.Random(13)
    for _ in range(scale(15, 150)):
        with Target([default_python.path, "-c", "import time; time.sleep(300)"], ready=None) as one:
            time.sleep(rng.uniform(0, 0.03))
            done = pyrometer("dump", one.pid)
            if done.returncode != 0:
                one_line_error(done, 1)
            assert one.alive()


def test_execs_into_something_else(python, tmp_path):
    """run: what came before the exec is kept, the other program is no problem, the status is its own."""
    text = spin_text("before", 0.4) + "import os\nos.execvp('sh', ['sh', '-c', 'sleep 0.4; exit 21'])\n"
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", check=21)
    assert recording.row("before")
    assert "whole" in recording.verify().stdout


def test_execs_into_something_else_while_attached(default_python, target, tmp_path):
    text = "print('ready', flush=True)\n" + spin_text("before", 0.7) + "import os\nos.execvp('sleep', ['sleep', '300'])\n"
    one = target([default_python.path, "-c", text])
    pyrometer("attach", "--quiet", "--for", "1.5", "-o", tmp_path / "x.pyro", one.pid, check=0)
    assert one.alive()
    assert Recording(tmp_path / "x.pyro").row("before")


WILD_FORKS = """
import os, sys
def grow(depth):
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            if depth:
                grow(depth - 1)
            os._exit(0)
        if depth % 2:
            os.waitpid(pid, 0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return
grow(3)
print('finished')
"""


def test_forks_wildly(python, tmp_path):
    recording = record([python.path, "-c", WILD_FORKS], tmp_path / "x.pyro")
    assert recording.stdout == "finished\n"
    stats = recording.stats()
    # 340 children, seen or at least their numbers; some may have been met when their parents were gone
    assert stats["processes_seen"] - 1 + stats["numbers_vanished"] >= 300, stats
    assert stats["processes_seen"] == (stats["processes_python"] + stats["processes_other"] + stats["processes_short"]
                                       + stats["processes_refused"]), stats
    assert "whole" in recording.verify().stdout


def test_stopped_target(default_python, target, tmp_path):
    """A target that somebody stopped is read and stays stopped."""
    one = target([default_python.path, workload("chains.py"), "10", "20000", "120"])
    os.kill(one.pid, signal.SIGSTOP)
    wait_until(lambda: one.state() == "T", "the stop")
    pyrometer("dump", one.pid, check=0)
    pyrometer("attach", "--quiet", "--for", "0.3", "-o", tmp_path / "x.pyro", one.pid, check=0)
    assert one.state() == "T"
    os.kill(one.pid, signal.SIGCONT)
    assert Recording(tmp_path / "x.pyro").rows()


# --- kills ---


def processes_with(token):
    """The pids whose command line or environment holds the token, apart from the profiler's own."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if token.encode() in f.read():
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def is_profiler(pid):
    try:
        return os.path.realpath("/proc/%d/exe" % pid) == os.path.realpath(PYROMETER)
    except OSError:
        return False


def readable_to_the_last_chunk(path):
    """What a killed profiler left can be read and repaired; a file that never got its header is refused."""
    if not os.path.exists(path):
        return 0
    done = pyrometer("report", path, "--json")
    if os.path.getsize(path) < 64:
        one_line_error(done, 1)
        return 0
    assert done.returncode == 0, done.stderr
    samples = sum(n for _, n in Recording(path).stacks())
    pyrometer("verify", path, check=1)  # not finished: never "whole"
    if samples:
        out = str(path) + ".repaired"
        pyrometer("verify", "--repair", "--force", "-o", out, path, check=0)
        assert "whole" in Recording(out).verify().stdout
        assert sum(n for _, n in Recording(out).stacks()) == samples
    return samples


@pytest.mark.long
def test_profiler_killed_while_attached(python, target, tmp_path, scale):
    """SIGKILL of the profiler at random moments: the target never stops, the file can be read."""
    one = target([python.path, workload("chains.py"), "10", "200", "600"])
    rng = random.Random(17)
    kept = 0
    for i in range(scale(15, 200)):
        path = tmp_path / ("%d.pyro" % i)
        process = subprocess.Popen([PYROMETER, "attach", "--sample=5000", "-o", str(path), str(one.pid)],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + rng.choice([0.003, 0.02, 0.1, 0.7, scale(1.5, 3)]) * rng.random()
        while time.monotonic() < end:
            assert not set(task_states(one.pid)) & set("Tt")
        process.kill()
        process.wait()
        assert one.alive() and not set(task_states(one.pid)) & set("Tt")
        kept += bool(readable_to_the_last_chunk(path))
        if path.exists():
            path.unlink()
    assert kept > 0, "no kill came late enough to leave samples: the test proves nothing"


@pytest.mark.long
def test_profiler_killed_while_running(python, tmp_path, scale):
    """The same for `run`: its child lives on without it, however early the kill comes."""
    rng = random.Random(19)
    kept = lived = 0
    for i in range(scale(15, 200)):
        path = tmp_path / ("%d.pyro" % i)
        token = "KILLTEST=" + uuid.uuid4().hex
        process = subprocess.Popen([PYROMETER, "run", "--sample=5000", "-o", str(path), "--",
                                    python.path, workload("chains.py"), "10", "200", "600"],
                                   env=dict([token.split("=")], PATH=os.environ["PATH"]),
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.choice([0.003, 0.02, 0.1, 0.7, scale(1.5, 3)]) * rng.random())
        process.kill()
        process.wait()
        # what the profiler had started is the program by now, or gone: nothing half-way, nothing stopped
        wait_until(lambda: not any(is_profiler(pid) for pid in processes_with(token)), "the child left or became the program")
        children = processes_with(token)
        try:
            # a shell that starts the interpreter has helpers, which end by themselves; so have we, born by a child of ours in that moment
            alive = [process_state(pid) for pid in children if not is_profiler(pid)]
            alive = [state for state in alive if state not in ("Z", "")]
            assert set(alive) <= {"R", "S", "D"}, alive
            time.sleep(0.02)
            children = processes_with(token)
            assert not alive or any(process_state(pid) in ("R", "S", "D") for pid in children), "the program has ended, too"
            lived += bool(alive)
        finally:
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        kept += bool(readable_to_the_last_chunk(path))
    assert kept > 0 and lived > 0


@pytest.mark.long_only
def test_what_a_kill_can_cost(default_python, target, tmp_path):
    """Half a second at most (and as much again on a busy machine), of a thread that moves and of one that stands still, whose run of
    equal samples is not over; and so at any moment before, which the chunks tell."""
    import pyro_decoder  # needs packages that no other test here does
    ends = []

    class Chunks(pyro_decoder.Recording):
        def read_samples(self, p, records):
            super().read_samples(p, records)
            ends.append(max(start + duration for *_, start, duration in self.samples) / 1e9)

    text = ("import threading, time\nprint('ready', flush=True)\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
            + spin_text("spin", 60))
    one = target([default_python.path, "-c", text])
    path = tmp_path / "x.pyro"
    process = subprocess.Popen([PYROMETER, "attach", "--quiet", "-o", str(path), str(one.pid)], stdin=subprocess.DEVNULL)
    time.sleep(6)
    process.kill()
    killed = time.clock_gettime(time.CLOCK_MONOTONIC)
    process.wait()
    decoded = Chunks(path.read_bytes())
    assert not decoded.finished
    last = {}
    for thread, _, _, _, start, duration in decoded.samples:
        last[thread] = max(last.get(thread, 0), (decoded.clock_origin_ns + start + duration) / 1e9)
    assert len(last) == 2 and all(killed - end < 1 for end in last.values()), (killed, last)
    assert all(later - end < 1 for end, later in zip(ends, ends[1:])), ends


def test_target_killed(python, tmp_path):
    text = spin_text("doomed", 0.5) + "import os\nos.kill(os.getpid(), 9)\n"
    recording = record([python.path, "-c", text], tmp_path / "x.pyro", check=128 + 9)
    assert recording.row("doomed")
    assert "whole" in recording.verify().stdout
    assert recording.stats()["exit_status"] == 137


def test_target_crashes(default_python, tmp_path):
    text = spin_text("doomed", 0.5) + "import ctypes\nctypes.string_at(0)\n"
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", check=128 + 11)
    assert recording.row("doomed")


def test_child_killed(default_python, tmp_path):
    text = (
        "import os, signal, time\n"
        "def in_child():\n"
        "    while True: pass\n"
        "pid = os.fork()\n"
        "if pid == 0: in_child()\n"
        "time.sleep(0.5)\n"
        "os.kill(pid, 9)\n"
        "os.waitpid(pid, 0)\n"
    )
    assert record([default_python.path, "-c", text], tmp_path / "x.pyro").row("in_child")


# --- disks ---


@pytest.fixture
def small_disk(tmp_path, is_root):
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = is_root and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", str(folder)],
                                         stderr=subprocess.DEVNULL).returncode == 0
    if not mounted:
        pytest.skip("no right to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_full(default_python, small_disk):
    """The program runs to its end with its own status; what was written before can be read."""
    path = small_disk / "x.pyro"
    text = "exec(open(%r).read())\nprint('finished')\nraise SystemExit(7)\n" % workload("execs.py")
    done = pyrometer("run", "--sample=20000", "-o", path, "--", default_python.path, "-c", text, "4")
    assert done.returncode == 7, done.stderr
    assert "finished" in done.stdout
    assert "no space left" in done.stderr, done.stderr
    assert os.path.getsize(path) > 1000
    assert sum(n for _, n in Recording(path).stacks()) > 0
    # every view says that there is no end
    assert "the end, which was not written" in pyrometer("report", path, check=0).stdout
    report = Recording(path).report()
    assert report["losses"]["write_error"] is True and report["run"]["finished"] is False


def test_disk_full_from_the_start(default_python, tmp_path):
    done = pyrometer("run", "--force", "-o", "/dev/full", "--", default_python.path, "-c", "print('ran')")
    assert done.returncode in (0, 1)
    assert "no space left" in done.stderr, done.stderr
    # either it refused before it started anything, or the program ran to its end
    assert done.stdout == ("ran\n" if done.returncode == 0 else "")


def test_disk_full_leaves_no_stub(default_python, small_disk):
    """What could not even begin would stand in the way the next time, and among the runs it would be the newest."""
    with open(str(small_disk / "rest"), "wb") as f, pytest.raises(OSError):
        while True:
            os.write(f.fileno(), bytes(4096))
    one_line_error(pyrometer("run", "-o", small_disk / "x.pyro", "--", default_python.path, "-c", "print('ran')"), 1)
    assert os.listdir(str(small_disk)) == ["rest"]


def test_disk_full_while_attached(default_python, target, small_disk):
    """The same; the exit status is ours here, and says that something is missing."""
    path = small_disk / "x.pyro"
    one = target([default_python.path, workload("execs.py"), "120"])
    done = pyrometer("attach", "--sample=20000", "-o", path, one.pid)  # ends by itself, for there is nothing left to do
    assert done.returncode == 1 and "no space left" in done.stderr, done.stderr
    assert one.alive() and not set(task_states(one.pid)) & set("Tt")
    assert sum(n for _, n in Recording(path).stacks()) > 0


def test_folder_cannot_be_written(default_python, is_root, tmp_path):
    done = pyrometer("run", "-o", "/proc/x.pyro", "--", default_python.path, "-c", "print('ran')")
    one_line_error(done, 1)
    done = pyrometer("run", "-o", tmp_path / "none" / "x.pyro", "--", default_python.path, "-c", "print('ran')")
    line = one_line_error(done, 1)
    assert "no such file or directory" in line


def test_output_that_cannot_be_written(default_python, tmp_path):
    recording = record([default_python.path, "-c", spin_text("spin", 0.3)], tmp_path / "x.pyro")
    with open("/dev/full", "wb") as full:
        for command in (["report"], ["export", "collapsed"], ["info"]):
            done = pyrometer(*command, recording.path, stdout=full)
            line = one_line_error(done, 1)
            assert "no space left" in line


def test_reader_that_goes_away(default_python, tmp_path):
    recording = record([default_python.path, "-c", spin_text("spin", 0.3)], tmp_path / "x.pyro")
    done = subprocess.run(["sh", "-c", '"$0" report "$1" | true', PYROMETER, recording.path], stderr=subprocess.PIPE,
                          timeout=harness.HANG)
    assert done.returncode == 0 and done.stderr == b""


# --- rights ---

NOBODY = 65534


@pytest.fixture
def as_nobody(is_root):
    """The binary where another user can run it, and a way to become that user."""
    if not is_root:
        pytest.skip("dropping rights needs root")
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o755)
    binary = os.path.join(folder, "pyrometer")
    for file in (PYROMETER, os.path.join(os.path.dirname(PYROMETER), "libpyrometer-agent.so")):
        os.chmod(shutil.copy(file, folder), 0o755)
    os.mkdir(os.path.join(folder, "work"))
    os.chown(os.path.join(folder, "work"), NOBODY, NOBODY)

    def become():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    def run(*args, preexec_fn=become):
        done = subprocess.run([binary, *map(str, args)], preexec_fn=preexec_fn, cwd=os.path.join(folder, "work"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              timeout=harness.HANG)
        harness.not_broken(done)
        return done

    run.become = become
    run.folder = os.path.join(folder, "work")
    yield run
    shutil.rmtree(folder)


def open_python():
    """A Python that every user may run."""
    if not os.access("/usr/bin/python3", os.X_OK):
        pytest.skip("no /usr/bin/python3")
    return "/usr/bin/python3"


SLEEPER = "import time; print('ready', flush=True); time.sleep(300)"


@pytest.mark.parametrize("command", ["attach", "dump"])
def test_another_users_process(command, as_nobody, target):
    one = target([open_python(), "-c", SLEEPER])
    more = ["-o", "x.pyro"] if command == "attach" else []
    line = one_line_error(as_nobody(command, *more, one.pid), 1)
    assert re.search(r"\b(other|another) user|belongs to|root", line), line
    assert "sudo" in line or "root" in line, line
    assert one.alive()


@pytest.mark.parametrize("command", ["attach", "dump"])
def test_own_process(command, as_nobody, target):
    """Without rights but one's own: one's own processes can be read."""
    if yama() > 0:
        pytest.skip("Yama forbids it here")
    one = target([open_python(), "-c", SLEEPER], preexec_fn=as_nobody.become)
    more = ["--for", "0.3", "-o", "x.pyro"] if command == "attach" else []
    done = as_nobody(command, *more, one.pid)
    assert done.returncode == 0, done.stderr


def test_run_needs_no_rights(as_nobody):
    done = as_nobody("run", "--quiet", "-o", "x.pyro", "--", open_python(), "-c", spin_text("mine", 0.4))
    assert done.returncode == 0, done.stderr
    assert Recording(os.path.join(as_nobody.folder, "x.pyro")).row("mine")


NOT_DUMPABLE = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); "


def test_protected_process(as_nobody, target):
    """One's own process that has forbidden to be read (prctl)."""
    one = target([open_python(), "-c", NOT_DUMPABLE + SLEEPER], preexec_fn=as_nobody.become)
    line = one_line_error(as_nobody("dump", one.pid), 1)
    assert re.search(r"dumpable|protect|sudo|CAP_SYS_PTRACE", line), line


def test_run_of_a_protected_process(as_nobody):
    """run: the program is not disturbed by our want of rights; the recording counts it."""
    text = NOT_DUMPABLE + "import time\ntime.sleep(0.6)\nprint('ran')\nraise SystemExit(3)"
    done = as_nobody("run", "-o", "x.pyro", "--", open_python(), "-c", text)
    assert done.returncode == 3 and done.stdout == "ran\n", (done.stdout, done.stderr)
    assert re.search(r"no right to read process \d+: .*dumpable.*sudo", done.stderr), done.stderr
    assert "too short" not in done.stderr
    assert "whole" in Recording(os.path.join(as_nobody.folder, "x.pyro")).verify().stdout


@pytest.mark.strict
def test_run_of_a_program_that_may_not_be_read(as_nobody):
    """It may be executed, but its file is not readable, and so the kernel hides its memory, from the first moment on."""
    binary = os.path.join(as_nobody.folder, "python3")
    shutil.copy(os.path.realpath(open_python()), binary)
    os.chmod(binary, 0o711)
    done = as_nobody("run", "-o", "x.pyro", "--", binary, "-c", "import time\ntime.sleep(0.3)\nprint('ran')")
    assert done.returncode == 0 and done.stdout == "ran\n", done.stderr
    path = os.path.join(as_nobody.folder, "x.pyro")
    report = pyrometer("report", path, check=0).stdout
    for text in (done.stderr, report):
        assert re.search(r"no right to read process \d+: .*dumpable.*sudo", text), text
        assert "too short" not in text, text
    stats = Recording(path).stats()
    assert (stats["processes_refused"], stats["processes_python"], stats["samples"]) == (1, 0, 0), stats


def test_what_is_slowed_and_cannot_be_read(as_nobody):
    """CPython 3.10 and 3.11 run slower while C functions are told; how much is seen from outside alone. If that cannot be, it is said."""
    binary = os.path.join(as_nobody.folder, "python3")
    shutil.copy(os.path.realpath(open_python()), binary)
    version = subprocess.run([binary, "-V"], stdout=subprocess.PIPE, encoding="utf-8").stdout
    os.chmod(binary, 0o711)
    for more in ([], ["--no-c-calls"]):
        done = as_nobody("run", "--calls", *more, "--force", "-o", "x.pyro", "--", binary, "-c", spin_text("mine", 0.3))
        assert done.returncode == 0, done.stderr
        path = os.path.join(as_nobody.folder, "x.pyro")
        recording = Recording(path)
        # waits for the recorder, which a sanitized one has, are nobody's time
        waited = recording.report()["losses"]["event_wait_seconds"]
        assert recording.row("mine", "--metric", "raw")["total"] + waited >= 0.25
        slowed = not more and re.search(r"3\.1[01]\.", version) is not None
        assert ("that is in these times, as a process could not be read" in pyrometer("report", path).stdout) == slowed


def test_root_without_the_capability(is_root, target):
    if not is_root:
        pytest.skip("dropping rights needs root")

    def become():
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    one = target([open_python(), "-c", SLEEPER], preexec_fn=become)
    done = subprocess.run(["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", PYROMETER, "dump", str(one.pid)],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                          timeout=harness.HANG)
    line = one_line_error(done, 1)
    assert "CAP_SYS_PTRACE" in line, line


def test_container_forbids(default_python, target):
    if os.uname().machine != "x86_64":
        pytest.skip("the filter is written for x86-64")
    one = target([default_python.path, "-c", SLEEPER])
    line = one_line_error(pyrometer("dump", one.pid, preexec_fn=forbid_process_vm_readv), 1)
    assert re.search(r"container|seccomp", line, re.I), line


def yama():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as f:
            return int(f.read())
    except OSError:
        return 0


def test_yama_forbids(as_nobody, target):
    if yama() == 0:
        pytest.skip("this kernel has no Yama, or it is off")
    one = target([open_python(), "-c", SLEEPER], preexec_fn=as_nobody.become)
    line = one_line_error(as_nobody("dump", one.pid), 1)
    assert "ptrace_scope" in line, line


# --- broken memory ---

PATTERNS = ["noise", "unmapped", "wild", "cycle", "list", "code"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_corrupt_memory(python, tmp_path, pattern):
    """One thread's structures are garbage: the other thread is recorded all the same."""
    recording = record([python.path, workload("corrupt.py"), pattern, "0.6"], tmp_path / "x.pyro")
    row = recording.row("healthy", "--metric", "cpu")
    assert row and row["total_percent"] > 50, recording.rows()
    assert "whole" in recording.verify().stdout
    if pattern in ("unmapped", "wild", "cycle"):
        # what leads nowhere is met, and told; or from 3.11 on not needed, for the frames are where they were
        stacks = recording.stacks()
        told = sum(count for stack, count in stacks if {"<unreadable>", "<moving>"} & set(stack))
        there = sum(count for stack, count in stacks if "victim_function" in stack[-1]) if python.version >= (3, 11) else 0
        whole = sum(count for _, count in stacks)
        assert told > 10 or there > whole / 3, stacks


# A code object that is no longer one, in a thread that sleeps: most of its samples are not read, for it has not moved.
GARBLED_CODE = """
import ctypes, os, time
def f():
    ctypes.memset(id(f.__code__), 0xff, 128)
    time.sleep(0.4)
    os._exit(0)
f()
"""


def test_every_unreadable_sample_is_counted(tmp_path):
    python = next((p for p in harness.find_pythons() if p.minor == "3.11"), None)
    if not python:
        pytest.skip("a 3.11 comes out of its own sleep with such a code object")
    recording = record([python.path, "-c", GARBLED_CODE], tmp_path / "x.pyro")
    shown = sum(count for stack, count in recording.stacks() if "<unreadable>" in stack)
    assert shown > 20, recording.stacks()
    assert recording.stats()["samples_damaged"] == shown


@pytest.mark.parametrize("pattern", PATTERNS)
def test_dump_of_corrupt_memory(python, target, pattern):
    one = target([python.path, workload("corrupt.py"), pattern, "120"])
    done = pyrometer("dump", "--locals", one.pid, check=0)
    assert "healthy" in done.stdout, done.stdout
    assert one.alive()


# --- wrong options ---


@pytest.mark.parametrize("args", [
    ["run"], ["run", "--"], ["run", "--nonsense", "true"], ["run", "--for", "x", "true"], ["run", "--for", "-1", "true"],
    ["run", "--for", "1e11", "true"], ["run", "--for", "inf", "true"], ["run", "--for", "nan", "true"], ["run", "--sample=1e-12", "true"],
    ["run", "--sample=0", "true"], ["run", "--sample=abc", "true"], ["run", "--sample=-5", "true"],
    ["run", "--sample=1e99", "true"], ["run", "-o"], ["run", "--quiet=3", "true"], ["attach"], ["attach", "1", "2"],
    ["dump"], ["dump", "1", "2"], ["report", "--by", "colour"], ["report", "--metric", "heat"], ["report", "--limit", "x"],
    ["report", "--sort", "nothing"], ["report", "--match", "("], ["report", "--json", "--csv"], ["report", "a", "b"],
    ["report", "--min-percent", "x"], ["report", "--process", "x"], ["export"], ["export", "painting"], ["verify", "a", "b"],
    ["verify", "--force", "x"], ["info", "a", "b"], ["selftest", "now"], ["nonsense"], ["--nonsense"], ["run", "--fo", "1", "true"],
], ids=" ".join)
def test_wrong_options(args, virgin):
    done = pyrometer(*args)
    one_line_error(done, 2)
    assert done.stdout == ""
    assert not list(virgin.iterdir()), "nothing is made for what cannot begin"

"""What the end-to-end tests share: the binary, the interpreters, recordings and what is in them.

Nothing here asserts on time. Time limits only turn a hang into a failure.
"""
import ctypes
import errno
import functools
import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYROMETER = os.path.abspath(os.environ.get("PYROMETER", os.path.join(ROOT, "build", "pyrometer")))
WORKLOADS = os.path.join(ROOT, "tests", "workloads")
EXPECTED_VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"]
HANG = 240  # seconds after which a command counts as hung

FILE_HEADER = 64  # bytes, before the first chunk of a recording

# Exit status of a program that a sanitizer ended; set by the driver in the sanitized build.
SANITIZER_STATUS = 99


class Python:
    """An interpreter found on this machine."""

    def __init__(self, path, version, name):
        self.path = path
        self.version = version  # (3, 11, 7)
        self.minor = "%d.%d" % version[:2]
        self.name = name

    def __repr__(self):
        return self.name

    def has(self, module):
        return subprocess.run([self.path, "-c", "import " + module], stdin=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0


def _probe(path):
    try:
        out = subprocess.run(
            [path, "-c", "import sys, sysconfig\nprint(sys.implementation.name, *sys.version_info[:3],"
             " sysconfig.get_config_var('Py_GIL_DISABLED') or 0)"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    if len(out) != 5 or out[0] != b"cpython" or out[4] != b"0":
        return None
    return tuple(int(x) for x in out[1:4])


@functools.lru_cache(maxsize=None)
def find_pythons():
    """Every CPython with a GIL: pyenv's newest of each minor version, the system's, `make pythons`'."""
    candidates = []
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for minor in EXPECTED_VERSIONS:
        found = glob.glob(os.path.join(pyenv, "versions", minor + ".*", "bin", "python" + minor))
        found.sort(key=lambda p: [int(x) for x in re.findall(r"\d+", p.split(os.sep)[-3])])
        candidates += [(path, "") for path in found[-1:]]
    candidates += [(path, "-system") for path in ["/usr/bin/python3", "/usr/local/bin/python3"]]
    candidates += [(path, "-system") for minor in EXPECTED_VERSIONS
                   for path in ["/usr/bin/python" + minor, "/usr/local/bin/python" + minor]]
    candidates += [(path, "-sid") for path in sorted(glob.glob(os.path.join(ROOT, "build", "pythons", "bin", "python3.*")))]
    pythons, seen = [], set()
    for path, suffix in candidates:
        real = os.path.realpath(path)
        if real in seen or not os.access(path, os.X_OK):
            continue
        version = _probe(path)
        if version and "%d.%d" % version[:2] in EXPECTED_VERSIONS:
            seen.add(real)
            pythons.append(Python(path, version, "%d.%d" % version[:2] + suffix))
    pythons.sort(key=lambda p: (p.version[:2], p.name))
    return pythons


def default_python():
    """The one that tests use which are not about versions: 3.12 if there, else the system's or the newest."""
    pythons = find_pythons()
    for wanted in ("3.12", "3.11-system"):
        for python in pythons:
            if python.name == wanted:
                return python
    return pythons[-1]


def two_pythons(pythons):
    """The oldest and the default one."""
    pick = [pythons[0]]
    default = default_python() if default_python() in pythons else pythons[-1]
    if default is not pythons[0]:
        pick.append(default)
    return pick


def workload(name):
    return os.path.join(WORKLOADS, name)


def pyrometer(*args, check=None, **kwargs):
    """Runs the binary to its end. check=N: it must leave with that status."""
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    kwargs.setdefault("stdout", subprocess.PIPE)
    kwargs.setdefault("stderr", subprocess.PIPE)
    kwargs.setdefault("timeout", HANG)
    text = kwargs.pop("text", True)
    if text:
        kwargs.setdefault("encoding", "utf-8")
        kwargs.setdefault("errors", "surrogateescape")
    done = subprocess.run([PYROMETER, *[str(a) for a in args]], **kwargs)
    not_broken(done)
    if check is not None:
        assert done.returncode == check, "status %d, not %d, of %s\n%s\n%s" % (
            done.returncode, check, " ".join(str(a) for a in args), done.stdout, done.stderr)
    return done


def not_broken(done):
    """However a command ends, it is not by a crash or a sanitizer's finding."""
    assert done.returncode >= 0, "killed by %s: %s" % (signal.Signals(-done.returncode).name, done.stderr)
    err = done.stderr if isinstance(done.stderr, str) else (done.stderr or b"").decode("utf-8", "replace")
    assert "Sanitizer" not in err and "runtime error:" not in err, err
    assert done.returncode != SANITIZER_STATUS or "PYROMETER_SANITIZED" not in os.environ, err


def one_line_error(done, status):
    """A refusal: this status, and one line on stderr that starts with the program's name."""
    assert done.returncode == status, (done.returncode, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert re.match(r"pyrometer( \w+)?: ", lines[0]), done.stderr
    return lines[0]


class Recording:
    """A profile file, seen through the commands."""

    def __init__(self, path, done=None, target_stdout=None):
        self.path = str(path)
        self.done = done
        self.stdout = target_stdout if target_stdout is not None else (done.stdout if done else "")

    def report(self, *args):
        return json.loads(pyrometer("report", self.path, "--json", "--limit", "1000000", "--min-percent", "0", *args, check=0).stdout)

    def rows(self, *args):
        return self.report(*args)["rows"]

    def row(self, name, *args, file=""):
        """The row of a function (thread, …) by the last part of its name; None where there is none.
        A name that the standard library uses too needs the file it is meant in."""
        found = [r for r in self.rows(*args)
                 if (r["name"] == name or r["name"].split(".")[-1] == name) and (r["file"] or "").endswith(file)]
        assert len(found) <= 1, found
        return found[0] if found else None

    def info(self):
        return json.loads(pyrometer("info", self.path, "--json", check=0).stdout)

    def stats(self):
        return self.info()["stats"]

    def stacks(self):
        """[( [frame, …] root first, count )] out of the collapsed export."""
        out = pyrometer("export", "collapsed", self.path, check=0).stdout
        stacks = []
        for line in out.splitlines():
            frames, _, count = line.rpartition(" ")
            assert count.isdigit(), "not a collapsed line: %.200s" % line
            stacks.append((frames.split(";"), int(count)))
        return stacks

    def verify(self, check=0):
        return pyrometer("verify", self.path, check=check)


def can_be_saved(path, *options):
    """Of a recording whose recorder was killed: the report of it opens, and so does that of a repaired copy, and they are the same.
    False if the recorder had not come so far as to write anything behind the header."""
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        return False
    good = str(path) + ".good"
    if os.path.getsize(path) == FILE_HEADER:
        pyrometer("report", path, check=0)
        assert "nothing" in one_line_error(pyrometer("verify", "--repair", "-o", good, path), 1)
        return False
    pyrometer("verify", "--repair", "--force", "-o", good, path, check=0)
    pyrometer("verify", good, check=0)
    torn, saved = Recording(path).report(*options), Recording(good).report(*options)
    torn["losses"]["torn_bytes"] = 0  # these are gone
    assert torn["rows"] == saved["rows"] and torn["total"] == saved["total"] and torn["losses"] == saved["losses"]
    return True


def record(command, path, *options, check=0, **kwargs):
    """`run` of a command into a file, quietly."""
    done = pyrometer("run", "--quiet", "-o", path, *options, "--", *command, check=check, **kwargs)
    return Recording(path, done)


class Target:
    """A program started beside the profiler; the first line of its output says that it is ready."""

    def __init__(self, command, ready="ready", **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8", **kwargs)
        self.pid = self.process.pid
        line = self.process.stdout.readline() if ready else ""
        assert not ready or line.strip() == ready, "the target said %r" % line

    def state(self):
        return process_state(self.pid)

    def asleep(self):
        """Waits until it sleeps, as it said it would."""
        wait_until(lambda: self.state() == "S", "its sleep")
        return self

    def alive(self):
        return self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.alive():
            self.process.kill()
        self.process.stdout.close()
        self.process.wait()


def process_state(pid):
    """R, S, D, T, t, Z of a process; '' if it is gone."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def task_states(pid):
    """The states of all its threads."""
    states = []
    for stat in glob.glob("/proc/%d/task/*/stat" % pid):
        try:
            with open(stat) as f:
                states.append(f.read().rpartition(")")[2].split()[0])
        except OSError:
            pass
    return states


def wait_until(condition, what, limit=60):
    """Polls; a hang becomes a failure that says what did not come."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("did not come: " + what)


# System calls of x86-64, and what a filter may do about one.
PTRACE, PROCESS_VM_READV, PROCESS_VM_WRITEV = 101, 310, 311
REFUSE, KILL = 0x00050001, 0x80000000  # EPERM; SIGSYS to the whole process


def seccomp(action, *numbers):
    """For preexec_fn: a filter of the system calls with these numbers, as containers have it. It goes to all that is started."""
    def install():
        if os.uname().machine != "x86_64":
            raise OSError("the filter is for x86-64")
        ops = [(0x20, 0, 0, 0)]  # load the number
        ops += [(0x15, len(numbers) - i, 0, number) for i, number in enumerate(numbers)]  # is it this one? then to the last op
        ops += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, action)]  # go on; or else
        program = b"".join(struct.pack("<HBBI", *op) for op in ops)
        buffer = ctypes.create_string_buffer(program, len(program))
        header = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(ops), ctypes.addressof(buffer)), 16)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(header)), 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")

    return install


forbid_process_vm_readv = seccomp(REFUSE, PROCESS_VM_READV)


def cpus():
    return sorted(os.sched_getaffinity(0))


def on_cpu(cpu):
    """For preexec_fn: the profiler (and what it starts) on one CPU."""
    def pin():
        os.sched_setaffinity(0, {cpu})
    return pin


def pinned(cpu, command):
    """A command that moves itself to another CPU."""
    taskset = shutil.which("taskset")
    assert taskset, "no taskset: apt-get install util-linux"
    return [taskset, "-c", str(cpu), *command]


def spin_text(function, seconds):
    """A program that is busy in a function of that name."""
    return (
        "import time\n"
        "def {f}():\n"
        "    end = time.perf_counter() + {s}\n"
        "    x = 0\n"
        "    while time.perf_counter() < end:\n"
        "        x += 1\n"
        "{f}()\n"
    ).format(f=function, s=seconds)


def is_marked(frames):
    """The stack says of itself that it moved, or that part of it could not be read."""
    return any(f in ("<moving>", "<unreadable>") for f in frames)


def frame_name(frame):
    """The function of a frame "name (file:line)"."""
    return frame.partition(" (")[0]


def names_in(frames, pattern):
    """The match of the pattern in each frame whose function has one, root first."""
    found = []
    for frame in frames:
        match = re.search(pattern, frame_name(frame))
        if match:
            found.append(match.groups() if match.groups() else match.group())
    return found


if __name__ == "__main__":
    for p in find_pythons():
        print(p.name, ".".join(map(str, p.version)), p.path)
    sys.exit(0)


def read_to_end(terminal):
    """What comes out of a pseudo-terminal until its last writer has closed.

    The kernel may say EIO while the last few thousand bytes still wait for their way from the writer's buffer to the reader's
    (7 of 60000 times under load): only a second EIO in a row is the end, because each read waits for what is on its way."""
    out, ends = b"", 0
    while ends < 2:
        try:
            piece = os.read(terminal, 1000)
        except OSError as error:
            assert error.errno == errno.EIO, error
            piece = b""
        ends = 0 if piece else ends + 1
        out += piece
    return out

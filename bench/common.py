"""What every measure shares: the two CPUs, children with their CPU time, targets, tables, musts.

The order of things on the machine is the same everywhere: the target is pinned to the first CPU we may
use, the profiler to the second, so that they overlap as they do on a user's machine and neither slows
the other by mere scheduling.
"""
import json
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(BENCH)
BUILD = os.path.join(ROOT, "build")
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

import harness  # noqa: E402  the tests know where the interpreters and the workloads are

PYROMETER = harness.PYROMETER
HANG = 300  # seconds after which a command counts as hung
GRACE = 20  # seconds that an interrupted one has to write its output


class Failed(Exception):
    """A command of the bench did not do its work."""


class Done:
    """A child that has ended: status, output, wall and CPU seconds, memory, bytes from the disk, and when it ran (time.monotonic)."""

    def __init__(self, command, status, stdout, stderr, begin, end, usage, disk_bytes):
        self.command, self.status, self.stdout, self.stderr = command, status, stdout, stderr
        self.begin, self.end, self.wall = begin, end, end - begin
        self.cpu = usage.ru_utime + usage.ru_stime
        self.peak_bytes = usage.ru_maxrss * 1024
        self.disk_bytes = disk_bytes  # those that it had to wait for, mapped files and what is read ahead included; None: not known

    def expect(self, status=0):
        if self.status != status:
            raise Failed("status %d of: %s\n%s" % (self.status, " ".join(self.command), self.stderr[-2000:]))
        return self


def pin(cpu):
    """For preexec_fn: this child, and what it starts, on one CPU."""
    return (lambda: os.sched_setaffinity(0, {cpu})) if cpu is not None else None


def alarms(child, limit):
    """Timers that interrupt a child at `limit` seconds, if there is one, and kill it when it hangs."""
    found = [threading.Timer(limit + GRACE if limit else HANG, os.kill, [child.pid, signal.SIGKILL])]
    if limit:
        found.append(threading.Timer(limit, os.kill, [child.pid, signal.SIGINT]))
    for timer in found:
        timer.daemon = True
        timer.start()
    return found


def disk_bytes(pid):
    """What the kernel has fetched from the disk for a process; also of one that has ended and was not reaped yet."""
    try:
        with open("/proc/%d/io" % pid) as f:
            return int(f.read().partition("\nread_bytes:")[2].split()[0])
    except (OSError, IndexError, ValueError):
        return None


def run(command, cpu=None, env=None, cwd=None, limit=None):
    """Runs a command to its end and measures it by wait4: its whole CPU time, children it waited for included.

    One that is not done after `limit` seconds is interrupted, as by Ctrl-C: some profilers stop after so many
    samples, not after so many seconds.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 env=env, cwd=cwd, preexec_fn=pin(cpu))
        timers = alarms(child, limit)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        end = time.monotonic()
        for timer in timers:  # while the pid is still the child's
            timer.cancel()
        fetched = disk_bytes(child.pid)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for f in (out, err):
            f.seek(0)
            texts.append(f.read().decode("utf-8", "replace"))
    return Done(command, child.returncode, texts[0], texts[1], begin, end, usage, fetched)


class Target:
    """A program that runs beside the profiler until the block ends. Its first line of output is "ready"."""

    def __init__(self, command, cpu):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        encoding="utf-8", preexec_fn=pin(cpu))
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if line.strip() != "ready":
            self.process.kill()
            raise Failed("the target %s said %r" % (" ".join(command), line))

    def cpu_ns(self):
        """CPU time of its main thread so far, by the scheduler."""
        with open("/proc/%d/schedstat" % self.pid) as f:
            return int(f.read().split()[0])

    def __enter__(self):
        return self

    def finish(self):
        """Asks it to end (SIGTERM) and returns the rest of its output."""
        self.process.terminate()
        out, _ = self.process.communicate(timeout=HANG)
        return out

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdout.close()
        self.process.wait()


class Bench:
    """One run of the bench: its settings, where it writes, and what it has found so far."""

    def __init__(self, quick, names=""):
        self.quick = quick
        self.cpus = sorted(os.sched_getaffinity(0))
        if len(self.cpus) < 2:
            raise Failed("the bench needs two CPUs: one for the target, one for the profiler")
        self.target_cpu, self.sampler_cpu = self.cpus[:2]
        self.pythons = [p for p in harness.find_pythons() if not names or p.name in names.split(",")]
        if not self.pythons:
            raise Failed("no CPython is named %s: there are %s" % (names, ", ".join(p.name for p in harness.find_pythons())))
        self.python = harness.default_python()
        self.peers = []
        self.places = {}  # by the name of a CPython: what exact.py has installed for it
        self.musts = []
        self.results = {}
        self.folder = tempfile.mkdtemp(prefix="pyrometer-bench-")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def scale(self, quick, full):
        return quick if self.quick else full

    def path(self, name):
        """A file of the bench's own folder, not there yet."""
        path = os.path.join(self.folder, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.unlink(path)
        return path

    def python_named(self, minor):
        """The newest interpreter of a minor version, or None."""
        found = [p for p in self.pythons if p.minor == minor]
        return max(found, key=lambda p: p.version) if found else None

    def peer_list(self, **wanted):
        """The peers here whose attributes have these values."""
        return [p for p in self.peers if all(getattr(p, k) == v for k, v in wanted.items())]

    def must(self, measure, text, value, limit, ok, note=""):
        self.musts.append({"measure": measure, "text": text, "value": value, "limit": limit,
                           "pass": bool(ok), "note": note})

    def at_most(self, measure, text, value, limit, note=""):
        self.must(measure, text, value, limit, value is not None and value <= limit, note)

    def at_least(self, measure, text, value, limit, note=""):
        self.must(measure, text, value, limit, value is not None and value >= limit, note)


def workload(name):
    return harness.workload(name)


def target_program(name):
    return os.path.join(BENCH, "targets", name)


def median(values):
    values = list(values)
    return statistics.median(values) if values else None


def say(text=""):
    print(text, flush=True)


def table(title, header, rows):
    """Prints rows (lists of texts) under a header: the first column to the left, the others to the right."""
    cells = [header] + [["" if c is None else str(c) for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    say()
    say(title)
    for n, row in enumerate(cells):
        say("  " + "  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))))
        if n == 0:
            say("  " + "  ".join("-" * w for w in widths))


def environment():
    """What a reader of the figures must know about the machine."""
    model = ""
    try:
        with open("/proc/cpuinfo") as f:
            model = next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), "")
    except OSError:
        pass
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": " ".join((platform.system(), platform.release())),
        "machine": platform.machine(),
        "cpu": model,
        "cpus": len(os.sched_getaffinity(0)),
        "load_average": [round(x, 2) for x in os.getloadavg()],
        "pyrometer": run([PYROMETER, "--version"]).stdout.strip(),
        "pythons": {p.name: ".".join(map(str, p.version)) for p in harness.find_pythons()},
    }


def info(path):
    """The counters of one of our recordings."""
    return json.loads(run([PYROMETER, "info", "--json", path]).expect().stdout)["stats"]

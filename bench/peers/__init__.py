"""The other profilers. One file each: how it is installed, how it is run, what comes out.

A peer that cannot be had fails the bench, unless peers/NAME.missing says why it is missing (the text is
printed and kept in the JSON). A peer that says itself what it wants of the machine (`wants`) is left out
where that is not there.

Exact profilers (`Exact`) are installed by `exact.py` for each CPython that a measure runs on, in the newest
version that there is for it; peers/NAME-3.X.missing then says why one is missing there.
"""
import importlib
import math
import os
import pkgutil
import sys

from common import BUILD, Failed, run

HERE = os.path.dirname(os.path.abspath(__file__))


class Peer:
    name = ""          # also names its venv and its .missing file
    label = ""         # in tables; two ways of running one profiler have two labels
    requirement = ""   # for pip: exact
    records = True     # else it only looks at what others recorded
    attaches = True    # to a process that runs; else it only starts programs
    blocking = False   # stops its target
    draws = False      # no profiler, but draws the flame graphs of one
    exact = None       # what it counts: "calls", "lines"; None: it samples
    python = None      # minor version the target must have; None: the bench's default
    settle = 0.25      # seconds from its start until it samples at its full rate
    max_hz = 10000     # asking for more is asking for trouble

    def __init__(self, bench):
        self.bench = bench
        self.venv = os.path.join(BUILD, "bench-venv-" + self.name)

    def program(self, name):
        return os.path.join(self.venv, "bin", name)

    def wants(self):
        """What the machine lacks for this peer, in a few words; "" if nothing."""
        return ""

    def install(self):
        """Its own venv, of the interpreter that the targets run on; kept between runs."""
        stamp = os.path.join(self.venv, "ready")
        wanted = "%s on %s\n" % (self.requirement, self.bench.python.path)
        if os.path.exists(stamp) and open(stamp).read() == wanted:
            return
        run([self.bench.python.path, "-m", "venv", "--clear", self.venv]).expect()
        run([self.program("python"), "-m", "pip", "install", "--quiet", self.requirement]).expect()
        with open(stamp, "w") as f:
            f.write(wanted)

    def target_python(self):
        return self.bench.python_named(self.python) if self.python else self.bench.python

    def attach(self, pid, hz, seconds, out):
        """The command that samples a process for some seconds into a file."""
        raise NotImplementedError

    def run(self, script, hz, out):
        """The command that starts `script` (a list: path and arguments) under the profiler."""
        raise NotImplementedError

    def samples(self, done, out):
        """How many samples were taken, by its own word."""
        raise NotImplementedError

    def error_rate(self, done):
        """Percent of its looks that gave nothing, by its own word; None where it does not say."""
        return None

    def stacks(self, out):
        """[( [function, …] root first, count )]"""
        raise NotImplementedError


class Exact(Peer):
    """Counts every call or every line, from inside the program. One version for each CPython."""
    package = ""       # on PyPI, unpinned: the newest; "" is the standard library
    least = ""         # for pip, as ">=2": those below do another thing
    pure = False       # nothing but Python: one for all CPythons
    attaches = None    # it samples nothing: the measures of samplers pass it over
    exact = "calls"
    judged = False     # a must compares with it: it needs as many turns as ours
    suffix = ".out"    # of its file

    def install(self):
        """Not here: exact.py does, for each CPython."""

    def command(self, python, script, out, modules=()):
        """The command that runs `script` (a list) on an interpreter and leaves a file. `modules` are those it is about."""
        raise NotImplementedError


def whole(seconds):
    """For profilers that only know whole seconds: enough of them."""
    return str(max(1, math.ceil(seconds)))


def collapsed(out, name_of):
    """Reads "frame;frame count" lines; `name_of` makes a function's name of a frame, or None to leave it out."""
    stacks = []
    with open(out, encoding="utf-8", errors="replace") as f:
        for line in f:
            frames, _, count = line.rstrip("\n").rpartition(" ")
            if frames and count.isdigit():
                names = [name_of(frame) for frame in frames.split(";")]
                stacks.append(([n for n in names if n is not None], int(count)))
    return stacks


def load(bench):
    """All peers, installed. Returns (peers, {name: version or reason}, names that are missing without a reason)."""
    sys.path.insert(0, HERE)
    peers, notes, bad = [], {}, []
    for module in sorted(m.name for m in pkgutil.iter_modules([HERE])):
        for kind in importlib.import_module("peers." + module).PEERS:
            peer = kind(bench)
            if notes.get(peer.name, "").startswith("missing"):
                continue
            lack = peer.wants()
            try:
                if lack:
                    notes[peer.name] = "missing: " + lack
                    continue
                peer.install()
            except (Failed, OSError) as e:
                reason = os.path.join(HERE, peer.name + ".missing")
                if os.path.exists(reason):
                    notes[peer.name] = "missing: " + open(reason).read().strip()
                else:
                    notes[peer.name] = "missing, and bench/peers/%s.missing gives no reason: %s" % (peer.name, e)
                    bad.append(peer.name)
                continue
            if not peer.exact:
                notes[peer.name] = peer.requirement
            peers.append(peer)
    return peers, notes, bad

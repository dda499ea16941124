"""What the measures of exact instruments share: packages for each CPython, programs, and commands that take turns.

A command is timed whole: from its start until its file is on the disk and it has ended. The programs print the
seconds of their work too ("inside"), without start and save; and there is the CPU time of the command with all that it
started ("cpu"), which other programs on the machine disturb less. What a profiler adds is its time less that of the
bare command of the same round; figures are medians over the rounds.

Packages go into folders of their own, one for the programs and one for the peers of each CPython, and come in by
PYTHONPATH, for the bare command as well: so the interpreters stay as they are, and one that knows no virtual
environments (`make pythons`) is treated like the others.
"""
import json
import os

from common import BUILD, PYROMETER, Failed, info, median, run, say, target_program
from peers import HERE as REASONS

WAITS = 0.01  # of the command's time, for one traced thread at full rate on two cores
PROGRAM_PACKAGES = ["Jinja2==3.1.6", "lark==1.2.2"]
MEMORY_PACKAGES = ["sqlglot==26.33.0", "pandas==%s"]

# name: script and first arguments, size (quick, full), modules that its work is in
PROGRAMS = {
    "fib": (["calls.py", "fib"], (25, 29), []),
    "oo": (["calls.py", "oo"], (30000, 150000), []),
    "c": (["calls.py", "c"], (200000, 1000000), []),
    "template": (["template.py"], (15, 80), ["jinja2"]),
    "parser": (["parser.py"], (8, 40), ["lark"]),
}

# The same for the measures of memory. Longer: what they promise is a few percent.
ALLOCATORS = {
    "mix": (["allocate.py", "mix"], (100000, 1000000), []),
    "grow": (["allocate.py", "grow"], (1000, 10000), []),
    "bytes": (["allocate.py", "bytes"], (150000, 1500000), []),
    "deep20": (["allocate.py", "deep20"], (40000, 450000), []),
    "deep100": (["allocate.py", "deep100"], (15000, 140000), []),
    "calls": (["allocate.py", "calls"], (800, 6500), []),
}
JOBS = {
    "pandas": (["pandas_job.py"], (2, 16), ["pandas"]),
    "template": (["template.py"], (30, 260), ["jinja2"]),
    "sql": (["sql.py"], (4, 30), ["sqlglot"]),
    "json": (["json_job.py"], (4, 40), ["json"]),
    "parser": (["parser.py"], (12, 95), ["lark"]),
}


class Place:
    """A CPython, with what was installed for it."""

    def __init__(self, bench, python):
        self.bench, self.python = bench, python
        self.programs = os.path.join(BUILD, "bench-venv-programs-" + python.name)
        self.packages = os.path.join(BUILD, "bench-venv-exact-" + python.name)
        self.versions, self.missing = {}, {}
        self.peers = []

    def environment(self, peers=True):
        folders = [self.programs, self.packages] if peers else [self.programs]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(folders), "PYTHONHASHSEED": "0"}

    def pip(self, folder, requirement, module, pure=False):
        """Installs into a folder, once; another CPython's pip does it for one that has none, and can build nothing for it."""
        stamp = os.path.join(folder, requirement + ".ready")
        if os.path.exists(stamp):
            return
        owner = self.python if self.python.has("pip") else self.bench.python
        foreign = [] if owner is self.python or pure else ["--only-binary", ":all:", "--python-version", self.python.minor]
        run([owner.path, "-m", "pip", "install", "--quiet", "--upgrade", "--prefer-binary", *foreign, "--target", folder, requirement]).expect()
        run([self.python.path, "-c", "import " + module], env=self.environment()).expect()
        open(stamp, "w").close()

    def install(self):
        for requirement in PROGRAM_PACKAGES:
            self.pip(self.programs, requirement, requirement.partition("==")[0].lower())
        for peer in [p for p in self.bench.peers if p.exact]:
            try:
                if peer.package and peer.package not in self.missing:
                    self.pip(self.packages, peer.package + peer.least, peer.package, peer.pure)
            except Failed as e:
                self.missing[peer.package] = str(e)
            if peer.package not in self.missing:
                self.peers.append(peer)
        self.versions = self.installed(self.packages)
        return self

    def install_jobs(self):
        """What only the measures of memory need; pandas in the version that many CPythons have, else in their last or first."""
        pandas = {"3.8": "2.0.3", "3.15": "3.1.1"}.get(self.python.minor, "2.3.3")
        for requirement in MEMORY_PACKAGES:
            self.pip(self.programs, requirement % pandas if "%s" in requirement else requirement, requirement.partition("==")[0])
        return self

    def installed(self, folder):
        text = run([self.bench.python.path, "-m", "pip", "list", "--path", folder, "--format", "json"]).expect().stdout
        wanted = {p.package for p in self.bench.peers if p.exact and p.package}
        return {p["name"].replace("-", "_"): p["version"] for p in json.loads(text) if p["name"].replace("-", "_") in wanted}

    def ours(self, *instruments):
        """Pyrometer, in the shape of a peer's command."""
        return lambda script, out, modules=(): [PYROMETER, "run", "--quiet", "--force", *instruments, "-o", out, "--",
                                                self.python.path, *script]


def place(bench, python):
    """The place of a CPython, installed and announced once in a run of the bench."""
    if python.name in bench.places:
        return bench.places[python.name]
    found = bench.places[python.name] = Place(bench, python).install()
    say("exact peers on %s (%s): %s" % (python.name, ".".join(map(str, python.version)),
                                        ", ".join("%s %s" % pair for pair in sorted(found.versions.items())) or "none"))
    for name, why in found.missing.items():
        reason = os.path.join(REASONS, "%s-%s.missing" % (name, python.minor))
        if os.path.exists(reason):
            with open(reason) as f:
                say("  %s is missing: %s" % (name, f.read().strip()))
        else:
            bench.must("peers", "%s on %s is here" % (name, python.name), None, None, False, why.strip().splitlines()[-1])
    return found


def pythons(bench, *quick):
    """The CPythons to measure on: those named in a quick run, else one of each version; the system's are only twins."""
    found = [p for p in bench.pythons if not p.name.endswith("-system")]
    return [p for p in found if p.name in quick] if bench.quick else found


def script_of(bench, name, *more, programs=PROGRAMS):
    words, sizes, modules = programs[name]
    return [target_program(words[0]), *words[1:], str(bench.scale(*sizes)), *more], modules


def seconds_of(text):
    """What the program said its work took; profilers may have said something as well."""
    numbers = [line for line in text.splitlines() if line.replace(".", "", 1).strip().isdigit()]
    if not numbers:
        raise Failed("the program did not say how long it took: %.200s" % text)
    return float(numbers[0])


def counted(out):
    """The counters of one of our recordings, which must have events in it, and all of them."""
    stats = info(out)
    if not stats["events"] or stats["events_lost"]:
        raise Failed("a recording with %(events)d events, %(events_lost)d lost" % stats)
    return stats


def waits():
    """(a list, what to call after each turn): which part of the command's time the program waited for the recorder."""
    waited = []
    return waited, lambda done, out: waited.append(counted(out)["event_wait_ns"] / 1e9 / done.wall)


def at_most_slower(bench, measure, text, figures, limit):
    """A slowdown as a must: the worse of whole and inside, so that the start of the interpreter, which all have, hides nothing."""
    bench.at_most(measure, text, max(figures["slowdown"], figures["inside"]), limit,
                  "whole %.2f, %s" % (figures["slowdown"], other_clocks(figures["inside"], figures["cpu"])))


def other_clocks(inside, cpu):
    return "inside %.2f, by CPU time %.2f" % (inside, cpu)


class Contestant:
    def __init__(self, label, command, suffix=".out", rounds=None, env=None, after=None):
        self.label = label
        self.command = command  # from the path of its file to a list
        self.suffix, self.env = suffix, env
        self.rounds = rounds    # how many of the turns it takes part in; None: all
        self.after = after      # called with (done, path of its file) after each turn
        self.whole, self.inside, self.cpu = {}, {}, {}  # seconds by round


class Turns:
    """Commands that take turns, in another order each round. The first contestant is the bare command."""

    def __init__(self, bench, contestants, env):
        self.bench, self.env = bench, env
        self.contestants = contestants
        self.by_label = {c.label: c for c in contestants}

    def run(self, rounds):
        for n in range(rounds):
            shift = n % len(self.contestants)
            for c in self.contestants[shift:] + self.contestants[:shift]:
                if c.rounds is None or n < c.rounds:
                    self.once(c, n)
        return self

    def once(self, c, n):
        out = self.bench.path("exact" + c.suffix)
        done = run(c.command(out), cwd=self.bench.folder, env=c.env or self.env).expect()
        c.whole[n], c.inside[n], c.cpu[n] = done.wall, seconds_of(done.stdout), done.cpu
        if c is not self.contestants[0] and not c.label.startswith("control") and not os.path.getsize(out):
            raise Failed("no file of " + c.label)
        if c.after:
            c.after(done, out)

    def over_bare(self, label, how, times):
        bare = getattr(self.contestants[0], times)
        return median(how(t, bare[n]) for n, t in getattr(self.by_label[label], times).items())

    def seconds(self, label, times="whole"):
        return median(getattr(self.by_label[label], times).values())

    def slowdown(self, label, times="whole"):
        return self.over_bare(label, lambda t, bare: t / bare, times)

    def added(self, label, times="whole"):
        return self.over_bare(label, lambda t, bare: t - bare, times)

    def ratio(self, label, other, times="whole"):
        """What one adds, of what another adds."""
        theirs = self.added(other, times)
        return self.added(label, times) / theirs if theirs else None

    def figures(self):
        return {c.label: {"seconds": self.seconds(c.label), "slowdown": self.slowdown(c.label), "added": self.added(c.label),
                          "inside": self.slowdown(c.label, "inside"), "cpu": self.slowdown(c.label, "cpu"),
                          "rounds": len(c.whole)} for c in self.contestants}


def bare(place, script):
    return Contestant("bare", lambda out: [place.python.path, *script])


def peer_contestants(place, script, modules=(), rounds=None, few=None, **wanted):
    """The peers here with these attributes; those that no must looks at take part in a few rounds only."""
    return [Contestant(p.label, lambda out, p=p: p.command(place.python.path, script, out, modules), p.suffix,
                       rounds if p.judged else few)
            for p in place.peers if all(getattr(p, k) == v for k, v in wanted.items())]

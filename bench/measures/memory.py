"""What `run --memory` costs, on every CPython: programs that do little but allocate, and jobs of libraries from PyPI.

Whole commands with their file on disk, in turns (exact.py says how): bare, ours in its three modes, memray in three,
tracemalloc with 1 and 25 frames, scalene. The musts are geometric means over the jobs; and what ours adds of what a
peer adds, summed over jobs and over allocators as parts of the bare time, so that no program counts more for being long.

They are judged by the worst of three clocks: the whole command, the work alone, and the CPU time of the program. The
third is there because the first two can be lucky: on a busy machine a command with a recorder was seen to end in half
the bare one's time, while it took more CPU time. A program that computes cannot end sooner than its CPU time on a
machine of its own. (Peers work inside the program, so theirs is that of the whole command; of ours the rest is the
recorder's, which works on another CPU if there is one: the CPU time of all processes is told too.) Another bare
command in the same turns is the control: where it is far from 1, nothing by the wall clock says anything.

3 % for sampling is less than turns of whole commands can tell. There the program does its work in many small parts and
takes the CPU time of each; what counts is the part at the lower decile, over all runs: others on the machine only ever
make a part dearer, and never all of them. It has a control as well. But a decile hides what hits only some parts, as a
recorder that wakes up does, and the start: so the program's whole CPU time is judged too, and the worse counts.
"""
import math

import exact
from common import Failed, median, table
from exact import Contestant, Turns

OURS = {"heap": ["--memory=heap"], "objects": ["--memory=objects"], "sampled": ["--memory=sampled"]}
LIMITS, GOALS = {"heap": 1.15, "objects": 1.6}, {"heap": 1.05, "objects": 1.3}
OF_PEERS = [("heap", "memray", 1 / 4), ("objects", "memray objects", 1 / 3), ("objects", "tracemalloc 25", 1 / 10)]
SAMPLED, DECILE = 1.03, 10  # parts out of a hundred
PEERS = ["memray", "memray objects", "memray aggregate", "tracemalloc 1", "tracemalloc 25", "scalene"]
LABELS = ["control", *OURS, *PEERS]
GROUPS = {"jobs": exact.JOBS, "allocators": exact.ALLOCATORS}
CLOCKS = {"whole": "slowdown", "inside": "inside", "cpu": "cpu", "program": "program"}
JUDGED = ["whole", "inside", "program"]
CLOCKS_TOLD = ["whole", "inside", "program", "cpu"]
NOISE = 0.05  # by which the control may be off

# Rounds of a job that make a part of some 20 ms
PARTS = {"pandas": 1, "template": 10, "sql": 1, "json": 1, "parser": 1}


def rounds_of(bench, name, label):
    """Those that judge take part in all turns, but for the slowest: a tenth of thirty times the bare time needs no precision."""
    if label in ("memray", "memray objects"):
        return bench.scale(2, None)
    if label == "tracemalloc 25":
        return bench.scale(1, 3)
    return bench.scale(1 if name == "json" else 0, 2)  # in a quick run only to see that they work


def compare(bench, place, group, name):
    script, modules = exact.script_of(bench, name, programs=GROUPS[group])
    bare = exact.bare(place, script)
    contestants = [bare, Contestant("control", bare.command)]
    program = {label: [] for label in OURS}  # its CPU time, by round

    def after(label):
        def look(done, out):
            stats = exact.counted(out)
            program[label].append((stats["user_ns"] + stats["system_ns"]) / 1e9)
        return look

    contestants += [Contestant(label, lambda out, o=options: place.ours(*o)(script, out), ".pyro", after=after(label))
                    for label, options in OURS.items()]
    for c in exact.peer_contestants(place, script, modules, exact="memory"):
        c.rounds = rounds_of(bench, name, c.label)
        contestants += [c] if c.rounds != 0 else []
    turns = Turns(bench, contestants, place.environment()).run(bench.scale(3, 11))
    figures = turns.figures()
    for label in figures:
        figures[label]["program"] = figures[label]["cpu"]
    for label, times in program.items():
        figures[label]["program"] = median(t / bare.cpu[n] for n, t in enumerate(times))
    return {"python": place.python.name, "group": group, "program": name, "contestants": figures}


def slowdowns(rows, group, label, clock):
    found = [row["contestants"].get(label, {}).get(CLOCKS[clock]) for row in rows if row["group"] == group]
    return [value for value in found if value is not None]


def geomean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def added_of(rows, group, label, peer, clock):
    """What one adds of what another adds, as parts of the bare time, over all programs of the group."""
    theirs = sum(slowdowns(rows, group, peer, clock)) - len(slowdowns(rows, group, peer, clock))
    ours = sum(slowdowns(rows, group, label, clock)) - len(slowdowns(rows, group, label, clock))
    return ours / theirs if theirs > 0 else None


def clocks(values):
    return "whole %.3f, inside %.3f, program's CPU %.3f, all CPU %.3f" % tuple(values[clock] for clock in CLOCKS_TOLD)


def noise(rows):
    """How far the control is off by the wall clock, in words, for a note."""
    off = geomean(row["contestants"]["control"]["slowdown"] for row in rows)
    return "; control %.3f%s" % (off, " (too noisy to tell by the wall clock)" if abs(off - 1) > NOISE else "")


def judge(bench, python, rows):
    """`rows` are those of one CPython."""
    for label, limit in LIMITS.items():
        means = {clock: geomean(slowdowns(rows, "jobs", label, clock)) for clock in CLOCKS}
        worst = max(means[clock] for clock in JUDGED)
        bench.at_most("memory", "%s %s, geometric mean over the jobs" % (python.name, label), worst, limit,
                      "%s, goal %g %s; program's CPU over the allocators %.2f%s" % (
                          clocks(means), GOALS[label], "met" if worst <= GOALS[label] else "not met",
                          geomean(slowdowns(rows, "allocators", label, "program")), noise(rows)))
    for label, peer, limit in OF_PEERS:
        for group in GROUPS:
            shares = {clock: added_of(rows, group, label, peer, clock) for clock in CLOCKS}
            if None in shares.values():  # the peer is not here, or added nothing
                continue
            bench.at_most("memory", "%s %s, %s, added of %s's" % (python.name, label, group, peer),
                          max(shares[clock] for clock in JUDGED), limit, clocks(shares) + noise(rows))


def show(rows, clock, title, labels=LABELS):
    def cell(values):
        return "%.2f" % geomean(values) if values else ""

    lines = []
    for python in dict.fromkeys(row["python"] for row in rows):
        for group in GROUPS:
            here = [row for row in rows if row["python"] == python and row["group"] == group]
            for row in here:
                lines.append(["%s %s" % (python, row["program"]), "%.3f" % row["contestants"]["bare"]["seconds"]]
                             + [cell(slowdowns([row], group, label, clock)) for label in labels])
            means = [slowdowns(here, group, label, clock) for label in labels]  # only of those who took part in all
            lines.append(["%s, all %s" % (python, group), ""] + [cell(values if len(values) == len(here) else []) for values in means])
    table(title, ["CPython, program", "bare s", *labels], lines)


def parts_of(text):
    line = next((t for t in text.splitlines() if t.startswith("CPU ")), None)
    if not line:
        raise Failed("the program did not say what its parts took: %.200s" % text)
    return [float(word) for word in line.split()[1:]]


def low(values):
    """The value that a tenth of them are below."""
    return sorted(values)[len(values) * DECILE // 100]


def sampled(bench, place, name):
    count = bench.scale(12, 40)
    script = [exact.script_of(bench, name, programs=exact.JOBS)[0][0], str(PARTS[name]), str(count)]
    parts, program = {}, []

    def collect(label):
        def after(done, out):
            parts.setdefault(label, []).extend(parts_of(done.stdout)[1:])  # the first warms up
            if label == "sampled":
                stats = exact.counted(out)
                program.append((stats["user_ns"] + stats["system_ns"]) / 1e9)
        return after

    bare = exact.bare(place, script)
    contestants = [bare, Contestant("control", bare.command),
                   Contestant("sampled", lambda out: place.ours(*OURS["sampled"])(script, out), ".pyro")]
    for c in contestants:
        c.after = collect(c.label)
    turns = Turns(bench, contestants, place.environment()).run(bench.scale(6, 31))
    return {"python": place.python.name, "program": name, "part_ms": 1e3 * median(parts["bare"]),
            "sampled": low(parts["sampled"]) / low(parts["bare"]), "control": low(parts["control"]) / low(parts["bare"]),
            "program_cpu": median(t / bare.cpu[n] for n, t in enumerate(program)), "whole_cpu": turns.slowdown("sampled", "cpu"), "whole_cpu_control": turns.slowdown("control", "cpu"),
            "whole": turns.slowdown("sampled"), "whole_control": turns.slowdown("control")}


FIGURES = ["sampled", "control", "program_cpu", "whole_cpu", "whole_cpu_control", "whole", "whole_control"]


def sampling(bench, place):
    rows = [sampled(bench, place, program) for program in exact.JOBS]
    means = {figure: geomean(row[figure] for row in rows) for figure in FIGURES}
    noisy = " (too noisy to tell)" if abs(means["control"] - 1) > SAMPLED - 1 else ""
    worse = max(means["sampled"], means["program_cpu"])
    bench.must("memory", "%s sampled, geometric mean over the jobs" % place.python.name, worse, SAMPLED, worse <= SAMPLED and not noisy,
                  "parts %.3f, control %.3f%s; program's CPU %.3f, of all processes %.3f, control %.3f" % (
                      means["sampled"], means["control"], noisy, means["program_cpu"], means["whole_cpu"], means["whole_cpu_control"]))
    table("%s, sampled: CPU time of parts of the work, and whole commands, over bare ones" % place.python.name,
          ["program", "part ms", "sampled", "control", "program's CPU", "all CPU", "control", "whole", "control"],
          [[row["program"], "%.1f" % row["part_ms"], *["%.3f" % row[figure] for figure in FIGURES]] for row in rows]
          + [["geometric mean", "", *["%.3f" % means[figure] for figure in FIGURES]]])
    return {"rows": rows, "means": means}


def measure(bench):
    rows, versions, exactly = [], {}, {}
    pythons = exact.pythons(bench, "3.12")
    for python in pythons:
        place = exact.place(bench, python).install_jobs()
        versions[python.name] = place.versions
        found = [compare(bench, place, group, program) for group, programs in GROUPS.items() for program in programs]
        rows += found
        judge(bench, python, found)
    show(rows, "whole", "memory: time of the whole command over the bare one's (medians of turns; last lines are geometric means)")
    show(rows, "cpu", "memory: the same by CPU time, of all processes")
    show(rows, "program", "memory: the same by CPU time, of the program alone", ["control", *OURS])
    for python in {pythons[0].name: pythons[0], bench.python.name: bench.python, pythons[-1].name: pythons[-1]}.values():
        exactly[python.name] = sampling(bench, exact.place(bench, python).install_jobs())
    return {"rows": rows, "versions": versions, "sampled": exactly}

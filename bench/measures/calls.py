"""What exact calls cost, on every CPython: fib, an object-oriented mix, C functions, a template engine, a parser.

Whole commands with their file on disk, in turns (exact.py says how): bare, ours with and without C functions, and
those who count calls too. The must is what ours adds over what cProfile adds, and beside it stands the goal. And the
time that the program waits for the recorder, of the whole command's.
"""
import exact
from common import median, table
from exact import Contestant, Turns

GOAL = 0.4  # added, of cProfile's, everywhere; no must
OURS = {"ours": ["--calls"], "ours, no C": ["--calls", "--no-c-calls"]}


def limits(version):
    """(with C functions, without)"""
    if version >= (3, 12):
        return 0.7, 0.5
    return (0.95, 0.5) if version >= (3, 11) else (0.75, None)


def compare(bench, place, program):
    script, modules = exact.script_of(bench, program)
    waited, after = exact.waits()
    contestants = [exact.bare(place, script)]
    contestants += [Contestant(label, lambda out, o=options: place.ours(*o)(script, out), ".pyro", after=after if label == "ours" else None)
                    for label, options in OURS.items()]
    # those that no must looks at: in a quick run on one version only
    few = bench.scale(1 if place.python is bench.python else 0, 2)
    contestants += [c for c in exact.peer_contestants(place, script, modules, few=few, exact="calls") if c.rounds != 0]
    turns = Turns(bench, contestants, place.environment()).run(bench.scale(5, 21))
    return {"python": place.python.name, "program": program, "of_cprofile": turns.ratio("ours", "cProfile"),
            "of_cprofile_no_c": turns.ratio("ours, no C", "cProfile"),
            "of_cprofile_inside": turns.ratio("ours", "cProfile", "inside"), "of_cprofile_cpu": turns.ratio("ours", "cProfile", "cpu"),
            "waited": median(waited), "contestants": turns.figures()}


def judge(bench, version, row):
    with_c, without = limits(version)
    name = "%s %s" % (row["python"], row["program"])
    goal = "goal %.1f" % GOAL
    bench.at_most("calls", name + ", added of cProfile's", row["of_cprofile"], with_c,
                  "%s; %s" % (goal, exact.other_clocks(row["of_cprofile_inside"], row["of_cprofile_cpu"])))
    if without and row["program"] != "c":  # there is nothing to count then
        bench.at_most("calls", name + ", without C functions", row["of_cprofile_no_c"], without, goal)
    bench.at_most("calls", name + ", waits", row["waited"], exact.WAITS)


def measure(bench):
    rows, versions = [], {}
    for python in exact.pythons(bench, "3.8", "3.11", "3.12", "3.13"):
        place = exact.place(bench, python)
        versions[python.name] = place.versions
        for program in exact.PROGRAMS:
            rows.append(compare(bench, place, program))
            judge(bench, python.version, rows[-1])
    labels = ["ours", "ours, no C", "cProfile", "profile", "yappi wall", "yappi cpu", "viztracer"]
    cell = lambda row, label: "%.2f" % row["contestants"][label]["slowdown"] if label in row["contestants"] else ""  # noqa: E731
    table("exact calls: time of the whole command over the bare one's (medians of turns), and added of cProfile's",
          ["CPython, program", "bare s", *labels, "added/cProfile", "no C", "waits"],
          [["%s %s" % (r["python"], r["program"]), "%.3f" % r["contestants"]["bare"]["seconds"], *[cell(r, label) for label in labels],
            "%.2f" % r["of_cprofile"], "%.2f" % r["of_cprofile_no_c"], "%.2f %%" % (100 * r["waited"])] for r in rows])
    return {"rows": rows, "versions": versions}

"""What counting and timing every line costs, beside line_profiler and pprofile, on every CPython.

Whole commands with their file on disk, in turns (exact.py says how). One operation a line is the worst case: nothing
hides the cost. `long` is the same in a function of 400 lines. `library` is Python code of the standard library;
`template` and `parser` are programs from PyPI. line_profiler is told of the one function that works, ours and pprofile
count the whole program; of the others line_profiler is told the script and the package.

`outside` is code that a selection leaves out. What is to be seen there is smaller than what runs differ by, so it is
timed inside, in parts, by the part at the lower quartile, in longer runs; the control is another bare run.
"""
import exact
from common import median, table, target_program
from exact import Contestant, Turns

SIZES = {"short": (60000, 400000), "long": (60000, 400000), "library": (1, 4), "outside": (600000, 1600000)}
ONE_A_LINE = ("short", "long")
OUTSIDE = 1.02


def script_of(bench, what):
    if what in exact.PROGRAMS:
        script, modules = exact.script_of(bench, what)
        return script, [script[0], *modules]
    return [target_program("line_loop.py"), what, str(bench.scale(*SIZES[what]))], []


def contestants(bench, place, what, after):
    script, modules = script_of(bench, what)
    yield exact.bare(place, script)
    if what == "outside":
        yield Contestant("control", exact.bare(place, script).command)
        yield Contestant("ours", lambda out: place.ours("--lines", "--function", "__main__:chosen")(script, out), ".pyro")
        return
    yield Contestant("ours", lambda out: place.ours("--lines")(script, out), ".pyro", after=after)
    few = bench.scale(1 if place.python is bench.python else 0, 5)
    found = exact.peer_contestants(place, script, modules, few=few, exact="lines")
    # nobody has decorated the standard library
    yield from [c for c in found if c.rounds != 0 and (c.label != "line_profiler" or what != "library")]


def compare(bench, place, what):
    waited, after = exact.waits()
    turns = Turns(bench, list(contestants(bench, place, what, after)), place.environment())
    turns.run(bench.scale(7 if what == "outside" else 3, 31 if what == "outside" else 15))
    theirs = [label for label in ("line_profiler", "pprofile") if label in turns.by_label]
    return {"python": place.python.name, "what": what, "contestants": turns.figures(), "waited": median(waited),
            "added_of": {label: turns.ratio("ours", label) for label in theirs}}


def judge(bench, version, row):
    """The promises, by version."""
    new = version >= (3, 12)
    slow_lines = (3, 12) <= version < (3, 13, 3)
    name, ours = "%s on %s: " % (row["what"], row["python"]), row["contestants"]["ours"]
    if row["what"] == "outside":
        if new:
            control = row["contestants"]["control"]["inside"]
            noisy = " (too noisy to tell)" if abs(control - 1) > OUTSIDE - 1 else ""
            bench.at_most("lines", name + "slowdown", ours["inside"], OUTSIDE, "control %.3f%s" % (control, noisy))
        return
    bench.at_most("lines", name + "waits", row["waited"], exact.WAITS)
    if row["what"] in ONE_A_LINE:
        limit = 13 if slow_lines and row["what"] == "long" else 3.6 if new else 7
        exact.at_most_slower(bench, "lines", name + "slowdown", ours, limit)
    elif "pprofile" in row["added_of"]:
        bench.at_most("lines", name + "added, of pprofile's", row["added_of"]["pprofile"], 0.1)
    if row["what"] == "short" and "line_profiler" in row["added_of"]:
        bench.at_most("lines", name + "added, of line_profiler's", row["added_of"]["line_profiler"], 1 / 5 if new else 1 / 3)


def measure(bench):
    rows, versions = [], {}
    for python in exact.pythons(bench, "3.11", "3.12"):
        place = exact.place(bench, python)
        versions[python.name] = place.versions
        for what in ("short", "long", "library", "template", "parser", "outside"):
            rows.append(compare(bench, place, what))
            judge(bench, python.version, rows[-1])

    def cells(r):
        times = "inside" if r["what"] == "outside" else "slowdown"
        return ["%.2f" % r["contestants"][k][times] if k in r["contestants"] else "" for k in ("ours", "line_profiler", "pprofile")]

    table("lines: time of the whole command over the bare one's (medians of turns; `outside`: of the work alone)",
          ["CPython, what", "bare s", "ours", "line_profiler", "pprofile", "added/line_profiler", "added/pprofile", "waits"],
          [["%s %s" % (r["python"], r["what"]), "%.3f" % r["contestants"]["bare"]["seconds"], *cells(r),
            *["%.3f" % r["added_of"][k] if k in r["added_of"] else "" for k in ("line_profiler", "pprofile")],
            "" if r["waited"] is None else "%.2f %%" % (100 * r["waited"])] for r in rows])
    return {"rows": rows, "versions": versions}

"""The table that circulates about the cost of Python profilers, measured again, with ours beside it.

Ten rows were published with a talk about scalene (time over that of a bare run, each with its own idea of a program).
Here they are whole commands with their file on disk, in turns, on one CPython, over the five programs of exact.py; the
figure is the median over the programs, beside the worst of them; "inside" is the median without start and save, which
a short program (a quick run) has much of. Each profiler runs as it comes: samplers at their own rate. Nothing is judged:
the other measures do that.
"""
import exact
from common import median, table
from exact import Contestant, Turns

# as published, in that order: its name there, what it said, our label
PUBLISHED = [("pprofile_stat", 1.0, "pprofile --statistic"), ("py_spy", 1.0, "py-spy"), ("scalene", 1.2, "scalene --cpu-only"),
             ("pyinstrument", 1.5, "pyinstrument"), ("cProfile", 2.1, "cProfile"), ("yappi_wallclock", 3.0, "yappi wall"),
             ("yappi_cpu", 5.2, "yappi cpu"), ("line_profiler", 6.6, "line_profiler"), ("Profile", 16.1, "profile"),
             ("pprofile_det", 39.5, "pprofile")]
OURS = {"pyrometer": ["--sample"], "pyrometer --calls": ["--calls"], "pyrometer --calls --no-c-calls": ["--calls", "--no-c-calls"],
        "pyrometer --trace": ["--trace"], "pyrometer --lines": ["--lines"]}
HZ = {"pprofile --statistic": 100, "py-spy": 100, "scalene --cpu-only": 100, "pyinstrument": 1000}  # their defaults
SLOW = ("profile", "pprofile")


def contestants(bench, place, program):
    script, modules = exact.script_of(bench, program)
    labels = [label for _, _, label in PUBLISHED]
    few = bench.scale(1, 3)
    yield exact.bare(place, script)
    for label, instruments in OURS.items():
        yield Contestant(label, lambda out, i=instruments: place.ours(*i)(script, out), ".pyro")
    # they bring their own packages
    for peer in [p for p in bench.peers if not p.exact and p.label in labels]:
        yield Contestant(peer.label, lambda out, p=peer: p.run(script, HZ[p.label], out), ".json", env=place.environment(peers=False))
    for peer in [p for p in place.peers if p.label in labels]:
        told = [script[0], *modules]
        yield Contestant(peer.label, lambda out, p=peer, m=told: p.command(place.python.path, script, out, m), peer.suffix,
                         few if peer.label in SLOW else None)


def summary(name, published, label, found):
    values = {program: figures[label]["slowdown"] for program, figures in found.items() if label in figures}
    inside = median(figures[label]["inside"] for figures in found.values() if label in figures)
    return {"name": name, "published": published, "label": label, "by_program": values, "median": median(values.values()),
            "worst": max(values.values(), default=None), "inside": inside}


def measure(bench):
    place, found = exact.place(bench, bench.python), {}
    for program in exact.PROGRAMS:
        turns = Turns(bench, list(contestants(bench, place, program)), place.environment())
        found[program] = turns.run(bench.scale(2, 11)).figures()
    rows = [summary(name, published, label, found) for name, published, label in PUBLISHED]
    rows += [summary(label, None, label, found) for label in OURS]
    number = lambda value: "%.2f" % value if value is not None else "missing"  # noqa: E731
    table("the published table of overheads, measured again on %s (time of the whole command over the bare one's)" % bench.python.name,
          ["profiler", "published", "median", "worst", "inside", *exact.PROGRAMS],
          [[r["name"], "%.1f" % r["published"] if r["published"] else "", number(r["median"]), number(r["worst"]), number(r["inside"]),
            *[number(r["by_program"].get(program)) for program in exact.PROGRAMS]] for r in rows])
    return {"rows": rows, "bare": {program: figures["bare"]["seconds"] for program, figures in found.items()}, "versions": place.versions}

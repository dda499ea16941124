"""What exact calls cost, beside cProfile, on every CPython: fib, an object-oriented mix, C functions.

Runs take turns; the program times itself, so that starting and saving are not counted. "added" is what a profiler adds
to the bare time; the must is ours over cProfile's. And the time that the program waits for the recorder.
"""
from common import PYROMETER, info, median, run, table, target_program

ROUNDS = {"fib": (22, 25), "oo": (20000, 60000), "c": (100000, 400000)}
WAITS = 0.01


def limits(version):
    """(with C functions, without)"""
    if version >= (3, 12):
        return 0.7, 0.5
    return (0.95, 0.5) if version >= (3, 11) else (0.75, None)


def turn(bench, python, program):
    script = [target_program("calls.py"), program, str(bench.scale(*ROUNDS[program]))]
    out = bench.path("calls.pyro")

    def ours(*more):
        return [PYROMETER, "run", "--calls", *more, "--quiet", "--force", "-o", out, "--", python.path, *script]

    return out, {"bare": [python.path, *script], "cProfile": [python.path, *script, "cprofile"], "ours": ours(),
                 "ours, no C": ours("--no-c-calls")}


def compare(bench, python, program):
    out, commands = turn(bench, python, program)
    taken, waited = {label: [] for label in commands}, []
    for _ in range(bench.scale(5, 21)):
        for label, command in commands.items():
            taken[label].append(float(run(command, cwd=bench.folder).expect().stdout.split()[-1]))
            if label == "ours":
                waited.append(info(out)["event_wait_ns"] / 1e9 / taken[label][-1])
    slow = {label: median(a / b for a, b in zip(taken[label], taken["bare"])) for label in commands}
    added = {label: median(a - b for a, b in zip(taken[label], taken["bare"])) for label in commands}
    return {"python": python.name, "program": program, "bare": median(taken["bare"]), "slowdown": slow,
            "of_cprofile": added["ours"] / added["cProfile"], "of_cprofile_no_c": added["ours, no C"] / added["cProfile"],
            "waited": median(waited)}


def measure(bench):
    pythons = [p for p in map(bench.python_named, bench.scale(["3.8", "3.11", "3.12", "3.13"],
                                                              ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])) if p]
    rows = [compare(bench, python, program) for python in pythons for program in ROUNDS]
    table("exact calls, slowdown (medians of turns) and added of cProfile's",
          ["CPython, program", "cProfile", "ours", "ours, no C", "added/cProfile", "no C", "waits"],
          [["%s %s" % (r["python"], r["program"])] + ["%.2f" % r["slowdown"][k] for k in ("cProfile", "ours", "ours, no C")] +
           ["%.2f" % r["of_cprofile"], "%.2f" % r["of_cprofile_no_c"], "%.2f %%" % (100 * r["waited"])] for r in rows])
    for r in rows:
        version = next(p.version for p in pythons if p.name == r["python"])
        with_c, without = limits(version)
        name = "%s %s" % (r["python"], r["program"])
        bench.at_most("calls", name + ", added of cProfile's", r["of_cprofile"], with_c)
        if without and r["program"] != "c":  # there is nothing to count then
            bench.at_most("calls", name + ", without C functions", r["of_cprofile_no_c"], without)
        bench.at_most("calls", name + ", waits", r["waited"], WAITS)
    return {"rows": rows}

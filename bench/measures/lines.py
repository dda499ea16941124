"""What counting and timing every line costs, beside line_profiler and pprofile.

The work is done in whole runs, in turns, timed by the program itself; the figure is the median time over
the median of the bare runs. One operation a line is the worst case: nothing hides the cost. `long` is the
same in a function of 400 lines. `program` is Python code of the standard library. `outside` is code that
a selection leaves out.
"""
import os
import subprocess

from common import BENCH, BUILD, PYROMETER, Failed, median, run, table

TARGET = os.path.join(BENCH, "targets", "line_loop.py")
SIZES = {"short": 60000, "long": 60000, "program": 1, "outside": 150000}
REQUIREMENTS = ["line_profiler", "pprofile==2.2.0"]


def environment(python):
    """An interpreter with the peers, which are imported by the program."""
    folder = os.path.join(BUILD, "bench-venv-lines-" + python.name)
    program = os.path.join(folder, "bin", "python")
    if subprocess.run([program, "-c", "import line_profiler, pprofile"], stderr=subprocess.DEVNULL).returncode if os.path.exists(program) else True:
        for command in ([python.path, "-m", "venv", folder], [program, "-m", "pip", "install", "-q", *REQUIREMENTS]):
            run(command).expect()
    return program


def contestants(bench, program, what):
    ours = [PYROMETER, "run", "--quiet", "--force", "-o", bench.path("lines.out"), "--lines"]
    bare = [program, TARGET, what, "bare", str(SIZES[what])]
    yield "bare", bare
    if what == "outside":
        yield "pyrometer", [*ours, "--function", "__main__:chosen", "--", *bare]
        return
    yield "pyrometer", [*ours, "--", *bare]
    if what != "program":  # whose functions nobody has decorated
        yield "line_profiler", [program, TARGET, what, "line_profiler", str(SIZES[what])]
    yield "pprofile", [program, TARGET, what, "pprofile", str(SIZES[what])]


def measure_one(bench, python, program, what):
    turn = list(contestants(bench, program, what))
    taken = {name: [] for name, _ in turn}
    for n in range(bench.scale(5, 21)):
        for name, command in turn[n % len(turn):] + turn[:n % len(turn)]:
            taken[name].append(float(run(command).expect().stdout))
    bare = median(taken["bare"])
    return {"python": python.name, "what": what, "bare_s": bare,
            **{name: median(times) / bare for name, times in taken.items() if name != "bare"}}


def judge(bench, python, row):
    """The promises, by version."""
    new = python.version >= (3, 12)
    slow_lines = (3, 12) <= python.version < (3, 13, 3)
    name = "%s on %s: " % (row["what"], python.name)
    added = row["pyrometer"] - 1
    if row["what"] == "outside":
        if new:
            bench.at_most("lines", name + "slowdown", row["pyrometer"], 1.02)
        return
    if row["what"] == "program":
        bench.at_most("lines", name + "added, of pprofile's", added / (row["pprofile"] - 1), 0.1)
        return
    limit = 13 if slow_lines and row["what"] == "long" else 3.6 if new else 7
    bench.at_most("lines", name + "slowdown", row["pyrometer"], limit)
    if row["what"] == "short":
        bench.at_most("lines", name + "added, of line_profiler's", added / (row["line_profiler"] - 1), 1 / 5 if new else 1 / 3)


def measure(bench):
    rows = []
    pythons = [bench.python] if bench.quick else [p for p in bench.pythons if "-" not in p.name]
    for python in pythons:
        try:
            program = environment(python)
        except Failed as e:
            bench.must("lines", "peers on " + python.name, None, None, False, str(e)[-200:])
            continue
        for what in SIZES:
            rows.append(measure_one(bench, python, program, what))
            judge(bench, python, rows[-1])
    cell = lambda row, key: "%.2f" % row[key] if key in row else ""  # noqa: E731
    table("lines: time over that of a bare run (medians)", ["python", "what", "bare ms", "pyrometer", "line_profiler", "pprofile"],
          [[r["python"], r["what"], "%.1f" % (1e3 * r["bare_s"]), *[cell(r, k) for k in ("pyrometer", "line_profiler", "pprofile")]] for r in rows])
    return {"rows": rows}

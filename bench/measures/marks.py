"""What pyrometer.mark, counter and span cost where no agent is loaded, on every CPython: targets/marks.py says how.

In every round each CPython has a short turn, a process of its own, and the median of the turns counts: how a process happens to
lie in memory makes some ns.
"""
import json
import os

from common import ROOT, median, run, table, target_program

LIMIT_NS = 100
NAMES = ["mark", "counter", "span", "span, imported"]


def measure(bench):
    env = {k: v for k, v in os.environ.items() if k not in ("PYROMETER_AGENT", "PYROMETER_ACTIVE")}
    env["PYTHONPATH"] = os.path.join(ROOT, "python")
    turns = {python.name: [] for python in bench.pythons}
    for _ in range(bench.scale(3, 15)):
        for python in bench.pythons:
            done = run([python.path, target_program("marks.py"), str(bench.scale(100, 400))], cpu=bench.target_cpu, env=env).expect()
            turns[python.name].append(json.loads(done.stdout))
    rows = [{"python": name, **{key: median(turn[key] for turn in found) for key in ["empty", *NAMES]}} for name, found in turns.items()]
    table("ns where nobody listens, the empty loop taken off (lower quartiles of short loops, medians of turns)",
          ["CPython", *NAMES, "(empty loop)"], [[r["python"], *["%.0f" % r[n] for n in NAMES], "%.0f" % r["empty"]] for r in rows])
    for r in rows:
        for name in NAMES:
            bench.at_most("marks", "%s, ns of %s" % (r["python"], name), r[name], LIMIT_NS)
    return {"rows": rows}

"""A program of known shares (70, 20, 10 per cent) on every version: within 3 sigma and half a point.

The truth is what the program itself measured while it ran (by the wall clock, which is what samples see of a
thread that waits for a CPU). Sigma is that of as many independent samples as the recording has.
"""
import json
import math

from common import PYROMETER, info, run, table, workload
from ours import Pyrometer

NAMES = ("hot_70", "hot_20", "hot_10")


def one(bench, python, seconds):
    out = bench.path("shares.pyro")
    command = Pyrometer(bench).run([workload("shares.py"), str(seconds)], 1000, out, python=python.path)
    truth = json.loads(run(command).expect().stdout)["wall"]
    report = json.loads(run([PYROMETER, "report", "--json", "--limit", "0", "--min-percent", "0", out]).expect().stdout)
    own = {name: 0.0 for name in NAMES}
    for row in report["rows"]:
        if row["name"] in own:
            own[row["name"]] += row["self"]
    total, samples = sum(own.values()), info(out)["samples"]
    rows = []
    for name in NAMES:
        p = truth[name] / 100
        rows.append({"python": python.name, "function": name, "truth": truth[name], "seen": 100 * own[name] / total,
                     "allowed": 300 * math.sqrt(p * (1 - p) / samples) + 0.5, "samples": samples})
    return rows


def measure(bench):
    rows = []
    for python in bench.pythons:
        rows += one(bench, python, bench.scale(2, 10))
    for python in bench.pythons:
        mine = [r for r in rows if r["python"] == python.name]
        worst = max(mine, key=lambda r: abs(r["seen"] - r["truth"]) / r["allowed"])
        bench.at_most("shares", "%s: points from the truth, worst of three (%s)" % (python.name, worst["function"]),
                      abs(worst["seen"] - worst["truth"]), worst["allowed"])
    table("shares of a 70/20/10 program (per cent of wall time)", ["python", "function", "truth", "seen", "off by", "allowed"],
          [[r["python"], r["function"], "%.2f" % r["truth"], "%.2f" % r["seen"], "%.2f" % abs(r["seen"] - r["truth"]),
            "%.2f" % r["allowed"]] for r in rows])
    return {"rows": rows}

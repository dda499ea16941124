"""Are the shares of exact calls right once the cost of the probes is taken out?

tests/workloads/density.py has one loop that calls a tiny function and one that never calls. The denser the calls,
the more of the program's time is the probes', and all of it in the first loop. At five densities: the first loop's
share of the two by the bare program's own clock, and as ours says it, corrected and raw, and as cProfile says it. Runs
take turns; medians.
"""
import json

import exact
from common import PYROMETER, median, run, table, workload

DENSITIES = [(1, 400000, 1400000), (3, 300000, 1400000), (10, 150000, 1400000), (30, 60000, 1400000), (100, 20000, 1400000)]
ALLOWED = 3.0
PSTATS = """
import json, pstats, sys
found = {key[2]: value[3] for key, value in pstats.Stats(sys.argv[1]).stats.items()}
print(json.dumps({name: found[name] for name in ("calling", "plain")}))
"""


def share(seconds):
    """Per cent of the loop that calls, of both."""
    return 100 * seconds["calling"] / (seconds["calling"] + seconds["plain"])


def reported(path, metric):
    text = run([PYROMETER, "report", "--json", "--metric", metric, path]).expect().stdout
    return share({row["name"]: row["total"] for row in json.loads(text)["rows"] if row["name"] in ("calling", "plain")})


def one(bench, python, density):
    """Four shares, of one turn."""
    script = [workload("density.py"), *map(str, density)]
    out = bench.path("corrected.pyro")
    bare = share(json.loads(run([python.path, *script]).expect().stdout))
    run([PYROMETER, "run", "--calls", "--quiet", "--force", "-o", out, "--", python.path, *script]).expect()
    ours, raw = reported(out, "time"), reported(out, "raw")
    out = bench.path("corrected.prof")
    run([python.path, "-m", "cProfile", "-o", out, *script]).expect()
    return {"truth": bare, "corrected": ours, "raw": raw, "cprofile": share(json.loads(run([python.path, "-c", PSTATS, out]).expect().stdout))}


def measure(bench):
    rows = []
    for python in exact.pythons(bench, "3.8", "3.11", "3.12", "3.13"):
        for density in DENSITIES:
            turns = [one(bench, python, density) for _ in range(bench.scale(3, 11))]
            row = {key: median(t[key] for t in turns) for key in turns[0]}
            truths = sorted(t["truth"] for t in turns)
            rows.append({"python": python.name, "work": density[0], "calls": density[1], **row, "truth_from": truths[0], "truth_to": truths[-1]})
            bench.at_most("corrected", "%s, %d rounds a call: points from the truth" % (python.name, density[0]),
                          abs(row["corrected"] - row["truth"]), ALLOWED,
                          "raw %.1f, cProfile %.1f" % (abs(row["raw"] - row["truth"]), abs(row["cprofile"] - row["truth"])))
    table("share of the loop that calls (per cent; medians of turns)",
          ["CPython, rounds a call", "calls", "truth", "lowest", "highest", "ours", "off by", "ours, raw", "cProfile"],
          [["%s %d" % (r["python"], r["work"]), "{:,}".format(r["calls"]), *["%.1f" % r[k] for k in ("truth", "truth_from", "truth_to", "corrected")],
            "%+.1f" % (r["corrected"] - r["truth"]), "%.1f" % r["raw"], "%.1f" % r["cprofile"]] for r in rows])
    return {"rows": rows}

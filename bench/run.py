"""make bench: the figures that Pyrometer promises, measured, beside its peers.

    bench/run.py [--only NAME]… [--pythons NAMES] [--quick] [--json FILE]

Prints tables and one PASS or FAIL line for each promise, writes build/bench.json, and leaves with status 1
if a promise was not kept or a peer is missing without a reason. README.md tells the method.
"""
import argparse
import importlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import common  # noqa: E402
import measures  # noqa: E402
import peers  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description="Measure what Pyrometer promises, beside its peers.")
    parser.add_argument("--only", action="append", choices=measures.ALL, help="only this measure; may be repeated")
    parser.add_argument("--pythons", default="", metavar="NAMES", help="only on these CPythons, by name: 3.8,3.13-sid")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds: to see that all works, not to quote")
    parser.add_argument("--json", default=os.path.join(common.BUILD, "bench.json"), help="where the figures go")
    return parser.parse_args()


def number(value):
    if value is None:
        return "?"
    if isinstance(value, float):
        return "{:,.0f}".format(value) if abs(value) >= 1000 else "%.4g" % value
    return "{:,}".format(value) if isinstance(value, int) else str(value)


def verdicts(bench):
    common.say()
    for must in bench.musts:
        common.say("%s  %s: %s: %s (limit %s)%s" % (
            "PASS" if must["pass"] else "FAIL", must["measure"], must["text"], number(must["value"]),
            number(must["limit"]), "; " + must["note"] if must["note"] else ""))
    failed = sum(not must["pass"] for must in bench.musts)
    common.say("%d kept, %d not" % (len(bench.musts) - failed, failed))
    return failed


def measure_one(bench, name):
    begin = time.monotonic()
    load = os.getloadavg()[0]
    try:
        result = importlib.import_module("measures." + name).measure(bench)
    except (common.Failed, OSError) as e:
        bench.must(name, "the measure works", None, None, False, str(e))
        result = {"error": str(e)}
    result["seconds"] = time.monotonic() - begin
    result["load_average_before"] = load
    bench.results[name] = result


def write_json(bench, path, environment, notes):
    environment["load_average_after"] = os.getloadavg()
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w") as f:
        json.dump({"quick": bench.quick, "environment": environment, "peers": notes,
                   "measures": bench.results, "musts": bench.musts}, f, indent=1)
        f.write("\n")
    common.say("figures in " + os.path.relpath(path))


def main():
    options = arguments()
    if not os.access(common.PYROMETER, os.X_OK):
        sys.exit("bench: no binary at %s: run `make` first, or set PYROMETER" % common.PYROMETER)
    try:
        bench = common.Bench(options.quick, options.pythons)
    except (common.Failed, OSError) as e:
        sys.exit("bench: %s" % e)
    try:
        environment = common.environment()
        common.say("%(pyrometer)s; %(kernel)s, %(cpus)d CPUs, load average %(load_average)s" % environment)
        if environment["load_average"][0] > 0.5:
            common.say("warning: other programs are running; the figures will say more about them than about profilers")
        bench.peers, notes, bad = peers.load(bench)
        for name, note in notes.items():
            common.say("peer %s: %s" % (name, note))
        for name in bad:
            bench.must("peers", name + " is here", None, None, False, "see bench/peers")
        for name in options.only or measures.ALL:
            measure_one(bench, name)
        failed = verdicts(bench)
        write_json(bench, options.json, environment, notes)
    finally:
        bench.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

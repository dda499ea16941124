"""Whether the stacks are true: programs whose stacks change faster than they can be read.

Target and sampler run on different CPUs, the sampler flat out. Three questions:
 - is there a stack that the program can never have had, not marked as moving? (oracles.py; 10^7 samples)
 - what do quick leaves cost: how many samples are read again, how many marked, is either chain preferred?
 - would we notice? The same with the check switched off must show impossible stacks.
The peers that stop nothing are asked the first question too, on the chains.

A target that waits for its CPU holds still and is easy to read: where "target on CPU" is far below 100, the
machine was too busy for these figures to mean much.
"""
import math
import os

from common import Target, info, median, run, say, table, workload
from oracles import PROGRAMS, Verdict, balance
from ours import Pyrometer

FLAT_OUT = 1000000
GUESS = 80000    # samples a second, to choose the length of a look; looks go on until there are enough
MOST_LOOKS = 12  # at one program on one version
LEAF_LOOKS_S = 3
LEAF_HZ = 10000
DEFAULT_HZ = 1000
ENOUGH = 20  # of the samples of a program one in so many has to be one that the oracle can judge
MOSTLY_BELIEVED = 20  # percent that are marked, at most
LEAVES = ["1", "20", "200", "2000", "20000"]
UNSAFE = {"PYROMETER_UNSAFE_NO_CHECK": "1"}
SHOWS_TEARS = ["60", "20", "100000"]  # chains.py: deep and quick


def start(bench, python, program, arguments=None):
    return Target([python.path, workload(program), *(arguments or PROGRAMS[program][0])], bench.target_cpu)


def look(bench, target, hz, seconds, env=None):
    """One recording: (its stacks, its counters). A counter more: how long the target's main thread ran."""
    ours, out = Pyrometer(bench), bench.path("truth.pyro")
    before = target.cpu_ns()
    run(ours.attach(target.pid, hz, seconds, out), cpu=bench.sampler_cpu, env=dict(os.environ, **(env or {}))).expect()
    return ours.stacks(out), dict(info(out), target_ns=target.cpu_ns() - before)


def impossible_stacks(bench, total):
    rows = []
    goal = total / (len(PROGRAMS) * len(bench.pythons))
    for python in bench.pythons:
        say("truth: %s …" % python.name)
        for program in PROGRAMS:
            row = {"python": python.name, "program": program, "samples": 0, "marked": 0, "impossible": 0, "own": 0,
                   "retried": 0, "failed": 0, "damaged": 0, "ticks": 0, "example": None}
            with start(bench, python, program) as target:
                for _ in range(MOST_LOOKS):
                    stacks, stats = look(bench, target, FLAT_OUT, max(0.3, (goal - row["samples"]) / GUESS))
                    verdict = Verdict(program, stacks)
                    for key in ("samples", "marked", "impossible", "own"):
                        row[key] += getattr(verdict, key)
                    for key in ("retried", "failed", "damaged"):
                        row[key] += stats["samples_" + key]
                    row["ticks"] += stats["ticks_taken"]
                    row["example"] = row["example"] or verdict.example
                    if row["samples"] >= goal:
                        break
            # of a program with several threads a tick gives several samples, which hide those that it failed to give
            row["yield"] = 100 * min(row["samples"] / max(1, row["ticks"]), row["samples"] / max(1, row["samples"] + row["failed"]))
            rows.append(row)
    table("impossible stacks, sampler flat out",
          ["python", "program", "samples", "impossible", "yield %", "marked %", "retried %", "damaged %", "failed looks"],
          [[r["python"], r["program"], "{:,}".format(r["samples"]), r["impossible"], "%.2f" % r["yield"]] +
           ["%.2f" % (100 * r[k] / max(1, r["samples"])) for k in ("marked", "retried", "damaged")] + [r["failed"]] for r in rows])
    for r in rows:
        if r["example"]:
            say("  e.g. %(python)s %(program)s: %(example).400s" % r)
    samples = sum(r["samples"] for r in rows)
    bench.at_most("truth", "unmarked impossible stacks in {:,} samples".format(samples), sum(r["impossible"] for r in rows), 0)
    bench.at_least("truth", "samples looked at", samples, total)
    few = min(rows, key=lambda r: r["own"])
    bench.at_least("truth", "believed samples inside a program's own functions, fewest", few["own"], goal / ENOUGH,
                   "%(python)s %(program)s; or the oracle sees nothing" % few)
    for program in PROGRAMS:
        worst = min((r for r in rows if r["program"] == program), key=lambda r: r["yield"])
        bench.at_least("truth", "%s: ticks that yield a sample, worst version (%%)" % program, worst["yield"], 98, worst["python"])
    return rows


def leaves(bench, python, looks):
    """Chains with leaves of several lengths: a row for each, with the median balance of its looks."""
    rows = []
    for leaf in LEAVES:
        sums, mine = {}, []
        with start(bench, python, "chains.py", ["10", leaf, "100000"]) as target:
            for _ in range(looks):
                stacks, stats = look(bench, target, LEAF_HZ, LEAF_LOOKS_S)
                mine.append(balance(stacks))
                for key, value in stats.items():
                    sums[key] = sums.get(key, 0) + (value or 0)  # what nobody knows of a program that we are attached to is null
            default = look(bench, target, DEFAULT_HZ, LEAF_LOOKS_S)[1]
        mine = [b for b in mine if b is not None]
        percent = lambda key, of: 100 * sums[key] / max(1, sums[of])  # noqa: E731
        rows.append({"python": python.name, "leaf": int(leaf), "samples": sums["samples"],
                     "yield": percent("samples", "ticks_taken"), "missed": percent("ticks_missed", "ticks_requested"),
                     "default_yield": 100 * default["samples"] / max(1, default["ticks_requested"]),
                     "retried": percent("samples_retried", "samples"), "marked": percent("samples_marked", "samples"),
                     "balance": median(mine), "target_on_cpu": percent("target_ns", "sampled_ns")})
    return rows


def leaf_lengths(bench, looks):
    rows = []
    for python in bench.pythons:
        mine = leaves(bench, python, looks)
        rows += mine
        bench.at_least("truth", "%s: ticks that yield a sample, worst leaf (%%)" % python.name, min(r["yield"] for r in mine), 98)
        bench.at_least("truth", "%s: ticks at 1 kHz that yield a sample, missed ones counted, worst leaf (%%)" % python.name,
                       min(r["default_yield"] for r in mine), 98)
        bench.at_most("truth", "%s: marked at a leaf of 20,000 rounds (%%)" % python.name, mine[-1]["marked"], 2)
        # each leaf by itself: one that prefers a chain must not hide among the others; but where most samples are marked, so that
        # nobody takes them for either chain, the few others are those that caught the program in a pause
        away = {r["leaf"]: abs(r["balance"] - 50) if r["balance"] is not None else None for r in mine if r["marked"] <= MOSTLY_BELIEVED}
        worst = max(away, key=lambda leaf: math.inf if away[leaf] is None else away[leaf])
        bench.at_most("truth", "%s: chain a, points from 50, median of looks, worst leaf" % python.name, away[worst], 2,
                      "leaf of %d rounds" % worst)
    number = lambda x: "%.2f" % x if x is not None else "?"  # noqa: E731
    table("chains at %d kHz by length of the leaf (rounds; 20,000 is about 0.4 ms)" % (LEAF_HZ // 1000),
          ["python", "leaf", "samples", "yield %", "missed %", "of all ticks at 1 kHz %", "retried %", "marked %", "chain a %", "target on CPU %"],
          [[r["python"], "{:,}".format(r["leaf"]), r["samples"]] +
           [number(r[k]) for k in ("yield", "missed", "default_yield", "retried", "marked", "balance", "target_on_cpu")] for r in rows])
    return rows


def check_switched_off(bench, seconds):
    """Where frames are heap objects (before 3.11) a torn read shows too seldom to prove anything."""
    rows = []
    for python in bench.pythons:
        if python.version < (3, 11):
            continue
        with start(bench, python, "chains.py", SHOWS_TEARS) as target:
            verdict = Verdict("chains.py", look(bench, target, FLAT_OUT, seconds, UNSAFE)[0])
        rows.append({"python": python.name, "samples": verdict.samples, "impossible": verdict.impossible})
        bench.at_least("truth", "%s: impossible stacks with the check switched off" % python.name, verdict.impossible, 1)
    table("the check switched off: torn stacks must show", ["python", "samples", "impossible", "%"],
          [[r["python"], r["samples"], r["impossible"], "%.2f" % (100 * r["impossible"] / max(1, r["samples"]))] for r in rows])
    return rows


def peers_on_chains(bench, seconds):
    rows = []
    for peer in bench.peer_list(attaches=True, blocking=False):
        for leaf in ("200", "20000"):
            out = bench.path("peer.out")
            with start(bench, peer.target_python(), "chains.py", ["10", leaf, "100000"]) as target:
                done = run(peer.attach(target.pid, peer.max_hz, seconds, out), cpu=bench.sampler_cpu).expect()
            stacks = peer.stacks(out)
            verdict = Verdict("chains.py", stacks)
            rows.append({"profiler": peer.label, "leaf": int(leaf), "samples": verdict.samples,
                         "impossible": 100 * verdict.impossible / max(1, verdict.samples), "balance": balance(stacks),
                         "errors": peer.error_rate(done)})
    table("peers on the chains, at up to 10 kHz (ours: the tables above)",
          ["profiler", "leaf", "samples", "impossible %", "errors %", "chain a %"],
          [[r["profiler"], "{:,}".format(r["leaf"]), r["samples"]] +
           ["%.2f" % r[k] if r[k] is not None else "?" for k in ("impossible", "errors", "balance")] for r in rows])
    return rows


def measure(bench):
    return {
        "impossible": impossible_stacks(bench, bench.scale(10**6, 10**7)),
        "leaves": leaf_lengths(bench, bench.scale(1, 3)),
        "unchecked": check_switched_off(bench, bench.scale(1, 3)),
        "peers": peers_on_chains(bench, bench.scale(2, 10)),
    }

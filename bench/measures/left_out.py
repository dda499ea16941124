"""What code costs that a timeline leaves out: fib, bare and under --trace --exclude, on every CPython there is.

Runs take turns, and the program times itself. From 3.12 on it must be free after its first call; below, this is what
looking at each call and throwing it away costs.
"""
from common import PYROMETER, median, run, table
from exact import script_of, seconds_of

LEFT_OUT = 1.05
WAYS = {"--trace": ["--trace"], "--trace --no-c-calls": ["--trace", "--no-c-calls"]}


def slowdowns(bench, python):
    script = [python.path, *script_of(bench, "fib")[0]]
    turn = {"bare": []}
    for way, options in WAYS.items():
        turn[way] = [PYROMETER, "run", "--quiet", "--force", *options, "--exclude", "fib", "-o", bench.path("out.pyro"), "--"]
    inside = {label: [] for label in turn}
    for _ in range(bench.scale(3, 15)):
        for label, before in turn.items():
            inside[label].append(seconds_of(run([*before, *script], cwd=bench.folder).expect().stdout))
    return {way: median(a / b for a, b in zip(inside[way], inside["bare"])) for way in WAYS}


def measure(bench):
    rows = [(python, slowdowns(bench, python)) for python in bench.pythons]
    table("fib left out by --exclude (median slowdowns of turns)", ["CPython", *WAYS],
          [[python.name, *["%.2f" % ratio[way] for way in WAYS]] for python, ratio in rows])
    for python, ratio in rows:
        if python.version >= (3, 12):
            for way in WAYS:
                bench.at_most("left_out", "%s, fib left out of %s" % (python.name, way), ratio[way], LEFT_OUT)
    return {"rows": [{"python": python.name, **ratio} for python, ratio in rows]}

"""Call graphs: the same files through `graph` and through gprof2dot, and a large recording through `graph` alone.

Ours is the finished picture, layout included; gprof2dot's is text for graphviz, whose time is not counted. Both
prune alike (0.5 % of functions, 0.1 % of calls).
"""
import marshal
import os
import random

from common import PYROMETER, Failed, median, run, say, table
from measures.reading import build

FASTER = 5.0
LIMIT_S = 2.0
FUNCTIONS, CALLS = 4000, 40000
STACKS, DEPTH = 20000, 30
LARGE_SAMPLES, LARGE_STACKS = 10**7, 10**6
KINDS = ["svg", "dot", "png"]


def write_pstats(path):
    """What cProfile leaves of a large program: functions that call functions further down, some of them often."""
    rng = random.Random(1)
    names = [("/srv/app/package/module_%d.py" % (i % 200), 10 + i // 200 * 40, "function_%d" % i) for i in range(FUNCTIONS)]
    own = [rng.expovariate(1.0) ** 3 for _ in names]
    callers = [{} for _ in names]
    for _ in range(CALLS):
        a = rng.randrange(FUNCTIONS - 1)
        b = min(FUNCTIONS - 1, a + 1 + int(rng.expovariate(0.01)))
        callers[b][names[a]] = (5, 5, own[b] / 20, own[b] / 10)
    stats = {name: (9, 9, own[i], own[i] * 2 + sum(own) * (1 - i / FUNCTIONS) ** 4, callers[i]) for i, name in enumerate(names)}
    with open(path, "wb") as f:
        marshal.dump(stats, f)


def write_collapsed(path):
    """Stacks that share beginnings, as those of a program do. No circles: with them gprof2dot dies of its own recursion."""
    rng = random.Random(2)
    frames, weight = [], [1 / (k + 1) for k in range(60)]
    with open(path, "w") as f:
        for _ in range(STACKS):
            frames = frames[:rng.randrange(DEPTH)]
            frames += ["function_%d_%d" % (d, k) for d, k in
                       zip(range(len(frames), DEPTH), rng.choices(range(60), weight, k=DEPTH - len(frames)))]
            f.write("%s %d\n" % (";".join(frames), rng.randrange(1, 20)))


def inputs(bench):
    """{name: (gprof2dot's name of the format, path)}"""
    prof, stacks = bench.path("app.prof"), bench.path("app.collapsed")
    write_pstats(prof)
    write_collapsed(stacks)
    return {"pstats, {:,} functions".format(FUNCTIONS): ("pstats", prof),
            "collapsed, {:,} stacks".format(STACKS): ("collapse", stacks)}


def drawn(done, path):
    if not os.path.getsize(path):
        raise Failed("nothing in the output of: " + " ".join(done.command))
    os.unlink(path)
    return done


def compare(bench, peer, name, form, path):
    taken = {kind: [] for kind in KINDS + [peer.label]}
    for _ in range(bench.scale(3, 9)):
        for kind in KINDS:
            out = bench.path("ours." + kind)
            taken[kind].append(drawn(run([PYROMETER, "graph", path, "-o", out]).expect(), out))
        out = bench.path("peer.dot")
        taken[peer.label].append(drawn(run(peer.graph(form, path, out)).expect(), out))
    seconds = {label: median(d.wall for d in done) for label, done in taken.items()}
    bench.at_least("graph", "times as fast as gprof2dot, .svg of " + name, seconds[peer.label] / seconds["svg"], FASTER)
    return [{"input": name, "output": label, "wall_s": s, "cpu_s": median(d.cpu for d in taken[label])} for label, s in seconds.items()]


def large(bench):
    path = bench.path("large.pyro")
    say("graph: writing a recording of {:,} samples over {:,} stacks …".format(LARGE_SAMPLES, LARGE_STACKS))
    run([build(), path, str(LARGE_SAMPLES), str(LARGE_STACKS), str(DEPTH), "2"]).expect()
    taken = []
    for _ in range(bench.scale(3, 7)):
        out = bench.path("large.svg")
        taken.append(drawn(run([PYROMETER, "graph", path, "-o", out]).expect(), out))
    os.unlink(path)
    wall = median(d.wall for d in taken)
    bench.at_most("graph", "seconds on {:,} samples, {:,} stacks".format(LARGE_SAMPLES, LARGE_STACKS), wall, LIMIT_S)
    return {"input": "recording, {:,} stacks".format(LARGE_STACKS), "output": "svg", "wall_s": wall, "cpu_s": median(d.cpu for d in taken)}


def measure(bench):
    rows = []
    files = inputs(bench)
    for peer in bench.peer_list(name="gprof2dot"):
        for name, (form, path) in files.items():
            rows += compare(bench, peer, name, form, path)
    rows.append(large(bench))
    table("call graphs", ["input and output", "seconds", "CPU seconds"],
          [[r["input"] + ": " + r["output"], "%.3f" % r["wall_s"], "%.3f" % r["cpu_s"]] for r in rows])
    return {"rows": rows}

"""What `run` adds to the wall time of a command that does nothing: medians of interleaved pairs.

Each pair is the bare command and the same under a profiler, one right after the other; the figure is the
median of the differences. Nothing is pinned: this is what somebody at a terminal waits for.
"""
from common import PYROMETER, median, run, table
from ours import Pyrometer

LIMIT_MS = 10


def commands(bench):
    nothing = ["-c", "pass"]
    ours = Pyrometer(bench)
    out = lambda: bench.path("startup.out")  # noqa: E731
    bare = [bench.python.path, *nothing]
    yield "pyrometer", "/bin/true", ["/bin/true"], lambda: [PYROMETER, "run", "--quiet", "--force", "-o", out(), "--", "/bin/true"]
    yield "pyrometer", "python -c pass", bare, lambda: ours.run(nothing, 1000, out())
    for peer in bench.peer_list(name="py-spy", blocking=False) + bench.peer_list(name="austin"):
        yield peer.label, "python -c pass", bare, lambda peer=peer: peer.run(nothing, 1000, out())


def measure(bench):
    pairs = bench.scale(11, 61)
    turn = list(commands(bench))
    taken = [[] for _ in turn]
    for _ in range(pairs):
        for results, (_, _, bare, profiled) in zip(taken, turn):
            alone = run(bare).wall
            results.append((alone, run(profiled()).wall))  # a peer may call this too short to profile, and say so by its status
    rows = []
    for results, (label, text, _, _) in zip(taken, turn):
        rows.append({"profiler": label, "command": text, "bare_ms": 1e3 * median(a for a, _ in results),
                     "added_ms": 1e3 * median(b - a for a, b in results), "pairs": pairs})
        if label == "pyrometer":
            bench.at_most("startup", "ms added to " + text, rows[-1]["added_ms"], LIMIT_MS)
    table("start-up: wall time above the bare command (ms, median of pairs)", ["profiler", "command", "bare", "added"],
          [[r["profiler"], r["command"], "%.1f" % r["bare_ms"], "%.1f" % r["added_ms"]] for r in rows])
    return {"rows": rows}

"""Does a timeline of a hundred million events answer at once, and how much of the file does it read?

A real program is recorded with --trace: fib, which does nothing but call. Then `timeline --json` is asked
for the whole of it, for its middle hundredth and for a ten thousandth. Time is that of the whole command with the file
in the page cache, as it is when somebody zooms. The file is mapped, so no read can be counted: what is read is what the
kernel fetches from the disk for a command after the file was thrown out of the cache, with all that it reads ahead, and
what the command says itself. The larger one is judged. (A file below 64 MB, as that of a quick run, is checked as a whole
when it is opened, so there it is all of it.)
"""
import json
import os

from common import PYROMETER, Failed, info, median, run, say, table

EVENTS = 10**8
QUICK_EVENTS = 10**7
# fib(n) makes 2 * fib(n + 1) - 1 calls, and a call is two events: a little more than 10^7 and 10^8
SIZES = ((31, 28), (36, 30))
PROGRAM = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfor n in %r:\n    fib(n)\n"
SHARES = {"whole": 1, "middle 1 %": 1e-2, "middle 0.01 %": 1e-4}
PIXELS = 2000
LIMIT_MS, LIMIT_BYTES = 100, 20 * 10**6


def record(bench):
    path = bench.path("timeline.pyro")
    program = PROGRAM % (bench.scale(*SIZES),)
    run([PYROMETER, "run", "--quiet", "--no-history", "--trace", "-o", path, "--", bench.python.path, "-c", program]).expect()
    stats = info(path)
    if stats["events_traced"] < bench.scale(QUICK_EVENTS, EVENTS) or stats["events_lost"]:
        raise Failed("a recording with %(events_traced)d events on its timeline, %(events_lost)d lost" % stats)
    return path, stats["events_traced"]


def throw_out(path):
    """The file out of the page cache, where the file system has it on a disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def look(path, *range_):
    done = run([PYROMETER, "timeline", "--json", "--pixels", str(PIXELS), *range_, path]).expect()
    return done, json.loads(done.stdout)


def figures(bench, path, name, begin, end):
    middle, half = (begin + end) / 2, (end - begin) * SHARES[name] / 2
    range_ = ["--range", "%.9f:%.9f" % (middle - half, middle + half)] if SHARES[name] < 1 else []
    throw_out(path)
    cold, _ = look(path, *range_)
    turns = [look(path, *range_) for _ in range(bench.scale(5, 31))]
    view = turns[0][1]
    if not any(row for thread in view["threads"] for row in thread["rows"]):
        raise Failed("an empty timeline: " + " ".join(range_))
    return {"range": name, "seconds": 2 * half, "ms": 1e3 * median(done.wall for done, _ in turns),
            "cpu_ms": 1e3 * median(done.cpu for done, _ in turns), "cold_ms": 1e3 * cold.wall,
            "told_bytes": view["read"]["bytes"], "disk_bytes": cold.disk_bytes, "blocks": view["read"]["blocks"],
            "summaries": view["read"]["summaries"], "output_bytes": len(turns[0][0].stdout), "coarse": view["coarse"]}


def measure(bench):
    say("timeline: recording {:,} events and more …".format(bench.scale(QUICK_EVENTS, EVENTS)))
    path, events = record(bench)
    whole = look(path)[1]
    rows = [figures(bench, path, name, whole["from_seconds"], whole["to_seconds"]) for name in SHARES]
    mb = lambda n: "%.1f" % (n / 1e6) if n is not None else "?"  # noqa: E731
    table("`timeline --json --pixels {}` of {:,} events in {} MB".format(PIXELS, events, mb(os.path.getsize(path))),
          ["range", "seconds", "ms", "CPU ms", "ms, not in the cache", "MB by itself", "MB from the disk", "blocks", "summaries",
           "MB written"],
          [[r["range"], "%.4f" % r["seconds"], "%.1f" % r["ms"], "%.1f" % r["cpu_ms"], "%.1f" % r["cold_ms"], mb(r["told_bytes"]),
            mb(r["disk_bytes"]), r["blocks"], r["summaries"], mb(r["output_bytes"])] for r in rows])
    for r in rows:
        on = "%s of %s events" % (r["range"], "{:,}".format(events))
        bench.at_most("timeline", "ms, " + on, r["ms"], LIMIT_MS,
                      "CPU %.0f; %.0f when it is not in the cache" % (r["cpu_ms"], r["cold_ms"]))
        bench.at_most("timeline", "bytes read, " + on, max(r["told_bytes"], r["disk_bytes"] or 0), LIMIT_BYTES,
                      "{:,} by itself".format(r["told_bytes"]))
    return {"events": events, "file_bytes": os.path.getsize(path), "rows": rows}

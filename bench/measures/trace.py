"""What a timeline costs: fib, which does nothing but call, bare, under --calls, under --trace and under viztracer.

Runs take turns; the program times itself, so that starting and saving are not counted. "added" is what a tracer
adds to the bare time. Bytes are those of the finished file over its begins and ends of calls.
"""
import os
import time

from common import PYROMETER, info, median, run, table, target_program

SLOWDOWN = 3.5
OF_VIZTRACER = 1 / 20
BYTES = 4.0


def seconds_of(text):
    return next(float(t) for t in text.splitlines() if t.replace(".", "", 1).strip().isdigit())


def contestants(bench, script):
    python = bench.python.path

    def ours(*instruments):
        return lambda out: [PYROMETER, "run", "--quiet", "--force", *instruments, "-o", out, "--", python, *script]

    found = [("bare", lambda out: [python, *script]), ("pyrometer --calls", ours("--calls")),
             ("pyrometer --trace", ours("--trace")), ("pyrometer --trace --no-c-calls", ours("--trace", "--no-c-calls"))]
    return found + [(p.label, lambda out, p=p: p.run(script, 0, out)) for p in bench.peer_list(name="viztracer")]


def measure(bench):
    n = bench.scale(24, 27)
    turn = contestants(bench, [target_program("fib.py"), str(n)])
    inside, whole, sizes = ({label: [] for label, _ in turn} for _ in range(3))
    for _ in range(bench.scale(3, 15)):
        for label, command in turn:
            out = bench.path("trace.json" if label == "viztracer" else "trace.pyro")
            begin = time.monotonic()
            done = run(command(out), cwd=bench.folder).expect()
            whole[label].append(time.monotonic() - begin)
            inside[label].append(seconds_of(done.stdout))
            if "--trace" in label:
                sizes[label].append(os.path.getsize(out) / info(out)["events_traced"])
    rows = []
    for label, _ in turn:
        ratio = median(a / b for a, b in zip(inside[label], inside["bare"]))
        added = median(a - b for a, b in zip(inside[label], inside["bare"]))
        total = median(a - b for a, b in zip(whole[label], whole["bare"]))
        rows.append({"contestant": label, "seconds": median(inside[label]), "slowdown": ratio, "added": added,
                     "added_in_all": total, "bytes_per_event": median(sizes[label])})
    table("fib(%d) with a timeline (medians of turns)" % n,
          ["contestant", "seconds", "slowdown", "added s", "added s, start and save too", "bytes per event"],
          [[r["contestant"], "%.3f" % r["seconds"], "%.2f" % r["slowdown"], "%.3f" % r["added"], "%.3f" % r["added_in_all"],
            "%.2f" % r["bytes_per_event"] if r["bytes_per_event"] else ""] for r in rows])
    judge(bench, {r["contestant"]: r for r in rows})
    return {"rows": rows}


def judge(bench, rows):
    ours = rows["pyrometer --trace"]
    bench.at_most("trace", "fib under --trace", ours["slowdown"], SLOWDOWN)
    bench.at_most("trace", "bytes per event", ours["bytes_per_event"], BYTES)
    if "viztracer" in rows:
        theirs = rows["viztracer"]
        bench.at_most("trace", "added, start and save too, of viztracer's", ours["added_in_all"] / theirs["added_in_all"], OF_VIZTRACER,
                      "inside the program alone %.2f" % (ours["added"] / theirs["added"]))

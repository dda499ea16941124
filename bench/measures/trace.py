"""What a timeline costs: fib, which does nothing but call, bare, under --calls, under --trace and under viztracer.

Runs take turns; the program times itself, so that starting and saving are not counted. "added" is what a tracer
adds to the bare time. Bytes are those of the finished file over its begins and ends of calls.

Then the same program left out by --exclude, on every CPython there is: from 3.12 on that must be free, below it is
what looking at each call costs.
"""
import os
import time

from common import PYROMETER, info, median, run, table, target_program

SLOWDOWN = 3.5
OF_VIZTRACER = 1 / 20
BYTES = 4.0
LEFT_OUT = 1.05


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
    return {"rows": rows, "left_out": left_out(bench)}


def left_out(bench):
    script = [target_program("fib.py"), str(bench.scale(20, 24))]
    rows = []
    for python in bench.pythons:
        turn = [("bare", [])] + [(label, [PYROMETER, "run", "--quiet", "--force", *options, "-o", bench.path("out.pyro"), "--"])
                                 for label, options in (("all", ["--trace", "--exclude", "fib"]),
                                                        ("no_c", ["--trace", "--no-c-calls", "--exclude", "fib"]))]
        inside = {label: [] for label, _ in turn}
        for _ in range(bench.scale(3, 15)):
            for label, before in turn:
                inside[label].append(seconds_of(run([*before, python.path, *script], cwd=bench.folder).expect().stdout))
        rows.append({"python": python.name, **{label: median(a / b for a, b in zip(inside[label], inside["bare"])) for label in ("all", "no_c")}})
    table("fib left out by --exclude (median slowdowns of turns)", ["CPython", "--trace", "--trace --no-c-calls"],
          [[r["python"], "%.2f" % r["all"], "%.2f" % r["no_c"]] for r in rows])
    free = [r["all"] for r, python in zip(rows, bench.pythons) if python.version >= (3, 12)]
    if free:
        bench.at_most("trace", "fib left out, from 3.12 on", max(free), LEFT_OUT)
    return rows


def judge(bench, rows):
    ours = rows["pyrometer --trace"]
    bench.at_most("trace", "fib under --trace", ours["slowdown"], SLOWDOWN)
    bench.at_most("trace", "bytes per event", ours["bytes_per_event"], BYTES)
    if "viztracer" in rows:
        theirs = rows["viztracer"]
        bench.at_most("trace", "added, start and save too, of viztracer's", ours["added_in_all"] / theirs["added_in_all"], OF_VIZTRACER,
                      "inside the program alone %.2f" % (ours["added"] / theirs["added"]))

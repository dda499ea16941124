"""What a timeline costs: whole commands with their file on disk, in turns, beside viztracer; and the recorder's memory.

fib does nothing but call: the worst case. Bytes are those of the finished file over its begins and ends of calls. The
recorder's memory is the peak of its resident pages, those that it shares with the program included, over the threads
of the program that are traced; the program's own peak is told beside it.
"""
import os
import re
import subprocess
import time

import exact
from common import PYROMETER, Failed, info, median, table, target_program
from exact import Contestant, Turns

SLOWDOWN = 3.5
OF_VIZTRACER = 1 / 20
BYTES, BYTES_GOAL = 4.0, 2.0
MEMORY_MB = 64
OURS = {"ours": ["--trace"], "ours, no C": ["--trace", "--no-c-calls"], "ours, --calls": ["--calls"]}
THREADS = (1, 4)
POLL = 0.005  # seconds between looks at the recorder's peak


def compare(bench, place, program):
    script, modules = exact.script_of(bench, program)
    sizes, waited, events = [], [], []

    def after(done, out):
        stats = exact.counted(out)
        events.append(stats["events_traced"])
        sizes.append(os.path.getsize(out) / stats["events_traced"])
        waited.append(stats["event_wait_ns"] / 1e9 / done.wall)

    contestants = [exact.bare(place, script)]
    contestants += [Contestant(label, lambda out, o=options: place.ours(*o)(script, out), ".pyro", after=after if label == "ours" else None)
                    for label, options in OURS.items()]
    contestants += exact.peer_contestants(place, script, modules, few=bench.scale(1, 5), name="viztracer")
    turns = Turns(bench, contestants, place.environment()).run(bench.scale(3, 15))
    theirs = "viztracer" in turns.by_label
    return {"python": place.python.name, "program": program, "bytes_per_event": median(sizes), "events": median(events),
            "waited": median(waited), "of_viztracer": turns.ratio("ours", "viztracer") if theirs else None,
            "of_viztracer_inside": turns.ratio("ours", "viztracer", "inside") if theirs else None,
            "of_viztracer_cpu": turns.ratio("ours", "viztracer", "cpu") if theirs else None, "contestants": turns.figures()}


def judge(bench, row):
    name = "%s %s, " % (row["python"], row["program"])
    if row["program"] == "fib":
        exact.at_most_slower(bench, "trace", name + "slowdown in all", row["contestants"]["ours"], SLOWDOWN)
    bench.at_most("trace", name + "bytes per event", row["bytes_per_event"], BYTES,
                  "goal %g %s" % (BYTES_GOAL, "met" if row["bytes_per_event"] <= BYTES_GOAL else "not met"))
    bench.at_most("trace", name + "waits", row["waited"], exact.WAITS)
    if row["of_viztracer"] is not None:
        bench.at_most("trace", name + "added of viztracer's", row["of_viztracer"], OF_VIZTRACER,
                      exact.other_clocks(row["of_viztracer_inside"], row["of_viztracer_cpu"]))


def peak_mb(pid):
    try:
        with open("/proc/%d/status" % pid) as f:
            found = re.search(r"VmHWM:\s+(\d+) kB", f.read())
        return int(found.group(1)) / 1024 if found else 0
    except OSError:
        return 0


def memory(bench, place, threads):
    """The peak of the recorder (not of what it started, as wait4 would say) and of the program, in MB."""
    n = bench.scale(24, 28)
    script = [target_program("calls.py"), "fib", str(n), str(threads)]
    out = bench.path("memory.pyro")
    command = [PYROMETER, "run", "--quiet", "--force", "--trace", "-o", out, "--", place.python.path, *script]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=place.environment())
    ours = program = 0
    while recorder.poll() is None:
        ours = max(ours, peak_mb(recorder.pid))
        try:
            with open("/proc/%d/task/%d/children" % (recorder.pid, recorder.pid)) as f:
                program = max([program, *map(peak_mb, map(int, f.read().split()))])
        except OSError:
            pass
        time.sleep(POLL)
    if recorder.returncode:
        raise Failed("status %d of: %s" % (recorder.returncode, " ".join(command)))
    return {"python": place.python.name, "threads": threads, "recorder_mb": ours, "program_mb": program, "per_thread_mb": ours / threads,
            "events": info(out)["events_traced"]}


def measure(bench):
    rows, peaks, versions = [], [], {}
    for python in exact.pythons(bench, "3.12"):
        place = exact.place(bench, python)
        versions[python.name] = place.versions.get("viztracer")
        for program in exact.PROGRAMS:
            rows.append(compare(bench, place, program))
            judge(bench, rows[-1])
        for threads in THREADS:
            peaks.append(memory(bench, place, threads))
            bench.at_most("trace", "%s, recorder's MB per traced thread, %d of them" % (python.name, threads),
                          peaks[-1]["per_thread_mb"], MEMORY_MB)
    labels = ["ours", "ours, no C", "ours, --calls", "viztracer"]
    cell = lambda row, label: "%.2f" % row["contestants"][label]["slowdown"] if label in row["contestants"] else ""  # noqa: E731
    table("a timeline: time of the whole command over the bare one's (medians of turns)",
          ["CPython, program", "bare s", *labels, "added/viztracer", "events", "bytes each", "waits"],
          [["%s %s" % (r["python"], r["program"]), "%.3f" % r["contestants"]["bare"]["seconds"], *[cell(r, label) for label in labels],
            "%.3f" % r["of_viztracer"] if r["of_viztracer"] is not None else "", "{:,.0f}".format(r["events"]),
            "%.2f" % r["bytes_per_event"], "%.2f %%" % (100 * r["waited"])] for r in rows])
    table("memory while a timeline is recorded (peak, MB)", ["CPython, threads", "recorder", "per thread", "program", "events"],
          [["%s %d" % (p["python"], p["threads"]), "%.1f" % p["recorder_mb"], "%.1f" % p["per_thread_mb"], "%.1f" % p["program_mb"],
            "{:,}".format(p["events"])] for p in peaks])
    return {"rows": rows, "memory": peaks, "versions": versions}

"""What `run --memory` takes of memory, disk and time: in the program, in the recorder, in files, and from each thread.

In the program: what is resident at its end, less what the bare one has, without what it shares with the recorder (the
rings). In the recorder: anonymous pages, at their highest, over blocks that are alive. In threads: the CPU time of one
malloc or free above the bare one's, with more and more threads: a lock for all of them would make it grow. Whether it
does on this machine, now, is told by a control: the bare program under one lock. Where that does not grow the measure
shows nothing, and fails. Files: of a long run, and of one that keeps every event, which is then read.
"""
import json
import os
import re
import subprocess
import time

import exact
from common import BUILD, Failed, HANG, PYROMETER, info, median, run, table, target_program

MB = 1 << 20
MODES = ["heap", "objects", "sampled"]
TRACKER_MB = 8
BLOCK_BYTES, BLOCKS = 32, (1000000, 4000000)
THREADS, GROWTH = (1, 2, 4), 1.5
DEFAULT_MB, EVENT_BYTES = 16, 3
READING = {"events": (10 ** 7, 10 ** 8), "seconds": 10, "mb": 1000}
POLL = 0.005  # seconds between looks at the recorder
SETTLED = 0.5  # seconds without a change: the recorder has seen all there is


def command_of(place, mode, out, script, *more):
    return [PYROMETER, "run", "--quiet", "--force", "--memory=" + mode, *more, "-o", out, "--", place.python.path, *script]


def recorded(bench, place, mode, script, *more):
    """Runs a program to its end; the path of its recording, which has lost nothing."""
    out = bench.path("bounds.pyro")
    done = run(command_of(place, mode, out, script, *more), cwd=bench.folder, env=place.environment()).expect()
    exact.counted(out)
    return done, out


def tracker(bench, place):
    """MB in the program, by program and mode."""
    programs = {"nothing": [], "a million floats": [target_program("allocate.py"), "floats", "1000000"],
                "sql": exact.script_of(bench, "sql", programs=exact.JOBS)[0]}
    rows = []
    for name, script in programs.items():
        script = [target_program("resident.py"), *script]
        found = {"bare": [], **{mode: [] for mode in MODES}}
        for _ in range(bench.scale(3, 7)):
            found["bare"].append(resident(run([place.python.path, *script], env=place.environment()).expect()))
            for mode in MODES:
                found[mode].append(resident(recorded(bench, place, mode, script)[0]))
        bare = median(f["private"] for f in found["bare"])
        for mode in MODES:
            rows.append({"python": place.python.name, "program": name, "mode": mode, "bare_mb": bare / MB,
                         "tracker_mb": (median(f["private"] for f in found[mode]) - bare) / MB,
                         "rings_mb": median(f["shared"] for f in found[mode]) / MB})
            bench.at_most("memory_bounds", "%s %s, %s: MB in the program" % (place.python.name, name, mode), rows[-1]["tracker_mb"], TRACKER_MB)
    return rows


def resident(done):
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def anonymous(pid):
    """(bytes of a process that are backed by nothing, and at their highest). Looks now and then would miss the moment in which a
    table grows; the kernel does not, but counts shared pages too: what there is of those now is taken off."""
    with open("/proc/%d/status" % pid) as f:
        found = {name: 1024 * int(kb) for name, kb in re.findall(r"(\w+):\s+(\d+) kB", f.read())}
    return found.get("RssAnon", 0), found.get("VmHWM", 0) - found.get("RssFile", 0) - found.get("RssShmem", 0)


def recorder(bench, place, blocks):
    """(bytes of the recorder at their highest, bytes when it is at rest) while so many blocks are alive."""
    out = bench.path("blocks.pyro")
    child = subprocess.Popen(command_of(place, "objects", out, [target_program("allocate.py"), "held", str(blocks)]),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", env=place.environment(), cwd=bench.folder)
    try:
        os.set_blocking(child.stdout.fileno(), False)
        highest, rest, ready, since, begin = 0, 0, False, time.monotonic(), time.monotonic()
        while not ready or time.monotonic() - since < SETTLED:
            if child.poll() is not None or time.monotonic() - begin > HANG:
                raise Failed("the program with %d blocks did not get ready" % blocks)
            now, highest = anonymous(child.pid)
            if now != rest or not ready:
                since = time.monotonic()
            rest = now
            ready = ready or "ready" in (child.stdout.readline() or "")
            time.sleep(POLL)
        child.communicate("", timeout=HANG)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
    exact.counted(out)
    return highest, rest


def per_block(bench, place):
    rounds = bench.scale(1, 3)
    least = [median(values) for values in zip(*[recorder(bench, place, 0) for _ in range(rounds)])]
    rows = []
    for blocks in BLOCKS:
        found = [median(values) for values in zip(*[recorder(bench, place, blocks) for _ in range(rounds)])]
        rows.append({"python": place.python.name, "blocks": blocks, "recorder_mb": found[0] / MB, "least_mb": least[0] / MB,
                     "bytes_per_block": (found[0] - least[0]) / blocks, "bytes_at_rest": (found[1] - least[1]) / blocks})
        bench.at_most("memory_bounds", "%s, %d live blocks: recorder's bytes each" % (place.python.name, blocks),
                      rows[-1]["bytes_per_block"], BLOCK_BYTES, "at rest %.1f" % rows[-1]["bytes_at_rest"])
    return rows


def churn_library():
    path = os.path.join(BUILD, "bench_churn.so")
    run([os.environ.get("CC", "cc"), "-O2", "-fno-builtin", "-shared", "-fPIC", target_program("churn.c"), "-o", path]).expect()
    return path


def event_ns(done):
    line = next((t for t in done.stdout.splitlines() if t.startswith("EVENT ")), None)
    if not line:
        raise Failed("the threads did not say what an event took: %.200s" % done.stdout)
    return [1e9 * float(word) for word in line.split()[1:]]


def threads(bench, place):
    """ns of an event, CPU time and wall, by contestant and number of threads; what the hooks add is theirs less the bare."""
    library = churn_library()
    ways = {"bare": None, **{mode: mode for mode in MODES}}
    peers = {p.label: p for p in place.peers if p.label == "memray"}
    control = "control: one lock"
    taken = {}
    for _ in range(bench.scale(3, 11)):
        for count in THREADS:
            script = [target_program("threads.py"), library, str(count), str(bench.scale(500000, 2000000))]
            for label, mode in ways.items():
                done = recorded(bench, place, mode, script)[0] if mode else run([place.python.path, *script], env=place.environment()).expect()
                taken.setdefault((label, count), []).append(event_ns(done))
            taken.setdefault((control, count), []).append(event_ns(run([place.python.path, *script, "1"], env=place.environment()).expect()))
            for label, peer in peers.items():
                done = run(peer.command(place.python.path, script, bench.path("threads.out")), env=place.environment()).expect()
                taken.setdefault((label, count), []).append(event_ns(done))
    rows = []
    for label in [control, *MODES, *peers]:
        for clock in (0, 1):
            added = [median(mine[clock] - bare[clock] for mine, bare in zip(taken[label, n], taken["bare", n])) for n in THREADS]
            rows.append({"python": place.python.name, "who": label, "clock": ("cpu", "wall")[clock], "ns": added, "growth": added[-1] / added[0],
                         "bare_ns": [median(t[clock] for t in taken["bare", n]) for n in THREADS]})
            if label == control and not clock:
                bench.at_least("memory_bounds", "%s: one lock is seen: its ns with %d threads, over those with one" % (place.python.name, THREADS[-1]),
                               rows[-1]["growth"], GROWTH, "else the lines below show nothing; %s ns" % ", ".join("%.1f" % ns for ns in added))
            if label in MODES and not clock:
                # a few ns are below what a turn can tell: sampling adds no more
                bench.at_most("memory_bounds", "%s %s: ns that %d threads add to an event, over those of one" % (place.python.name, label, THREADS[-1]),
                              rows[-1]["growth"] if added[-1] > 3 else 1.0, GROWTH, "%s ns" % ", ".join("%.1f" % ns for ns in added))
    return rows


def files(bench, place):
    """A long busy run as it comes, and every event of the jobs and the allocators."""
    done, out = recorded(bench, place, "objects", [target_program("sql.py"), str(bench.scale(60, 1500))])
    long = {"python": place.python.name, "seconds": done.wall, "events": info(out)["events"], "mb": os.path.getsize(out) / MB}
    bench.at_most("memory_bounds", "%s, sql for %.0f s: MB of the file" % (place.python.name, done.wall), long["mb"], DEFAULT_MB,
                  "{:,} events".format(long["events"]))
    rows = []
    for programs in (exact.JOBS, exact.ALLOCATORS):
        for name in programs:
            _, out = recorded(bench, place, "objects", exact.script_of(bench, name, programs=programs)[0], "--memory-events")
            events, size = info(out)["events"], os.path.getsize(out)
            rows.append({"python": place.python.name, "program": name, "events": events, "mb": size / MB, "bytes_per_event": size / events})
            bench.at_most("memory_bounds", "%s %s: bytes of an event" % (place.python.name, name), rows[-1]["bytes_per_event"], EVENT_BYTES)
    return {"long": long, "events": rows}


def reading(bench, place):
    """A file of very many events, to the report of its peak."""
    count = bench.scale(*READING["events"])
    _, out = recorded(bench, place, "objects", [target_program("allocate.py"), "events", str(count)], "--memory-events")
    rows = []
    for words in (["memory", "summary"], ["memory", "leaks"], ["memory", "lines"], ["memory", "summary", "--at", "1"], ["report", "--metric", "peak"]):
        done = run([PYROMETER, *words, out]).expect()
        rows.append({"command": " ".join(words), "seconds": done.wall, "mb": done.peak_bytes / 1e6})
        if words[-1] in ("summary", "peak"):
            text = "{:,} events, {}".format(info(out)["events"], rows[-1]["command"])
            bench.at_most("memory_bounds", text + ": s", done.wall, READING["seconds"])
            bench.at_most("memory_bounds", text + ": MB", rows[-1]["mb"], READING["mb"])
    return {"events": info(out)["events"], "file_mb": os.path.getsize(out) / MB, "rows": rows}


def measure(bench):
    trackers, blocks, threaded, sizes = [], [], [], []
    for python in exact.pythons(bench, "3.12"):
        place = exact.place(bench, python).install_jobs()
        trackers += tracker(bench, place)
        blocks += per_block(bench, place)
        threaded += threads(bench, place)
        sizes.append(files(bench, place))
    read = reading(bench, exact.place(bench, bench.python))
    table("memory of the program at its end, above bare (MB)", ["CPython, program", "mode", "bare", "above", "rings"],
          [["%s %s" % (r["python"], r["program"]), r["mode"], "%.1f" % r["bare_mb"], "%.2f" % r["tracker_mb"], "%.2f" % r["rings_mb"]] for r in trackers])
    table("the recorder with blocks alive", ["CPython, blocks", "MB", "MB with none", "bytes each", "at rest"],
          [["%s %d" % (r["python"], r["blocks"]), "%.1f" % r["recorder_mb"], "%.1f" % r["least_mb"], "%.1f" % r["bytes_per_block"],
            "%.1f" % r["bytes_at_rest"]] for r in blocks])
    table("ns that hooks add to a malloc or free, with %s threads" % ", ".join(map(str, THREADS)),
          ["CPython, who", "clock", *map(str, THREADS), "growth", "bare"],
          [["%s %s" % (r["python"], r["who"]), r["clock"], *["%.1f" % ns for ns in r["ns"]], "%.2f" % r["growth"],
            ", ".join("%.1f" % ns for ns in r["bare_ns"])] for r in threaded])
    table("files that keep every event", ["CPython, program", "events", "MB", "bytes each"],
          [["%s %s" % (r["python"], r["program"]), "{:,}".format(r["events"]), "%.2f" % r["mb"], "%.2f" % r["bytes_per_event"]]
           for size in sizes for r in size["events"]])
    table("reading {:,} events, {:.0f} MB".format(read["events"], read["file_mb"]), ["command", "s", "MB"],
          [[r["command"], "%.2f" % r["seconds"], "%.0f" % r["mb"]] for r in read["rows"]])
    return {"tracker": trackers, "blocks": blocks, "threads": threaded, "files": sizes, "reading": read}

"""How much slower a CPU-bound program runs while it is sampled.

Runs of one program differ by more than what is to be measured, so one run is cut into windows: the target
counts its rounds per 20 ms all the time.

Ours are there all the time, but stopped (SIGSTOP) and continued five times a second, which a profiler that
only reads does not mind: the slowdown is the median over hundreds of pairs of neighbouring phases, near
enough to each other that the machine's own moods cancel. The control, a process that sleeps, is treated the same.

The peers may have the target stopped when they are stopped themselves. They come and go in turns, each with a
pause before and after it: a slowdown in one turn is the median speed in the two pauses over the median
speed while it was there; the figure is the median over the turns, and much rougher.
The same per second of the target's CPU time is shown beside it: other programs on the machine hardly disturb
that one, but it does not see a target that was stopped or had to wait.

Profilers that live inside the program cannot come and go: for them the same work is done in whole runs, in
turns with bare ones, timed by the program itself.
"""
import json
import math
import signal
import subprocess
import time

from common import Failed, Target, median, pin, run, say, table, target_program
from ours import Pyrometer

LIMITS = {1000: 1.01, 10000: 1.05}
FIGURES = ("slowdown", "error", "lower", "upper", "by_cpu_time")
WARM_UP = 1.0
WINDOW = 0.02  # as in targets/spin.py
LATE = 2.0  # seconds after which a profiler that has fallen behind is interrupted
PHASE = 0.1  # seconds that a profiler of ours is stopped, and runs
EDGE = 0.06  # seconds at each end of a phase that count for neither side: three windows

SCENES = [("alone", []), ("200 native threads", ["native", "200"]), ("200 Python threads", ["python", "200"])]


class Contestant:
    def __init__(self, label, peer, hz, blinks=False):
        self.label, self.peer, self.hz = label, peer, hz
        self.blinks = blinks  # it may be stopped and continued
        self.phases = []  # (its start, when it samples, its end)

    def command(self, bench, pid, seconds):
        if not self.peer:
            return ["sleep", str(seconds)]
        return self.peer.attach(pid, self.hz, seconds, bench.path("slowdown.out"))


def contestants(bench, python, scene):
    """Ours at both rates, and who else can attach to a target of that version, at 1 kHz."""
    ours = Pyrometer(bench)
    found = [Contestant("control (sleep)", None, 0, blinks=True)]
    found += [Contestant("pyrometer %d kHz" % (hz // 1000), ours, hz, blinks=True) for hz in LIMITS]
    for peer in bench.peer_list(attaches=True):
        if peer.target_python() is not python:
            continue
        found.append(Contestant(peer.label + " 1 kHz", peer, 1000))
        if peer.max_hz >= 10000 and scene == "alone":
            found.append(Contestant(peer.label + " 10 kHz", peer, 10000))
    return found


def blink(bench, target, c, seconds):
    """One turn of a contestant that may be stopped: it notes the phases in which it ran."""
    child = subprocess.Popen(c.command(bench, target.pid, seconds + 1), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, preexec_fn=pin(bench.sampler_cpu))
    time.sleep(c.peer.settle if c.peer else EDGE)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        child.send_signal(signal.SIGSTOP)
        time.sleep(PHASE)
        begin = time.monotonic()
        child.send_signal(signal.SIGCONT)
        time.sleep(PHASE)
        c.phases.append((begin, time.monotonic()))
    if child.wait():
        raise Failed("status %d of %s" % (child.returncode, c.label))


def blink_ratios(windows, contestant, column):
    """The slowdown in each phase: the speed in the two stopped ones around it over that in it."""
    def speed(begin, end):
        inside = [w[column] for w in windows if begin + WINDOW <= w[0] and w[0] + 2 * WINDOW <= end]
        return sum(inside) / len(inside) if inside else None

    found = []
    for begin, end in contestant.phases:
        on, before, after = speed(begin, end), speed(begin - PHASE, begin), speed(end, end + PHASE)
        if on and before and after:
            found.append((before + after) / 2 / on)
    return sorted(found)


def take_turns(bench, target, turn, seconds, rounds):
    for n in range(rounds):
        # another order each round, so that no one always follows the same neighbour
        for c in turn[n % len(turn):] + turn[:n % len(turn)]:
            time.sleep(seconds)
            if c.blinks:
                blink(bench, target, c, 5 * seconds)
                continue
            settle = c.peer.settle if c.peer else EDGE
            limit = math.ceil(seconds + settle) + LATE
            done = run(c.command(bench, target.pid, seconds + settle), cpu=bench.sampler_cpu, limit=limit)
            if done.wall < limit:  # an interrupted peer may leave with any status
                done.expect()
            c.phases.append((done.begin, done.begin + settle, done.end))
    time.sleep(seconds)


def ratios(windows, contestant, seconds, column):
    """The slowdown of each of its turns, by wall time (column 1) or CPU time (column 2)."""
    if contestant.blinks:
        return blink_ratios(windows, contestant, column)

    def speeds(begin, end):
        return [w[column] for w in windows if begin + EDGE <= w[0] and w[0] + WINDOW <= end - EDGE]

    found = []
    for begin, sampling, end in contestant.phases:
        on = speeds(sampling, min(end, sampling + seconds + 2 * EDGE))
        off = speeds(begin - seconds, begin) + speeds(end, end + seconds)
        if on and off:
            found.append(median(off) / median(on))
    return sorted(found)


def quantile(values, q):
    return values[min(len(values) - 1, int(q * len(values)))] if values else None


def error(values):
    """Of the median: its standard error, from the middle half of the values."""
    if len(values) < 4:
        return None
    return 1.2533 * (quantile(values, 0.75) - quantile(values, 0.25)) / 1.349 / math.sqrt(len(values))


def scene(bench, python, name, arguments, seconds, rounds):
    turn = contestants(bench, python, name)
    command = [python.path, target_program("spin.py"), "windows", *arguments]
    with Target(command, bench.target_cpu) as target:
        time.sleep(WARM_UP)
        take_turns(bench, target, turn, seconds, rounds)
        windows = json.loads(target.finish())
    rows = []
    for c in turn:
        values = ratios(windows, c, seconds, 1)
        rows.append({"scene": name, "python": python.name, "contestant": c.label, "slowdown": median(values),
                     "lower": quantile(values, 0.25), "upper": quantile(values, 0.75), "error": error(values),
                     "by_cpu_time": median(ratios(windows, c, seconds, 2)), "turns": len(values)})
    return rows


def judge(bench, rows):
    control = {(r["scene"], r["python"]): r["slowdown"] for r in rows if r["contestant"].startswith("control")}
    for r in rows:
        for hz, limit in LIMITS.items():
            if r["contestant"] == "pyrometer %d kHz" % (hz // 1000):
                beside = control[r["scene"], r["python"]]
                noisy = " (too noisy to tell)" if abs(beside - 1) > limit - 1 else ""
                note = "±%.3f; control %.3f%s; by CPU time %.3f" % (r["error"] or 0, beside, noisy, r["by_cpu_time"])
                bench.at_most("slowdown", "%d kHz, %s, %s" % (hz // 1000, r["scene"], r["python"]), r["slowdown"], limit, note)


def whole_runs(bench, rounds):
    """Seconds that the program says its work took, bare and under each profiler that starts programs."""
    script = [target_program("spin.py"), "work", str(bench.scale(150000, 500000))]
    turn = [("bare", None), ("pyrometer run", Pyrometer(bench))]
    turn += [(p.label, p) for p in bench.peer_list(attaches=False, records=True)]
    seconds = {label: [] for label, _ in turn}
    for _ in range(rounds):
        for label, peer in turn:
            command = peer.run(script, 1000, bench.path("whole.out")) if peer else [bench.python.path, *script]
            out = run(command, cwd=bench.folder).expect().stdout
            line = next(text for text in out.splitlines() if text.replace(".", "", 1).strip().isdigit())
            seconds[label].append(float(line))
    return [{"contestant": label, "seconds": median(s),
             "slowdown": median(a / b for a, b in zip(s, seconds["bare"]))} for label, s in seconds.items()]


def measure(bench):
    seconds, rounds = bench.scale(0.5, 1.0), bench.scale(3, 8)
    rows = []
    for name, arguments in SCENES:
        say("slowdown: %s …" % name)
        rows += scene(bench, bench.python, name, arguments, seconds, rounds)
    for python in {p.target_python() for p in bench.peer_list(attaches=True)} - {bench.python}:
        say("slowdown: on %s …" % python.name)
        rows += scene(bench, python, "alone", [], seconds, rounds)
    table("slowdown by on/off windows (median of turns; 1 = none)",
          ["contestant", "scene", "python", "slowdown", "±", "lower quartile", "upper", "by CPU time"],
          [[r["contestant"], r["scene"], r["python"]] + ["%.3f" % r[k] if r[k] else "?" for k in FIGURES]
           for r in rows])
    judge(bench, rows)
    whole = whole_runs(bench, bench.scale(3, 9))
    table("slowdown by whole runs at 1 kHz (differences below 5 % are noise)", ["contestant", "seconds", "slowdown"],
          [[r["contestant"], "%.3f" % r["seconds"], "%.2f" % r["slowdown"]] for r in whole])
    return {"windows": rows, "whole_runs": whole}

"""Three functions with shares of 70, 20 and 10 per cent, measured while they run.

    shares.py [SECONDS]

Each function spins until it has used its slice of the thread's CPU clock, in turns of 10 ms, so the
shares hold in CPU time on a busy machine too. At the end it prints as JSON what really happened: the
shares by the CPU clock and by the wall clock (preemption falls into whoever was running).
"""
import json
import sys
import time

cpu = {"hot_70": 0.0, "hot_20": 0.0, "hot_10": 0.0}
wall = dict(cpu)


def hot_70(slice_s):
    start = time.thread_time()
    wall_start = time.perf_counter()
    x = 0
    while time.thread_time() - start < slice_s:
        for i in range(100):
            x += i
    cpu["hot_70"] += time.thread_time() - start
    wall["hot_70"] += time.perf_counter() - wall_start


def hot_20(slice_s):
    start = time.thread_time()
    wall_start = time.perf_counter()
    x = 0
    while time.thread_time() - start < slice_s:
        for i in range(100):
            x += i
    cpu["hot_20"] += time.thread_time() - start
    wall["hot_20"] += time.perf_counter() - wall_start


def hot_10(slice_s):
    start = time.thread_time()
    wall_start = time.perf_counter()
    x = 0
    while time.thread_time() - start < slice_s:
        for i in range(100):
            x += i
    cpu["hot_10"] += time.thread_time() - start
    wall["hot_10"] += time.perf_counter() - wall_start


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    while sum(cpu.values()) < seconds:
        hot_70(0.007)
        hot_20(0.002)
        hot_10(0.001)
    percent = lambda d: {k: 100 * v / sum(d.values()) for k, v in d.items()}  # noqa: E731
    print(json.dumps({"cpu": percent(cpu), "wall": percent(wall)}))


main()

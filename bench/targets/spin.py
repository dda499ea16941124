"""A CPU-bound program that knows how fast it is.

    spin.py windows [native|python THREADS]    says "ready", then counts its rounds per 20 ms until SIGTERM;
                                               prints [[start (CLOCK_MONOTONIC), rounds per second, rounds per
                                               second of CPU time], …]
    spin.py work ROUNDS                        does that many rounds and prints how many seconds they took

A round is a call chain ten deep with a short loop at its end: calls for those who pay by the call, and a
stack that changes. With THREADS, that many more threads sleep all the time: native ones, which Python knows
nothing of, or Python's.
"""
import json
import signal
import sys
import time
from time import perf_counter

WINDOW = 0.02


def work(depth):
    if depth:
        return work(depth - 1) + 1
    x = 0
    for i in range(60):
        x += i
    return x


def start_sleepers(kind, count):
    if kind == "native":
        import ctypes
        libc = ctypes.CDLL(None)
        threads = (ctypes.c_ulong * count)()
        size = ctypes.sizeof(ctypes.c_ulong)
        for i in range(count):  # pause() takes no argument and ignores the one it gets
            if libc.pthread_create(ctypes.byref(threads, i * size), None, libc.pause, None):
                sys.exit("cannot make a thread")
    elif kind == "python":
        import threading
        for _ in range(count):
            threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()


def windows():
    stop = []
    # a native sleeper may be the one the kernel wakes; Python runs the handler here all the same
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    found = []
    print("ready", flush=True)
    start, cpu_start = perf_counter(), time.thread_time()
    while not stop:
        rounds, end, now = 0, start + WINDOW, start
        while now < end:
            work(10)
            rounds += 1
            now = perf_counter()
        cpu_now = time.thread_time()
        found.append((start, rounds / (now - start), rounds / max(1e-6, cpu_now - cpu_start)))
        start, cpu_start = now, cpu_now
    json.dump(found, sys.stdout)
    sys.stdout.flush()
    import os
    os._exit(0)  # the sleepers are not waited for


def main():
    if sys.argv[1] == "work":
        start = perf_counter()
        for _ in range(int(sys.argv[2])):
            work(10)
        print(json.dumps(perf_counter() - start))
        return
    if len(sys.argv) > 2:
        start_sleepers(sys.argv[2], int(sys.argv[3]))
    windows()


main()

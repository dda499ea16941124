"""A stack of 10,000 frames: dive calls itself to the bottom, where `bottom` works.

    deep.py [DEPTH] [SECONDS]
"""
import sys
import threading
import time

depth = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0


def bottom():
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    x = 0
    while time.perf_counter() < end:
        x += 1


def dive(n):
    if n == 1:
        bottom()
    else:
        dive(n - 1)


sys.setrecursionlimit(depth + 1000)
threading.stack_size(512 << 20)
thread = threading.Thread(target=dive, args=(depth,), name="diver")
thread.start()
thread.join()

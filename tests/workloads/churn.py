"""Threads that live for about a millisecond, each in a chain of functions of its own.

    churn.py [SECONDS] [DEPTH]

Thread number k runs t<k>_0 … t<k>_n (k counts up to 16 and starts again). A stack with two different
k in it never existed.
"""
import sys
import threading
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
depth = int(sys.argv[2]) if len(sys.argv) > 2 else 8
KINDS = 16

source = []
for k in range(KINDS):
    for i in range(depth):
        source.append("def t%d_%d(n):\n    return t%d_%d(n)\n" % (k, i, k, i + 1))
    source.append("def t%d_%d(n):\n    x = 0\n    for i in range(n):\n        x += i\n    return x\n" % (k, depth))
exec(compile("\n".join(source), "<churn>", "exec"))


def body(k):
    function = globals()["t%d_0" % k]
    for _ in range(20):
        function(1000)


def main():
    end = time.perf_counter() + seconds
    k = started = 0
    alive = []
    while time.perf_counter() < end:
        thread = threading.Thread(target=body, args=(k,), name="churn-%d" % k)
        thread.start()
        started += 1
        alive.append(thread)
        if len(alive) >= 4:
            alive.pop(0).join()
        k = (k + 1) % KINDS
    for thread in alive:
        thread.join()
    print("threads", started)


print("ready", flush=True)
main()

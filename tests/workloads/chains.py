"""Two call chains, a_0 … a_n and b_0 … b_n, that take turns for ever.

    chains.py [DEPTH] [LEAF] [SECONDS]

LEAF is the number of loop rounds in the last function: a few for a stack that never holds still
(200: about 4 us), many for a calm one (20000: about 0.4 ms). A stack with both letters in it, or with
a gap in the numbers, never existed. At the end it prints as JSON the share of its time (in per cent, by the
wall clock) that each chain really had: 50 each but for what preemption did.
"""
import json
import sys
import time

depth = int(sys.argv[1]) if len(sys.argv) > 1 else 10
leaf = int(sys.argv[2]) if len(sys.argv) > 2 else 200
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 2.0

source = []
for letter in "ab":
    for i in range(depth):
        source.append("def %s_%d(n):\n    return %s_%d(n)\n" % (letter, i, letter, i + 1))
    source.append("def %s_%d(n):\n    x = 0\n    for i in range(n):\n        x += i\n    return x\n" % (letter, depth))
exec(compile("\n".join(source), "<chains>", "exec"))


def main():
    a, b = globals()["a_0"], globals()["b_0"]
    clock = time.perf_counter
    time_a = time_b = 0.0
    now = clock()
    end = now + seconds
    while now < end:
        a(leaf)
        then = clock()
        time_a += then - now
        b(leaf)
        now = clock()
        time_b += now - then
    total = time_a + time_b
    print(json.dumps({"a": 100 * time_a / total, "b": 100 * time_b / total}))


print("ready", flush=True)
main()

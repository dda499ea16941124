"""What a mark, a counter and a span cost where nobody listens: prints ns for each as JSON.

    marks.py ROUNDS

Each statement is timed in many short loops, by turns with an empty one; of the loops of each the lower quartile counts, and
the empty one's is taken off. A loop of some 50 µs is mostly undisturbed, also on a busy machine.
"""
import json
import sys
import time

import pyrometer
from pyrometer import span

LOOPS = 1000
STATEMENTS = {
    "empty": "pass",
    "mark": "pyrometer.mark('x')",
    "counter": "pyrometer.counter('x', 1)",
    "span": "with pyrometer.span('x'): pass",
    "span, imported": "with span('x'): pass",
}
LOOP = "def loop(turns, clock):\n    begin = clock()\n    for _ in turns:\n        %s\n    return clock() - begin\n"


def timer(statement):
    space = {"pyrometer": pyrometer, "span": span}
    exec(LOOP % statement, space)
    return space["loop"]


def main():
    timers = {name: timer(statement) for name, statement in STATEMENTS.items()}
    taken = {name: [] for name in timers}
    turns = range(LOOPS)
    for _ in range(int(sys.argv[1])):
        for name, loop in timers.items():
            taken[name].append(loop(turns, time.perf_counter_ns))
    quartile = {name: sorted(times)[len(times) // 4] / LOOPS for name, times in taken.items()}
    print(json.dumps({name: ns if name == "empty" else ns - quartile["empty"] for name, ns in quartile.items()}))


main()

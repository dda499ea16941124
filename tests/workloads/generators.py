"""Two nests of generators, `yield from` inside `yield from`, that are advanced in turns.

    generators.py [SECONDS] [LEAF]

gen_a_0 is driven by drive_a only, contains gen_a_1, and that gen_a_2, which calls leaf_a; b likewise.
A stack with both letters in it, or with a number left out, never existed. (It would when they are thrown away: the innermost is
closed first, by whoever lets go of the outermost. So the program leaves without that.)
"""
import os
import sys
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
leaf = int(sys.argv[2]) if len(sys.argv) > 2 else 50  # turns of a loop


def leaf_a():
    x = 0
    for i in range(leaf):
        x += i
    return x


def leaf_b():
    x = 0
    for i in range(leaf):
        x += i
    return x


def gen_a_2():
    while True:
        yield leaf_a()


def gen_a_1():
    yield from gen_a_2()


def gen_a_0():
    yield from gen_a_1()


def gen_b_2():
    while True:
        yield leaf_b()


def gen_b_1():
    yield from gen_b_2()


def gen_b_0():
    yield from gen_b_1()


def drive_a(gen):
    return next(gen)


def drive_b(gen):
    return next(gen)


def main():
    a, b = gen_a_0(), gen_b_0()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(200):
            drive_a(a)
            drive_b(b)
    os._exit(0)


print("ready", flush=True)
main()

"""A stack of a given depth that does not change.

    still.py DEPTH asleep|spinning

asleep: the last function is in a system call. spinning: it runs an empty loop, so that the interpreter is
busy and the stack is the same all the same.
"""
import sys
import time


def asleep():
    time.sleep(1e6)


def spinning():
    while True:
        pass


def down(depth, leaf):
    if depth > 0:
        down(depth - 1, leaf)
    leaf()


print("ready", flush=True)
# the module, this many of `down`, and the leaf
down(int(sys.argv[1]) - 3, {"asleep": asleep, "spinning": spinning}[sys.argv[2]])

"""Recursion that goes down and up again all the time.

    recursion.py [DEPTH] [SECONDS]

`even` only calls `odd` and `odd` only calls `even`, and main starts with `even`: two neighbours of
the same name, or a stack of them that starts with `odd`, never existed.
"""
import sys
import time

depth = int(sys.argv[1]) if len(sys.argv) > 1 else 60
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0


def even(n):
    if n == 0:
        return 0
    return odd(n - 1) + 1


def odd(n):
    if n == 0:
        return 0
    return even(n - 1) + 1


def main():
    end = time.perf_counter() + seconds
    n = 0
    while time.perf_counter() < end:
        for _ in range(200):
            n = (n * 7 + 3) % depth
            even(n)


print("ready", flush=True)
main()

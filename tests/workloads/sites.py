"""One function called from three lines that lie close together, for ever in turns.

    sites.py [LEAF] [SECONDS]

Of the time below main's three lines the first has a quarter, the second a quarter and the third half (LEAF rounds of
a loop, LEAF, and twice LEAF; 400: about 4 us). Behind each call a few instructions come the next: who takes a caller
that has just been returned to for one that still calls, or the other way round, gets other shares.
"""
import itertools
import sys
import time

leaf = int(sys.argv[1]) if len(sys.argv) > 1 else 400
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0


def work(n):
    for _ in itertools.repeat(None, n):  # no numbers: small ones are quicker than larger ones
        pass
    return n


def step(n):
    return work(n)


def main():
    once, twice = leaf, 2 * leaf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(100):
            (step(once),  # first quarter
             step(once),  # second quarter
             step(twice))  # half


print("ready", flush=True)
main()

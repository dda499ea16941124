"""Two loops: one calls a tiny function all the time, the other never calls. How their times compare is known bare.

    density.py WORK ROUNDS OTHER

calling() does ROUNDS calls of tiny(), whose body loops WORK times; plain() loops OTHER times. Prints as JSON the seconds that each took by the program's own clock: true only when nobody looks.
"""
import json
import sys
import time


def tiny(n):
    x = 0
    for i in range(n):
        x += i
    return x


def calling(work, rounds):
    for _ in range(rounds):
        tiny(work)


def plain(rounds):
    x = 0
    for i in range(rounds):
        x = (x * 31 + i) % 1000003
    return x


def main():
    work, rounds, other = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    a = b = 0.0
    for _ in range(20):
        start = time.perf_counter()
        calling(work, rounds // 20)
        middle = time.perf_counter()
        plain(other // 20)
        end = time.perf_counter()
        a += middle - start
        b += end - middle
    print(json.dumps({"calling": a, "plain": b}))


main()

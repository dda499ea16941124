"""Programs that call: fib (Python functions only), an object-oriented mix, C functions. Times itself; prints seconds.

    calls.py fib|oo|c ROUNDS [cprofile|profile]
"""
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def add(self, other):
        return Point(self.x + other.x, self.y + other.y)

    def norm(self):
        return (self.x * self.x + self.y * self.y) ** 0.5


def oo(rounds):
    start, norms = Point(1, 2), []
    for i in range(rounds):
        norms.append(start.add(Point(i, 1)).norm())
        len(norms)
    sorted(norms)


def c(rounds):
    text = "x"
    for i in range(rounds):
        abs(i)
        len(text)


def work(name, rounds):
    start = time.perf_counter()
    {"fib": fib, "oo": oo, "c": c}[name](rounds)
    return time.perf_counter() - start


if len(sys.argv) > 3:
    import importlib
    profiler = importlib.import_module({"cprofile": "cProfile", "profile": "profile"}[sys.argv[3]]).Profile()
    print(profiler.runcall(work, sys.argv[1], int(sys.argv[2])))
else:
    print(work(sys.argv[1], int(sys.argv[2])))

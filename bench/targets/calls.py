"""Programs that call: fib (Python functions only), an object-oriented mix, C functions. Prints the seconds it took.

    calls.py fib|oo|c ROUNDS [THREADS]
"""
import sys
import threading
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


def main():
    work, rounds = {"fib": fib, "oo": oo, "c": c}[sys.argv[1]], int(sys.argv[2])
    threads = [threading.Thread(target=work, args=[rounds]) for _ in range(int(sys.argv[3]) - 1 if len(sys.argv) > 3 else 0)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    work(rounds)
    for thread in threads:
        thread.join()
    print("%.6f" % (time.perf_counter() - begin))


main()

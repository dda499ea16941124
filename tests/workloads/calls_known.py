"""Calls of every kind, each so often: what an exact profiler must count.

    calls_known.py            runs main()
    calls_known.py --cprofile FILE    runs main() under cProfile, which is right about these

Every function is at the top of the module, so that its plain and its qualified name are the same. EXPECTED has the
calls and the primitive calls of each.
"""
import math
import sys


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def thrower():
    raise ValueError("on purpose")


def through():
    thrower()


def catcher():
    try:
        through()
    except ValueError:
        pass


def by_length(word):
    return len(word)


def c_raises():
    try:
        {}.pop("missing")
    except KeyError:
        pass


def left(n):
    shared(n)


def right(n):
    shared(2 * n)


def shared(n):
    for i in range(n):
        leaf(i)


def leaf(i):
    return math.sqrt(i)


class Items(list):
    pass


class Kind(type):
    pass


class OfKind(metaclass=Kind):
    pass


def inherited():
    """The first calls of these methods are of objects whose types have only inherited them."""
    Items().append(1)
    add = Items().append
    add(1)
    OfKind.__subclasses__()


def deep(n):
    if n:
        deep(n - 1)


def main():
    fib(10)
    even(21)
    for _ in range(7):
        catcher()
    for _ in range(3):
        sorted(["aaa", "b", "cc"], key=by_length)
    for _ in range(4):
        c_raises()
    left(5)
    right(5)
    deep(500)
    inherited()
    items = []
    for i in range(11):
        items.append(i)
        isinstance(i, int)


EXPECTED = {
    "main": (1, 1), "fib": (177, 1), "even": (11, 1), "odd": (11, 1), "catcher": (7, 7), "through": (7, 7),
    "thrower": (7, 7), "by_length": (9, 9), "c_raises": (4, 4), "left": (1, 1), "right": (1, 1), "shared": (2, 2),
    "leaf": (15, 15), "deep": (501, 1), "inherited": (1, 1),
    "<built-in method builtins.len>": (9, 9), "<built-in method math.sqrt>": (15, 15),
    "<built-in method builtins.sorted>": (3, 3), "<method 'pop' of 'dict' objects>": (4, 4),
    "<method 'append' of 'list' objects>": (13, 13), "<method '__subclasses__' of 'type' objects>": (1, 1),
    "<built-in method builtins.isinstance>": (11, 11),
}
CALLS = {  # (caller, callee): (calls, primitive calls)
    ("main", "fib"): (1, 1), ("fib", "fib"): (176, 2), ("even", "odd"): (11, 1), ("odd", "even"): (10, 1),
    ("through", "thrower"): (7, 7), ("<built-in method builtins.sorted>", "by_length"): (9, 9),
    ("left", "shared"): (1, 1), ("right", "shared"): (1, 1), ("shared", "leaf"): (15, 15), ("deep", "deep"): (500, 1),
    ("by_length", "<built-in method builtins.len>"): (9, 9), ("c_raises", "<method 'pop' of 'dict' objects>"): (4, 4),
}

if __name__ == "__main__":
    if len(sys.argv) > 2:
        import cProfile
        profiler = cProfile.Profile()
        profiler.runcall(main)
        profiler.dump_stats(sys.argv[2])
    else:
        main()

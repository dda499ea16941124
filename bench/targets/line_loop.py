"""Lines, to be counted by somebody: prints the seconds that its work took.

usage: line_loop.py WHAT WHO SIZE    WHAT: short, long (a function of 400 lines), program, outside
                                     WHO: bare, line_profiler, pprofile (they are started from here)
"""
import difflib
import io
import pickle
import sys
import time


def short(n):
    a = 0
    for i in range(n):
        a = a + i
        b = a - i
        c = b + i
        d = c - a
        a = d + i
        b = a - i
        c = b + i
        d = c - a
        a = d + i
        b = a - i
        c = b + i
        d = c - a
    return d


LONG_LINES = 400
SPACE = {}
exec(compile("def long(n):\n    a = 0\n    for i in range(n):\n" + "        a = a + i\n" * LONG_LINES, "long.py", "exec"), SPACE)


def long(n):
    SPACE["long"](n * 13 // LONG_LINES)


def program(n):
    """Pure Python of the standard library: many functions, few operations a line."""
    with open(difflib.__file__) as f:
        text = f.read().splitlines()[:200 * n]
    list(difflib.unified_diff(text, [line.replace("self", "this") for line in text]))
    table = {line: list(line) for line in text}
    pickle._Pickler(io.BytesIO(), 2).dump(table)


def outside(n):
    """For a selection that leaves this function out."""
    for _ in range(4):
        short(n)


def chosen():
    return 1


def main():
    what, who, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
    work = globals()[what]
    chosen()
    if who == "line_profiler":
        import line_profiler
        profiler = line_profiler.LineProfiler()
        profiler.add_function(SPACE["long"] if what == "long" else work)
        profiler.enable()
    elif who == "pprofile":
        import pprofile
        profiler = pprofile.Profile()
        profiler.enable()
    begin = time.perf_counter()
    work(size)
    seconds = time.perf_counter() - begin
    if who != "bare":
        profiler.disable()
    print(seconds)


main()

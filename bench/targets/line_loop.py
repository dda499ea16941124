"""Lines, to be counted by somebody: prints the seconds that its work took.

    line_loop.py short|long|library|outside SIZE

short is one operation a line; long is the same in a function of 400 lines; library is Python code of the standard
library; outside is short for a selection that leaves it out. kernprof gives us `profile`, by which line_profiler is
told of a function; others need no telling.
"""
import builtins
import difflib
import io
import pickle
import sys
import time

profile = getattr(builtins, "profile", lambda function: function)


@profile
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
long_function = profile(SPACE["long"])


def long(n):
    long_function(n * 13 // LONG_LINES)


def library(n):
    """Many functions, few operations a line."""
    with open(difflib.__file__) as f:
        text = f.read().splitlines()[:200]
    for _ in range(n):
        list(difflib.unified_diff(text, [line.replace("self", "this") for line in text]))
        pickle._Pickler(io.BytesIO(), 2).dump({line: list(line) for line in text})


def chosen():
    """What the selection of `outside` picks."""
    return 1


PARTS = 40


def outside(n):
    """In parts: the time of the part at the lower quartile, of which other programs have taken little, for all of them."""
    seconds = []
    for _ in range(PARTS):
        begin = time.perf_counter()
        short(n // PARTS)
        seconds.append(time.perf_counter() - begin)
    return PARTS * sorted(seconds)[PARTS // 4]


def main():
    work = {"short": short, "long": long, "library": library, "outside": outside}[sys.argv[1]]
    chosen()
    begin = time.perf_counter()
    said = work(int(sys.argv[2]))
    print("%.6f" % (said if work is outside else time.perf_counter() - begin))


main()

"""Functions made by exec and thrown away, so that code objects are born and die at the same addresses.

    execs.py [SECONDS]

Round i makes f_<i>, which calls g_<i>. A stack with two different i in it never existed: who sees one
took an old code object for the new one at its address.
"""
import sys
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0

TEXT = """
def g_{i}(n):
    x = 0
    for k in range(n):
        x += k
    return x

def f_{i}(n):
    return g_{i}(n)
"""


def main():
    end = time.perf_counter() + seconds
    i = 0
    while time.perf_counter() < end:
        names = {}
        exec(compile(TEXT.format(i=i), "<round %d>" % i, "exec"), names)
        names["f_%d" % i](20000)
        i += 1
    print("rounds", i)


print("ready", flush=True)
main()

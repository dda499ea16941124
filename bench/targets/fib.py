"""fib(N) by recursion, the worst case of every tracer: prints the seconds it took, and its calls."""
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


begin = time.perf_counter()
fib(int(sys.argv[1]))
print("%.6f" % (time.perf_counter() - begin))

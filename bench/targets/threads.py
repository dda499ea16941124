"""Threads that do nothing but malloc and free, without the interpreter's lock. Prints seconds, and CPU time and seconds of each event.

    threads.py LIBRARY THREADS ROUNDS [LOCKED]     LIBRARY is churn.c, built; LOCKED 1: under one lock
"""
import ctypes
import sys
import threading
import time

churn = ctypes.CDLL(sys.argv[1]).churn
churn.argtypes, churn.restype = [ctypes.c_long, ctypes.c_uint32, ctypes.c_int], ctypes.c_double
count, rounds, locked = int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 0
taken = []
threads = [threading.Thread(target=lambda n=n: taken.append(churn(rounds, n, locked))) for n in range(count)]
begin = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
wall = time.perf_counter() - begin
print("%.6f" % wall)
print("EVENT %.12f %.12f" % (sum(taken) / count / rounds / 2, wall / count / rounds / 2))

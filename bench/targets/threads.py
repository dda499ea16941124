"""Threads that do nothing but malloc and free, without the interpreter's lock. Prints seconds, and CPU time and seconds of each event.

    threads.py LIBRARY THREADS ROUNDS      LIBRARY is churn.c, built
"""
import ctypes
import sys
import threading
import time

churn = ctypes.CDLL(sys.argv[1]).churn
churn.argtypes, churn.restype = [ctypes.c_long, ctypes.c_uint32], ctypes.c_double
count, rounds = int(sys.argv[2]), int(sys.argv[3])
taken = []
threads = [threading.Thread(target=lambda n=n: taken.append(churn(rounds, n))) for n in range(count)]
begin = time.perf_counter()
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
wall = time.perf_counter() - begin
print("%.6f" % wall)
print("EVENT %.12f %.12f" % (sum(taken) / count / rounds / 2, wall / count / rounds / 2))

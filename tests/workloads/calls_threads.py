"""Two threads, each with 20 naps of 5 ms by functions of its own: 40 calls of time.sleep, 0.2 s in all.

cProfile has one stack for all threads from 3.12 on, and sees only its own below: it says 0.004 s here. The last line
of the output has what the program itself measured around the naps of each thread.
"""
import threading
import time

measured = {}


def nap_a():
    time.sleep(0.005)


def nap_b():
    time.sleep(0.005)


def worker(nap):
    begin = time.perf_counter()
    for _ in range(20):
        nap()
    measured[nap.__name__] = time.perf_counter() - begin


def worker_a():
    worker(nap_a)


def worker_b():
    worker(nap_b)


threads = [threading.Thread(target=worker_a), threading.Thread(target=worker_b)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(measured["nap_a"], measured["nap_b"])

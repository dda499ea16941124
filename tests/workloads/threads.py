"""Threads of every state, by name.

    threads.py [SECONDS]

sleeper     sleeps all the time
waiter      waits for a lock all the time
fighter-1,  compute in Python, so that one holds the GIL and the other waits for it
fighter-2
hasher      computes in C with the GIL released
"""
import hashlib
import sys
import threading
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
end = time.perf_counter() + seconds
never = threading.Lock()
never.acquire()


def sleep_on():
    while time.perf_counter() < end:
        time.sleep(max(0.0, min(0.5, end - time.perf_counter())))


def wait_on():
    never.acquire(timeout=seconds)


def fight():
    x = 0
    while time.perf_counter() < end:
        for i in range(1000):
            x += i


def hash_on():
    while time.perf_counter() < end:  # a tenth of a second at a time, so that the way back to the GIL is short beside it
        hashlib.pbkdf2_hmac("sha512", b"x", b"y", 250000)


def main():
    threads = [
        threading.Thread(target=sleep_on, name="sleeper"),
        threading.Thread(target=wait_on, name="waiter"),
        threading.Thread(target=fight, name="fighter-1"),
        threading.Thread(target=fight, name="fighter-2"),
        threading.Thread(target=hash_on, name="hasher"),
    ]
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    for thread in threads:
        thread.join()


main()

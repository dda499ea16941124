"""Programs whose timeline is known: trace.py MODE."""
import os
import signal
import subprocess
import sys
import threading
import time


def leaf():
    pass


def many(n):
    for _ in range(n):
        leaf()


def within():
    time.sleep(0.03)


def around():
    time.sleep(0.02)
    within()
    within()


def numbers():
    for i in range(5):
        yield i


def bad():
    raise ValueError


def nest():
    around()
    around()


def count():
    many(1000)


def threads():
    started = [threading.Thread(target=many, args=(500,), name="worker-%d" % i) for i in range(3)]
    for t in started:
        t.start()
    for t in started:
        t.join()


def fork():
    pid = os.fork()
    many(100)
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)


def spawn():
    many(100)
    subprocess.run([sys.executable, __file__, "count"], check=True)


def generator():
    assert sum(numbers()) == 10


def exceptions():
    for _ in range(7):
        try:
            bad()
        except ValueError:
            pass


def leave():
    many(300)
    os._exit(3)


def kill():
    many(300)
    os.kill(os.getpid(), signal.SIGKILL)


def deep():
    sys.setrecursionlimit(5000)

    def descend(n):
        return descend(n - 1) if n else 0
    descend(2000)


if __name__ == "__main__":
    globals()[sys.argv[1]]()

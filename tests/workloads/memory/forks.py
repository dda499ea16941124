"""A hundred children, each with its own blocks: forks.py [COUNT]. It prints the pids, the parent's first."""
import os
import sys

from truth import free, malloc, reserve, summit

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 100


def child(n):
    free(malloc(1000 + n))                      #: malloc=[1000 + n for n in range(COUNT)]
    return malloc(10 + n)                       #: malloc=[10 + n for n in range(COUNT)], live=[10 + n for n in range(COUNT)]


def main():
    kept = reserve()
    pids = []
    for n in range(COUNT):
        pid = os.fork()
        if pid == 0:
            held = child(n)
            summit()
            os._exit(0 if held and kept else 1)
        pids.append(pid)
        if len(pids) % 10 == 0:  # a few at once, not all
            assert all(os.waitpid(p, 0)[1] == 0 for p in pids[-10:])
    print(os.getpid(), *pids, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

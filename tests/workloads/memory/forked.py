"""A fork: the child gives back what its parent allocated, and allocates; neither changes the other's numbers.

It prints the pids of parent and child. In `live` of a line is what the parent has; what the child must have stands in CHILD.
"""
import os
import sys

from truth import PAGE, free, malloc, mmap, munmap, reserve, summit

# line's function: (bytes allocated, bytes alive in the end), in the child alone. It begins with nothing: what it has from its parent is
# the parent's, and giving that back changes the numbers of neither.
CHILD = {"of_the_child": (3000, 2000), "both": (500, 500)}


def of_the_parent():
    return malloc(100000), malloc(70000), mmap(5 * PAGE)        #: malloc=[100000, 70000], mmap=[5 * PAGE], live=[100000, 70000]


def of_the_child():
    free(malloc(1000))
    return malloc(2000)


def both():
    return malloc(500)                          #: malloc=[500], live=[500]


def main():
    kept = reserve()
    a, b, c = of_the_parent()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        free(a)
        munmap(c, 5 * PAGE)
        held = of_the_child(), both()
        summit()
        os._exit(0 if all(held) and b and kept else 1)
    assert os.waitpid(pid, 0)[1] == 0
    munmap(c, 5 * PAGE)
    both()
    summit()
    print(os.getpid(), pid, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

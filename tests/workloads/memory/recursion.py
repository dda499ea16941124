"""Deep stacks: an allocation at every depth and many at the bottom, up and down again."""
import sys

from truth import free, malloc

DEPTH = 900


def down(n):
    free(malloc(8))                             #: malloc=[8] * 901, mmap=ANY
    if n:
        down(n - 1)                             #> malloc=[8] * 900 + [16] * 900 + [24] * 50, mmap=ANY
    else:
        for _ in range(50):
            bottom()                            #> malloc=[24] * 50, mmap=ANY
    free(malloc(16))                            #: malloc=[16] * 901, mmap=ANY


def bottom():
    free(malloc(24))                            #: malloc=[24] * 50, mmap=ANY


def main():
    sys.setrecursionlimit(5000)
    down(DEPTH)


if __name__ == "__main__":
    main()

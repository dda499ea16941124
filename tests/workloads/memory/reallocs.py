"""Chains of realloc: the old block is given back, the new size allocated, and a realloc that fails changes nothing."""
from truth import NEVER, calloc, free, malloc, memalign, realloc, reallocarray


def grow(p, sizes):
    for n in sizes:
        p = realloc(p, n)                       #: realloc=list(range(16, 1616, 16)) + [2**k for k in range(4, 22)], live=[2**21]
    return p


def main():
    p = grow(malloc(1), range(16, 1616, 16))    #: malloc=[1]
    p = realloc(p, 100)                         #: realloc=[100]
    p = realloc(p, 100)                         #: realloc=[100]
    free(p)                                     #:
    p = grow(calloc(1, 1), [2**k for k in range(4, 22)])    #: calloc=[1]
    a = reallocarray(None, 10, 12)              #: realloc=[120]
    a = reallocarray(a, 100, 12)                #: realloc=[1200], live=[1200]
    failed = reallocarray(a, 2**40, 2**40)      #:
    b = malloc(4000)                            #: malloc=[4000], live=[4000]
    failed = failed or realloc(b, NEVER)        #:
    m = memalign(4096, 100)                     #: memalign=[100]
    m = realloc(m, 10000)                       #: realloc=[10000], live=[10000]
    assert p and m and failed is None


if __name__ == "__main__":
    main()

"""Huge blocks, reserved and never touched, and what nobody can have."""
import os

from truth import NEVER, PAGE, calloc, free, malloc, mmap, mmap_reserve, munmap, realloc, reserve


def main():
    a = mmap_reserve(2**36)                     #: mmap=[2**36], peak=[]
    munmap(a, 2**35)                            #:
    munmap(a + 2**35, 2**35)                    #:
    b = malloc(1 << 30)                         #: malloc=[1 << 30], peak=[1 << 30]
    c = mmap_reserve(2**40 + 5)                 #: mmap=[2**40 + PAGE], peak=[2**40 + PAGE]
    munmap(c, 2**40 + 5)                        #:
    b = realloc(b, 3 << 29)                     #: realloc=[3 << 29], peak=[]
    free(b)                                     #:
    b = calloc(1 << 10, 1 << 20)                #: calloc=[1 << 30], peak=[]
    free(b)                                     #:
    failed = mmap(2**56)                        #:
    failed = failed or malloc(NEVER)            #:
    assert failed is None and PAGE


kept = reserve()
main()
os._exit(0)

"""The end of the heap, moved by the program itself."""
from truth import brk, brk_back, sbrk, sbrk_back


def main():
    sbrk(0)                                     #:
    end = sbrk(8192)                            #: brk=[8192]
    assert sbrk_back(end, 8192) == 0            #:
    kept = sbrk(4096)                           #: brk=[4096], live=[4096]
    assert kept
    end = brk(12288)                            #: brk=[12288]
    assert brk_back(end, 12288) == 0            #:
    kept = brk(20480)                           #: brk=[20480], live=[20480]
    assert kept


if __name__ == "__main__":
    main()

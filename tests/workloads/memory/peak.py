"""The high-water mark: a mountain that is the highest beyond doubt, with smaller ones before and after.

MOUNTAIN dwarfs what the interpreter does in the meantime. What a line has alive at that moment is in `peak`; what other programs of
this folder have left alive before is in their `live`.
"""
import threading

from truth import PAGE, array, empty, fill, free, malloc, mmap, munmap, realloc

MOUNTAIN = 48 << 20


def hill():
    p = malloc(20 << 20)                        #: malloc=[20 << 20] * 2, peak=[]
    free(p)


def base():
    return realloc(malloc(1000), 3 << 20)       #: malloc=[1000], realloc=[3 << 20], peak=[3 << 20]


def other(blocks):
    fill(blocks, 100, 5000)                     #: malloc=[5000] * 100, peak=[5000] * 60
    empty(blocks, 40)


def main():
    hill()
    p = base()
    blocks = array(100)
    t = threading.Thread(target=other, args=(blocks,))
    t.start()
    t.join()
    m = mmap(9 * PAGE)                          #: mmap=[9 * PAGE], peak=[7 * PAGE]
    munmap(m + 4 * PAGE, 2 * PAGE)
    summit = malloc(MOUNTAIN)                   #: malloc=[MOUNTAIN], peak=[MOUNTAIN]
    free(summit)
    late = malloc(1 << 20)                      #: malloc=[1 << 20], peak=[], live=[1 << 20]
    free(p)
    munmap(m, 9 * PAGE)
    for i in range(60):
        free(blocks[40 + i])
    hill()
    assert late


if __name__ == "__main__":
    main()

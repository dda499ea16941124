"""mmap, munmap, mremap: in whole and in part, over each other, and files."""
import os
import tempfile

from truth import PAGE, mmap, mmap_file, mmap_fixed, mremap, mremap_fixed, munmap

MAYMOVE, DONTUNMAP = 1, 4


def whole():
    a = mmap(10 * PAGE)                         #: mmap=[10 * PAGE]
    b = mmap(1)                                 #: mmap=[PAGE], live=[PAGE]
    c = mmap(PAGE + 1)                          #: mmap=[2 * PAGE]
    munmap(a, 10 * PAGE)                        #:
    munmap(c, PAGE + 1)                         #:
    assert b


def split():
    """A hole in the middle: two pieces are left. Then the head of one and the tail of the other."""
    a = mmap(100 * PAGE)                        #: mmap=[100 * PAGE], live=[68 * PAGE]
    munmap(a + 40 * PAGE, 20 * PAGE)            #:
    munmap(a, 5 * PAGE)                         #:
    munmap(a + 93 * PAGE, 7 * PAGE)             #:
    munmap(a + 40 * PAGE, 20 * PAGE)            #:


def across():
    """One munmap over the ends of two neighbours and a hole between them."""
    a = mmap(30 * PAGE)                         #: mmap=[30 * PAGE], live=[5 * PAGE]
    munmap(a + 10 * PAGE, 10 * PAGE)
    b = mmap_fixed(a + 12 * PAGE, 4 * PAGE)     #: mmap=[4 * PAGE], live=[PAGE]
    assert b == a + 12 * PAGE
    munmap(a + 5 * PAGE, 10 * PAGE)             #:
    munmap(a + 20 * PAGE, 10 * PAGE)            #:


def over():
    """A new mapping over the middle of an old one: that much of the old one is gone."""
    a = mmap(50 * PAGE)                         #: mmap=[50 * PAGE], live=[40 * PAGE]
    b = mmap_fixed(a + 20 * PAGE, 10 * PAGE)    #: mmap=[10 * PAGE], live=[10 * PAGE]
    assert b == a + 20 * PAGE


def moved():
    a = mmap(8 * PAGE)                          #: mmap=[8 * PAGE]
    a = mremap(a, 8 * PAGE, 64 * PAGE, MAYMOVE) #: mmap=[64 * PAGE]
    a = mremap(a, 64 * PAGE, 16 * PAGE, 0)      #: mmap=[16 * PAGE]
    room = mmap(32 * PAGE)                      #: mmap=[32 * PAGE]
    munmap(room, 32 * PAGE)                     #:
    b = mremap_fixed(a, 16 * PAGE, 20 * PAGE, room)     #: mmap=[20 * PAGE], live=[20 * PAGE]
    assert b == room
    failed = mremap(b, 20 * PAGE, 2**50, MAYMOVE)       #:
    assert failed is None
    c = mmap(12 * PAGE)                         #: mmap=[12 * PAGE]
    d = mmap(6 * PAGE)                          #: mmap=[6 * PAGE]
    e = mremap_fixed(c, 12 * PAGE, 6 * PAGE, d) #: mmap=[6 * PAGE], live=[6 * PAGE]
    assert e == d


def left_behind():
    """The pages go, the place stays, empty."""
    a = mmap(7 * PAGE)                          #: mmap=[7 * PAGE], live=[7 * PAGE]
    b = mremap(a, 7 * PAGE, 7 * PAGE, MAYMOVE | DONTUNMAP)      #: mmap=[7 * PAGE], live=[7 * PAGE]
    assert b not in (None, a)


def files():
    with tempfile.TemporaryFile() as f:
        os.ftruncate(f.fileno(), 100000)
        a = mmap_file(f.fileno(), 100000)       #: mmap=[25 * PAGE], live=[25 * PAGE]
        b = mmap_file(f.fileno(), 5000)         #: mmap=[2 * PAGE]
        munmap(b, 5000)                         #:
        assert a
        failed = mmap_file(987, 5000)           #:
        assert failed is None


def module():
    """Python's own module for it."""
    import mmap as python_mmap
    a = python_mmap.mmap(-1, 3 * PAGE)          #: mmap=[3 * PAGE]
    b = python_mmap.mmap(-1, 12345)             #: mmap=[4 * PAGE], live=[4 * PAGE]
    a.close()                                   #:
    keep.append(b)


keep = []


def main():
    whole()
    split()
    across()
    over()
    moved()
    left_behind()
    files()
    module()


if __name__ == "__main__":
    main()

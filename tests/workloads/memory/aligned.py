"""The aligned family, and what it refuses."""
from truth import NEVER, PAGE, aligned_alloc, free, memalign, posix_memalign, pvalloc, valloc


def main():
    a = posix_memalign(64, 1000)                #: posix_memalign=[1000]
    b = posix_memalign(4096, 1)                 #: posix_memalign=[1], live=[1]
    c = aligned_alloc(32, 320)                  #: aligned_alloc=[320]
    d = aligned_alloc(256, 2560)                #: aligned_alloc=[2560], live=[2560]
    e = memalign(128, 333)                      #: memalign=[333]
    f = memalign(65536, 222)                    #: memalign=[222], live=[222]
    g = valloc(50)                              #: valloc=[50]
    h = valloc(5000)                            #: valloc=[5000], live=[5000]
    i = pvalloc(2 * PAGE)                       #: pvalloc=[2 * PAGE], live=[2 * PAGE]
    free(a)
    free(c)
    free(e)
    free(g)
    wrong = posix_memalign(3, 100)              #:
    failed = wrong or posix_memalign(64, NEVER) #:
    failed = failed or aligned_alloc(64, NEVER) #:
    assert all(p and p % n == 0 for p, n in ((b, 4096), (d, 256), (f, 65536), (h, PAGE), (i, PAGE))) and failed is None
    for k in range(3, 13):
        free(aligned_alloc(2**k, 2**k * 3))     #: aligned_alloc=[2**k * 3 for k in range(3, 13)]


if __name__ == "__main__":
    main()

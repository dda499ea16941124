"""malloc, calloc, free; nothing, tiny, plenty of them; and libc's own users of malloc."""
from truth import NEVER, around, array, brief, calloc, empty, fill, free, malloc, realloc, strdup, strndup


def main():
    a = malloc(1000)                            #: malloc=[1000]
    b = calloc(10, 100)                         #: calloc=[1000]
    c = malloc(0)                               #: malloc=[0]
    d = calloc(0, 8)                            #: calloc=[0]
    kept = malloc(777)                          #: malloc=[777], live=[777]
    free(a)                                     #:
    free(b)                                     #:
    free(c)
    free(d)
    free(None)                                  #:
    for n in range(1, 65):
        free(malloc(n))                         #: malloc=list(range(1, 65))
    tiny = array(20000)
    fill(tiny, 20000, 1)                        #: malloc=[1] * 20000
    empty(tiny, 20000)                          #:
    some = array(100)
    fill(some, 100, 3)                          #: malloc=[3] * 100, live=[3] * 40, brief=0
    empty(some, 60)                             #:
    brief(5000, 320)                            #: malloc=[320] * 5000, brief=5000
    around(50, 640)                             #: malloc=[640] * 50, mmap=[PAGE] * 50, brief=0
    e = realloc(None, 50)                       #: realloc=[50]
    realloc(e, 0)                               #:
    failed = malloc(NEVER)                      #:
    failed = failed or calloc(2**40, 2**40)     #:
    f = strdup(b"x" * 99)                       #: malloc=[100], live=[100]
    g = strndup(b"x" * 99, 9)                   #: malloc=[10], live=[10]
    assert failed is None and kept and f and g
    two = malloc(11), malloc(13)                #: malloc=[11, 13], live=[11, 13]
    assert all(two)


if __name__ == "__main__":
    main()

"""numpy's arrays: the data of each is one block of its size, by malloc, by calloc where zeros are asked for."""
import os

import numpy

from truth import reserve, summit

keep = []
numpy.seterr(all="ignore")  # what an empty array holds is chance, and a warning about it would allocate


def main():
    keep.append(numpy.empty(100000, dtype=numpy.float64))       #: malloc=[800000], live=[800000]
    keep.append(numpy.zeros((300, 300), dtype=numpy.int32))     #: calloc=[360000], live=[360000]
    a = keep[0][:50000].copy()                  #: malloc=[400000]
    b = a + a                                   #: malloc=[400000]
    del a                                       #:
    a = b.astype(numpy.float32)                 #: malloc=[200000]
    del a                                       #:
    b.resize(60000, refcheck=False)             #: realloc=[480000]
    for _ in range(20):
        b = numpy.ones(5000)                    #> malloc=[40000] * 20
    view = keep[0][10:20000]                    #:
    assert view.base is keep[0]
    b = None


def first_use():
    """The same before anything is counted: numpy makes much of what it needs when it needs it first."""
    a = numpy.empty(50000), numpy.zeros((300, 300), dtype=numpy.int32), numpy.ones(5000)
    b = a[0][:40000].copy()
    (b + b).astype(numpy.float32)
    b.resize(60000, refcheck=False)


kept = reserve()
first_use()
main()
summit()
os._exit(0)

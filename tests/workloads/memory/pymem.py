"""Python's three domains, asked for exact sizes. What is raw or above 512 bytes goes on to libc: it is counted once."""
import truthmodule as m


def raw():
    m.raw_malloc(100)                           #: raw=[100], heap=dict(malloc=[100])
    m.raw_realloc(1000)                         #: raw=[1000], heap=dict(realloc=[1000])
    m.raw_realloc(2**62)                        #: raw=[]
    m.raw_free(0)                               #: raw=[]
    m.raw_calloc(50)                            #: raw=[50], live=[50], heap=dict(calloc=[50], live=[50])
    m.raw_keep(0)                               #: raw=[]
    m.raw_malloc(2**62)                         #: raw=[]


def mem():
    m.mem_malloc(100)                           #: mem=[100]
    m.mem_realloc(200)                          #: mem=[200]
    m.mem_realloc(2000)                         #: mem=[2000], heap=dict(malloc=[2000])
    m.mem_realloc(3000)                         #: mem=[3000], heap=dict(realloc=[3000])
    m.mem_free(0)                               #: mem=[]
    m.mem_calloc(3000)                          #: mem=[3000], live=[3000], heap=dict(calloc=[3000], live=[3000])
    m.mem_keep(0)                               #: mem=[]
    m.mem_malloc(300)                           #: mem=[300], live=[300]
    m.mem_keep(0)                               #: mem=[]


def object():
    m.object_malloc(512)                        #: object=[512]
    m.object_realloc(513)                       #: object=[513], live=[513], heap=dict(malloc=[513], live=[513])
    m.object_keep(0)                            #: object=[]
    m.object_malloc(513)                        #: object=[513], heap=dict(malloc=[513])
    m.object_free(0)                            #: object=[]
    m.object_free(0)                            #: object=[]
    m.object_calloc(64)                         #: object=[64]
    m.object_realloc(60)                        #: object=[60], live=[60]
    m.object_keep(0)                            #: object=[]
    m.object_malloc(0)                          #: object=[0], live=[0], heap=dict(malloc=[1], live=[1])
    m.object_keep(0)                            #: object=[]
    for _ in range(250):
        m.object_malloc(2000)                   #: object=[2000] * 250, heap=dict(malloc=[2000] * 250)
        m.object_free(0)                        #: object=[]
        m.mem_malloc(48)                        #: mem=[48] * 250, live=[48] * 250
        m.mem_keep(0)                           #: mem=[]


def libc():
    for _ in range(10):
        m.libc_malloc(400)                      #: malloc=[400] * 10, object=[]
        m.libc_malloc_without_gil(500)          #: malloc=[500] * 10, object=[]


def main():
    raw()
    mem()
    object()
    libc()


if __name__ == "__main__":
    main()

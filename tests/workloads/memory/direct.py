"""libc's functions straight through ctypes, found by dlsym and not by a linker: the program's all the same."""
import ctypes

libc = ctypes.CDLL(None)
for name in ("malloc", "calloc", "realloc", "strdup"):
    getattr(libc, name).restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.realloc.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.free.restype = None


def main():
    p = libc.malloc(1234)                       #: malloc=[1234]
    p = libc.realloc(p, 4321)                   #: realloc=[4321]
    libc.free(p)                                #:
    q = libc.calloc(3, 7)                       #: calloc=[21], live=[21]
    r = libc.strdup(b"four")                    #: malloc=[5], live=[5]
    assert q and r


if __name__ == "__main__":
    main()

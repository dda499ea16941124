"""The functions of truth.c by their plain names, for the programs of this folder.

How a program tells its truth: behind a line stands what it must be charged with,

    p = malloc(1000)             #: malloc=[1000]
    p = realloc(p, 2000)         #: realloc=[2000], live=[2000]
    use(p)                       #> malloc=[64] * 3

`#:` is what the line itself asks for: of each allocator the sizes, in bytes and as requested, and in `live` the sizes
that are never given back. `#>` is the same for all that is called from there, at any depth. What is not named is nothing
at all, and ANY is not looked at. The names of Python's domains are raw, mem and object; they count in objects
mode, and what the line asks of libc in heap mode, where Python goes there, stands in `heap`. `peak` are the sizes alive when the
program had most, if it ends with `summit()` or that is told by `peak.py`; the default is `live`. `brief` is how many of the line's
blocks were given back by their thread before it asked for anything else; it is told only where C does both, for Python may ask in
between.

The library is found by the environment, for the tests build it: TRUTH_LIBRARY.
"""
import ctypes
import os

PAGE = 4096
NEVER = 2**62  # bytes: more than any allocator can give

library = ctypes.CDLL(os.environ["TRUTH_LIBRARY"])
CALLBACK = ctypes.CFUNCTYPE(None)
pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


def function(name, result, *arguments):
    f = getattr(library, "truth_" + name)
    f.restype, f.argtypes = result, arguments
    return f


malloc = function("malloc", pointer, size)
calloc = function("calloc", pointer, size, size)
realloc = function("realloc", pointer, pointer, size)
reallocarray = function("reallocarray", pointer, pointer, size, size)
posix_memalign = function("posix_memalign", pointer, size, size)
aligned_alloc = function("aligned_alloc", pointer, size, size)
memalign = function("memalign", pointer, size, size)
valloc = function("valloc", pointer, size)
pvalloc = function("pvalloc", pointer, size)
free = function("free", None, pointer)
strdup = function("strdup", pointer, ctypes.c_char_p)
strndup = function("strndup", pointer, ctypes.c_char_p, size)
sbrk = function("sbrk", pointer, ctypes.c_ssize_t)
sbrk_back = function("sbrk_back", number, pointer, ctypes.c_ssize_t)
brk = function("brk", pointer, ctypes.c_ssize_t)
brk_back = function("brk_back", number, pointer, ctypes.c_ssize_t)
mmap = function("mmap", pointer, size)
mmap_reserve = function("mmap_reserve", pointer, size)
mmap_fixed = function("mmap_fixed", pointer, pointer, size)
mmap_file = function("mmap_file", pointer, number, size)
munmap = function("munmap", number, pointer, size)
mremap = function("mremap", pointer, pointer, size, size, number)
mremap_fixed = function("mremap_fixed", pointer, pointer, size, size, pointer)
brief = function("brief", None, size, size)
around = function("around", None, size, size)
fill = function("fill", None, pointer, size, size)
empty = function("empty", None, pointer, size)
churn = function("churn", None, size, ctypes.c_uint)
churn_end = function("churn_end", None)
in_thread = function("in_thread", number, size, size)
callback_in_thread = function("callback_in_thread", number, CALLBACK)
callback = function("callback", None, CALLBACK, size)
allocate_on_signal = function("allocate_on_signal", number, number, size)
raise_signal = function("raise", number, number)
storm = function("storm", size, size, size)
signals_seen = function("signals_seen", ctypes.c_long)
allocate_at_the_end = function("allocate_at_the_end", None, size)
late_threads = function("late_threads", number, size, size)
for_ever = function("for_ever", None, size)


def array(count):
    """Room for so many pointers, made before anything is counted."""
    return (ctypes.c_void_p * count)()


def summit():
    """The high-water mark is here: what is alive at the peak is what is alive now."""
    free(malloc(48 << 20))


def reserve():
    """Fills Python's arenas and leaves holes in them: from here on small objects find room, and no line is charged with
    a new arena that happened to be due."""
    kept = []
    for length in (1, 20, 50, 90, 140, 200, 290, 390, 470):
        many = [bytes(length) + bytes([i % 256]) for i in range(400000 // (length + 60))]
        kept.append(many[::500])
    many = [[i] for i in range(20000)]
    kept.append(many[::500])
    return kept

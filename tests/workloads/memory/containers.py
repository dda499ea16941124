"""Python's own containers as they grow: containers.py [tracemalloc].

What they take depends on the version, so the truth is tracemalloc's: with the argument the program prints what that says of each
line of work(), in JSON; without, it ends at the same place, and what is alive then must be the same, to the byte.

An object that comes out of a free list was allocated by another line before. tracemalloc charges it to the line that uses it next, we
do not: no allocator was asked. So the free lists are emptied before, and work() lets nothing go that would fill them: no
temporary lists, tuples, floats or small numbers.
"""
import os
import sys

keep = []


class Plain:
    pass


class Slots:
    __slots__ = ("a", "b", "c")


def work(names, few, sizes):
    a = []
    keep.append(a)
    for n in names:
        a.append(n)
    b = dict.fromkeys(few)
    keep.append(b)
    for n in names:
        b[n] = None
    c = set()
    keep.append(c)
    for n in names:
        c.add(n)
    d = bytearray()
    keep.append(d)
    for n in names:
        d.extend(b"abc")
    keep.append([n + n for n in names])
    keep.append([n.encode() for n in names])
    keep.append([[n] for n in few])
    keep.append([{n} for n in few])
    keep.append([Plain() for n in few])
    keep.append([Slots() for n in few])
    keep.append([(lambda: n) for n in few])
    keep.append(chr(0x20ac) * 300)
    keep.append(frozenset(names))
    e = "x" * 600
    for n in few:
        e += "y"
    keep.append(e)
    keep.append(names * 3)
    keep.append(dict.fromkeys(few))
    keep.append(b"z" * 50000)
    keep.append(2**20000)
    keep.append([b"q" * n for n in sizes])
    keep.append([bytearray(n) for n in sizes])
    keep.append("".join(names))
    keep.append("-".join(names).encode("utf-16"))


def drain():
    """Makes and keeps so many of each kind that no free list has any left."""
    kept = []
    for i in range(300):
        kept.append([[], {}, (i,), (i, i), (i, i, i), float(i), lambda: i, iter([]), slice(i), {i: i}, [i], range(i), iter(range(i))])
    kept.append([i << 40 for i in range(3000)])
    kept.append([i * 1.5 for i in range(3000)])
    kept.append([(0,) * (i % 21) + (i,) for i in range(21 * 2500)])
    return kept


with_tracemalloc = sys.argv[1:] == ["tracemalloc"]
if with_tracemalloc:
    import json
    import tracemalloc
arguments = ["name %d" % i for i in range(1000)], ["few %d" % i for i in range(200)], list(range(400, 600))
kept = drain()
if with_tracemalloc:
    tracemalloc.start(1)
work(*arguments)
if with_tracemalloc:
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    here = [s for s in snapshot.statistics("lineno") if s.traceback[0].filename == __file__]
    print(json.dumps({s.traceback[0].lineno: [s.size, s.count] for s in here}))
sys.stdout.flush()
os._exit(0)

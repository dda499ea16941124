"""Python's own containers as they grow: containers.py [tracemalloc].

What they take depends on the version, so the truth is tracemalloc's: with the argument the program prints what that says of each
line of work(), in JSON; without, it ends at the same place, and what is alive then must be the same, to the byte.

An object that comes out of a free list was allocated by another line before. tracemalloc charges it to the line that uses it next, we
do not: no allocator was asked. So the free lists are emptied before, and work() lets nothing go that would fill them: no
temporary lists, tuples, floats or small numbers, and its iterators are made before and kept.
"""
import os
import sys

keep = []


class Plain:
    pass


class Slots:
    __slots__ = ("a", "b", "c")


def work(names, few, sizes, iterator):
    a = []
    keep.append(a)
    for n in iterator["names"][1]:
        a.append(n)
    b = {}
    keep.append(b)
    for n in iterator["names"][2]:
        b[n] = None
    c = set()
    keep.append(c)
    for n in iterator["names"][3]:
        c.add(n)
    d = bytearray()
    keep.append(d)
    for n in iterator["names"][4]:
        d.extend(b"abc")
    keep.append([n + n for n in iterator["names"][5]])
    keep.append([n.encode() for n in iterator["names"][6]])
    keep.append([[n] for n in iterator["few"][7]])
    keep.append([{n} for n in iterator["few"][8]])
    keep.append([Plain() for n in iterator["few"][9]])
    keep.append([Slots() for n in iterator["few"][10]])
    keep.append([(lambda: None) for n in iterator["few"][11]])
    keep.append(chr(0x20ac) * 300)
    e = "x" * 600
    for n in iterator["few"][12]:
        e += "y"
    keep.append(e)
    keep.append(names * 3)
    keep.append(b"z" * 50000)
    keep.append(2**20000)
    keep.append([b"q" * n for n in iterator["sizes"][13]])
    keep.append([bytearray() for n in iterator["sizes"][14]])
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
names, few, sizes = ["name %d" % i for i in range(1000)], ["few %d" % i for i in range(200)], list(range(400, 600))
iterators = {name: [iter(values) for _ in range(40)] for name, values in (("names", names), ("few", few), ("sizes", sizes))}
kept = [drain()]
if with_tracemalloc:
    tracemalloc.start(1)
kept.append(drain())
work(names, few, sizes, iterators)
if with_tracemalloc:
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    here = [s for s in snapshot.statistics("lineno") if s.traceback[0].filename == __file__]
    print(json.dumps({s.traceback[0].lineno: [s.size, s.count] for s in here}))
sys.stdout.flush()
os._exit(0)

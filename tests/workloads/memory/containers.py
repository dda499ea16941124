"""Python's own containers as they grow: containers.py [tracemalloc].

What they take depends on the version, so the truth is tracemalloc's: with the argument the program prints what that says of each
line of work(), in JSON; without, it ends at the same place, and what is alive then must be the same, to the byte.

Free lists would hide an allocation in one run and not in the other, so they are emptied before: enough of each kind is made and
kept that the next one is fresh.
"""
import os
import sys

keep = []


class Plain:
    def __init__(self, n):
        self.n = n


class Slots:
    __slots__ = ("a", "b", "c")


def work():
    a = []
    keep.append(a)
    for i in range(2000):
        a.append(None)
    b = {}
    keep.append(b)
    for i in range(1000):
        b[i] = None
    c = set()
    keep.append(c)
    for i in range(500):
        c.add(i)
    d = bytearray()
    keep.append(d)
    for i in range(3000):
        d.append(1)
    keep.append([i * 1.5 for i in range(1000, 1500)])
    keep.append([i << 40 for i in range(1000, 1500)])
    keep.append([str(i) for i in range(1000, 1500)])
    keep.append([(i, i) for i in range(1000, 1200)])
    keep.append([[i] for i in range(1000, 1200)])
    keep.append([{i: i} for i in range(1000, 1200)])
    keep.append([Plain(i) for i in range(1000, 1200)])
    keep.append([Slots() for i in range(1000, 1200)])
    keep.append([lambda: i for i in range(1000, 1200)])
    keep.append("".join(chr(0x20ac) for i in range(300)))
    keep.append(tuple(range(5000, 5300)))
    keep.append(frozenset(range(5000, 5300)))
    keep.append(memoryview(bytearray(7000)))
    e = "x" * 600
    for i in range(100):
        e += "y"
    keep.append(e)
    keep.append(list(range(10000, 10100)) * 3)
    keep.append(b"z" * 50000)
    keep.append(2**20000)
    keep.append(complex(1, len(keep)))
    keep.append(sorted(range(20000, 20100), reverse=True))
    keep.append((b"q" * 3000).split(b"w"))
    keep.append([b"q" * n for n in range(400, 600)])


def drain():
    """Makes and keeps so many of each kind that no free list has any left."""
    kept = []
    for i in range(300):
        kept.append([[], {}, (i,), (i, i), (i, i, i), float(i), lambda: i, iter([]), slice(i), {i: i}, [i], range(i), complex(i, 1)])
    kept.append([i << 40 for i in range(3000)])
    kept.append([i * 1.5 for i in range(3000)])
    return kept


kept = drain()
if sys.argv[1:] == ["tracemalloc"]:
    import json
    import tracemalloc
    kept.append(drain())
    tracemalloc.start(1)
    work()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    here = [s for s in snapshot.statistics("lineno") if s.traceback[0].filename == __file__]
    print(json.dumps({s.traceback[0].lineno: [s.size, s.count] for s in here}))
else:
    work()
sys.stdout.flush()
os._exit(0)

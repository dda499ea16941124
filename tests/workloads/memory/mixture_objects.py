"""Python's own objects of many kinds and sizes, for estimates: an exact run tells what each line of main() that ends in `# line` asks for,
and a sampled one must come near it. Nothing here depends on addresses or on the order of a set, so that two runs ask for the same;
what would come out of a free list is kept. mixture_objects.py [TIMES]"""
import os
import sys

import truthmodule as m

from truth import reserve

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 1
keep = []


class Plain:
    pass


def main(many, some, few):
    for n in range(many):
        keep[n] = n * 0.5  # line
    keep.append([n * 0.25 for n in range(some)])  # line
    for n in range(many):
        keep[n] = n, n, n  # line
    keep.append([(n, keep) for n in range(some)])  # line
    keep.append(["name %d" % n for n in range(some)])  # line
    keep.append([{n: n} for n in range(few)])  # line
    for n in range(few):
        x = {n: n, -n: n, str(n): None}  # line
    keep.append([Plain() for n in range(few)])  # line
    for n in range(many):
        x = bytes(40)  # line
    for n in range(some):
        x = bytes(300)  # line
    keep.append([bytes(300) for n in range(few)])  # line
    for n in range(some):
        x = bytes(600)  # line
    grown = []
    for n in range(some):
        grown.append(None)  # line
    x = [[] for n in range(some)]
    for one in x * 5:
        one.append(None)  # line
    for n in range(some):
        m.raw_malloc(100); m.raw_realloc(200); m.raw_free(0)  # line
    for n in range(some):
        m.mem_malloc(64); m.mem_realloc(400); m.mem_free(0)  # line
    for n in range(few):
        m.object_calloc(2000); m.object_realloc(3000); m.object_free(0)  # line


kept = reserve()
keep += [None] * (TIMES * 200000)
main(TIMES * 200000, TIMES * 60000, TIMES * 15000)
os._exit(0)

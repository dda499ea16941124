"""Keeps 1500 small blocks in each iteration, replaces those of a cache, and takes and gives back some. Argument: 1 without the latter two."""
import random
import sys

import pyrometer

random.seed(2)
plain = len(sys.argv) > 1
kept, cache = [], [None] * 3000
for i in range(25):
    for k in range(1500):
        kept.append(bytes(100))
    for k in range(0 if plain else 6000):
        cache[random.randrange(3000)] = bytes(200)
    brief = [bytes(3000) for _ in range(0 if plain else 100)]
    del brief
    pyrometer.mark("iteration")

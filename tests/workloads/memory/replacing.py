"""Has 60,000 blocks and replaces them, in no order: as much as ever is alive soon, and stays so."""
import random

random.seed(1)
blocks = [bytes(100) for _ in range(60000)]
for _ in range(400000):
    blocks[random.randrange(60000)] = bytes(100)

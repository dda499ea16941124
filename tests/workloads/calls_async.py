"""Two tasks run mid() at the same time, each waits 0.15 s in inner(): 2 calls, 0.3 s together from begin to end,
and next to nothing of it on the loop. items() gives five values, so it is one call that is resumed five times.
The last line of the output has the seconds that the program measured around both calls of mid() together.
"""
import asyncio
import time

measured = []


def items(n):
    for i in range(n):
        yield i


def outer_items(n):
    yield from items(n)


def consume():
    return sum(x for x in outer_items(5))


async def inner(seconds):
    await asyncio.sleep(seconds)


async def mid(seconds):
    consume()
    await inner(seconds)


async def timed():
    begin = time.perf_counter()
    await mid(0.15)
    measured.append(time.perf_counter() - begin)


async def both():
    await asyncio.gather(timed(), timed())


loop = asyncio.new_event_loop()
loop.run_until_complete(both())
loop.close()
print(sum(measured))

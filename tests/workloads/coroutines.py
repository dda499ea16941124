"""Two asyncio tasks, each a chain of awaits, that take turns at every step.

    coroutines.py [SECONDS [ROUNDS]]

coro_a_0 awaits coro_a_1 awaits coro_a_2, which calls leaf_a and gives way; b likewise. A stack with
both letters in it never existed. ROUNDS is how long a leaf is.
"""
import asyncio
import sys
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 300


def leaf_a():
    x = 0
    for i in range(rounds):
        x += i
    return x


def leaf_b():
    x = 0
    for i in range(rounds):
        x += i
    return x


async def coro_a_2(end):
    while time.perf_counter() < end:
        leaf_a()
        await asyncio.sleep(0)


async def coro_a_1(end):
    await coro_a_2(end)


async def coro_a_0(end):
    await coro_a_1(end)


async def coro_b_2(end):
    while time.perf_counter() < end:
        leaf_b()
        await asyncio.sleep(0)


async def coro_b_1(end):
    await coro_b_2(end)


async def coro_b_0(end):
    await coro_b_1(end)


async def main():
    end = time.perf_counter() + seconds
    await asyncio.gather(coro_a_0(end), coro_b_0(end))


print("ready", flush=True)
asyncio.run(main())

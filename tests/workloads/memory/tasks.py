"""asyncio: tasks that take turns on one loop, each at its line."""
import asyncio
import os

from truth import free, malloc, reserve, summit


async def small(n):
    for _ in range(10):
        free(malloc(n))                         #: malloc=[100, 101, 102] * 40
        await asyncio.sleep(0)


async def parent(n):
    await small(n)                              #> malloc=[100, 101, 102] * 20
    await asyncio.gather(small(n))
    free(malloc(50))                            #: malloc=[50] * 6


async def program():
    await asyncio.gather(*[parent(100 + i % 3) for i in range(6)])


kept = reserve()
asyncio.run(program())
summit()
os._exit(0)

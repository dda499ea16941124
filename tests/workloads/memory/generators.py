"""Generators and coroutines, resumed from many lines: charged to their own line, called from the line that resumed them."""
from truth import free, malloc


def blocks(n):
    while True:
        free(malloc(n))                         #: malloc=[10] * 6 + [20] * 5
        yield n


def outer(n):
    yield from inner(n)                         #> malloc=[30] * 3


def inner(n):
    for _ in range(3):
        free(malloc(n))                         #: malloc=[30] * 3
        yield


def closed():
    try:
        yield
    finally:
        free(malloc(40))                        #: malloc=[40] * 2


def thrown():
    while True:
        try:
            yield
        except ValueError:
            free(malloc(50))                    #: malloc=[50] * 4


class Pause:
    def __await__(self):
        free(malloc(60))                        #: malloc=[60] * 6
        yield
        free(malloc(70))                        #: malloc=[70] * 6


async def leaf():
    await Pause()                               #> malloc=[60, 70] * 6
    free(malloc(80))                            #: malloc=[80] * 6


async def task():
    await leaf()                                #> malloc=[60, 70, 80] * 3
    await leaf()                                #> malloc=[60, 70, 80] * 3


async def numbers():
    for _ in range(3):
        free(malloc(90))                        #: malloc=[90] * 3
        yield


async def over():
    async for _ in numbers():                   #> malloc=[90] * 3
        free(malloc(91))                        #: malloc=[91] * 3


def step(coroutine):
    try:
        coroutine.send(None)                    #> malloc=[60, 70, 80] * 6 + [90, 91] * 3
        return True
    except StopIteration:
        return False


def main():
    a, b = blocks(10), blocks(20)
    next(a)                                     #> malloc=[10]
    next(b)                                     #> malloc=[20]
    next(a)                                     #> malloc=[10]
    for _ in range(4):
        next(b)                                 #> malloc=[20] * 4
        next(a)                                 #> malloc=[10] * 4
    for _ in outer(30):                         #> malloc=[30] * 3
        pass
    c = closed()
    next(c)
    c.close()                                   #> malloc=[40]
    c = closed()
    next(c)
    del c                                       #> malloc=[40]
    d = thrown()
    next(d)
    for _ in range(4):
        d.throw(ValueError("on purpose"))       #> malloc=[50] * 4
    tasks = [task() for _ in range(3)]
    while tasks:
        tasks = [t for t in tasks if step(t)]
    step(over())                                #> malloc=[90, 91] * 3
    kept = sum(n for n in (held(1), held(2)))   #> malloc=[1, 2]
    assert kept


def held(n):
    return malloc(n)                            #: malloc=[1, 2], live=[1, 2]


if __name__ == "__main__":
    main()

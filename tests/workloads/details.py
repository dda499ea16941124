"""Programs whose single calls are known: details.py MODE."""
import asyncio
import gc
import sys
import threading
import time


class Odd:
    """Whoever asks it anything ends the program."""

    def refuse(self, *args):
        raise SystemExit("code of the program was run")

    __repr__ = __str__ = __len__ = __bool__ = __hash__ = __eq__ = __iter__ = __format__ = refuse

    @property
    def __class__(self):
        return self.refuse()


class OddInt(int):
    __repr__ = __str__ = __int__ = __index__ = Odd.refuse


class OddStr(str):
    __repr__ = __str__ = __len__ = __iter__ = __getitem__ = Odd.refuse


class OddList(list):
    __repr__ = __len__ = __iter__ = Odd.refuse


def take(a, b=2, *rest, key="k", **more):
    return a


def one(value):
    return value


def kept(value):
    def inner():
        return value
    return inner()


def values():
    yield 1
    yield "two"


def args():
    take(1)
    take("h\u00e9llo\n'q'", b"ab\x00\xff", 3, 4, key=1.5, z=None)
    for value in (None, True, False, -7, 10**30, -10**30, 0.1, 1.0, float("inf"), "x" * 1000, b"y" * 1000, [1, 2, 3], (), {1: 2}, {1, 2},
                  frozenset((1,)), bytearray(b"abc"), Odd(), OddInt(3), OddStr("s"), OddList(), Odd, "\ud800\U0001f600"):
        one(value)
    kept(42)
    list(values())
    take(**{"argument_%d" % i: "v" * 40 for i in range(3)}, a="w" * 300)


class Trouble(Exception):
    pass


def bad(depth):
    if depth:
        bad(depth - 1)
    raise Trouble


def caught():
    try:
        raise KeyError
    except KeyError:
        return 1


def exceptions():
    try:
        bad(2)
    except Trouble:
        caught()


def collect():
    seen = []
    before = list(gc.callbacks)
    gc.disable()
    gc.callbacks.append(lambda phase, info: seen.append((phase, info["generation"])))
    for _ in range(10):
        cycle = []
        cycle.append(cycle)
    del cycle
    gc.collect()
    gc.collect(0)
    gc.callbacks.append(lambda phase, info: 1 / 0)
    sys.unraisablehook = lambda info: seen.append(info.exc_type.__name__)
    gc.collect(1)
    hidden = [o for o in gc.get_objects() if "pyrometer" in str(type(o)) or (type(o) is list and any("pyrometer" in str(x) for x in o[:3] if type(x) is not str))]  # (paths may have it)
    print(before, len(gc.callbacks), seen, hidden)


async def sleeper(n):
    await asyncio.sleep(0.001)
    await inner(n)
    return n


async def inner(n):
    await asyncio.sleep(0.001)


async def everything():
    await asyncio.gather(*[asyncio.ensure_future(sleeper(i)) for i in range(2)])


def tasks():
    async def main():
        task = asyncio.create_task(sleeper(2), name="n\u00e4med") if sys.version_info >= (3, 8) else None
        await everything()
        await task
    asyncio.run(main())


class Asked(threading.Thread):
    """Counts who asks it for its name."""
    count = 0

    def __getattribute__(self, name):
        Asked.count += name == "_name"
        return super().__getattribute__(name)

    def run(self):
        before = Asked.count
        for _ in range(200):
            one(1)
        print(Asked.count - before)


def names():
    threads = [threading.Thread(target=one, args=(1,), name="w\u00f6rker-%d" % i) for i in range(3)] + [Asked(name="asked")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def wanted(n):
    for _ in range(n):
        unwanted()


def unwanted():
    len(())
    unwanted_too()


def unwanted_too():
    wanted_below()


def wanted_below():
    time.time()


def unwanted_values():
    yield from range(3)


def filters():
    wanted(100)
    list(unwanted_values())
    try:
        unwanted_bad()
    except ValueError:
        pass


def unwanted_bad():
    raise ValueError


def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        step()


def step():
    time.sleep(0.001)


def around(seconds):
    early()
    busy(seconds)
    late()


def early():
    pass


def late():
    pass


def last():
    t = threading.Thread(target=early, name="short")
    t.start()
    t.join()
    around(float(sys.argv[2]))
    if len(sys.argv) > 3:
        import os
        import signal
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    globals()[sys.argv[1]]()

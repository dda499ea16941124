"""Everything that makes lines run more than once, or in an unusual order. Each function is done once or
twice; what sys.settrace counts of it is what must be seen (settrace_counter.py)."""
import contextlib
import os
import sys
import threading


def loops(n):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        total += i
    else:
        total += 1
    while total > 10:
        total -= 7
        if total == 12:
            break
    return total


def one_line_loops(n):
    for i in range(n): pass
    while n: n -= 1
    return n


def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def numbers(n):
    for i in range(n):
        got = yield i
        if got:
            yield -got
    return "done"


def delegating(n):
    first = yield from numbers(n)
    second = yield from (
        x
        for x in range(n)
    )
    return first, second


def generators():
    values = []
    for value in numbers(4):
        values.append(value)
    for a, b in zip(delegating(2), numbers(5)):
        values.append(a + b)
    g = numbers(3)
    next(g)
    g.send(7)
    try:
        g.throw(ValueError("stop"))
    except ValueError:
        values.append(0)
    left = numbers(3)
    next(left)
    left.close()
    return values


def raising(n):
    try:
        if n == 1:
            raise KeyError(n)
        if n == 2:
            return [][n]
        return n
    except KeyError as error:
        return str(error)
    finally:
        n += 1


def exceptions():
    seen = []
    for i in range(4):
        try:
            seen.append(raising(i))
        except IndexError:
            seen.append("index")
        else:
            seen.append("fine")
    return seen


@contextlib.contextmanager
def managed(log):
    log.append("in")
    try:
        yield log
    finally:
        log.append("out")


class Plain:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return True


def withs():
    log = []
    with managed(log) as it, Plain():
        it.append("body")
    with Plain():
        raise RuntimeError("swallowed")
    return log


def comprehensions(n):
    squares = [i * i for i in range(n)]
    table = {
        i: j
        for i in range(n)
        for j in range(2)
        if i != j
    }
    lazy = sum(x for x in squares)
    nested = [[a for a in range(b)] for b in range(n)]
    return squares, table, lazy, nested


def many_lines(a,
               b=2,
               *rest):
    text = (
        "one"
        "two"
    )
    value = min(
        len(text),
        loops(
            a
        ),
        b,
    )
    return (value
            + b
            + len(rest))


def several(n):
    a = 1; b = 2; c = a + b
    if n: a += n; b += n
    return a, b, c


def twice(function):
    def wrapper(*args):
        function(*args)
        return function(*args)
    return wrapper


def tagged(tag):
    return lambda function: function


@twice
@tagged("one")
@tagged(
    "two"
)
def decorated(n):
    return n + 1


class Thing:
    count = 0
    names = [n for n in ("a", "b")]

    @property
    def size(self):
        return len(self.names)

    def grow(self):
        self.count += 1
        return self.count

    class Inner:
        deep = 1


def things():
    thing = Thing()
    total = 0
    for _ in range(3):
        total += thing.grow() + thing.size
    return total, (lambda x: x + 1)(total)


def made():
    code = compile("x = 0\nfor i in range(5):\n    x += i\n", "<made>", "exec")
    for _ in range(3):
        exec(code, {})
    for n in range(20):
        exec(compile("def f(a):\n    b = a\n    return b\nf(%d)\n" % n, "<again>", "exec"), {})


async def coroutine(n):
    if n:
        value = await coroutine(n - 1)
        return value + 1
    return 0


async def ticks(n):
    for i in range(n):
        yield i


async def main():
    total = await coroutine(3)
    async for i in ticks(4):
        total += i
    return total


def coroutines():
    task = main()
    try:
        while True:
            task.send(None)
    except StopIteration as stop:
        return stop.value


def threaded():
    threads = [threading.Thread(target=fib, args=(6,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def forked():
    pid = os.fork()
    if pid == 0:
        fib(5)
        generators()
        os._exit(0)
    os.waitpid(pid, 0)


def matching():
    total = 0
    for i in range(5):
        try:
            if i == 3:
                continue
            total += i
        finally:
            total += 1
    assert total
    del total
    global unused
    unused = None


def everything():
    loops(10)
    one_line_loops(6)
    fib(8)
    even(9)
    generators()
    exceptions()
    withs()
    comprehensions(4)
    many_lines(3, 4, 5)
    several(2)
    several(0)
    decorated(1)
    things()
    made()
    coroutines()
    matching()
    forked()
    threaded()


if __name__ == "__main__":
    everything()
    sys.stdout.write("done\n")

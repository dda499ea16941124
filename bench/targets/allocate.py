"""Programs that do little but allocate. Prints the seconds of its work.

    allocate.py mix ROUNDS        a dict, strings, a tuple and floats, made and dropped: Python's own allocator
    allocate.py grow ROUNDS       lists that grow item by item: reallocations
    allocate.py bytes ROUNDS      byte strings too large for Python's own allocator: malloc and free
    allocate.py deep20 ROUNDS     a few objects at the end of a recursion, 20 or 100 calls deep, entered anew each time
    allocate.py deep100 ROUNDS
    allocate.py calls ROUNDS      calls, and hardly an allocation
    allocate.py floats COUNT      so many floats, all alive at the end
    allocate.py held COUNT        the same; says "ready" and waits until its input ends
    allocate.py events COUNT      about so many allocations and frees, on many stacks; of every 64 objects one stays
"""
import sys
import time


def mix(rounds):
    for i in range(rounds):
        found = {"number": i * 1.5, "text": "item %d" % i, "pair": (i, i + 0.25)}
        found["sum"] = found["number"] + found["pair"][1]


def grow(rounds):
    for i in range(rounds):
        items = []
        for k in range(2000):
            items.append(i)


def churn(rounds):
    last = [b""] * 8
    for i in range(rounds):
        last[i & 7] = bytes(600 + (i & 1023))


def descend(depth, i):
    if depth:
        return descend(depth - 1, i)
    text = "leaf %d" % i
    return len([text, (i + 0.5, text), {"text": text}])


def deep(depth):
    def work(rounds):
        for i in range(rounds):
            descend(depth, i)
    return work


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls(rounds):
    for _ in range(rounds):
        fib(15)


def floats(count):
    kept.extend(i + 0.5 for i in range(count))


def held(count):
    floats(count)
    print("ready", flush=True)
    sys.stdin.read()


def tree(depth, i):
    """Two ways down at each step: 2 to the depth stacks. Each end makes nine objects and drops them, but for one in 64."""
    if depth:
        if i & 1:
            return tree(depth - 1, i >> 1)
        return tree(depth - 1, i >> 1)
    found = {"number": i * 1.5, "text": "item %d" % i, "pair": (i + 0.25, [i + 0.75])}
    if i & 63 == 0:
        kept.append(found["number"])


def events(count):
    for i in range(count // EVENTS_A_ROUND):
        tree(10, i)


kept = []            # for ever
EVENTS_A_ROUND = 26  # of `events`: about, it differs between versions
WORK = {"mix": mix, "grow": grow, "bytes": churn, "deep20": deep(20), "deep100": deep(100), "calls": calls,
        "floats": floats, "held": held, "events": events}

begin = time.perf_counter()
WORK[sys.argv[1]](int(sys.argv[2]))
print("%.6f" % (time.perf_counter() - begin))

"""`dump --locals` and thread names: known values of every builtin type, on every interpreter.

Values come out as repr() writes them, so the program tells what to expect by repr() itself.
"""
import json
import re

from harness import pyrometer, wait_until, workload

VALUES = r'''
import json, sys, threading, time

class Plain:
    def __init__(self):
        self.x = 1
class Sub(int):
    pass
class Meta(type):
    pass
class Made(metaclass=Meta):
    pass

def expect(names, values):
    """Says what repr() says of them, and sleeps in a frame of its own."""
    print(json.dumps({n: repr(values[n]) for n in names}), flush=True)
    print("ready", flush=True)
    time.sleep(300)

def numbers(argument, *rest, keyword=7, **more):
    zero, one, minus = 0, 1, -1
    digit, digit_over = 2 ** 30 - 1, 2 ** 30
    word, word_over = 2 ** 64 - 1, 2 ** 64
    big, big_minus = 3 ** 200, -(10 ** 100)
    largest = 2 ** 600 - 1
    half, third, small, tiny = 0.5, 1 / 3, 1e-5, 5e-324
    large, larger, exact = 1e15, 1e16, 123456789.125
    nearly, whole, minus_zero = 9007199254740993.0, 1e22, -0.0
    infinite, none_at_all = float("-inf"), float("nan")
    yes, no, nothing, more_of_it, not_so = True, False, None, ..., NotImplemented
    imaginary, both, minus_both, odd, zeros = 2.5j, 1 + 2j, -1.5 - 2e20j, complex(-0.0, float("nan")), complex(0, -0.0)
    numbers, steps, down, part, end = range(3), range(2, 9, 3), range(5, 0, -1), slice(1, None, "x"), slice(2)
    expect([n for n in locals()], locals())

def texts():
    empty, ascii = "", "plain"
    latin, two_bytes, four_bytes = "caf\u00e9", "\u0416\u4e2d", "\U0001f525 fire"
    quote, both, double = "it's", "it's \"both\"", 'say "hi"'
    escapes = "tab\t newline\n return\r back\\slash bell\x07 del\x7f esc\x1b[31m"
    high, turned, lone = "\x80\xa0\xad", "\u202eabc\u2028", "\udc80"
    data, no_data, data_quote = b"\x00bytes\xff\n", b"", b"it's"
    array, no_array, cut_array = bytearray(b"\x00array\xff"), bytearray(), bytearray(b"front and rest")
    del cut_array[:6]
    expect([n for n in locals()], locals())

def containers():
    no_list, no_tuple, no_dict, no_set, no_frozen = [], (), {}, set(), frozenset()
    one, nested = (1,), [1, "two", (3, [4.5, None])]
    table = {"a": 1, 2: "b", (3,): [4], None: {"x": {}}}
    keys = {"k%d" % i: i for i in range(8)}
    cut_down = {i: i for i in range(100)}
    for i in range(95):
        del cut_down[i]
    attributes = Plain().__dict__
    group, frozen = {9}, frozenset({"only"})
    eight = list(range(8))
    many_freed = {i for i in range(50)}
    for i in range(50):
        if i != 33:
            many_freed.discard(i)
    expect([n for n in locals() if n != "i"], locals())

def others():
    thing, number, kind, made = Plain(), Sub(5), Plain, Made
    function, module, generator = others, json, (x for x in ())
    long_text, long_list, long_bytes = "x" * 1000, list(range(1000)), b"y" * 1000
    deep = [[[[[1]]]]]
    deep_dict = {1: {2: {3: {4: 5}}}}
    wide = [["text" * 5] * 8] * 8
    huge, huge_minus = 1 << 1000, -(1 << 99999)
    loop = []
    loop.append(loop)
    many = {i for i in range(1000)}
    expect([], locals())

def cells(argument, unused_cell):
    counter = 1
    unbound_cell = None
    del unbound_cell
    def inner(own):
        nonlocal counter
        counter += 1
        late = [n for n in (1, 2)]
        return expect([], locals()) or (argument, unbound_cell, unbound)
    if argument == "never":
        unbound = 1
    inner("own")
    return lambda: unused_cell

def generator():
    held = "in the generator"
    yield expect([], locals())

async def coroutine():
    held = "in the coroutine"
    next(generator())

if sys.argv[1] == "numbers":
    numbers("positional", 1, 2, extra=3)
elif sys.argv[1] == "cells":
    cells("value", 5)
elif sys.argv[1] == "generators":
    coroutine().send(None)
else:
    globals()[sys.argv[1]]()
'''


def start(python, target, tmp_path, what):
    script = tmp_path / "values.py"
    script.write_text(VALUES, encoding="utf-8")
    one = target([python.path, str(script), what], ready=None)
    expected = json.loads(one.process.stdout.readline())
    assert one.process.stdout.readline() == "ready\n"
    return one, expected


def main_frames(pid):
    data = json.loads(pyrometer("dump", "--locals", "--json", pid, check=0).stdout)
    return [t for t in data["threads"] if t["name"] == "MainThread"][0]["frames"]


def locals_of(pid, function):
    return [f["locals"] for f in main_frames(pid) if f["name"] == function][0]


def differences(found, expected):
    return {n: (found.get(n), v) for n, v in expected.items() if found.get(n) != v}


def test_numbers(python, target, tmp_path):
    one, expected = start(python, target, tmp_path, "numbers")
    found = locals_of(one.pid, "numbers")
    assert len(expected) > 25 and not differences(found, expected)
    assert set(found) == set(expected)


def test_texts(python, target, tmp_path):
    one, expected = start(python, target, tmp_path, "texts")
    found = locals_of(one.pid, "texts")
    assert len(expected) > 10 and not differences(found, expected)


def test_containers(python, target, tmp_path):
    one, expected = start(python, target, tmp_path, "containers")
    found = locals_of(one.pid, "containers")
    assert len(expected) > 10 and not differences(found, expected)


def test_what_is_not_shown_whole(python, target, tmp_path):
    one, _ = start(python, target, tmp_path, "others")
    found = locals_of(one.pid, "others")
    assert re.fullmatch(r"<Plain object at 0x[0-9a-f]+>", found["thing"])
    assert re.fullmatch(r"<Sub object at 0x[0-9a-f]+>", found["number"])
    assert found["kind"] == "<class 'Plain'>" and found["made"] == "<class 'Made'>"
    assert re.fullmatch(r"<function object at 0x[0-9a-f]+>", found["function"])
    assert re.fullmatch(r"<generator object at 0x[0-9a-f]+>", found["generator"])
    assert found["module"] == "<module 'json'>"
    assert found["long_text"] == "'" + "x" * 120 + "'..."
    assert found["long_bytes"] == "b'" + "y" * 120 + "'..."
    assert found["long_list"] == "[0, 1, 2, 3, 4, 5, 6, 7, ...]"
    assert found["deep"] == "[[[[...]]]]"
    assert found["deep_dict"] == "{1: {2: {3: {...}}}}"
    assert found["loop"] == "[[[[...]]]]"
    assert found["huge"] == "<int of 1001 bits>" and found["huge_minus"] == "<negative int of 100000 bits>"
    assert found["many"].endswith(", ...}") and found["many"].count(",") == 8
    assert found["wide"].endswith("...")
    assert all(len(v.encode()) <= 200 for v in found.values()), found


def test_cells(python, target, tmp_path):
    """Closures, in the function that has them and in the one that uses them; nothing for what is unbound."""
    one, _ = start(python, target, tmp_path, "cells")
    outer, inner = locals_of(one.pid, "cells"), locals_of(one.pid, "inner")
    assert outer.pop("inner").startswith("<function object")
    assert outer == {"argument": "'value'", "counter": "2", "unused_cell": "5"}
    assert inner.pop("n", "2") == "2"  # 3.12 inlined the comprehension
    assert inner == {"own": "'own'", "late": "[1, 2]", "counter": "2", "argument": "'value'"}


def test_generators(python, target, tmp_path):
    one, _ = start(python, target, tmp_path, "generators")
    assert locals_of(one.pid, "generator") == {"held": "'in the generator'"}
    assert locals_of(one.pid, "coroutine") == {"held": "'in the coroutine'"}


THREADS = r'''
import threading, time
names = ["plain", "café", "\u4e2d\u6587", "\U0001f525", "x" * 300, "tab\there", "renamed"]
class Mine(threading.Thread):
    """More attributes than the shared keys of a class can hold, and a slot."""
    __slots__ = ("slot",)
    def __init__(self, **kw):
        super().__init__(**kw)
        for i in range(60):
            setattr(self, "attribute_%d" % i, i)
started = []
def wait():
    started.append(1)
    time.sleep(300)
for name in names:
    threading.Thread(target=wait, name=name if name != "renamed" else "first", daemon=True).start()
threading.enumerate()[-1].name = "renamed"
Mine(target=wait, name="many attributes", daemon=True).start()
seen = threading.Thread(target=wait, name="looked at", daemon=True)
seen.__dict__  # no values of its own any more, but a dict
seen.start()
import _thread
_thread.start_new_thread(wait, ())  # unknown to threading
def stranger():
    threading.current_thread()  # now it is known, as a dummy
    wait()
_thread.start_new_thread(stranger, ())
while len(started) < len(names) + 4:
    time.sleep(0.01)
print("ready", flush=True)
time.sleep(300)
'''


def test_thread_names(python, target, tmp_path):
    script = tmp_path / "threads.py"
    script.write_text(THREADS, encoding="utf-8")
    one = target([python.path, str(script)])
    data = json.loads(pyrometer("dump", "--json", one.pid, check=0).stdout)
    names = [t["name"] for t in data["threads"]]
    assert len(names) == 12
    assert names[0] == "MainThread"
    dummy = [n for n in names if n and n.startswith("Dummy-")]
    assert len(dummy) == 1 and names.count(None) == 1
    assert set(names) - {"MainThread", None, dummy[0]} == {
        "plain", "café", "\u4e2d\u6587", "\U0001f525", "x" * 255, "tab\there", "renamed", "many attributes", "looked at"}
    text = pyrometer("dump", one.pid, check=0).stdout
    assert '"tab\\x09here"' in text


def test_states(python, target):
    one = target([python.path, "-c", """
import os, threading, time
def spin():
    while True:
        pass
def read():
    os.read(os.pipe()[0], 1)
threading.Thread(target=read, name="reader", daemon=True).start()
for _ in range(2):
    threading.Thread(target=spin, name="spinner", daemon=True).start()
print("ready", flush=True)
time.sleep(300)
"""])
    seen = set()
    wanted = {("reader", "waiting (read)", False), ("spinner", "running", True),
              ("spinner", "waiting for the GIL", False)}

    def all_seen():
        data = json.loads(pyrometer("dump", "--json", one.pid, check=0).stdout)
        seen.update((t["name"], t["state"], t["holds_gil"]) for t in data["threads"])
        asleep = r"waiting \((clock_nanosleep|nanosleep|p?select6?)\)"
        return seen >= wanted and any(re.match(asleep, state) for name, state, _ in seen if name == "MainThread")

    wait_until(all_seen, "each state")
    assert not any(holds and state.startswith("waiting for") for _, state, holds in seen), seen


def test_running_program(python, target):
    """Values that change all the time: never an impossible one, never a crash."""
    one = target([python.path, workload("chains.py"), "5", "20000", "120"])
    for _ in range(20):
        for frame in main_frames(one.pid):
            for name, value in (frame["locals"] or {}).items():
                if re.fullmatch(r"[ab]_\d", frame["name"]):
                    assert value == "<changing>" or value.isdigit() or name not in ("n", "x", "i"), (name, value)
    assert one.alive()

"""`dump`: every thread's stack, now."""
import json

import pytest

from harness import pyrometer, workload

STILL = r'''
import threading, time
class Thing:
    pass
def outer(number, text):
    flag = True
    nothing = None
    half = 0.5
    big = 2 ** 100
    blob = b"\x00bytes\xff"
    items = [1, "two", (3, 4)]
    table = {"key": 7}
    group = {9}
    thing = Thing()
    wide = "é" * 3
    astral = "\U0001f525"
    inner(number + 1)
def inner(x):
    negative = -5
    print("ready", flush=True)
    time.sleep(300)
threading.Thread(target=time.sleep, args=(300,), name="other", daemon=True).start()
def helper():
    time.sleep(300)
threading.Thread(target=helper, name="helper thread", daemon=True).start()
outer(41, "hello")
'''


@pytest.fixture
def still(python, target, tmp_path):
    script = tmp_path / "still.py"
    script.write_text(STILL, encoding="utf-8")
    return target([python.path, str(script)]).asleep()


def dump(pid, *args):
    return json.loads(pyrometer("dump", pid, "--json", *args, check=0).stdout)


def thread_of(data, name):
    found = [t for t in data["threads"] if t["name"] == name]
    assert len(found) == 1, data
    return found[0]


def line_of(text):
    return STILL.splitlines().index(text) + 1


def test_text(still):
    out = pyrometer("dump", still.pid, check=0).stdout
    for word in ("inner", "outer", "still.py", "MainThread", "helper thread", "helper", str(still.pid),
                 ":%d" % line_of("    inner(number + 1)")):
        assert word in out, out
    assert out.index("inner") < out.index("outer")  # the newest first
    assert "\x1b" not in out


def test_json(still):
    data = dump(still.pid)
    assert data["pid"] == still.pid
    frames = thread_of(data, "MainThread")["frames"]
    names = [f["name"].split(".")[-1] for f in frames]
    assert names == ["inner", "outer", "<module>"]
    assert [f["line"] for f in frames] == [line_of("    time.sleep(300)"), line_of("    inner(number + 1)"),
                                           line_of('outer(41, "hello")')]
    assert all(f["file"].endswith("still.py") for f in frames)
    assert [f["name"] for f in thread_of(data, "helper thread")["frames"]][0] == "helper"
    assert all("locals" not in f or not f["locals"] for f in frames)


def test_locals(still):
    frames = thread_of(dump(still.pid, "--locals"), "MainThread")["frames"]
    inner, outer = frames[0]["locals"], frames[1]["locals"]
    values = {v["name"]: v["value"] for v in outer} if isinstance(outer, list) else outer
    assert values["number"] == "41"
    assert values["text"] == "'hello'"
    assert values["flag"] == "True"
    assert values["nothing"] == "None"
    assert values["half"] == "0.5"
    assert values["big"] == str(2 ** 100)
    assert values["blob"] == repr(b"\x00bytes\xff")
    assert values["items"] == "[1, 'two', (3, 4)]"
    assert values["table"] == "{'key': 7}"
    assert values["group"] == "{9}"
    assert "Thing" in values["thing"]
    assert values["wide"] == "'ééé'"
    assert values["astral"] == "'\U0001f525'"
    values = {v["name"]: v["value"] for v in inner} if isinstance(inner, list) else inner
    assert values == {"x": "42", "negative": "-5"}
    out = pyrometer("dump", still.pid, "--locals", check=0).stdout
    assert "number" in out and "41" in out and "'hello'" in out


def test_target_goes_on(still):
    for _ in range(20):
        pyrometer("dump", still.pid, "--locals", check=0)
    assert still.alive() and still.state() == "S"


def test_moving_program(python, target):
    """A program in full swing: its dump shows one possible stack or says that it moves."""
    from test_consistency import chains_possible
    one = target([python.path, workload("chains.py"), "60", "200", "120"])
    for _ in range(30):
        frames = [f["name"] for f in thread_of(dump(one.pid), "MainThread")["frames"]][::-1]
        if not any("<moving>" in f for f in frames):
            assert chains_possible(frames), frames


def test_deep_program(python, target):
    one = target([python.path, workload("deep.py"), "10000", "120"])
    frames = thread_of(dump(one.pid), "diver")["frames"]
    assert sum(1 for f in frames if f["name"] == "dive") == 10000


def test_hostile_locals(python, target, tmp_path):
    """Long, deep and endless values: cut, not followed for ever; no method of the target runs."""
    script = tmp_path / "hostile.py"
    script.write_text(
        "import time\n"
        "class Evil:\n"
        "    def __repr__(self):\n"
        "        open('called', 'w').close()\n"
        "        return 'evil'\n"
        "class Sub(list):\n"
        "    __repr__ = Evil.__repr__\n"
        "def outer():\n"
        "    long_text = 'x' * 10_000_000\n"
        "    long_list = list(range(1_000_000))\n"
        "    endless = []\n"
        "    endless.append(endless)\n"
        "    deep = []\n"
        "    for _ in range(100_000):\n"
        "        deep = [deep]\n"
        "    evil = Evil()\n"
        "    sub = Sub([1])\n"
        "    control = '\\x1b[31m\\n'\n"
        "    huge = 1 << 1_000_000\n"
        "    surrogate = '\\udc80'\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(300)\n"
        "outer()\n")
    one = target([python.path, str(script)]).asleep()
    out = pyrometer("dump", one.pid, "--locals", check=0).stdout
    assert "\x1b" not in out
    assert len(out) < 1_000_000
    for name in ("long_text", "endless", "deep", "evil", "huge", "surrogate", "control"):
        assert name in out
    dump(one.pid, "--locals")
    assert not (tmp_path / "called").exists()
    assert one.alive()

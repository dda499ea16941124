"""Writes the seeds of the fuzzers anew: tests/fuzz/corpus/<fuzzer>/.

    tests/fuzz/make_seeds.py [TEST_STACK]

TEST_STACK is the built unit test of that name, which writes the images of its invented processes as
seeds for the walker. Profile files are written here with zero checksums: the fuzzers seal them.
"""
import glob
import io
import json
import marshal
import os
import shutil
import struct
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, os.pardir, "unit", "data")
CORPUS = os.path.join(HERE, "corpus")


def put(fuzzer, name, content):
    folder = os.path.join(CORPUS, fuzzer)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(content)


# --- profile files ---


def varint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def zigzag(n):
    return varint(n << 1 if n >= 0 else (-n << 1) - 1)


def text(t):
    t = t.encode()
    return varint(len(t)) + t


def numbers(*ns):
    return b"".join(varint(n) for n in ns)


def header(run_id=bytes(16), major=1, minor=0):
    return struct.pack("<8sHHIII16sQQQ", b"\x89PYRO\r\n\x1a", major, minor, 64, 0, 0, run_id, 10**18, 10**12, 0)


def chunk(kind, sequence, payload, records, flags=0):
    return struct.pack("<IHHIIIIQ", 0x48435950, kind, flags, sequence, len(payload), len(payload), records, 0) + payload


def chunks(*kinds):
    return b"".join(chunk(kind, i, payload, records) for i, (kind, payload, records) in enumerate(kinds))


def sample(state, thread, stack_delta, gap, duration, count=1):
    head = state | (0x40 if thread is None else 0) | (0x80 if count != 1 else 0)
    return (bytes([head]) + (b"" if thread is None else varint(thread)) + zigzag(stack_delta) + zigzag(gap)
            + varint(duration) + (b"" if count == 1 else varint(count)))


META = (1, text("command") + text("python app.py") + text("mode") + text("run"), 2)
STRINGS = (2, varint(1) + b"".join(text(t) for t in ("app_main", "/lib/python3.12/a_b.py", "MainThread", "3.12.1",
                                                     "Thing.method", "<moving>")), 6)
CODES = (3, varint(1) + numbers(1, 1, 2, 10, 0) + numbers(5, 5, 2, 40, 0) + numbers(6, 0, 0, 0, 1), 3)
STACKS = (4, varint(1) + numbers(1, 1, 11) + numbers(1, 2, 42) + numbers(1, 2, 43) + numbers(3, 3, 0), 4)
PROCESSES = (5, numbers(1, 77, 1, 1, 1, 4, 5, 0) + numbers(2, 79, 77, 2, 2, 0, 5, 99), 2)
THREADS = (6, numbers(1, 1, 78, 3, 2**47, 0, 6) + numbers(2, 1, 80, 0, 2**47 + 8, 1, 9), 2)
SAMPLES = (7, sample(3, 1, 2, 1000, 10**6) + sample(3, None, 1, 0, 10**6, 5) + sample(4, 2, -3, -500, 10**6)
           + sample(8, 1, 4, 10**6, 10**6, 1000), 4)
SOURCES = (23, numbers(2, 3, 7, 10**18, 2**63) + text("x = 1\n") + numbers(3, 8, 9, 0, 0), 2)
CALLS = (16, zigzag(1) + zigzag(1) + numbers(1, 0, 10**6, 0) + zigzag(0) + zigzag(2) + numbers(7, 3, 10, 10**9)
         + zigzag(1) + zigzag(-1) + numbers(2**63, 2**63, 2**64 - 1, 0) + zigzag(0) + zigzag(2) + numbers(0, 0, 5, 0), 4)
CALIBRATION = (1, text("calibration.1") + text("40 10 30 5.5 20 2"), 1)
STATS = (8, text("samples") + varint(1007) + text("ticks_taken") + varint(900), 2)
SYMBOLS = numbers(8, 11, 2, 10, 1, 0)
EVENTS = (19, numbers(1, 100, 900, 2, 1, 2, 1, 8, 50, len(SYMBOLS)) + SYMBOLS + numbers(10, 20, 30, 40, 50, 60), 6)
NOTES = (25, numbers(1, 100, 1, 1) + text("Task-1") + numbers(2, 0) + text("x=1, *rest=tuple[2]") + numbers(1, 3) + text("KeyError")
         + numbers(1, 2) + text("None") + numbers(0, 99) + text("of a newer version"), 5)
SUMMARY = (24, numbers(0, 1, 1, 10, 100, 900, 6, 1, 2, 1, 0, 300, 4, 1, 2, 0, 10, 5, 2, 20, 30, 12, 2, 3, 9), 3)
MARKS = (22, numbers(1, 0, 1, 150, 0) + numbers(1, 1, 2, 160, 500) + numbers(2, 2, 5, 170, 800), 3)
COUNTERS = (21, numbers(1, 1, 140) + struct.pack("<d", 1.5) + numbers(1, 1, 180) + struct.pack("<d", float("inf")), 2)
TIMELINE = [EVENTS, NOTES, SUMMARY, MARKS, COUNTERS]
def site(head, thread, stack, *counts):
    return varint(head) + zigzag(thread) + zigzag(stack) + numbers(*counts)


MEMORY = (18, numbers(1, 1, 150, 700, 3, 900, 140, 2, 0, 6, 2, 140, 8, 12, 1, 5000)
          + site(0 | 128, 1, 1, 2, 600, 2, 600) + site(8 | 32 | 64 | 128, 0, 1, 3, 15000, 2, 10000, 1, 5000, 1, 5000), 4)
SAMPLED = (18, numbers(2, 6, 10**9, 0, 0, 2**63, 2**63, 0) + site(12 | 256, 2, 3, 2**63, 2**64 - 1)
           + struct.pack("<ddd", 1.5, 0.0, 1e300), 1)
STEPS = (22, b"".join(numbers(1, 0, 1, 100 + 10 * i, 0) for i in range(6)), 6)
def stream(data):
    return varint(len(data)) + data


# two sites; one grows, pages shrink, a slot is used again, and a time stands at the third event
MEMORY_EVENTS = (26, numbers(1, 100, 900, 2, 1, 1, 0, 1, 2, 8) + stream(numbers(2, 3, 2, 1, 0, 2)) + stream(numbers(65, 8193, 0, 4096, 9))
                 + stream(zigzag(0) + zigzag(1) + zigzag(1) + zigzag(-1) + zigzag(-1) + zigzag(0)) + stream(numbers(3, 900)), 6)
END = (9, b"", 0)
WHOLE = [META, STRINGS, CODES, STACKS, PROCESSES, THREADS, SOURCES, SAMPLES, STATS, END]


# the second half of a run id: see the far ids in fuzz_profile.c
USUAL = b"\1" + bytes(7)


def profiles():
    put("reader", "whole", header() + chunks(*WHOLE))
    put("reader", "torn", (header() + chunks(*WHOLE))[:-50])
    put("reader", "newer", header(major=2) + chunks(*WHOLE))
    put("reader", "unknown-kind", header(minor=7) + chunks(META, (99, b"later", 1), (24, b"x", 1), END))
    put("reader", "gap", header() + chunk(2, 3, STRINGS[1], 6) + b"noise" + chunk(7, 5, SAMPLES[1], 4))
    for kind, payload, records in WHOLE[:-1]:
        put("reader", "only-%d" % kind, header() + chunk(kind, 0, payload, records))
    for by in range(6):
        choice = bytes([by % 3, by, by % 4 and 1 << by % 3, by, by, by, by, by])
        put("profile", "by-%d" % by, header(choice + USUAL) + chunks(*WHOLE))
    put("reader", "only-16", header() + chunk(16, 0, CALLS[1], CALLS[2]))
    for metric in range(3, 6):
        choice = bytes([metric, metric % 2, 0, 0, 4 + metric, 0, 0, 0])
        put("profile", "calls-%d" % metric, header(choice + USUAL) + chunks(CALIBRATION, *WHOLE[:-2], CALLS, STATS, END))
    for name, payload in (("memory", MEMORY), ("sampled", SAMPLED)):
        put("reader", "only-18-" + name, header() + chunk(*payload[:1], 0, *payload[1:]))
    put("reader", "only-26", header() + chunk(26, 0, *MEMORY_EVENTS[1:]))
    for metric in range(6, 12):
        choice = bytes([metric, metric % 4, 0, metric * 8 % 64, 0, 0, 0, 0])
        put("profile", "memory-%d" % metric, header(choice + USUAL) + chunks(
            *WHOLE[:-3], STEPS, COUNTERS, *[MEMORY] * (metric % 3 + 1), SAMPLED, STATS, END))
    put("reader", "timeline", header() + chunks(*WHOLE[:-2], *TIMELINE, STATS, END))
    for kind, payload, records in TIMELINE:
        put("reader", "only-%d" % kind, header() + chunk(kind, 0, payload, records))
    dangling = [META, (3, varint(1) + numbers(900, 7, 8, 1, 0), 1), (4, varint(5) + numbers(2, 99, 1), 1), THREADS, SAMPLES]
    put("profile", "dangling", header(bytes(8) + USUAL) + chunks(*dangling))
    timeless = (7, sample(3, 1, 2, 1000, 10**6, 0), 1)  # no looks, but time
    put("profile", "count-zero", header(bytes([0, 4]) + bytes(6) + USUAL) + chunks(THREADS, timeless, END))
    golden = sorted(glob.glob(os.path.join(HERE, os.pardir, "golden", "*.pyro")))
    for path in golden[:1]:
        with open(path, "rb") as f:
            content = f.read()
        put("reader", "recorded", content)


# --- the others ---


def heaps():
    """Words of memory rings: nine bytes each, see fuzz_heaps.c."""
    second, turn, close, writing, jump = 1, 2, 4, 8, 16
    at = 0x7F0000001000

    def unit(what, word):
        return struct.pack("<BQ", what, word & 2**64 - 1)

    def block(kind, allocator, address, size, ticks=1, what=0):
        return (unit(what, size >> 40 << 57 | address << 9 | allocator << 4 | kind)
                + unit(what, ticks << 40 | size & 2**40 - 1))

    def free(address, ticks=1, what=0):
        return unit(what, ticks << 49 | address >> 3 << 4 | 2)

    def push(code, offset):
        return unit(0, (offset & 2**32 - 1) << 32 | code << 4 | 8)

    code = struct.pack("<8I", 1, 5, 4, 0, 4, 4, 0, 0) + b"maina.py\x0a\x01\x0a\x01" + bytes(4)
    define = unit(0, len(code) // 8 << 8 | 1 << 4 | 14) + b"".join(unit(0, w) for w in struct.unpack("<%dQ" % (len(code) // 8), code))
    stacks = (define + push(1, 0) + push(0, 0) + push(2, 10) + block(1, 0, at, 64) + unit(0, 20 << 32 | 9) + block(1, 12, at + 64, 2**20)
              + unit(0, 1 << 4 | 7) + block(1, 2, at + 128, 0) + unit(turn, 1000 << 4 | 6))
    pages = (block(3, 8, 1 << 40, 0xA000) + block(4, 0, (1 << 40) + 0x4000, 0x2000) + block(3, 9, (1 << 40) + 0x5000, 0x1000)
             + block(4, 0, 1 << 40, 0xA000, what=turn))
    undone = block(1, 0, at, 100) + free(at) + unit(0, 1 << 8 | 2 << 4 | 14) + unit(0, 5) + unit(0, 5) + free(at) + unit(turn, 5)
    handed = block(1, 0, at, 5, what=second) + free(at, 9) + unit(writing | turn, 0) + unit(second | close, 1)
    for flags in range(8):
        put("heaps", "all-%d" % flags, bytes([flags]) + stacks + pages + undone + handed + unit(jump | turn, 2**40))
    put("heaps", "full-before-an-exec", bytes([4]) + free(at) + unit(jump, 2**16) + free(at) + free(at, what=second))


def feeds():
    """Words of a ring of events: nine bytes each, see fuzz_feed.c."""
    turn, finish, jump = 1, 2, 4

    def word(kind, value, ticks=5, what=0):
        return struct.pack("<BQ", what, ticks << 32 | value << 4 | kind)

    def ext(kind, payload=b""):
        payload += bytes(-len(payload) % 8)
        words = struct.unpack("<%dQ" % (len(payload) // 8), payload)
        return word(14, kind | len(words) << 8) + b"".join(struct.pack("<BQ", 0, w) for w in words)

    enter, leave, unwind, suspend, resume, c_enter, c_leave, c_raise, line, opened, time, wait, frame = range(1, 14)
    code = ext(1, struct.pack("<6I", 1, 0, 5, 4, 4, 4) + b"mainmaina.py")
    calls = (ext(6, b"MainThread") + ext(5, struct.pack("<8I", *range(1, 9))) + code + word(opened, 9) + ext(15, b"a=1") + word(enter, 1)
             + word(line, 10) + word(c_enter, 2) + word(c_leave, 2) + word(c_enter, 2) + word(c_raise, 2) + word(line, 11)
             + ext(16, b"None") + word(leave, 1, what=turn) + word(15, 0) + ext(11, b"KeyError") + word(unwind, 9, what=turn))
    tasks = (ext(14, b"Task-1") + word(enter, 3) + word(frame, 7, 4096) + word(line, 20) + word(suspend, 3) + word(frame, 7, 4096)
             + word(resume, 3) + word(frame, 7, 4096, turn | finish) + word(leave, 3) + word(frame, 7, 4096))
    said = (ext(7, b"mark") + ext(8, struct.pack("<d", 2.5) + b"rows") + ext(9, b"span") + ext(12, struct.pack("<Q", 2))
            + ext(13, struct.pack("<Q", 40)) + ext(10) + word(time, 1, 7) + word(wait, 0, 20000, turn))
    pauses = (b"".join(word(enter, i % 3 + 1) for i in range(8)) + ext(3, struct.pack("<Q", 1)) + ext(4) + word(opened, 1) + word(enter, 2)
              + word(leave, 2) + word(leave, 1) + ext(3, struct.pack("<Q", 3)) + word(enter, 5) + word(leave, 5, what=turn | finish) + ext(4))
    for flags in range(16):
        put("feed", "all-%d" % flags, bytes([flags]) + calls + tasks + said + pauses + word(enter, 1, what=turn) + word(14, 9 | 900 << 8, what=turn))
    put("feed", "jump", bytes([9]) + calls + struct.pack("<BQ", jump | turn, 1000) + struct.pack("<BQ", jump | turn, 2**40))


def elf():
    """A header, two tables of symbols and their texts, as in test_elf.c."""
    strings = b"\0_PyRuntime\0PyCode_Type\0Py_Version\0"
    symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", name, 17, 0, 5, 0x1000 * name, 8) for name in (1, 12, 24))
    at = 64 + 56
    shoff = at + len(strings) + len(symbols)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, at + len(strings), len(symbols), 2, 0, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at, len(strings), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, at + len(strings), len(symbols), 2, 0, 8, 24)
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, shoff, 0, 64, 56, 1, 64, 4, 0)
    program = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x400000, 0x400000, 0x1000, 0x1000, 0x1000)
    put("elf", "small", head + program + strings + symbols + sections)
    put("elf", "header-only", head)


def maps():
    lines = ["55d0c0a00000-55d0c0a22000 r--p 00000000 fe:01 1234567                    /usr/bin/python3.11",
             "7f0000000000-7f0000001000 r-xp 0001f000 fe:01 7 /usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
             "7f0000001000-7f0000002000 r--p 00000000 fe:01 7 /usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0",
             "400000-401000 r--p 00000000 00:2a 9 /opt/app/embeds",
             "7ffc0000-7ffd0000 rw-p 00000000 00:00 0 ", "7ffd0000-7ffe0000 rw-p 00000000 00:00 0 [stack]",
             "7f0000003000-7f0000004000 r--p 00000000 00:01 12 /memfd:a b (deleted)"]
    put("maps", "all", "\n".join(lines).encode() + b"\n")
    for i, line in enumerate(lines):
        put("maps", "line-%d" % i, line.encode())


def lines():
    for path in sorted(glob.glob(os.path.join(DATA, "lines_3.*.txt"))):
        version = path.split("_")[-1][:-len(".txt")]
        encoding = {"3.8": 0, "3.9": 0, "3.10": 1}.get(version, 2)
        if version in ("3.9", "3.13"):
            continue
        with open(path) as f:
            codes = [line.split() for line in f if line.startswith("code ")]
        for _, name, first, table in codes[1:4]:
            if table != "-":
                put("lines", "%s-%s" % (version, name.strip("<>")), bytes([encoding]) + struct.pack("<I", int(first)) + bytes.fromhex(table))


def debug_offsets():
    for path in sorted(glob.glob(os.path.join(DATA, "debug_offsets_*.bin"))):
        with open(path, "rb") as f:
            put("debug_offsets", os.path.basename(path), f.read())


def zips():
    """The length of the name, the name, the archive."""
    def archive(method, comment=b""):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as z:
            for name, content in (("a/__init__.py", ""), ("a/b.py", "x = 1\n" * 50)):
                z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, method)
            z.comment = comment
        return out.getvalue()
    for name, content in (("stored", archive(zipfile.ZIP_STORED)), ("deflated", archive(zipfile.ZIP_DEFLATED)),
                          ("zipapp", b"#!/usr/bin/python3\n" + archive(zipfile.ZIP_DEFLATED, b"a comment"))):
        put("zip", name, b"\x06a/b.py" + content)


def imports():
    """Files of other tools."""
    stats = {("a.py", 3, "f"): (1, 2, 0.5, 1.5, {("a.py", 9, "main"): (2, 1, 0.5, 1.5), ("~", 0, "<len>"): 4}),
             ("a.py", 9, "main"): (1, 1, 2**40, 1.75, {})}
    frames = [{"name": "main", "file": "a.py", "line": 1}, {"name": "f\u00e9\ud83d\ude00\n"}]
    sampled = {"type": "sampled", "name": "A", "unit": "seconds", "startValue": 0, "endValue": 3,
               "samples": [[0], [0, 1], []], "weights": [1, 2e0, 0.5]}
    evented = {"type": "evented", "name": "B", "unit": "milliseconds", "startValue": 0, "endValue": 9, "events": [
        {"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 1, "at": 4}, {"type": "C", "frame": 1, "at": 8},
        {"type": "C", "frame": 0, "at": 9}]}
    scope = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames}, "profiles": [sampled, evented]}
    for version in range(5):
        for fuzzer in ("import_marshal", "import_files"):
            put(fuzzer, "version-%d" % version, marshal.dumps(stats, version))
    for fuzzer in ("import_json", "import_files"):
        put(fuzzer, "speedscope", json.dumps(scope).encode())
    put("import_json", "kinds", b'{"a": [true, false, null, -1.5e-3, "\\u00e9\\ud83d\\ude00\\n", {}, []]}')
    put("import_files", "collapsed", b"# x\nmain;f (a.py:3) 30\r\nmain;f (a.py:4);<moving> 2.5\n<no Python frame> 1\n")


def pysources():
    put("pysource", "blocks", b"@deco(1,\n 2)\ndef f(a,\nb):\n    \'\'\'doc\ndef g():\n    \'\'\'\n    if a: # (\n"
        b"\ts = \"\\\"x\" + [\n1]\n\nclass C:\r\n    async def g(self): pass\r\ny = 1 + \\\n2\n")


def tomls():
    put("toml", "pyproject", b"[project]\nname = 'x'\ndeps = [\n  \"a>=1\", # one\n]\n[tool.pyrometer.check]\nbaseline = 'last:20'\n"
        b"metrics = { elapsed_time_sec = '5%', 'my rows' = { less_is_worse = true } }\n[[tool.y]]\nd = 1979-05-27 07:32:00\n"
        b"s = \"\"\"\nlong \\\n  \\u00e9\"\"\"\nn = 0xff\n")


def main():
    for fuzzer in ("reader", "profile", "elf", "maps", "lines", "debug_offsets", "zip", "feed", "heaps", "pysource", "import_files", "import_json", "import_marshal", "toml"):
        shutil.rmtree(os.path.join(CORPUS, fuzzer), ignore_errors=True)
    profiles()
    feeds()
    heaps()
    elf()
    maps()
    lines()
    debug_offsets()
    zips()
    pysources()
    tomls()
    imports()
    if len(sys.argv) > 1:
        folder = os.path.join(CORPUS, "walker")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        subprocess.run([sys.argv[1]], env=dict(os.environ, PYROMETER_WRITE_SEEDS=folder), check=True)


main()

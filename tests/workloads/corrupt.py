"""A program that damages its interpreter's memory, and works on beside it.

    corrupt.py PATTERN [SECONDS]

The thread `victim` sleeps in C for ever; the main thread writes over what a profiler reads of it, then
works in `healthy` and leaves by os._exit, so nobody ever uses what was damaged.

noise      random bytes over the victim's thread state
unmapped   its frame pointer leads nowhere
wild       its frame pointer leads into a page of random bytes
cycle      its frame's predecessor is the frame itself
list       the list of thread states leads from its last one, the main thread's, back to the victim
code       random bytes over the code object that it runs
"""
import ctypes
import os
import random
import sys
import threading
import time

pattern = sys.argv[1]
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
version = sys.version_info[:2]
random.seed(7)

# Offsets of 64-bit builds with a GIL, from CPython's headers.
FRAME = 24 if version <= (3, 10) else 56 if version <= (3, 12) else 72
PREVIOUS = 24 if version <= (3, 10) else 48 if version == (3, 11) else 8
NEXT = 8
victim_state = []
started = threading.Event()


def victim_function():
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    victim_state.append(get())
    started.set()
    time.sleep(3600)


def put(address, value):
    ctypes.memmove(address, value.to_bytes(8, "little"), 8)


def noise(n):
    return bytes(random.getrandbits(8) for _ in range(n))


def damage():
    state = victim_state[0]
    size = 400
    if pattern == "noise":
        # all but the links of the list, which the living threads use
        ctypes.memmove(state + 24, noise(48), 48)
        if version >= (3, 13):
            ctypes.memmove(state + 72, noise(16), 16)
    elif pattern == "unmapped":
        put(state + FRAME, 0x7FFFDEAD0000)
    elif pattern == "wild":
        keep.append(ctypes.create_string_buffer(noise(4096), 4096))
        put(state + FRAME, (ctypes.addressof(keep[0]) + 7) & ~7)
    elif pattern == "cycle":
        keep.append(ctypes.create_string_buffer(size))
        fake = (ctypes.addressof(keep[0]) + 15) & ~15
        frame = ctypes.cast(state + FRAME, ctypes.POINTER(ctypes.c_uint64))[0]
        if version in ((3, 11), (3, 12)):  # there is a C frame between: it holds the pointer
            cframe = frame + (8 if version == (3, 11) else 0)
            frame = ctypes.cast(cframe, ctypes.POINTER(ctypes.c_uint64))[0]
            ctypes.memmove(fake, frame, 88)
            put(fake + PREVIOUS, fake)
            put(cframe, fake)
        else:
            ctypes.memmove(fake, frame, 104)
            put(fake + PREVIOUS, fake)
            put(state + FRAME, fake)
    elif pattern == "list":
        get = ctypes.pythonapi.PyThreadState_Get
        get.restype = ctypes.c_void_p
        put(get() + NEXT, state)
    elif pattern == "code":
        code = id(victim_function.__code__)
        ctypes.memmove(code + 24, noise(120), 120)
    else:
        sys.exit("no such pattern: " + pattern)


def healthy():
    print("ready", flush=True)
    end = time.perf_counter() + seconds
    x = 0
    while time.perf_counter() < end:
        x += 1


keep = []
threading.Thread(target=victim_function, name="victim", daemon=True).start()
started.wait()
time.sleep(0.05)
damage()
healthy()
os._exit(0)

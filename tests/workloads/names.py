"""Code of every kind of name, each busy for a while.

    names.py [SECONDS]
"""
import ctypes
import os
import re
import sys
import tempfile
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
slice_s = seconds / 11


def spin():
    end = time.perf_counter() + slice_s
    x = 0
    while time.perf_counter() < end:
        x += 1


class Outer:
    class Inner:
        def method(self):
            spin()

        @staticmethod
        def static():
            spin()

    @classmethod
    def make(cls):
        def closure():
            spin()
        closure()


def générateur():
    spin()
    yield 1


# C code between two Python functions: its caller and what it calls back.


def key_of(x):
    spin()
    return x


def sorts():
    sorted([1], key=key_of)


def replacement(match):
    spin()
    return ""


def substitutes():
    re.sub("x", replacement, "x")


def from_c():
    spin()
    return 0


def calls_c():
    ctypes.CFUNCTYPE(ctypes.c_int)(from_c)()


def main():
    (lambda: spin())()
    Outer.Inner().method()
    Outer.Inner.static()
    Outer.make()
    [spin() for _ in range(1)]
    exec("def from_text():\n    spin()\nfrom_text()\n", globals())
    list(générateur())
    sorts()
    substitutes()
    calls_c()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "slow_to_import.py"), "w") as f:
            f.write("import __main__\n__main__.spin()\n")
        sys.path.insert(0, folder)
        __import__("slow_to_import")  # importlib's frozen frames are on the stack meanwhile


main()

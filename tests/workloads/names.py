"""Code of every kind of name, each busy for a while.

    names.py [SECONDS]
"""
import os
import sys
import tempfile
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
slice_s = seconds / 8


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


def main():
    (lambda: spin())()
    Outer.Inner().method()
    Outer.Inner.static()
    Outer.make()
    [spin() for _ in range(1)]
    exec("def from_text():\n    spin()\nfrom_text()\n", globals())
    list(générateur())
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "slow_to_import.py"), "w") as f:
            f.write("import __main__\n__main__.spin()\n")
        sys.path.insert(0, folder)
        __import__("slow_to_import")  # importlib's frozen frames are on the stack meanwhile


main()

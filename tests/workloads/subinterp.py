"""A sub-interpreter that is busy in `inside`, and the main one that is busy in `outside`.

    subinterp.py [SECONDS]

Leaves with 77 where this Python has no sub-interpreters to offer.
"""
import sys
import time

try:
    import _interpreters as interpreters
except ImportError:
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        sys.exit(77)

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0

TEXT = """
import time
def inside():
    end = time.perf_counter() + {seconds}
    x = 0
    while time.perf_counter() < end:
        x += 1
inside()
"""


def outside():
    end = time.perf_counter() + seconds
    x = 0
    while time.perf_counter() < end:
        x += 1


def main():
    interpreter = interpreters.create()
    print("ready", flush=True)
    interpreters.run_string(interpreter, TEXT.format(seconds=seconds))
    outside()
    interpreters.destroy(interpreter)


main()

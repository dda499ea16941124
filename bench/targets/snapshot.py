"""Runs a program that tracemalloc looks at, and keeps what it has seen at the end.

    python -X tracemalloc=FRAMES snapshot.py FILE PROGRAM ARGUMENT…
"""
import os
import runpy
import sys
import tracemalloc

out = sys.argv[1]
del sys.argv[:2]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
tracemalloc.take_snapshot().dump(out)

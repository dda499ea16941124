"""A program that becomes another: executed.py, then executed.py second. Blocks of the first are gone with it."""
import os
import sys

from truth import free, malloc, reserve, summit


def first():
    free(malloc(1111))                          #: malloc=[1111]
    return malloc(2222)                         #: malloc=[2222], live=ANY, peak=[]


def second():
    free(malloc(3333))                          #: malloc=[3333]
    return malloc(4444)                         #: malloc=[4444], live=[4444]


kept = reserve()
if len(sys.argv) > 1:
    assert second()
    summit()
    os._exit(0)
assert first()
os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), "second"])

"""The standard library's tracemalloc, from the start of the interpreter; a snapshot at the program's end is its file."""
from common import target_program
from peers import Exact


class Tracemalloc(Exact):
    name = "tracemalloc"
    label = "tracemalloc 25"
    exact = "memory"
    judged = True
    frames = 25

    def command(self, python, script, out, modules=()):
        return [python, "-X", "tracemalloc=%d" % self.frames, target_program("snapshot.py"), out, *script]


class Tracemalloc1(Tracemalloc):
    label = "tracemalloc 1"
    judged = False
    frames = 1


PEERS = [Tracemalloc1, Tracemalloc]

"""scalene: signals inside the target, at an interval of its own. Without its memory and GPU parts, and with memory."""
from peers import Exact, Peer


class Scalene(Peer):
    name = "scalene"
    label = "scalene --cpu-only"
    requirement = "scalene==2.4.0"
    attaches = False

    def run(self, script, hz, out):
        return [self.program("scalene"), "run", "--cpu-only", "--outfile", out, *script]


class ScaleneMemory(Exact):
    name = label = package = "scalene"
    least = ">=1.5"
    suffix = ".json"  # it writes no other
    exact = "memory"

    def command(self, python, script, out, modules=()):
        minor = next(p.minor for p in self.bench.pythons if p.path == python)
        if minor == "3.8":  # the last that there is for it knows no `run`
            return [python, "-m", "scalene", "--json", "--outfile", out, *script]
        return [python, "-m", "scalene", "run", "--outfile", out, *script]


PEERS = [Scalene, ScaleneMemory]

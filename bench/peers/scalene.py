"""scalene without its memory and GPU parts: signals inside the target. Its interval is its own."""
from peers import Peer


class Scalene(Peer):
    name = "scalene"
    label = "scalene --cpu-only"
    requirement = "scalene==2.4.0"
    attaches = False

    def run(self, script, hz, out):
        return [self.program("scalene"), "run", "--cpu-only", "--outfile", out, *script]


PEERS = [Scalene]

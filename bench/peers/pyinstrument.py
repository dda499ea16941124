"""pyinstrument: inside the target, on PyEval_SetProfile, looks at most once an interval."""
from peers import Peer


class Pyinstrument(Peer):
    name = "pyinstrument"
    label = "pyinstrument"
    requirement = "pyinstrument==5.1.3"
    attaches = False

    def run(self, script, hz, out):
        return [self.program("pyinstrument"), "--interval", str(1 / hz), "--renderer", "json", "--outfile", out, *script]


PEERS = [Pyinstrument]

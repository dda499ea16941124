"""pprofile in its statistical mode: a Python thread inside the target that looks at the others."""
from peers import Peer


class Pprofile(Peer):
    name = "pprofile"
    label = "pprofile --statistic"
    requirement = "pprofile==2.2.0"
    attaches = False

    def run(self, script, hz, out):
        return [self.program("pprofile"), "--statistic", str(1 / hz), "--out", out, *script]


PEERS = [Pprofile]

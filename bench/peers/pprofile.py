"""pprofile: every line, by a trace function in Python; or statistical, by a thread that looks at the others."""
from peers import Exact, Peer


class PprofileStatistic(Peer):
    name = "pprofile"
    label = "pprofile --statistic"
    requirement = "pprofile==2.2.0"
    attaches = False

    def run(self, script, hz, out):
        return [self.program("pprofile"), "--statistic", str(1 / hz), "--out", out, *script]


class Pprofile(Exact):
    name = label = package = "pprofile"
    pure = True
    exact = "lines"

    def command(self, python, script, out, modules=()):
        return [python, "-m", "pprofile", "--out", out, *script]


PEERS = [PprofileStatistic, Pprofile]

"""gprof2dot: call graphs of other profilers' files, as text for graphviz. It records nothing: only `graph` asks it."""
from peers import Peer


class Gprof2dot(Peer):
    name = "gprof2dot"
    label = "gprof2dot"
    requirement = "gprof2dot==2025.4.14"
    records = False
    attaches = False

    def graph(self, form, path, out):
        """The command that makes a .dot of a file in another tool's format (pstats, collapse)."""
        return [self.program("gprof2dot"), "-f", form, "-o", out, path]


PEERS = [Gprof2dot]

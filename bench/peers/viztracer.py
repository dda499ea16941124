"""viztracer: every call, in a ring of records inside the program. For the measure `trace` only."""
from peers import Peer


class Viztracer(Peer):
    name = label = "viztracer"
    requirement = "viztracer==1.1.1"
    attaches = None  # it samples nothing: the measures of samplers pass it over

    def run(self, script, hz, out):
        return [self.program("viztracer"), "--quiet", "--tracer_entries", "20000000", "-o", out, *script]


PEERS = [Viztracer]

"""viztracer: every call with its begin and end, in a ring of records inside the program, saved as JSON."""
from peers import Exact

ENTRIES = 20000000  # more than any program of the bench makes: nothing is dropped


class Viztracer(Exact):
    name = label = package = "viztracer"
    suffix = ".json"

    def command(self, python, script, out, modules=()):
        return [python, "-m", "viztracer", "--quiet", "--tracer_entries", str(ENTRIES), "-o", out, "--", *script]


PEERS = [Viztracer]

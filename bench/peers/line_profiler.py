"""line_profiler by its kernprof: the functions that the script decorates, and those of the modules named."""
from peers import Exact


class LineProfiler(Exact):
    name = label = package = "line_profiler"
    exact = "lines"
    judged = True

    def command(self, python, script, out, modules=()):
        chosen = [word for module in modules for word in ("--prof-mod", module)]
        return [python, "-m", "kernprof", "-l", *chosen, "-o", out, *script]


PEERS = [LineProfiler]

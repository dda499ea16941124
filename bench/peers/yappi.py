"""yappi: calls, C functions too, by the wall clock or by each thread's CPU clock."""
from peers import Exact


class YappiWall(Exact):
    name = package = "yappi"
    label = "yappi wall"
    clock = "wall"

    def command(self, python, script, out, modules=()):
        return [python, "-m", "yappi", "-b", "-c", self.clock, "-f", "pstat", "-o", out, *script]


class YappiCpu(YappiWall):
    label = "yappi cpu"
    clock = "cpu"


PEERS = [YappiWall, YappiCpu]

"""Those that draw flame graphs from collapsed stacks: inferno, and Brendan Gregg's flamegraph.pl."""
import os

from common import BUILD, Failed, run
from peers import Peer


class Drawer(Peer):
    attaches = None  # no profiler: neither of the two kinds
    draws = True
    slow = False  # one turn must do
    times = 1     # how many times as fast ours has to be


class Inferno(Drawer):
    name = "inferno"
    label = "inferno-flamegraph"
    requirement = "inferno 0.12.8"
    times = 1

    def __init__(self, bench):
        super().__init__(bench)
        self.root = os.path.join(BUILD, "bench-inferno")
        self.path = os.path.join(self.root, "bin", "inferno-flamegraph")

    def install(self):
        """From crates.io, with the optimisation that its authors release it with; kept between runs."""
        if not os.access(self.path, os.X_OK):
            run(["cargo", "install", "--quiet", "--locked", "--root", self.root, "--version", "0.12.8", "inferno"], limit=1200).expect()

    def draw(self, text):
        return [self.path, "--quiet", text]


class FlamegraphPl(Drawer):
    name = "flamegraph.pl"
    label = "flamegraph.pl"
    requirement = "flamegraph.pl of Debian's libdevel-nytprof-perl"
    slow = True
    times = 5
    path = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"

    def install(self):
        if not os.path.exists(self.path):
            raise Failed("no %s: apt-get install libdevel-nytprof-perl" % self.path)

    def draw(self, text):
        return ["perl", self.path, text]


PEERS = [Inferno, FlamegraphPl]

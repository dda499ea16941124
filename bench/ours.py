"""Pyrometer itself, in the shape of a peer, so that every measure treats all profilers alike."""
from common import PYROMETER, info, run
from peers import Peer, collapsed


class Pyrometer(Peer):
    name = label = "pyrometer"
    max_hz = 1000000

    def install(self):
        run([PYROMETER, "--version"]).expect()

    def attach(self, pid, hz, seconds, out):
        return [PYROMETER, "attach", "--quiet", "--force", "--sample=%d" % hz, "--for", "%g" % seconds, "-o", out, str(pid)]

    def run(self, script, hz, out, python=None):
        return [PYROMETER, "run", "--quiet", "--force", "--sample=%d" % hz, "-o", out, "--",
                python or self.bench.python.path, *script]

    def samples(self, done, out):
        return info(out)["samples"]

    def stacks(self, out):
        text = self.bench.path("ours.collapsed")
        run([PYROMETER, "export", "collapsed", "--force", "-o", text, out]).expect()
        return collapsed(text, lambda frame: frame.partition(" (")[0])

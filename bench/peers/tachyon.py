"""CPython 3.15's own sampler, `python -m profiling.sampling`. Profiler and target are of one version."""
import os
import re

from common import Failed, run
from peers import Peer, collapsed, whole


class Tachyon(Peer):
    name = "profiling.sampling"
    label = "profiling.sampling"
    requirement = "the standard library's, CPython 3.15"
    python = "3.15"
    settle = 1.0  # it is a Python program

    def wants(self):
        return "" if self.bench.python_named("3.15") else "no CPython 3.15 here; `make pythons` brings one"

    def install(self):
        run([self.target_python().path, "-c", "import profiling.sampling"]).expect()

    def command(self):
        return [self.target_python().path, "-m", "profiling.sampling"]

    def attach(self, pid, hz, seconds, out):
        return self.command() + ["attach", "--sampling-rate", str(hz), "--duration", whole(seconds),
                                 "--all-threads", "--collapsed", "--output", out, str(pid)]

    def run(self, script, hz, out):
        return self.command() + ["run", "--sampling-rate", str(hz), "--all-threads", "--collapsed", "--output", out, *script]

    def samples(self, done, out):
        match = re.search(r"Captured ([\d,]+) samples", done.stdout + done.stderr)
        return int(match.group(1).replace(",", "")) if match else 0

    def error_rate(self, done):
        match = re.search(r"Error rate: ([\d.]+)", done.stdout + done.stderr)
        return float(match.group(1)) if match else None

    def stacks(self, out):
        if not os.path.exists(out):
            raise Failed("no output of profiling.sampling")

        def name(frame):  # file:function:line, after tid:<tid>
            parts = frame.rsplit(":", 2)
            return parts[1] if len(parts) == 3 else None

        return collapsed(out, name)


PEERS = [Tachyon]

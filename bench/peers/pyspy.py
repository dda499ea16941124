"""py-spy: reads from outside; stops the target for each sample unless told not to."""
import re

from peers import Peer, collapsed, whole


class PySpy(Peer):
    name = "py-spy"
    label = "py-spy"
    requirement = "py-spy==0.4.3"
    blocking = True
    max_hz = 1000  # a sample takes it longer than 100 us
    options = ()

    def common(self, hz, out):
        return [self.program("py-spy"), "record", "--rate", str(hz), "--format", "raw", "--output", out, *self.options]

    def attach(self, pid, hz, seconds, out):
        return self.common(hz, out) + ["--duration", whole(seconds), "--pid", str(pid)]

    def run(self, script, hz, out):
        return self.common(hz, out) + ["--", self.bench.python.path, *script]

    def samples(self, done, out):
        match = re.search(r"Samples: (\d+)", done.stdout + done.stderr)
        return int(match.group(1)) if match else 0

    def error_rate(self, done):
        match = re.search(r"Samples: (\d+) Errors: (\d+)", done.stdout + done.stderr)
        return 100 * int(match.group(2)) / max(1, int(match.group(1)) + int(match.group(2))) if match else None

    def stacks(self, out):
        return collapsed(out, lambda frame: frame.partition(" (")[0])


class PySpyNonblocking(PySpy):
    label = "py-spy --nonblocking"
    blocking = False
    options = ("--nonblocking",)


PEERS = [PySpy, PySpyNonblocking]

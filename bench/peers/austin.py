"""Austin 3.7, the last with text output: reads from outside, stops nothing."""
import re

from peers import Peer, collapsed, whole


class Austin(Peer):
    name = "austin"
    label = "austin"
    requirement = "austin-dist==3.7.0"

    def common(self, hz, out):
        return [self.program("austin"), "--interval", "%dus" % round(1e6 / hz), "--output", out]

    def attach(self, pid, hz, seconds, out):
        return self.common(hz, out) + ["--exposure", whole(seconds), "--pid", str(pid)]

    def run(self, script, hz, out):
        return self.common(hz, out) + [self.bench.python.path, *script]

    def samples(self, done, out):
        with open(out, "rb") as f:
            return sum(1 for line in f if line[:1] == b"P")  # one line a sample: P<pid>;T<tid>;frames

    def error_rate(self, done):
        match = re.search(r"Error rate.*?(\d+)\D+(\d+)", re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr))
        return 100 * int(match.group(1)) / max(1, int(match.group(2))) if match else None

    def stacks(self, out):
        def name(frame):  # file:function:line, after P<pid> and T<interpreter>:<tid>
            parts = frame.rsplit(":", 2)
            return parts[1] if len(parts) == 3 else None

        # the number at the end is microseconds, not a count
        return [(names, 1) for names, _ in collapsed(out, name)]


PEERS = [Austin]

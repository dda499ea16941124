"""The standard library's exact profilers: cProfile in C, profile in Python."""
from peers import Exact


class CProfile(Exact):
    name = label = "cProfile"
    judged = True

    def command(self, python, script, out, modules=()):
        return [python, "-m", "cProfile", "-o", out, *script]


class Profile(Exact):
    name = label = "profile"

    def command(self, python, script, out, modules=()):
        return [python, "-m", "profile", "-o", out, *script]


PEERS = [CProfile, Profile]

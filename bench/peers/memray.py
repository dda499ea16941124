"""memray: every allocation, by hooks in the program. As it comes, with Python's own allocators, and aggregated in the program."""
from peers import Exact


class Memray(Exact):
    name = label = package = "memray"
    exact = "memory"
    judged = True
    options = ()

    def command(self, python, script, out, modules=()):
        return [python, "-m", "memray", "run", "--quiet", "--force", *self.options, "--output", out, *script]


class MemrayObjects(Memray):
    label = "memray objects"
    options = ("--trace-python-allocators",)


class MemrayAggregate(Memray):
    label = "memray aggregate"
    judged = False
    options = ("--aggregate",)


PEERS = [Memray, MemrayObjects, MemrayAggregate]

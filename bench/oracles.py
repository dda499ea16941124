"""Which stacks of the fluttering programs (tests/workloads) can exist at all.

Written apart from the oracles of the tests, so that one mistake does not blind both. Each takes the function
names of a stack, root first, and says whether the program can ever have had it.
"""
import re


def matches(names, pattern):
    """The groups of every name that is one of the program's own; qualified names count by their last part."""
    found = (re.fullmatch(pattern, name.rpartition(".")[2]) for name in names)
    return [m.groups() for m in found if m]


def numbered(chain):
    """One owner, and the numbers 0, 1, 2, … without a gap."""
    return len({owner for owner, _ in chain}) <= 1 and all(int(n) == i for i, (_, n) in enumerate(chain))


def chains(names):
    return numbered(matches(names, r"([ab])_(\d+)"))


def recursion(names):
    return all(name == ("even", "odd")[i % 2] for i, (name,) in enumerate(matches(names, r"(even|odd)")))


def generators(names):
    chain = matches(names, r"(drive|gen|leaf)_([ab])(?:_(\d))?")
    order = [("drive", None), ("gen", "0"), ("gen", "1"), ("gen", "2"), ("leaf", None)]
    return len({c[1] for c in chain}) <= 1 and [(c[0], c[2]) for c in chain] == order[:len(chain)]


def churn(names):
    return numbered(matches(names, r"t(\d+)_(\d+)"))


def execs(names):
    chain = matches(names, r"([fg])_(\d+)")
    return len({i for _, i in chain}) <= 1 and "".join(kind for kind, _ in chain) in ("", "f", "fg")


# program: its arguments (for ever), its oracle, and what one of its own functions looks like
PROGRAMS = {
    "chains.py": (["10", "200", "100000"], chains, r"[ab]_\d+"),
    "recursion.py": (["60", "100000"], recursion, r"even|odd"),
    "generators.py": (["100000", "400"], generators, r"gen_[ab]_\d"),  # a turn takes half of a look; of quicker ones little is believed
    "churn.py": (["100000"], churn, r"t\d+_\d+"),
    "execs.py": (["100000"], execs, r"[fg]_\d+"),
}


class Verdict:
    """The stacks of one recording, judged. Marked ones (`<moving>`) are counted, not judged; `own` of the others are in functions of
    the program's own, so that there was something to judge."""

    def __init__(self, program, stacks):
        _, possible, own = PROGRAMS[program]
        self.samples = self.marked = self.impossible = self.own = 0
        self.example = None
        for names, count in stacks:
            self.samples += count
            if "<moving>" in names:
                self.marked += count
            elif not possible(names):
                self.impossible += count
                self.example = self.example or ";".join(names)
            elif any(re.fullmatch(own, name.rpartition(".")[2]) for name in names):
                self.own += count


def balance(stacks):
    """Of the stacks of chains.py that are in one chain: the percentage in chain a; None where there are none."""
    count = {"a": 0, "b": 0}
    for names, n in stacks:
        letters = {letter for letter, _ in matches(names, r"([ab])_(\d+)")}
        if len(letters) == 1 and "<moving>" not in names:
            count[letters.pop()] += n
    both = sum(count.values())
    return 100 * count["a"] / both if both else None

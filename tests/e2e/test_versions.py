"""Which CPythons were there to test with: a missing one is a skip with its name."""
import collections
import json
import os
import re
import subprocess
import sys

import pytest

import harness


@pytest.mark.parametrize("version", harness.EXPECTED_VERSIONS)
def test_found(version):
    if not any(p.minor == version for p in harness.find_pythons()):
        pytest.skip("CPython %s not found" % version)


def kinds_of(python, body):
    """How many instructions of each kind a loop with that body has, by what that interpreter's dis says."""
    program = """
import dis, json
names = {}
exec("def f(numbers, f, x=0, y=0, r=1.5, o=None, l=[], d={}):\\n    for i in numbers:\\n        " + %r, names)
code = [(i.opname, i.argrepr) for i in dis.get_instructions(names["f"])]
begin = next(n for n, i in enumerate(code) if i[0] == "FOR_ITER")
end = max(n for n, i in enumerate(code) if i[0] in ("JUMP_ABSOLUTE", "JUMP_BACKWARD"))
print(json.dumps(code[begin:end + 1]))
""" % body
    code = json.loads(subprocess.run([python.path, "-c", program], stdout=subprocess.PIPE, check=True).stdout)
    sys.path.insert(0, os.path.join(harness.ROOT, "tools"))
    try:
        import gen_opcodes
    finally:
        sys.path.pop(0)
    return collections.Counter(gen_opcodes.kind_of(name, operator) for name, operator in code)


def test_counts_of_slowed_loops(python):
    """The guest knows what is in the loops by which it measures how 3.10 and 3.11 slow instructions down."""
    if python.version[:2] not in ((3, 10), (3, 11)):
        pytest.skip("only 3.10 and 3.11 slow instructions down")
    kinds = ["MOVE", "STORE", "ITERATION", "ARITHMETIC", "DIVISION", "COMPARISON", "NAME", "ATTRIBUTE", "ITEM", "OTHER"]
    with open(os.path.join(harness.ROOT, "src", "agent", "slowdown.h")) as f:
        loops = re.findall(r'^    X\((\w+), "(.*)", ([\d, ]+)\)', f.read(), re.M)
    assert len(loops) > 10
    for name, body, counts in loops:
        told = {kind: n for kind, n in zip(kinds, map(int, counts.split(", "))) if n}
        assert kinds_of(python, body) == told, name


def test_opcodes_are_those_of_the_headers():
    """The table of instructions is what the headers of the CPythons here say."""
    generator = os.path.join(harness.ROOT, "tools", "gen_opcodes.py")
    done = subprocess.run([sys.executable, generator, "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    if "no headers of CPython" in done.stdout:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout

"""No stack that never existed: programs whose stacks change faster than they can be read.

Target and sampler are put on different CPUs, or they would only ever take turns and every read would
look perfect. Each program can tell a possible stack from an impossible one (see its first lines). A
sample that was still moving after the last try is marked `<moving>`; marked ones are counted, never
judged. The same programs with the check switched off must show torn stacks, or these tests prove
nothing.
"""
import functools
import json
import math
import os
import re

import pytest

from harness import Target, find_pythons, is_marked, names_in, on_cpu, pinned, pyrometer, record, two_pythons, workload

pytestmark = pytest.mark.serial


# --- what is possible ---


def chains_possible(frames):
    chain = names_in(frames, r"\b([ab])_(\d+)\b")
    return len({letter for letter, _ in chain}) <= 1 and [int(n) for _, n in chain] == list(range(len(chain)))


def recursion_possible(frames):
    names = names_in(frames, r"\b(?:even|odd)\b")
    return all(name == ("even", "odd")[i % 2] for i, name in enumerate(names))


@functools.lru_cache(maxsize=None)
def line_of(text):
    """Where a line of generators.py is that begins so."""
    with open(workload("generators.py"), encoding="utf-8") as f:
        number, = [i for i, line in enumerate(f, 1) if line.strip().startswith(text)]
    return number


def is_being_made(frames):
    """gen_a_0, called by main, at its `def`: it has not begun, but becomes a generator. Later drive_a is below it."""
    return any(len(frames) > 1 and re.match(r"main \(.*:%d\)$" % line_of("a, b ="), frames[-2])
               and re.match(r"gen_%s_0 \(.*:%d\)$" % (letter, line_of("def gen_%s_0" % letter)), frames[-1]) for letter in "ab")


def generators_possible(frames):
    if is_being_made(frames):
        return True
    chain = names_in(frames, r"\b(drive|gen|leaf)_([ab])(?:_(\d))?\b")
    if len({letter for _, letter, _ in chain}) > 1:
        return False
    order = ["drive", "gen0", "gen1", "gen2", "leaf"]
    return [kind + (number or "") for kind, _, number in chain] == order[:len(chain)]


def churn_possible(frames):
    chain = names_in(frames, r"\bt(\d+)_(\d+)\b")
    return len({k for k, _ in chain}) <= 1 and [int(n) for _, n in chain] == list(range(len(chain)))


def execs_possible(frames):
    chain = names_in(frames, r"\b([fg])_(\d+)\b")
    return len({i for _, i in chain}) <= 1 and "".join(kind for kind, _ in chain) in ("", "f", "fg")


def coroutines_possible(frames):
    chain = names_in(frames, r"\b(coro|leaf)_([ab])(?:_(\d))?\b")
    if len({letter for _, letter, _ in chain}) > 1:
        return False
    order = ["coro0", "coro1", "coro2", "leaf"]
    return [kind + (number or "") for kind, _, number in chain] == order[:len(chain)]


POSSIBLE = {
    "chains.py": chains_possible,
    "recursion.py": recursion_possible,
    "generators.py": generators_possible,
    "churn.py": churn_possible,
    "execs.py": execs_possible,
    "coroutines.py": coroutines_possible,
}

# what must be seen at all, or an empty recording would pass
SEEN = {
    "chains.py": r"\ba_\d|\bb_\d",
    "recursion.py": r"\beven\b",
    "generators.py": r"\bgen_[ab]_",
    "churn.py": r"\bt\d+_\d",
    "execs.py": r"\bg_\d",
    "coroutines.py": r"\bcoro_[ab]_",
}

PROGRAMS = [
    ("chains.py", ["60", "20"]),
    ("chains.py", ["200", "200"]),
    ("recursion.py", ["60"]),
    ("generators.py", []),
    ("coroutines.py", []),
    ("churn.py", []),
    ("execs.py", []),
]
MORE = PROGRAMS + [("chains.py", ["10", "200"]), ("recursion.py", ["400"])]


def title(program):
    return "-".join([program[0][:-3], *program[1]])


def command(python, program, args, seconds):
    return [python.path, workload(program), *args, str(seconds)]


class Judged:
    def __init__(self, program, recording):
        possible, seen = POSSIBLE[program], re.compile(SEEN[program])
        self.samples = self.marked = self.impossible = self.seen = 0
        self.example = None
        for frames, count in recording.stacks():
            self.samples += count
            if is_marked(frames):
                self.marked += count
            elif not possible(frames):
                self.impossible += count
                self.example = self.example or ";".join(frames)
            elif any(seen.search(f) for f in frames):
                self.seen += count


def fast_record(python, program, args, seconds, path, two_cpus, rate="20000", **kwargs):
    target_cpu, sampler_cpu = two_cpus
    return record(pinned(target_cpu, command(python, program, args, seconds)), path, "--sample=" + rate,
                  preexec_fn=on_cpu(sampler_cpu), **kwargs)


@pytest.mark.parametrize("program,args", PROGRAMS, ids=map(title, PROGRAMS))
@pytest.mark.strict
def test_no_impossible_stack(python, tmp_path, two_cpus, scale, program, args):
    judged = Judged(program, fast_record(python, program, args, scale(0.5, 0.7), tmp_path / "x.pyro", two_cpus))
    assert judged.impossible == 0, "%d of %d, as: %.1500s" % (judged.impossible, judged.samples, judged.example)
    # to be proven the first time, a stack has to hold still for two looks: on a quiet machine some of these never do
    assert judged.seen + judged.marked > 0, vars(judged)


def test_check_switched_off(python, tmp_path, two_cpus):
    """The seam that proves the others: without the check, torn stacks come through."""
    if python.version < (3, 11):
        pytest.skip("frames are heap objects before 3.11: too few torn ones to prove anything")
    env = dict(os.environ, PYROMETER_UNSAFE_NO_CHECK="1")
    for i, args in enumerate(3 * [["60", "20"]] + 3 * [["200", "200"]]):
        path = tmp_path / ("%d.pyro" % i)
        if Judged("chains.py", fast_record(python, "chains.py", args, 1, path, two_cpus, env=env)).impossible:
            return
    raise AssertionError("the check switched off changes nothing: what do the other tests prove?")


def half_and_half(python, path, two_cpus, leaf, seconds):
    recording = fast_record(python, "chains.py", ["10", leaf], seconds, path, two_cpus, rate="5000")
    # what was truly spent in each: half and half, but for who was on when others had the CPU
    truth = json.loads(recording.stdout.splitlines()[-1])
    count = {"a": 0, "b": 0}
    marked = 0
    for frames, n in recording.stacks():
        letters = {letter for letter, _ in names_in(frames, r"\b([ab])_(\d+)\b")}
        if is_marked(frames):
            marked += n
        elif len(letters) == 1:
            count[letters.pop()] += n
    both = count["a"] + count["b"]
    assert both > 500, (count, marked)
    share = 100 * count["a"] / both
    assert abs(share - truth["a"]) <= 2 + 3 * 100 * math.sqrt(0.25 / both), (count, marked, truth)
    stats = recording.stats()
    assert stats["samples_marked"] + stats["samples_damaged"] >= marked
    assert stats["ticks_taken"] <= stats["ticks_requested"]


@pytest.mark.parametrize("leaf", ["200", "2000"])
def test_chains_are_half_and_half(python, tmp_path, two_cpus, scale, leaf):
    """Moving samples are kept and marked, not dropped: quick code is not at a disadvantage. Below 3.11, where each frame is a piece by
    itself, a look takes 4 µs and on a slower machine more, and a stack has to rest for that long; to learn the quickest takes a second."""
    seconds = 1.2
    if python.version < (3, 11):
        seconds, leaf = 2.4, {"200": "1000"}.get(leaf, leaf)
    half_and_half(python, tmp_path / "x.pyro", two_cpus, leaf, scale(seconds, 4))


@pytest.mark.long
def test_calm_chains_are_half_and_half(python, tmp_path, two_cpus, scale):
    half_and_half(python, tmp_path / "x.pyro", two_cpus, "20000", scale(1.2, 2))


def test_callers_are_where_they_call(python, tmp_path, two_cpus, scale):
    """A caller that has just been returned to is shown in the call that it comes from, and in no other."""
    recording = fast_record(python, "sites.py", ["3000"], scale(1.2, 4), tmp_path / "x.pyro", two_cpus, rate="5000")
    lines = {}
    for file in json.loads(pyrometer("lines", recording.path, "--json", check=0).stdout)["files"]:
        if file["file"].endswith("sites.py"):
            lines = {line["text"].partition("# ")[2]: line["total"] for line in file["lines"] if "step(" in (line["text"] or "")}
    calls = {where: lines[where] for where in ("first quarter", "second quarter", "half")}
    shares = {where: 100 * total / sum(calls.values()) for where, total in calls.items()}
    for where, truth in (("first quarter", 25), ("second quarter", 25), ("half", 50)):
        # sanitized, looks are slow beside these calls
        assert abs(shares[where] - truth) <= (7 if "PYROMETER_SANITIZED" in os.environ else 4), (shares, recording.stats())


# Takes the CPU from another program for a tenth of a millisecond at a time.
GREEDY = """
import time
while True:
    end = time.perf_counter() + 0.0001
    while time.perf_counter() < end: pass
    time.sleep(0.0001)
"""


@pytest.mark.long_only
@pytest.mark.strict
@pytest.mark.parametrize("program", ["generators.py", "coroutines.py"])
def test_no_impossible_stack_beside_others(python, default_python, tmp_path, two_cpus, program):
    """Its looks are taken at other moments then. Every other recording of 3.11's generators had torn stacks on a machine where a look takes as
    long as a turn of theirs."""
    with Target(pinned(two_cpus[0], [default_python.path, "-c", GREEDY]), ready=None):
        for i in range(5):
            recording = fast_record(python, program, [], 4, tmp_path / ("%d.pyro" % i), two_cpus, rate="100000", check=0)
            judged = Judged(program, recording)
            assert judged.impossible == 0, "%d of %d, as: %.1500s" % (judged.impossible, judged.samples, judged.example)
            assert judged.seen > 0
            os.unlink(recording.path)


@pytest.mark.long_only
@pytest.mark.parametrize("program,args", MORE, ids=map(title, MORE))
@pytest.mark.strict
def test_no_impossible_stack_in_a_million(python, tmp_path, two_cpus, program, args):
    """On the oldest, whose frames lie anywhere, and the default, whose frames lie on a stack, in a million samples of each
    program; on the others in a million of all together."""
    wanted, seconds, most = 1_000_000, 10, 400
    if python not in two_pythons(find_pythons()):
        wanted, seconds = wanted // len(MORE), 4
    samples = rounds = 0
    while samples < wanted and rounds < most:
        recording = fast_record(python, program, args, seconds, tmp_path / "x.pyro", two_cpus, rate="100000", check=0)
        judged = Judged(program, recording)
        assert judged.impossible == 0, "%d of %d, as: %.1500s" % (judged.impossible, judged.samples, judged.example)
        assert judged.seen + judged.marked > 0
        samples += judged.samples
        os.unlink(recording.path)
        rounds += 1
    assert samples >= wanted, "%d in %d rounds" % (samples, rounds)

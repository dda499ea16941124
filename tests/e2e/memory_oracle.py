"""What the memory tests share: the programs of tests/workloads/memory, the truth that stands behind their lines (truth.py says
how), and what a recording says, read by the decoder and not by the reports, so that neither can hide the other's mistakes."""
import ast
import collections
import os
import re
import shutil
import subprocess

import pyro_decoder
from harness import record, workload

ALLOCATORS = ("malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc", "mmap", "brk",
              "raw", "mem", "object")
PYTHON = ("raw", "mem", "object")
PAGE = 4096
FOLDER = workload("memory")
MOUNTAIN = 48 << 20  # of peak.py


class Any:
    """Not looked at."""

    def __repr__(self):
        return "ANY"


ANY = Any()


def build(folder):
    """The libraries that the programs need, built into a folder; the environment in which they find them."""
    flags = ["-O1", "-fno-builtin", "-shared", "-fPIC", "-pthread"]

    def compile(compiler, source, target):
        subprocess.run([compiler, *flags, os.path.join(FOLDER, source), "-o", os.path.join(folder, target)], check=True)
    compile("cc", "truth.c", "libtruth.so")  # not truth.so: Python would import it instead of truth.py
    compile("cc", "truthmodule.c", "truthmodule.abi3.so")
    compile("cc", "own_malloc.c", "own_malloc.so")
    compile("cc", "halt.c", "halt.so")
    compile("cc", "early.c", "early.so")
    env = dict(os.environ, TRUTH_LIBRARY=os.path.join(folder, "libtruth.so"), TRUTH_OWN=os.path.join(folder, "own_malloc.so"),
               TRUTH_HALT=os.path.join(folder, "halt.so"), TRUTH_EARLY=os.path.join(folder, "early.so"),
               PYTHONPATH="%s:%s" % (folder, FOLDER), PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0")
    if shutil.which("c++"):
        compile("c++", "cplusplus.cc", "cplusplus.so")
        env["TRUTH_CPP_LIBRARY"] = os.path.join(folder, "cplusplus.so")
    return env


def program(name):
    return os.path.join(FOLDER, name + ".py")


def record_memory(command, path, mode, *options, **kwargs):
    return record(command, path, "--memory=" + mode, *options, **kwargs)


# --- the truth of a program ---


class Truth:
    """Of one line: sizes by allocator, and what is left alive. Lists of sizes, or ANY."""

    def __init__(self, text, names):
        self.text = text
        call = ast.parse("dict(%s)" % text, mode="eval")
        self.told = eval(compile(call, "<truth>", "eval"), dict(names, ANY=ANY, PAGE=PAGE))  # our own comment, not a stranger's

    def in_mode(self, mode):
        """{allocator: sizes} and the sizes alive, in this mode; Python's domains only where the line names one."""
        told = {k: v for k, v in self.told.items() if k not in ("heap", "brief")}
        names_python = any(k in PYTHON for k in told)
        if mode == "heap" and names_python:
            told = dict({k: v for k, v in told.items() if k not in PYTHON + ("live", "peak")}, **self.told.get("heap", {}))
        live = told.pop("live", [])
        peak = told.pop("peak", live)
        wanted = {} if "ANY" in told else {a: [] for a in ALLOCATORS if a not in PYTHON or (names_python and mode == "objects")}
        return dict(wanted, **told), live, peak


def truths(path, **names):
    """{(":" own or ">" called from there, line): Truth} of a program."""
    found = {}
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            match = re.search(r"#([:>])( .*)?$", line)
            if match:
                found[match.group(1), number] = Truth((match.group(2) or "").strip(), names)
    return found


# --- what a recording says ---


class Memory:
    """The sites of a recording: their sums over all checkpoints, and the last peak of each."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.file = pyro_decoder.Recording(f.read())
        self.sites = {}  # (process, thread, stack, allocator): dict
        self.last = {}   # process: its last checkpoint
        for checkpoint in self.file.memory:
            process = checkpoint["process"]
            self.last[process] = checkpoint
            for site in checkpoint["sites"]:
                sums = self.sites.setdefault((process, site["thread"], site["stack"], site["allocator"]), collections.Counter())
                for name in ("count", "bytes", "freed", "freed_bytes", "brief", "brief_bytes", "variance"):
                    sums[name] += site[name]
                for name in ("peak_count", "peak_bytes", "live_variance", "peak_variance"):
                    sums[name] = site[name]
        self.index()

    def index(self):
        """What each line asks for, itself and by what it calls. A line that is in a stack more than once has its share once."""
        children, own = collections.defaultdict(list), collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
        for node, (parent, _, _) in self.file.stacks.items():
            children[parent].append(node)
        for (process, _, stack, allocator), site in self.sites.items():
            own[stack][process, allocator].update(site)
        below = {}
        for node in sorted(self.file.stacks, reverse=True):  # a parent stands before its children
            sums = collections.defaultdict(collections.Counter)
            for child in children[node]:
                for part in (own.get(child, {}), below[child]):
                    for key, site in part.items():
                        sums[key].update(site)
            below[node] = sums
        self.own, self.called = collections.defaultdict(dict), collections.defaultdict(dict)
        stack, open_lines = [(node, False) for node in children[0]], collections.Counter()
        while stack:
            node, is_done = stack.pop()
            line = self.frame(node)[1:]
            if is_done:
                open_lines[line] -= 1
                continue
            add(self.own[line], own.get(node, {}))
            if not open_lines[line]:
                add(self.called[line], below[node])
            open_lines[line] += 1
            stack.append((node, True))
            stack += [(child, False) for child in children[node]]

    def pid(self, process):
        return self.file.processes[process]["pid"]

    def frame(self, node):
        """(function, file, line) at the end of a stack, or None of the empty one."""
        if not node:
            return None
        _, code, line = self.file.stacks[node]
        c = self.file.codes[code]
        return self.file.strings[c["name"]], self.file.strings[c["file"]], line

    def caller(self, node):
        return self.file.stacks[node][0]

    def path(self, node):
        """[(function, file, line)], leaf first."""
        found = []
        while node:
            found.append(self.frame(node))
            node = self.caller(node)
        return found

    def of_line(self, file, line, called=False, pid=None):
        """{allocator: sums} of a line: what it asks for itself, or what is called from there does. `file` is the end of a path."""
        sums = collections.defaultdict(collections.Counter)
        for (name, number), sites in (self.called if called else self.own).items():
            if number == line and name.endswith(file):
                for (process, allocator), site in sites.items():
                    if pid in (None, self.pid(process)):
                        sums[ALLOCATORS[allocator]].update(site)
        return sums

    def of_function(self, name, pid=None):
        """Sums of what stands in a function of this name itself, all allocators of libc."""
        sums = collections.Counter()
        for (process, _, stack, allocator), site in self.sites.items():
            if stack and self.frame(stack)[0] == name and ALLOCATORS[allocator] not in PYTHON and pid in (None, self.pid(process)):
                sums.update(site)
        return sums

    def without_python(self, allocator="malloc"):
        """{thread: sums} of what was asked for where no Python was running."""
        sums = collections.defaultdict(collections.Counter)
        for (_, thread, stack, a), site in self.sites.items():
            if not stack and ALLOCATORS[a] == allocator:
                sums[thread].update(site)
        return sums

    def totals(self, pid=None):
        sums = collections.Counter()
        for (process, *_), site in self.sites.items():
            if pid in (None, self.pid(process)):
                sums.update(site)
        return sums


def add(sums, sites):
    for key, site in sites.items():
        sums.setdefault(key, collections.Counter()).update(site)


def alive(sums):
    return sums["count"] - sums["freed"], sums["bytes"] - sums["freed_bytes"]


def told(sizes):
    return len(sizes), sum(sizes)


def check_program(memory, path, mode, peaks=False, **names):
    """Every line of a program that tells a truth. Returns how many those are; all that is wrong is told at once."""
    wrong, checked = [], 0
    name = os.sep + os.path.basename(path)
    for (kind, line), truth in sorted(truths(path, **names).items(), key=lambda item: item[0][1]):
        wanted, live, peak = truth.in_mode(mode)
        found = memory.of_line(name, line, called=kind == ">")
        checked += 1
        differences = []
        if "ANY" in wanted:  # whichever allocator it was
            libc = sum((found[a] for a in ALLOCATORS if a not in PYTHON), collections.Counter())
            if (libc["count"], libc["bytes"]) != told(wanted["ANY"]):
                differences.append("%d of %d bytes" % (libc["count"], libc["bytes"]))
            looked_at = [a for a in ALLOCATORS if a not in PYTHON]
        else:
            looked_at = [a for a in wanted if wanted[a] is not ANY]
            for allocator in looked_at:
                got = found[allocator]["count"], found[allocator]["bytes"]
                if got != told(wanted[allocator]):
                    differences.append("%s: %d of %d bytes in all, not %d of %d" % (allocator, *got, *told(wanted[allocator])))
        sums = sum((found[a] for a in looked_at), collections.Counter())
        if kind == ":" and live is not ANY:
            left = sums["bytes"] - sums["freed_bytes"]
            if left != sum(live) or (sums["count"] - sums["freed"] != len(live) and "mmap" not in truth.text):
                differences.append("alive in the end: %d of %d bytes, not %d of %d" % (*alive(sums), *told(live)))
        if kind == ":" and peaks and peak is not ANY and sums["peak_bytes"] != sum(peak):
            differences.append("alive at the peak: %d bytes, not %d" % (sums["peak_bytes"], sum(peak)))
        if "brief" in truth.told and sums["brief"] != truth.told["brief"]:
            differences.append("temporary: %d, not %d" % (sums["brief"], truth.told["brief"]))
        if differences:
            wrong.append("%s:%d #%s %s\n        %s" % (os.path.basename(path), line, kind, truth.text, "\n        ".join(differences)))
    assert not wrong, "%d of %d lines are wrong:\n    %s" % (len(wrong), checked, "\n    ".join(wrong))
    return checked


def check_sums(memory):
    """The sites of each process add up to what its last checkpoint says, and so do the sizes."""
    for process, last in memory.last.items():
        mine = collections.Counter()
        for (p, *_), site in memory.sites.items():
            if p == process:
                mine.update(site)
        assert alive(mine) == (last["live_count"], last["live_bytes"])
        assert mine["peak_bytes"] == last["peak_bytes"]
        assert mine["brief"] <= mine["freed"] <= mine["count"]
        sizes = collections.Counter()
        for checkpoint in memory.file.memory:
            if checkpoint["process"] == process:
                for _, bin, count, size in checkpoint["sizes"]:
                    sizes.update(count=count, bytes=size)
                    assert count << bin <= size < count << (bin + 1) or bin == 0, (bin, count, size)
        assert (sizes["count"], sizes["bytes"]) == (mine["count"], mine["bytes"])


def sizes_of(python):
    """What empty objects take there: names that programs use in their truths."""
    out = subprocess.run([python.path, "-c", "import sys; print(sys.getsizeof(b''), sys.getsizeof(''))"], check=True,
                         stdout=subprocess.PIPE, encoding="utf-8").stdout.split()
    return dict(BYTES=int(out[0]), TEXT=int(out[1]), MOUNTAIN=MOUNTAIN)

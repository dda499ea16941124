"""How many samples a second reach the disk, with all of the profiler on one CPU: depth 30, on every version.

The rate asked for is out of reach, so the sampler runs flat out. The stack is one that does not change (the
target asleep in a system call, or spinning in an empty loop) or one that does: two chains that take turns
about once a sample. Samples marked as moving count, and are shown. Sustained means after the first second
too: code objects met less than a second ago are checked at every look (codes.c), which costs some of the rate. A
thread that has not had a CPU since it was last seen asleep is where it was: only the kernel is asked, its
stack is not read. So it is `spinning` that tells what reading an unchanged stack costs.

Reading is one system call, and what that takes differs by a factor of three between machines: the column "reads" says how
often a second a program that does nothing else (read_bare.c) can read the target here.

On a busy machine the profiler does not have its CPU to itself, nor the target, and a target that waits for
its CPU does not change: see the columns "per CPU second" and "target on CPU" before trusting the others.
"""
import os

from common import BENCH, BUILD, Target, info, median, run, say, table, target_program, workload
from ours import Pyrometer

FLAT_OUT = 1000000
DEPTH = 30


def changing_leaf(python):
    """Iterations of the leaf, so that the stack changes about once in the time that one sample may take: 10 µs from 3.11
    on, 25 µs below. (How looks fare on a stack that changes faster is what the measure `truth` is about.)"""
    return "400" if python.version >= (3, 11) else "1000"


def commands(python):
    still = target_program("still.py")
    return {
        "asleep": [python.path, still, str(DEPTH), "asleep"],
        "spinning": [python.path, still, str(DEPTH), "spinning"],
        "changing": [python.path, workload("chains.py"), str(DEPTH - 3), changing_leaf(python), "100000"],  # <module>, main, a_0 to a_27
    }


def limit(python, scene):
    if python.version < (3, 11):
        return 40000
    return 100000 if scene == "changing" else 300000


def reader():
    path = os.path.join(BUILD, "read_bare")
    run([os.environ.get("CC", "cc"), "-O2", os.path.join(BENCH, "read_bare.c"), "-o", path]).expect()
    return path


def one(bench, command, seconds, read_bare):
    """Figures of one recording; `read_bare` is the program that tells what the system call allows."""
    out = bench.path("rate.pyro")
    with Target(command, bench.target_cpu) as target:
        before = target.cpu_ns()
        done = run(Pyrometer(bench).attach(target.pid, FLAT_OUT, seconds, out), cpu=bench.sampler_cpu).expect()
        on_cpu = 100 * (target.cpu_ns() - before) / 1e9 / done.wall
        reads = float(run([read_bare, str(target.pid), "1"], cpu=bench.sampler_cpu).expect().stdout)
    stats = info(out)
    share = lambda key: 100 * stats[key] / max(1, stats["samples"])  # noqa: E731
    cpu_ns = stats["writer_cpu_ns"] + stats["sampler_cpu_ns"]
    return {"rate": stats["samples"] / (stats["sampled_ns"] / 1e9), "rate_per_cpu_s": stats["samples"] / (cpu_ns / 1e9),
            "marked_percent": share("samples_marked"), "retried_percent": share("samples_retried"),
            "writer_percent": 100 * stats["writer_cpu_ns"] / cpu_ns, "target_on_cpu_percent": on_cpu, "reads": reads}


def measure(bench):
    seconds, rounds = bench.scale(4, 6), bench.scale(1, 3)
    taken, read_bare = {}, reader()
    for n in range(rounds):
        say("rate: round %d of %d …" % (n + 1, rounds))
        for python in bench.pythons:
            for scene, command in commands(python).items():
                taken.setdefault((python, scene), []).append(one(bench, command, seconds, read_bare))
    rows = []
    for (python, scene), results in taken.items():
        row = {"python": python.name, "scene": scene}
        row.update({key: median(r[key] for r in results) for key in results[0]})
        rows.append(row)
        bench.at_least("rate", "samples/s on %s, %s" % (python.name, scene), row["rate"], limit(python, scene),
                       "per CPU second {:,.0f}; target on CPU {:.0f} %; the bare system call: {:,.0f}".format(
                           row["rate_per_cpu_s"], row["target_on_cpu_percent"], row["reads"]))
    table("samples per second to disk, depth 30, profiler on one CPU",
          ["python", "stack", "samples/s", "per CPU second", "retried %", "marked %", "writer's share %", "target on CPU %", "reads"],
          [[r["python"], r["scene"], "{:,.0f}".format(r["rate"]), "{:,.0f}".format(r["rate_per_cpu_s"])] +
           ["%.2f" % r[k] for k in ("retried_percent", "marked_percent")] +
           ["%.0f" % r[k] for k in ("writer_percent", "target_on_cpu_percent")] + ["{:,.0f}".format(r["reads"])] for r in rows])
    return {"rows": rows}

"""Opening a large recording: 10^7 sample records, 10^5 distinct stacks of depth 30; `report` in one second.

The recording is made by make_big.c, which is built here against the sources of the file format.
"""
import glob
import os

from common import BENCH, BUILD, PYROMETER, ROOT, Failed, median, run, say, table

LIMIT_S = 1.0
STACKS, DEPTH = 100000, 30
VIEWS = [["report"], ["report", "--by", "line"], ["report", "--json"], ["tree"], ["info"], ["export", "collapsed"]]


def build():
    """The generator; built anew each time, which takes a second or two and is never stale."""
    program = os.path.join(BUILD, "make_big")
    sources = [p for folder in ("base", "format") for p in sorted(glob.glob(os.path.join(ROOT, "src", folder, "*.c")))]
    # what the generator does not call is left out, and with it the libraries that only that needs
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-ffunction-sections", "-Wl,--gc-sections", "-I" + os.path.join(ROOT, "src")]
    compiler = os.environ.get("CC", "cc")
    run([compiler, *flags, os.path.join(BENCH, "make_big.c"), *sources, "-lzstd", "-lxxhash", "-lm", "-lpthread",
         "-o", program]).expect()
    return program


def measure(bench):
    samples = 10**7  # in --quick too: it is quick enough
    path = bench.path("big.pyro")
    say("load: writing a recording of {:,} samples …".format(samples))
    made = run([build(), path, str(samples), str(STACKS), str(DEPTH)]).expect()
    if not os.path.getsize(path):
        raise Failed("make_big wrote nothing")
    taken = {" ".join(view): [] for view in VIEWS}
    for _ in range(bench.scale(3, 7)):
        for view in VIEWS:
            taken[" ".join(view)].append(run([PYROMETER, *view, path]).expect())
    rows = [{"view": view, "wall_s": median(d.wall for d in done), "cpu_s": median(d.cpu for d in done)}
            for view, done in taken.items()]
    size = os.path.getsize(path)
    table("a recording of {:,} sample records ({:.0f} MB, written in {:.1f} s)".format(samples, size / 1e6, made.wall),
          ["command", "seconds", "CPU seconds"], [[r["view"], "%.2f" % r["wall_s"], "%.2f" % r["cpu_s"]] for r in rows])
    bench.at_most("load", "seconds of `report` on {:,} samples".format(samples), rows[0]["wall_s"], LIMIT_S)
    return {"samples": samples, "file_bytes": size, "rows": rows}

"""The reading half on large recordings: the time, the memory and the size of every view and export.

The recordings are made by make_big.c, which is built here against the sources of the file format: 10^7 sample
records each, over a million stacks (the promises), over few (an ordinary program), and over a million stacks
that have little in common (shown, not promised: its trie is six times as large). Draughtsmen of flame graphs
get the same stacks as text; so does ours, in a row of its own.
"""
import glob
import os

from common import BENCH, BUILD, PYROMETER, ROOT, Failed, median, run, say, table

SAMPLES, DEPTH = 10**7, 30
# name: stacks, frames that change from one to the next
RECORDINGS = {"many stacks": (10**6, 2), "few stacks": (2000, 2), "loose stacks": (10**6, 15)}
EXPORTS = ["collapsed", "speedscope", "callgrind", "pprof", "json", "csv", "dot"]
LIMIT_S = {"report": 1, "lines": 2, "flame svg": 3, "flame html": 3, "flame --by-time": 3}
FLAME_BYTES, FLAME_FILE_BYTES = 10**9, 20 * 10**6
SAMPLES_PER_S = 10**6  # of an export
HELP_MS, PYTHON_MS = 5, 30
GROWING = (200000, 2)
GROWTH = 1.1  # of an export's memory, when the recording of such stacks is five times as long


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


def make(bench, maker, name, samples, stacks, change):
    path = bench.path(name.replace(" ", "-") + ".pyro")
    run([maker, path, str(samples), str(stacks), str(DEPTH), str(change)]).expect()
    if not os.path.getsize(path):
        raise Failed("make_big wrote nothing")
    return path


def views(out):
    """{name: arguments before the recording, arguments after it}. What writes files writes the file `out`."""
    to_file = ["--force", "-o", out]
    found = {"report": (["report"], []), "lines": (["lines"], [])}
    for name, suffix, flags in (("flame svg", ".svg", []), ("flame html", ".html", []), ("flame --by-time", ".html", ["--by-time"])):
        found[name] = (["flame", *flags], ["--force", "-o", out + suffix])
    for name in EXPORTS:
        found["export " + name] = (["export", name], to_file)
    return found


def figures(name, recording, done, size):
    return {"view": name, "recording": recording, "wall_s": median(d.wall for d in done), "cpu_s": median(d.cpu for d in done),
            "peak_bytes": max(d.peak_bytes for d in done), "output_bytes": size}


def measure_views(bench, recording, path, wanted):
    """Rounds in which every view has its turn."""
    out = bench.path("view")
    todo = {name: view for name, view in views(out).items() if not wanted or name in wanted}
    taken, sizes = {name: [] for name in todo}, {}
    for _ in range(bench.scale(1, 5)):
        for name, (before, after) in todo.items():
            taken[name].append(run([PYROMETER, *before, path, *after]).expect())
            sizes[name] = os.path.getsize(after[-1]) if after else len(taken[name][-1].stdout)
            if after:
                os.unlink(after[-1])
    return [figures(name, recording, done, sizes[name]) for name, done in taken.items()]


def judge(bench, rows):
    for row in rows:
        name = row["view"]
        on = " on {:,} samples of {}".format(SAMPLES, row["recording"])
        if name in LIMIT_S:
            bench.at_most("reading", "seconds of `%s`" % name + on, row["wall_s"], LIMIT_S[name])
        if name.startswith("flame"):
            bench.at_most("reading", "bytes of memory of `%s`" % name + on, row["peak_bytes"], FLAME_BYTES)
            bench.at_most("reading", "bytes written by `%s`" % name + on, row["output_bytes"], FLAME_FILE_BYTES)
        if name.startswith("export"):
            bench.at_least("reading", "samples a second of `%s`" % name + on, SAMPLES / row["wall_s"], SAMPLES_PER_S)


def measure_drawing(bench, path):
    """The same stacks as text, drawn by everybody in turns; the slow ones have one turn."""
    text = bench.path("stacks.collapsed")
    run([PYROMETER, "export", "collapsed", path, "-o", text]).expect()
    svg = bench.path("drawn.svg")
    drawers = {"pyrometer, from the recording": ([PYROMETER, "flame", path, "--force", "-o", svg], None),
               "pyrometer, from the text": ([PYROMETER, "flame", text, "--force", "-o", svg], None)}
    for peer in bench.peer_list(draws=True):
        drawers[peer.label] = (peer.draw(text), peer)
    taken = {label: [] for label in drawers}
    for turn in range(bench.scale(1, 3)):
        for label, (command, peer) in drawers.items():
            if turn == 0 or not peer or not peer.slow:
                taken[label].append(run(command).expect())
    rows = [{"drawer": label, "wall_s": median(d.wall for d in done), "cpu_s": median(d.cpu for d in done),
             "peak_bytes": max(d.peak_bytes for d in done)} for label, done in taken.items()]
    table("flame graphs of the same {:,} MB of collapsed stacks".format(os.path.getsize(text) // 10**6),
          ["drawer", "seconds", "CPU seconds", "MB"],
          [[r["drawer"], "%.2f" % r["wall_s"], "%.2f" % r["cpu_s"], "%.0f" % (r["peak_bytes"] / 1e6)] for r in rows])
    mine = next(r for r in rows if r["drawer"].endswith("text"))
    for row in rows:
        peer = drawers[row["drawer"]][1]
        if peer:
            bench.at_least("reading", "times as fast as %s, on the same text" % peer.label,
                           row["wall_s"] / mine["wall_s"], peer.times)
    return rows


def measure_growth(bench, maker):
    """Five times the samples over the same stacks: an export streams, so its memory stays.

    Stacks enough that what they take is far above a small process's memory: the system counts that of the one
    that starts a command as the command's.
    """
    short_path = make(bench, maker, "short", SAMPLES // 5, *GROWING)
    long_path = make(bench, maker, "long", SAMPLES, *GROWING)
    rows = []
    for name in EXPORTS:
        peak = [run([PYROMETER, "export", name, path, "-o", bench.path("grown")]).expect().peak_bytes
                for path in (short_path, long_path)]
        rows.append({"export": name, "short_bytes": peak[0], "long_bytes": peak[1]})
        bench.at_most("reading", "times the memory of `export %s` for five times the samples" % name, peak[1] / peak[0], GROWTH)
    return rows


def measure_start(bench):
    """What somebody waits for who only asks a little."""
    python = bench.python.path
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"), PYROMETER_BINARY=PYROMETER)
    commands = {"--help": [PYROMETER, "--help"], "bare": [python, "-c", "pass"],
                "module": [python, "-m", "pyrometer", "--version"]}
    taken = {name: [] for name in commands}
    for _ in range(bench.scale(11, 41)):
        for name, command in commands.items():
            taken[name].append(1e3 * run(command, env=env).expect().wall)
    added = median(m - b for m, b in zip(taken["module"], taken["bare"]))
    bench.at_most("reading", "ms of `pyrometer --help`", median(taken["--help"]), HELP_MS)
    bench.at_most("reading", "ms that `python -m pyrometer --version` adds to Python's", added, PYTHON_MS)
    return {"help_ms": median(taken["--help"]), "bare_python_ms": median(taken["bare"]), "module_added_ms": added}


def show(rows, recording):
    table("{:,} samples of {}".format(SAMPLES, recording), ["command", "seconds", "CPU seconds", "MB", "MB written"],
          [[r["view"], "%.2f" % r["wall_s"], "%.2f" % r["cpu_s"], "%.0f" % (r["peak_bytes"] / 1e6),
            "%.1f" % (r["output_bytes"] / 1e6)] for r in rows if r["recording"] == recording])


def measure(bench):
    maker = build()
    say("reading: writing recordings of {:,} samples …".format(SAMPLES))
    paths = {name: make(bench, maker, name, SAMPLES, *shape) for name, shape in RECORDINGS.items()}
    rows = measure_views(bench, "many stacks", paths["many stacks"], None)
    rows += measure_views(bench, "few stacks", paths["few stacks"], None)
    judge(bench, rows)
    rows += measure_views(bench, "loose stacks", paths["loose stacks"], ["report", "lines", "flame svg", "flame html"])
    for name in paths:
        show(rows, name)
    return {"samples": SAMPLES, "rows": rows, "drawing": measure_drawing(bench, paths["many stacks"]),
            "growth": measure_growth(bench, maker), "start": measure_start(bench),
            "file_bytes": {name: os.path.getsize(path) for name, path in paths.items()}}

"""What metering adds before a command and after it, how quickly its output passes, and a large history.

The command stamps the monotonic clock when it begins and when it ends, so that before and after are told apart. GNU
time (where it is installed) and hyperfine run the same command in the same turns; the bare start is taken off all of them.
"""
import glob
import json
import os
import subprocess
import time

from common import BENCH, BUILD, Failed, PYROMETER, ROOT, median, run, say, table

BEFORE_MS, AFTER_MS = 5, 10
PIPE_SHARE = 0.5  # of cat's rate
LARGE = (100000, 50)
SERIES_MS, COMMANDS_MS, ADD_MS, CHECK_MS = 50, 50, 10, 200

STAMP = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
int main(int argc, char **argv)
{
    double begin = now();
    struct timespec nap = {0, argc > 2 ? atol(argv[2]) * 1000000L : 0};
    nanosleep(&nap, NULL);
    FILE *f = fopen(argv[1], "w");
    fprintf(f, "%.9f %.9f\n", begin, now());
    return fclose(f);
}
"""


def build():
    """The command, and what makes a large history; built anew each time."""
    compiler = os.environ.get("CC", "cc")
    stamp, maker = os.path.join(BUILD, "bench_stamp"), os.path.join(BUILD, "make_history")
    with open(stamp + ".c", "w") as f:
        f.write(STAMP)
    run([compiler, "-O2", stamp + ".c", "-o", stamp]).expect()
    sources = [p for folder in ("base", "history") for p in sorted(glob.glob(os.path.join(ROOT, "src", folder, "*.c")))]
    run([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-I" + os.path.join(ROOT, "src"), os.path.join(BENCH, "make_history.c"), *sources,
         "-lsqlite3", "-lz", "-lm", "-lpthread", "-o", maker]).expect()
    return stamp, maker


def timed(command, stamps):
    """(ms before the command began, ms after it ended)"""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.communicate()
    end = time.monotonic()
    with open(stamps) as f:
        first, last = map(float, f.read().split())
    return 1e3 * (first - begin), 1e3 * (end - last)


def metering(bench, stamp):
    stamps, db = bench.path("stamps"), bench.path("history.db")
    rows = []
    for nap in ("0", "100"):
        command = [stamp, stamps, nap]
        contestants = {"bare": command, "pyrometer": [PYROMETER, "run", "--no-profile", "--quiet", "--db", db, "--", *command]}
        if os.path.exists("/usr/bin/time"):
            contestants["GNU time"] = ["/usr/bin/time", "-v", *command]
        contestants.update((peer.label, peer.meter(command)) for peer in bench.peer_list(name="hyperfine"))
        taken = {name: [] for name in contestants}
        for _ in range(bench.scale(11, 61)):
            for name, line in contestants.items():
                taken[name].append(timed(line, stamps))
        bare = [median(t[i] for t in taken["bare"]) for i in (0, 1)]
        for name, times in taken.items():
            before, after = (median(t[i] for t in times) - (bare[i] if name != "bare" else 0) for i in (0, 1))
            rows.append({"who": name, "nap_ms": int(nap), "before_ms": before, "after_ms": after})
            if name == "pyrometer":
                bench.at_most("history", "ms before a command of %s ms" % nap, before, BEFORE_MS)
                bench.at_most("history", "ms after a command of %s ms" % nap, after, AFTER_MS)
    table("metering: ms above bare", ["who", "command of", "before", "after"],
          [[r["who"], "%d ms" % r["nap_ms"], "%.2f" % r["before_ms"], "%.2f" % r["after_ms"]] for r in rows])
    return rows


def drained(command):
    """MB/s of what a command prints, through a pipe, to a reader that only reads."""
    begin = time.monotonic()
    child = subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    total = 0
    while True:
        piece = os.read(child.stdout.fileno(), 1 << 20)
        if not piece:
            break
        total += len(piece)
    child.stdout.close()
    child.wait()
    return total / 1e6 / (time.monotonic() - begin)


def piping(bench):
    size = bench.scale(200, 1000)
    source = "head -c %dM /dev/zero" % size
    lines = {"bare": source, "| cat": source + " | cat",
             "pyrometer": "%s run --no-profile --quiet --db %s -- %s" % (PYROMETER, bench.path("pipe.db"), source)}
    rates = {name: [] for name in lines}
    for _ in range(bench.scale(3, 7)):
        for name, line in lines.items():
            rates[name].append(drained(line))
    found = {name: median(r) for name, r in rates.items()}
    table("output through a pipe (MB/s, median)", ["way", "MB/s"], [[n, "%.0f" % r] for n, r in found.items()])
    bench.at_least("history", "piped output over cat's rate", found["pyrometer"] / found["| cat"], PIPE_SHARE)
    return found


def large(bench, maker):
    count, metrics = (LARGE[0] // 10, LARGE[1]) if bench.quick else LARGE
    database = bench.path("large.db")
    answer = json.loads(run([maker, database, str(count), str(metrics)]).expect().stdout)
    say()
    say("a history of %d runs with %d metrics each, %.0f MB: %s" % (count, metrics, answer["bytes"] / 1e6, answer))
    bench.at_most("history", "ms for a series of %d points" % answer["points"], answer["series_ms"], SERIES_MS)
    bench.at_most("history", "ms for the list of commands", answer["commands_ms"], COMMANDS_MS)
    bench.at_most("history", "ms to open it and add a run", answer["add_ms"], ADD_MS)
    answer["check_ms"] = checking(bench, database, metrics)
    bench.at_most("history", "ms for `history check`, %d metrics of a run" % metrics, answer["check_ms"], CHECK_MS)
    return answer


def checking(bench, database, metrics):
    """The whole command on the large history, every metric gated."""
    named = [word for i in range(metrics) for word in ("--metric", "metric_%d" % i)]
    command = [PYROMETER, "history", "check", "--db", database, *named, "python tests/objects.py"]
    taken = []
    for _ in range(bench.scale(5, 15)):
        begin = time.monotonic()
        status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
        taken.append(1e3 * (time.monotonic() - begin))
        if status not in (0, 3):
            raise Failed("history check left with status %d" % status)
    return median(taken)


def measure(bench):
    stamp, maker = build()
    return {"metering": metering(bench, stamp), "piping": piping(bench), "large": large(bench, maker)}

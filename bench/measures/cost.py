"""The profiler's own CPU time per sample: depth 30, 1 kHz, one thread.

CPU time is that of the whole profiler process, start-up and output included, by wait4; for ours also by its
own counters. The samples are those each profiler says it took. Rounds are interleaved, the median counts.
"""
from common import Target, info, median, run, table, workload
from ours import Pyrometer

DEPTH = 27  # of the chains, which have one function more; with <module> and main that is 30 frames
HZ = 1000


def targets(bench):
    """{python: peers that can attach to it}, the default one first."""
    found = {bench.python: []}
    for peer in bench.peer_list(attaches=True):
        found.setdefault(peer.target_python(), []).append(peer)
    return found


def one(bench, peer, pid, seconds):
    out = bench.path("cost.out")
    done = run(peer.attach(pid, HZ, seconds, out), cpu=bench.sampler_cpu).expect()
    samples = peer.samples(done, out)
    result = {"cpu": done.cpu, "samples": samples, "us": 1e6 * done.cpu / samples if samples else None}
    if isinstance(peer, Pyrometer) and samples:
        stats = info(out)
        result["sampler_us"] = stats["sampler_cpu_ns"] / 1e3 / samples
        result["writer_us"] = stats["writer_cpu_ns"] / 1e3 / samples
    return result


def on_python(bench, python, peers, seconds, rounds):
    turn = [Pyrometer(bench), *peers]
    taken = {peer.label: [] for peer in turn}
    with Target([python.path, workload("chains.py"), str(DEPTH), "20000", "100000"], bench.target_cpu) as target:
        for _ in range(rounds):
            for peer in turn:
                taken[peer.label].append(one(bench, peer, target.pid, seconds))
    rows = []
    for label, results in taken.items():
        row = {"profiler": label, "python": python.name, "samples": median(r["samples"] for r in results)}
        for key in ("us", "sampler_us", "writer_us"):
            row[key] = median(r[key] for r in results if r.get(key) is not None)
        rows.append(row)
    return rows


def measure(bench):
    rows = []
    for python, peers in targets(bench).items():
        rows += on_python(bench, python, peers, bench.scale(2, 8), bench.scale(3, 7))
    number = lambda x: "%.1f" % x if x is not None else ""  # noqa: E731
    table("CPU time of the profiler per sample, depth 30, 1 kHz (µs)",
          ["profiler", "python", "samples", "process", "sampling thread", "writing thread"],
          [[r["profiler"], r["python"], "%d" % r["samples"], number(r["us"]), number(r["sampler_us"]), number(r["writer_us"])]
           for r in rows])
    here = {r["profiler"]: r["us"] for r in rows if r["python"] == bench.python.name}
    for label, share, text in (("py-spy --nonblocking", 1 / 3, "at most a third of py-spy --nonblocking's"),
                               ("austin", 1, "at most austin's")):
        if label not in here:
            continue  # a peer that is missing was judged before
        if here[label]:
            bench.at_most("cost", "µs of CPU per sample " + text, here["pyrometer"], share * here[label])
        else:
            bench.must("cost", "µs of CPU per sample " + text, here["pyrometer"], None, False, label + " took no samples to compare with")
    return {"rows": rows}

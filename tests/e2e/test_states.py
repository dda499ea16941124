"""On the CPU, waiting, with the GIL or waiting for it: per thread, by its name."""
import pytest

from harness import record, workload

WAITS_FOR_THE_GIL = 1 << 2  # docs/format.md


def by_thread(recording, metric):
    """Seconds by thread name, the whole thread."""
    found = {}
    for row in recording.rows("--by", "thread", "--metric", metric):
        name = row["name"]
        for known in ("sleeper", "waiter", "fighter-1", "fighter-2", "hasher", "MainThread"):
            if known in name:
                assert known not in found, "two rows for %s" % known
                found[known] = row["total"]
    return found


def waits_for_the_gil(recording):
    """{thread name: share of its samples in which it waits for the GIL}; no view shows it, so the file is asked."""
    import pyro_decoder
    with open(recording.path, "rb") as f:
        decoded = pyro_decoder.Recording(f.read())
    samples, waits = {}, {}
    for thread, _, state, count, _, _ in decoded.samples:
        name = decoded.strings[decoded.threads[thread]["name"]]
        samples[name] = samples.get(name, 0) + count
        waits[name] = waits.get(name, 0) + (count if state & WAITS_FOR_THE_GIL else 0)
    return {name: waits[name] / samples[name] for name in samples}


SLEEPERS = """
import threading, time
for _ in range(12):
    crowd = [threading.Thread(target=time.sleep, args=[0.3], name="sleeper") for _ in range(25)]
    for thread in crowd: thread.start()
    for thread in crowd: thread.join()
"""


@pytest.mark.long_only
def test_threads_met_at_their_birth(python, tmp_path):
    """A thread that sleeps is never taken for running, however early it was met: once it was, one in hundreds, to its end."""
    recording = record([python.path, "-c", SLEEPERS], tmp_path / "x.pyro", "--sample=5000")
    wall, cpu = ({(r["pid"], r["tid"]): r["total"] for r in recording.rows("--by", "thread", "--metric", metric, "--limit", "0")
                  if r["name"].startswith("sleeper")} for metric in ("wall", "cpu"))
    assert len(wall) > 100
    assert not [key for key, seconds in wall.items() if cpu.get(key, 0) > seconds / 2 > 0.05]


@pytest.mark.serial
def test_states_of_threads(python, tmp_path):
    recording = record([python.path, workload("threads.py"), "1.5"], tmp_path / "x.pyro")
    wall, cpu, gil = (by_thread(recording, m) for m in ("wall", "cpu", "gil"))
    everyone = {"sleeper", "waiter", "fighter-1", "fighter-2", "hasher", "MainThread"}
    assert everyone <= set(wall), wall
    for name in everyone:
        assert wall[name] >= cpu.get(name, 0) * 0.999, (name, wall, cpu)
        assert wall[name] >= gil.get(name, 0) * 0.999, (name, wall, gil)
    for idle, part in (("sleeper", 0.1), ("waiter", 0.1), ("MainThread", 0.3)):  # the last one had to start
        assert cpu.get(idle, 0) < part * wall[idle], (idle, cpu, wall)
        assert gil.get(idle, 0) < part * wall[idle], (idle, gil, wall)
    # in C without the GIL: on the CPU (or ready for it), hardly ever holding it
    assert cpu["hasher"] > 0.6 * wall["hasher"], (cpu, wall)
    assert gil.get("hasher", 0) < 0.2 * wall["hasher"], (gil, wall)
    # two that fight for it: each has it for a good part, never both at once
    for fighter in ("fighter-1", "fighter-2"):
        assert 0.15 * wall[fighter] < gil[fighter] < 0.85 * wall[fighter], (gil, wall)
    both = gil["fighter-1"] + gil["fighter-2"]
    assert both < 1.1 * max(wall["fighter-1"], wall["fighter-2"]), (gil, wall)
    assert both > 0.6 * min(wall["fighter-1"], wall["fighter-2"]), (gil, wall)
    # and each waits for it for a good part; whoever waits for something else does not
    waits = waits_for_the_gil(recording)
    for fighter in ("fighter-1", "fighter-2"):
        assert 0.1 < waits[fighter] < 0.9, waits
    for other, part in (("waiter", 0.1), ("sleeper", 0.4)):  # the last one wakes up now and then, and needs it to go on
        assert waits[other] < part, waits


def test_one_thread_has_the_gil(python, tmp_path):
    """A single busy thread: wall, CPU and GIL are about the same."""
    recording = record([python.path, workload("shares.py"), "0.7"], tmp_path / "x.pyro")
    totals = {m: recording.row("main", "--metric", m, file="shares.py")["total"] for m in ("wall", "cpu", "gil")}
    assert totals["cpu"] > 0.9 * totals["wall"], totals
    assert totals["gil"] > 0.9 * totals["wall"], totals


def test_sleep_is_wall_and_not_cpu(python, tmp_path):
    text = "import time\ndef nap():\n    time.sleep(0.8)\nnap()\n"
    recording = record([python.path, "-c", text], tmp_path / "x.pyro")
    wall = recording.row("nap", "--metric", "wall")["total"]
    for metric in ("cpu", "gil"):
        row = recording.row("nap", "--metric", metric)
        assert (row["total"] if row else 0) < 0.1 * wall, (metric, row, wall)


def test_thread_filter(default_python, tmp_path):
    recording = record([default_python.path, workload("threads.py"), "0.8"], tmp_path / "x.pyro")
    names = {r["name"] for r in recording.rows("--thread", "hasher")}
    assert "hash_on" in names and "fight" not in names and "sleep_on" not in names

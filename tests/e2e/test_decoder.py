"""docs/format.md is enough to read a recording: a decoder written from it alone says what `report` says."""
import collections
import glob
import os

import pytest

from harness import ROOT, Recording, record, workload

pytest.importorskip("xxhash")
pytest.importorskip("zstandard")
import pyro_decoder  # noqa: E402  (needs both)

GOLDEN = sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "*.pyro")))


def decode(path):
    with open(path, "rb") as f:
        return pyro_decoder.Recording(f.read())


def counts(decoded):
    """{(function, file, line): (self samples, total samples, self ns)}; a stack counts once for each function."""
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for _, stack, _, count, _, duration in decoded.samples:
        frames = list(decoded.frames(stack))
        if frames:
            rows[frames[0]][0] += count
            rows[frames[0]][2] += duration
        for frame in set(frames):
            rows[frame][1] += count
    return {frame: tuple(row) for frame, row in rows.items()}


def check_same(path):
    decoded = decode(path)
    report = Recording(path).report()
    mine = counts(decoded)
    assert sum(s[3] for s in decoded.samples) == report["samples"]
    assert sum(s[5] for s in decoded.samples) / 1e9 == pytest.approx(report["total"])
    rows = {(r["name"], r["file"] or "", r["line"] or 0): r for r in report["rows"]}
    assert set(mine) <= set(rows)
    assert all(row["special"] for frame, row in rows.items() if frame not in mine)  # samples without any frame
    for frame, (self_samples, total_samples, self_ns) in mine.items():
        row = rows[frame]
        assert (row["samples"], row["total_samples"]) == (self_samples, total_samples), frame
        assert row["self"] == pytest.approx(self_ns / 1e9), frame
    info = Recording(path).info()
    assert (info["samples"], info["sample_records"]) == (report["samples"], len(decoded.samples))
    assert decoded.run_id.hex() == info["run"]["id"]
    assert decoded.meta["command"] == info["run"]["command"]
    assert len(info["stats"]) >= 24
    assert {name: decoded.stats.get(name) for name in info["stats"]} == info["stats"]  # null: younger than the file
    assert decoded.finished and not decoded.torn and not decoded.damaged and not decoded.missing
    return decoded


def test_recording(tmp_path, default_python):
    path = tmp_path / "run.pyro"
    record([default_python.path, workload("threads.py")], path, "--for", "2")
    decoded = check_same(str(path))
    assert len(decoded.threads) > 1
    assert all(t["process"] in decoded.processes for t in decoded.threads.values())


def test_interval_is_randomised(tmp_path, default_python):
    """Evenly from half a period to one and a half, so that no rhythm of the program can meet it. A sample that was stored alone lasts
    from the look before it; whether it was alone, in a program that never holds still, has nothing to do with that."""
    period = 1 / 200
    recording = record([default_python.path, workload("chains.py"), "10", "200", "1.3"], tmp_path / "x.pyro", "--sample=200")
    gaps = [duration / 1e9 / period for _, _, _, count, _, duration in decode(recording.path).samples if count == 1]
    assert len(gaps) > 50, len(gaps)

    def share(low, high):
        return sum(low <= gap < high for gap in gaps) / len(gaps)

    # a quarter, a half and a quarter; a busy machine only makes it wider
    assert share(0, 0.75) > 0.1 and share(1.25, 100) > 0.1, sorted(gaps)
    assert share(0.75, 1.25) > 0.2 and share(0.4, 1.6) > 0.6, sorted(gaps)


def test_equal_samples_are_stored_once(tmp_path, default_python):
    text = "import time\ndef nap():\n    time.sleep(1)\nnap()\n"
    decoded = decode(record([default_python.path, "-c", text], tmp_path / "x.pyro").path)
    counts = [s[3] for s in decoded.samples if "nap" in [name for name, _, _ in decoded.frames(s[1])]]
    assert sum(counts) > 100, counts
    assert len(counts) < sum(counts) / 10, counts


@pytest.mark.parametrize("path", GOLDEN, ids=os.path.basename)
def test_golden(path):
    decoded = check_same(path)
    assert (decoded.major, decoded.minor) == (1, 0)


def test_damage(tmp_path):
    """Both readers find the same chunks in a file with a hole, and in a torn one."""
    with open(GOLDEN[0], "rb") as f:
        data = f.read()
    whole = decode(GOLDEN[0])
    middle = data.find(b"PYCH", len(data) // 2)
    hole = data[:middle + 12] + b"\xff" + data[middle + 13:]
    for name, content in (("hole", hole), ("torn", data[:middle + 40])):
        path = tmp_path / (name + ".pyro")
        path.write_bytes(content)
        decoded = decode(str(path))
        report = Recording(path).report()
        assert sum(s[3] for s in decoded.samples) == report["samples"]
        assert decoded.torn == (report["losses"]["torn_bytes"] > 0)
        assert decoded.damaged == report["losses"]["damaged_chunks"]
        assert decoded.missing == report["losses"]["missing_chunks"]
        assert decoded.finished == report["run"]["finished"]
        assert len(decoded.samples) <= len(whole.samples)


def test_exact_calls(default_python, tmp_path):
    """Sums of the records: calls, resumes, time as stamped, the time coroutines were alive."""
    recording = record([default_python.path, workload("calls_async.py")], tmp_path / "x.pyro", "--calls")
    decoded, report = decode(recording.path), recording.report("--metric", "raw")
    assert sum(c[2] for c in decoded.calls) == report["calls"] and sum(c[3] for c in decoded.calls) == report["resumes"]
    assert sum(c[4] for c in decoded.calls) / 1e9 == pytest.approx(report["total"])
    mid = [c for c in decoded.calls if next(iter(decoded.frames(c[1])))[0] == "mid"]
    row = [r for r in report["rows"] if r["name"] == "mid"][0]
    assert sum(c[2] for c in mid) == row["calls"] and sum(c[5] for c in mid) / 1e9 == pytest.approx(row["alive"])

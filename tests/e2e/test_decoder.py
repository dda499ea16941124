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


@pytest.mark.parametrize("path", GOLDEN, ids=os.path.basename)
def test_golden(path):
    decoded = check_same(path)
    assert (decoded.major, decoded.minor) == (1, 0)


@pytest.mark.skipif(not GOLDEN, reason="tests/golden holds no recordings")
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

"""Files that are not what they should be: a clear line, the right status, nothing lost, no crash."""
import os
import random
import re
import struct

import pytest

from harness import Recording, one_line_error, pyrometer, record, workload

pytestmark = pytest.mark.strict

READERS = [("info",), ("report",), ("verify",), ("export", "collapsed"), ("tree",)]
HEADER = 64
CHUNK_HEADER = 32
END = 9  # the kind of the last chunk


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A recording with a good many chunks, as bytes."""
    from harness import default_python
    path = tmp_path_factory.mktemp("good") / "good.pyro"
    record([default_python().path, workload("chains.py"), "10", "200", "1.5"], path, "--sample=5000")
    return path.read_bytes()


def chunks(data):
    """[(offset, kind, end)]"""
    at, found = HEADER, []
    while at + CHUNK_HEADER <= len(data):
        magic, kind, _, _, stored = struct.unpack_from("<IHHII", data, at)
        assert magic == 0x48435950
        found.append((at, kind, at + CHUNK_HEADER + stored))
        at = found[-1][2]
    assert at == len(data)
    return found


def refused(path, word):
    for command in READERS:
        line = one_line_error(pyrometer(*command, path), 1)
        assert word in line, line
        assert str(path) in line or os.path.basename(str(path)) in line, line


def test_good_is_good(good, tmp_path):
    (tmp_path / "x.pyro").write_bytes(good)
    assert "whole" in Recording(tmp_path / "x.pyro").verify().stdout
    kinds = [kind for _, kind, _ in chunks(good)]
    assert kinds[-1] == 9 and 7 in kinds and kinds.count(7) >= 2, kinds


def test_missing(tmp_path):
    refused(tmp_path / "none.pyro", "no such file")


def test_empty(tmp_path):
    (tmp_path / "x.pyro").write_bytes(b"")
    refused(tmp_path / "x.pyro", "empty")


@pytest.mark.parametrize("content", [
    b"hello", b"\0" * 1000, b"\x7fELF" + b"\0" * 500, os.urandom(5000), b"{}\n" * 100, b"\x89PYRO\r\n",
    b"\x89PYRO\n\x1a\n" + b"\0" * 100,
], ids=["text", "zeros", "elf", "noise", "json", "half-a-magic", "text-mode-transfer"])
def test_foreign(tmp_path, content):
    (tmp_path / "x.pyro").write_bytes(content)
    refused(tmp_path / "x.pyro", "not a Pyrometer recording")


def test_folder(tmp_path):
    """An empty one; test_imports.py has those with something in them."""
    (tmp_path / "folder.pyro").mkdir()
    for command in READERS:
        one_line_error(pyrometer(*command, tmp_path / "folder.pyro"), 1)


@pytest.mark.parametrize("where", [8, 20], ids=["major-version", "incompatible-flag"])
def test_newer(good, tmp_path, where):
    """A newer major version or an unknown incompatible flag, the header's checksum in order."""
    xxhash = pytest.importorskip("xxhash", reason="no xxhash module to make a valid header with")
    data = bytearray(good)
    data[where] = 2
    data[56:64] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(data[:56])))
    (tmp_path / "x.pyro").write_bytes(data)
    refused(tmp_path / "x.pyro", "newer")


def test_newer_but_compatible(good, tmp_path):
    """A newer minor version and a compatible flag are no reason to refuse."""
    xxhash = pytest.importorskip("xxhash", reason="no xxhash module to make a valid header with")
    data = bytearray(good)
    data[10] = 9
    data[16] = 4
    data[56:64] = struct.pack("<Q", xxhash.xxh3_64_intdigest(bytes(data[:56])))
    (tmp_path / "x.pyro").write_bytes(data)
    (tmp_path / "good.pyro").write_bytes(good)
    assert Recording(tmp_path / "x.pyro").rows() == Recording(tmp_path / "good.pyro").rows()


def test_unknown_chunk_is_skipped(good, tmp_path):
    """A chunk of a kind from the future in the middle."""
    xxhash = pytest.importorskip("xxhash", reason="no xxhash module to make a valid chunk with")
    payload = b"from the future"
    end = chunks(good)[-1]
    sequence = struct.unpack_from("<I", good, end[0] + 8)[0]

    def chunk(kind, number, payload, records=1):
        head = struct.pack("<IHHIIII", 0x48435950, kind, 0, number, len(payload), len(payload), records)
        checksum = xxhash.xxh3_64_intdigest(payload, seed=xxhash.xxh3_64_intdigest(head))
        return head + struct.pack("<Q", checksum) + payload

    tail = good[end[0] + CHUNK_HEADER:]
    data = good[:end[0]] + chunk(999, sequence, payload) + chunk(9, sequence + 1, tail, 0)
    (tmp_path / "x.pyro").write_bytes(data)
    (tmp_path / "good.pyro").write_bytes(good)
    assert Recording(tmp_path / "x.pyro").rows() == Recording(tmp_path / "good.pyro").rows()
    Recording(tmp_path / "x.pyro").verify(check=0)


def test_unreadable(good, tmp_path, is_root):
    path = tmp_path / "x.pyro"
    path.write_bytes(good)
    path.chmod(0)
    if is_root:
        os.chmod(tmp_path, 0o755)
        done = pyrometer("report", path, preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)), cwd="/")
        if "Permission" not in done.stderr and "permission" not in done.stderr:
            # the way to the file may be closed as well: still one line
            one_line_error(done, 1)
            return
        line = one_line_error(done, 1)
    else:
        line = one_line_error(pyrometer("report", path), 1)
    assert "permission denied" in line


def test_truncated_at_every_kind_of_place(good, tmp_path, scale):
    """Cut anywhere, what stands before the cut in whole chunks is read, and repair makes it whole."""
    whole = chunks(good)
    rng = random.Random(3)
    cuts = [HEADER, HEADER + 1, len(good) - 1, whole[-1][0], whole[-1][0] + 5, whole[len(whole) // 2][0] + 40]
    cuts += [rng.randrange(HEADER, len(good)) for _ in range(scale(10, 200))]
    full_samples = samples_of_bytes(good, tmp_path)
    for cut in cuts:
        path = tmp_path / "cut.pyro"
        path.write_bytes(good[:cut])
        done = pyrometer("verify", path, check=1)
        assert "damaged" in done.stdout, done.stdout
        for command in READERS[:2] + READERS[3:]:
            done = pyrometer(*command, path)
            assert done.returncode == 0, (cut, command, done.stderr)
        before = sum(1 for c in whole if c[2] <= cut and c[1] == 7)
        kept = samples_of(path)
        if before == sum(1 for c in whole if c[1] == 7):
            assert kept == full_samples
        elif before:
            assert 0 < kept < full_samples
        out = tmp_path / "repaired.pyro"
        done = pyrometer("verify", "--repair", "--force", "-o", out, path)
        if before:
            assert done.returncode == 0, done.stderr
            assert "whole" in Recording(out).verify().stdout
            assert samples_of(out) == kept
            tells_the_same(path, out)
        else:
            assert done.returncode in (0, 1)
        assert path.read_bytes() == good[:cut], "the original was touched"


def tells_the_same(damaged, repaired):
    """The copy is whole, but what its original had lost is missing in it all the same."""
    before, after = ([Recording(path).report()[key] for key in ("run", "losses", "total")] for path in (damaged, repaired))
    del before[0]["path"], after[0]["path"]
    before[1]["torn_bytes"] = 0  # these are gone
    missing = [losses.pop("missing_chunks") + losses.pop("damaged_chunks") for _, losses, _ in (before, after)]
    assert before == after and (missing[0] > 0) == (missing[1] > 0)


def samples_of(path):
    return sum(count for _, count in Recording(path).stacks())


def samples_of_bytes(data, tmp_path):
    (tmp_path / "full.pyro").write_bytes(data)
    return samples_of(tmp_path / "full.pyro")


def test_what_was_not_measured_by_the_cut_is_not_known(good, tmp_path):
    """Before its last counters the file does not know how the command ended: null, not zero."""
    counters = [c[0] for c in chunks(good) if c[1] == 8]
    assert len(counters) >= 2
    path = tmp_path / "x.pyro"
    path.write_bytes(good[:counters[-1]])
    info = Recording(path).info()
    assert info["stats"]["samples"] > 0 and info["run"]["finished"] is False
    for key in ("elapsed_seconds", "user_seconds", "system_seconds", "peak_rss_bytes", "exit_status"):
        assert info["run"][key] is None, key
    assert not re.search("^(elapsed_ns|exit_status)", pyrometer("info", path, check=0).stdout, re.M)
    path.write_bytes(good)
    run = Recording(path).info()["run"]
    assert run["exit_status"] == 0 and run["elapsed_seconds"] > 1 and run["peak_rss_bytes"] > 0


def test_cut_header(good, tmp_path):
    """There is nothing behind it that could be saved, and nobody is sent to try."""
    for cut in (1, 7, 8, 10, 20, 63):
        (tmp_path / "x.pyro").write_bytes(good[:cut])
        for command in READERS + [("verify", "--repair")]:
            line = one_line_error(pyrometer(*command, tmp_path / "x.pyro"), 1)
            assert "verify" not in line.partition(": ")[2], line
            assert cut < 8 or "cut off in its header" in line, line


def test_damaged_header(good, tmp_path):
    (tmp_path / "x.pyro").write_bytes(good[:30] + bytes([good[30] ^ 1]) + good[31:])
    for command in READERS + [("verify", "--repair")]:
        line = one_line_error(pyrometer(*command, tmp_path / "x.pyro"), 1)
        assert "header" in line and "verify" not in line.partition(": ")[2], line


def test_bit_flips(good, tmp_path, scale):
    """One bit changed anywhere: verify sees it, nobody crashes, and all other chunks are still there."""
    rng = random.Random(5)
    places = [rng.randrange(0, len(good)) for _ in range(scale(12, 500))]
    places += [c[0] + k for c in chunks(good)[:3] for k in (0, 4, 6, 8, 12, 13, 16, 20, 24)]
    for place in places:
        data = bytearray(good)
        data[place] ^= 1 << rng.randrange(8)
        path = tmp_path / "flip.pyro"
        path.write_bytes(data)
        done = pyrometer("verify", path)
        assert done.returncode == 1, "a flipped bit at %d went unseen: %s" % (place, done.stdout)
        if place < HEADER:
            one_line_error(pyrometer("report", path), 1)
            continue
        for command in READERS[:2] + READERS[3:]:
            assert pyrometer(*command, path).returncode in (0, 1)
        out = tmp_path / "repaired.pyro"
        pyrometer("verify", "--repair", "--force", "-o", out, path, check=0)
        others = [good[c[0] + CHUNK_HEADER:c[2]] for c in chunks(good) if not c[0] <= place < c[2] and c[1] != END]
        repaired = out.read_bytes()
        kept = [repaired[c[0] + CHUNK_HEADER:c[2]] for c in chunks(repaired) if c[1] != END]
        assert b"chunks_lost" in kept.pop()  # the copy's own: what it lacks
        assert kept == others, "a flipped bit at %d: %d of %d other chunks are there" % (place, len(kept), len(others))
        assert "a repaired copy" in Recording(out).verify().stdout  # also if what is kept refers to what is lost
        tells_the_same(path, out)


def test_views_say_that_something_is_missing(good, tmp_path):
    """A damaged recording is shown, and the view says so."""
    samples = [c for c in chunks(good) if c[1] == 7]
    data = bytearray(good)
    data[samples[len(samples) // 2][0] + CHUNK_HEADER + 3] ^= 0x55
    path = tmp_path / "x.pyro"
    path.write_bytes(data)
    done = pyrometer("report", path, check=0)
    assert "damaged" in done.stdout + done.stderr
    assert "verify" in done.stdout + done.stderr  # what to do
    lost = re.findall(r"^lost +(.*)$", pyrometer("info", path, check=0).stdout, re.M)
    assert len(lost) == 1 and "1 chunk damaged" in lost[0], lost


@pytest.mark.parametrize("command", [
    ("export", "collapsed"), ("export", "speedscope"), ("export", "pprof", "-o", "out.pb.gz"), ("export", "csv"), ("report", "--csv"),
    ("tree", "--csv"), ("lines", "--csv"), ("report",), ("info", "--json"),
], ids=" ".join)
@pytest.mark.parametrize("broken", ["payload", "frame"])
def test_damage_is_told_where_the_output_has_no_room_for_it(good, tmp_path, command, broken):
    samples = [c for c in chunks(good) if c[1] == 7]
    data = bytearray(good)
    data[samples[len(samples) // 2][0] + (CHUNK_HEADER + 3 if broken == "payload" else 1)] ^= 0x55
    (tmp_path / "x.pyro").write_bytes(data)
    (tmp_path / "good.pyro").write_bytes(good)
    done = pyrometer(*command, "x.pyro", check=0, cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and "damaged" in lines[0] and "1 chunk of it" in lines[0] and "verify" in lines[0], done.stderr
    again = ["again.gz" if word == "out.pb.gz" else word for word in command]
    assert not pyrometer(*again, "good.pyro", check=0, cwd=tmp_path).stderr


def test_repair_refuses_to_overwrite(good, tmp_path):
    path = tmp_path / "x.pyro"
    path.write_bytes(good[:-10])
    (tmp_path / "x-repaired.pyro").write_bytes(b"precious")
    one_line_error(pyrometer("verify", "--repair", path), 1)
    assert (tmp_path / "x-repaired.pyro").read_bytes() == b"precious"
    one_line_error(pyrometer("verify", "--repair", "--force", "-o", path, path), 1)
    assert path.read_bytes() == good[:-10]
    pyrometer("verify", "--repair", "--force", path, check=0)
    assert "whole" in Recording(tmp_path / "x-repaired.pyro").verify().stdout


def test_pipe_and_device(good, tmp_path):
    """Told at once: nobody waits for a writer, and nothing is read that could not be read again."""
    fifo = tmp_path / "fifo.pyro"
    os.mkfifo(fifo)
    for path in ("/dev/null", "/dev/zero", fifo):
        for command in READERS + [("diff", fifo)]:
            line = one_line_error(pyrometer(*command, path, timeout=60), 1)
            assert "pipe" in line and "save it to a file first" in line, line
    for command in READERS:
        done = pyrometer(*command, "/dev/stdin", stdin=None, input=good, text=False)
        assert done.returncode == 1 and b"save it to a file first" in done.stderr, done.stderr
        assert done.stderr.count(b"\n") == 1, done.stderr


def test_standard_input_that_is_a_file(good, tmp_path):
    (tmp_path / "x.pyro").write_bytes(good)
    with open(tmp_path / "x.pyro") as file:
        pyrometer("report", "/dev/stdin", stdin=file, check=0)

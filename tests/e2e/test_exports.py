"""Every export format, read back by a program that is not ours, and the totals of all of them compared.

flamegraph.pl comes with Debian's libdevel-nytprof-perl, callgrind_annotate with valgrind, dot with graphviz, pprof
with Go; speedscope's schema and page are fetched once from npm. What is not there is skipped by name.
"""
import csv
import gzip
import hashlib
import io
import json
import marshal
import os
import re
import shutil
import subprocess
import tarfile
import urllib.request

import pytest

from harness import PYROMETER, ROOT, Recording, default_python, one_line_error, pyrometer, record, spin_text, workload

FORMATS = ["collapsed", "speedscope", "callgrind", "pstats", "pprof", "json", "csv", "dot"]
FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"
SPEEDSCOPE = ("https://registry.npmjs.org/speedscope/-/speedscope-1.25.0.tgz",
              "2831f1e0d26df914b477e522d78b8485511495a6af81a0b88158f8b48f9e0d03")
CLOSE = 0.001
csv.field_size_limit(1 << 24)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Several threads and functions; deep enough to have calls."""
    path = tmp_path_factory.mktemp("exports") / "run.pyro"
    return record([default_python().path, workload("threads.py")], path, "--sample=1000")


@pytest.fixture(scope="module")
def total(recording):
    return recording.report()["total"]


def export(form, run, *options, text=True):
    return pyrometer("export", form, getattr(run, "path", run), *options, check=0, text=text).stdout


def close(a, b):
    return abs(a - b) <= CLOSE * max(abs(a), abs(b), 1e-9)


def tool(*names):
    for name in names:
        path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/go/bin:/usr/lib/go/bin")
        if path:
            return path
    pytest.skip("%s is not installed" % names[0])


def run(*command, **kwargs):
    done = subprocess.run(command, stdin=kwargs.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=240, **kwargs)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.decode("utf-8", "replace")


@pytest.fixture(scope="session")
def speedscope_package():
    """The folder of speedscope's release, from npm; kept in build."""
    folder = os.path.join(ROOT, "build", "npm", "speedscope-1.25.0")
    inside = os.path.join(folder, "package", "dist", "release")
    if not os.path.isdir(inside):
        try:
            with urllib.request.urlopen(SPEEDSCOPE[0], timeout=60) as answer:
                data = answer.read()
        except OSError as why:
            pytest.skip("speedscope cannot be fetched from npm: %s" % why)
        assert hashlib.sha256(data).hexdigest() == SPEEDSCOPE[1]
        made = folder + ".%d" % os.getpid()
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            tar.extractall(made)
        try:
            os.rename(made, folder)
        except OSError:  # another worker was quicker
            shutil.rmtree(made)
    return inside


# --- each by its own tool ---


def test_collapsed_by_flamegraph_pl(recording, tmp_path):
    if not os.path.exists(FLAMEGRAPH):
        pytest.skip("no flamegraph.pl: apt-get install libdevel-nytprof-perl")
    text = export("collapsed", recording)
    (tmp_path / "x").write_text(text, encoding="utf-8")
    svg = run(tool("perl"), FLAMEGRAPH, str(tmp_path / "x"))
    counted = sum(int(line.rpartition(" ")[2]) for line in text.splitlines())
    assert counted == recording.report()["samples"]
    shown = re.search(r"<title>all \(([\d,]+) samples, 100%\)", svg)
    assert shown and int(shown.group(1).replace(",", "")) == counted


def test_collapsed_in_time(recording, total):
    text = export("collapsed", recording, "--metric", "wall")
    assert close(sum(int(line.rpartition(" ")[2]) for line in text.splitlines()) / 1e6, total)


def check_speedscope(data):
    """What the schema does not say: indices in range, lists of one length, weights that add up."""
    frames = data["shared"]["frames"]
    for profile in data["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= f < len(frames) for sample in profile["samples"] for f in sample)
        assert close(sum(profile["weights"]), profile["endValue"])


def test_speedscope_by_its_schema(recording, total, speedscope_package):
    jsonschema = pytest.importorskip("jsonschema")
    data = json.loads(export("speedscope", recording))
    with open(os.path.join(speedscope_package, "file-format-schema.json"), encoding="utf-8") as f:
        jsonschema.validate(data, json.load(f))
    check_speedscope(data)
    threads = {r["name"] for r in recording.rows("--by", "thread")}
    assert {p["name"] for p in data["profiles"]} == threads and len(threads) > 1
    assert all(p["unit"] == "seconds" for p in data["profiles"])
    assert close(sum(sum(p["weights"]) for p in data["profiles"]), total)
    by_thread = {r["name"]: r["self"] for r in recording.rows("--by", "thread")}
    for profile in data["profiles"]:
        assert close(sum(profile["weights"]), by_thread[profile["name"]])


def test_speedscope_keeps_time(tmp_path):
    """What ran first stands first."""
    script = tmp_path / "x.py"
    script.write_text(spin_text("first", 0.3) + spin_text("second", 0.3))
    data = json.loads(export("speedscope", record([default_python().path, str(script)], tmp_path / "x.pyro")))
    names = [f["name"] for f in data["shared"]["frames"]]
    leaves = [names[s[-1]] for s in data["profiles"][0]["samples"]]
    seen = [n for n in leaves if n in ("first", "second")]
    assert seen and seen == sorted(seen) and len(set(seen)) == 2


@pytest.mark.once
def test_speedscope_by_its_page(recording, tmp_path, speedscope_package):
    """Its own page loads the file: the names of the functions reach the canvas's title."""
    browser = tool("chromium", "chromium-browser", "google-chrome")
    import base64
    data = base64.b64encode(export("speedscope", recording).encode()).decode()
    page = os.path.join(speedscope_package, "index.html")
    js = tmp_path / "profile.js"
    js.write_text("speedscope.loadFileFromBase64('run.speedscope.json', '%s')" % data)
    profile = tmp_path / "browser"
    out = run(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader",
              "--enable-unsafe-swiftshader", "--allow-file-access-from-files", "--user-data-dir=%s" % profile,
              "--virtual-time-budget=15000", "--dump-dom", "file://%s#localProfilePath=%s" % (page, js))
    assert "MainThread" in out, out[-1500:]
    assert "Something went wrong" not in out


def annotated_total(path):
    out = run(tool("callgrind_annotate"), "--threshold=100", "--auto=no", path)
    line = [x for x in out.splitlines() if x.endswith("PROGRAM TOTALS")][0]
    return [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) \(", line)], out


def test_callgrind_by_callgrind_annotate(recording, total, tmp_path):
    path = str(tmp_path / "callgrind.out")
    pyrometer("export", "callgrind", recording.path, "-o", path, check=0)
    (ns, samples), out = annotated_total(path)
    assert close(ns / 1e9, total) and samples == recording.report()["samples"]
    for row in recording.rows():
        if row["self_percent"] < 5:
            continue
        line = [x for x in out.splitlines() if x.endswith(":" + row["name"])]
        assert len(line) == 1, row["name"]
        assert close(int(line[0].split("(")[0].replace(",", "")) / 1e9, row["self"])
    inclusive = run(tool("callgrind_annotate"), "--threshold=100", "--auto=no", "--inclusive=yes", path)
    for row in recording.rows():
        if row["total_percent"] < 5 or row["total"] == row["self"]:
            continue
        line = [x for x in inclusive.splitlines() if x.endswith(":" + row["name"])]
        assert line and close(int(line[0].split("(")[0].replace(",", "")) / 1e9, row["total"]), row["name"]


@pytest.mark.once
def test_pprof_by_go(recording, total, tmp_path):
    go = tool("go", "golang-go")
    path = str(tmp_path / "x.pb.gz")
    pyrometer("export", "pprof", recording.path, "-o", path, check=0)
    # From 1.24 on Go compiles its tools when they are first used, which takes a minute: hence its own cache, where they stay.
    cache = run(go, "env", "GOCACHE").strip()
    env = dict(os.environ, HOME=str(tmp_path), GOCACHE=cache, GOFLAGS="-mod=mod", GOTOOLCHAIN="local", PPROF_TMPDIR=str(tmp_path))
    out = run(go, "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0", "-unit=ns", path, env=env)
    whole = re.search(r"Total samples = (\d+)ns", out)
    assert whole and close(int(whole.group(1)) / 1e9, total), out[:600]
    rows = {r["name"]: r for r in recording.rows() if r["self_percent"] >= 5}
    for line in out.splitlines():
        match = re.match(r"\s*(\d+)ns\s+\S+\s+\S+\s+(\d+)ns\s+\S+\s+(.*)$", line)
        if match and match.group(3) in rows:
            row = rows.pop(match.group(3))
            assert close(int(match.group(1)) / 1e9, row["self"]) and close(int(match.group(2)) / 1e9, row["total"])
    assert not rows, (sorted(rows), out[:2000])
    tags = run(go, "tool", "pprof", "-tags", path, env=env)
    assert "MainThread" in tags and "pid" in tags
    counts = run(go, "tool", "pprof", "-top", "-sample_index=samples", path, env=env)
    assert "Type: samples" in counts


def varints(data):
    at = 0
    while at < len(data):
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                break
        yield value, at


def fields(data):
    """(number, value) of a protobuf message: the wire format, as its specification has it."""
    at = 0
    while at < len(data):
        key, used = next(varints(data[at:at + 10]))
        at += used
        value, used = next(varints(data[at:at + 10]))
        at += used
        if key & 7 == 2:
            yield key >> 3, data[at:at + value]
            at += value
        else:
            assert key & 7 == 0, key
            yield key >> 3, value


def test_pprof_by_its_specification(recording, total):
    """Without Go: every id that is used is defined, string 0 is empty, values are two."""
    message = list(fields(gzip.decompress(export("pprof", recording, text=False))))
    strings = [v.decode("utf-8") for n, v in message if n == 6]
    locations = {dict(fields(v))[1] for n, v in message if n == 4}
    functions = {dict(fields(v))[1] for n, v in message if n == 5}
    assert strings[0] == "" and 0 not in locations | functions
    for n, v in message:
        if n == 4:
            assert dict(fields(dict(fields(v))[4]))[1] in functions
    weight = samples = 0
    for n, v in message:
        if n == 2:
            sample = list(fields(v))
            ids = [value for value, _ in varints(dict(sample)[1])]
            values = [value for value, _ in varints(dict(sample)[2])]
            assert ids and set(ids) <= locations and len(values) == 2
            samples += values[0]
            weight += values[1]
    assert close(weight / 1e9, total) and samples == recording.report()["samples"]


def test_pstats_of_samples(recording, total):
    """Counts are samples here; times and who calls whom are the report's."""
    stats = marshal.loads(export("pstats", recording, text=False))
    assert close(sum(v[2] for v in stats.values()), total)
    rows = {(r["file"] or "~", r["line"] or 0, r["name"].split(".")[-1]): r for r in recording.rows("--callers") if not r["special"]}
    for key, row in rows.items():
        assert close(stats[key][3], row["total"]) and stats[key][1] == row["total_samples"]
        assert len(stats[key][4]) == len(row["callers"])


def test_dot_by_graphviz(recording, tmp_path):
    path = str(tmp_path / "x.dot")
    pyrometer("export", "dot", recording.path, "-o", path, check=0)
    svg = run(tool("dot"), "-Tsvg", path)
    top = [r for r in recording.rows() if r["total_percent"] >= 5]
    assert top
    for row in top:
        assert row["name"].replace("<", "&lt;").replace(">", "&gt;") in svg
        assert "self %.1f %%" % row["self_percent"] in svg
    with open(path, encoding="utf-8") as f:
        assert re.match(r"// pyrometer .*left out: \d+ functions and \d+ calls", f.readline())


def test_json_adds_up(recording, total):
    data = json.loads(export("json", recording))
    assert data["format"] == "pyrometer-profile" and data["version"] == 1
    stacks = data["stacks"]
    assert len({len(stacks[k]) for k in ("parent", "frame", "line")}) == 1
    assert all(p < i for i, p in enumerate(stacks["parent"]) if i)
    assert all(f < len(data["frames"]) for f in stacks["frame"])
    rows = [s for t in data["threads"] for s in t["samples"]]
    assert all(s[0] < len(stacks["parent"]) for s in rows)
    assert sum(s[1] for s in rows) == data["samples"] == recording.report()["samples"]
    assert sum(s[2] for s in rows) == data["total_weight"]
    assert close(data["total"], total) and close(data["total_weight"] * data["scale"], total)


def test_csv_is_the_report(recording, total):
    rows = list(csv.DictReader(io.StringIO(export("csv", recording))))
    assert close(sum(float(r["self"]) for r in rows), total)
    report = {(r["name"], r["file"] or "", r["line"]): r for r in recording.rows()}
    assert len(rows) == len(report)
    for row in rows:
        same = report[row["name"], row["file"], int(row["line"]) if row["line"] else None]
        assert close(float(row["self"]), same["self"]) and close(float(row["total"]), same["total"])
        assert int(row["samples"]) == same["samples"]


# --- filters, files ---


@pytest.mark.parametrize("form", FORMATS)
def test_a_thread_alone(recording, form):
    """The filters that report has; what they leave out is not named in the file."""
    whole, part = export(form, recording, text=False), export(form, recording, "--thread", "MainThread", text=False)
    assert part and len(part) < len(whole) or form in ("json", "dot")


@pytest.mark.parametrize("form", FORMATS)
def test_output_paths(recording, form, tmp_path):
    one_line_error(pyrometer("export", form, recording.path, "-o", tmp_path), 1)
    one_line_error(pyrometer("export", form, recording.path, "-o", tmp_path / "no" / "x"), 1)
    path = tmp_path / "there"
    path.write_text("mine")
    one_line_error(pyrometer("export", form, recording.path, "-o", path), 1)
    assert path.read_text() == "mine"
    pyrometer("export", form, recording.path, "-o", path, "--force", check=0)
    assert path.read_bytes() == export(form, recording, text=False)
    with open("/dev/full", "wb") as full:
        done = pyrometer("export", form, recording.path, stdout=full)
    assert done.returncode == 1 and "no space left" in done.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names(form, tmp_path):
    """Control characters, quotes, HTML, right-to-left marks, a megabyte: a file that is still of its format."""
    evil = ['a\x01b\x1b[31m', '"quo\\ted"', "<script>alert(1)</script>", "\u202egnp.exe", "x" * 1000000, "a,b", "100% %s %n"]
    source = tmp_path / "evil.json"
    source.write_text(json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": n, "file": n + "/\n.py", "line": 3} for n in evil]},
        "profiles": [{"type": "sampled", "name": "<b>&", "unit": "milliseconds", "startValue": 0, "endValue": 70,
                      "samples": [[0, i] for i in range(len(evil))], "weights": [10] * len(evil)}]}), encoding="utf-8")
    out = export(form, source, text=False)
    if form in ("speedscope", "json"):
        data = json.loads(out)
        names = {f["name"] for f in (data["shared"] if form == "speedscope" else data)["frames"]}
        assert set(evil) <= names
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(out.decode(), newline="")))
        assert {r["name"] for r in rows} == set(evil)
    elif form == "pprof":
        strings = [v.decode("utf-8") for n, v in fields(gzip.decompress(out)) if n == 6]
        assert set(evil) <= set(strings)
    elif form == "collapsed":
        assert sum(int(line.rpartition(" ")[2]) for line in out.decode().splitlines()) == 70000
    elif form == "callgrind":
        (tmp_path / "c").write_bytes(out)
        assert annotated_total(str(tmp_path / "c"))[0][0] == 70000000
    elif form == "pstats":
        assert {key[2] for key in marshal.loads(out)} == set(evil)
    else:
        (tmp_path / "d").write_bytes(out)
        run(tool("dot"), "-Tsvg", str(tmp_path / "d"))


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_to_export(form, tmp_path):
    """A recording without a sample is a valid file of nothing."""
    run_ = record(["true"], tmp_path / "x.pyro", check=0)
    out = export(form, run_, text=False)
    if form in ("speedscope", "json"):
        json.loads(out)
    elif form == "pprof":
        gzip.decompress(out)
    elif form == "pstats":
        assert marshal.loads(out) == {}
    assert form == "collapsed" or out


def test_streaming(recording):
    """The memory of an export is that of the tables: measured in bench; here, that no format fails on a pipe."""
    for form in FORMATS:
        with subprocess.Popen([PYROMETER, "export", form, recording.path],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
            p.stdout.read(1)
            p.stdout.close()
            assert p.stderr.read() == b""


def test_formats_are_documented():
    with open(os.path.join(ROOT, "docs", "man", "pyrometer-export.md"), encoding="utf-8") as f:
        text = f.read()
    for form in FORMATS:
        assert "- **%s**" % form in text
    line = one_line_error(pyrometer("export", "nonsense"), 2)
    assert all(form in line for form in FORMATS)


def test_export_of_an_export_agrees(recording, total, tmp_path):
    """Out and in again: the totals stay."""
    for form in ("collapsed", "speedscope"):
        path = tmp_path / form
        pyrometer("export", form, recording.path, "-o", path, "--metric", "wall", check=0)
        again = Recording(path)
        scale = 1e-6 if form == "collapsed" else 1
        assert close(again.report()["total"] * scale, total)
        theirs = {}
        for row in recording.rows():
            theirs[row["name"], row["file"]] = theirs.get((row["name"], row["file"]), 0) + row["self"]
        for row in again.rows():
            assert abs(row["self"] * scale - theirs[row["name"], row["file"]]) < 1e-4, row

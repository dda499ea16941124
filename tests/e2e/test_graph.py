"""`graph`: the numbers in the picture, recursion, pruning, hostile names, refusals; each kind of file by a reader that is
not ours: .svg as XML and in Chromium, .png by the decoder below and in Chromium, .dot by graphviz.
"""
import cProfile
import json
import os
import pstats
import re
import shutil
import signal
import struct
import subprocess
import xml.etree.ElementTree as ElementTree
import zlib

import pytest

import harness
from browser import EVIL
from harness import one_line_error, pyrometer, record, workload

SVG = "{http://www.w3.org/2000/svg}"
KINDS = ["svg", "png", "dot"]

KNOWN = """
import time
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def hot():
    spin(0.4)
def cold():
    spin(0.1)
def fall(n):
    spin(0.02)
    if n:
        fall(n - 1)
def even(n):
    spin(0.02)
    if n:
        odd(n - 1)
def odd(n):
    spin(0.02)
    if n:
        even(n - 1)
def work():
    hot()
    cold()
    fall(6)
    even(6)
work()
"""


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    program = folder / "known.py"
    program.write_text(KNOWN)
    return record([harness.default_python().path, str(program)], folder / "known.pyro")


def graph(run, output, *options, check=0):
    pyrometer("graph", getattr(run, "path", run), "-o", output, *options, check=check)
    return str(output)


def collapsed(tmp_path, *lines):
    path = tmp_path / "stacks.collapsed"
    path.write_text("".join(line + "\n" for line in lines))
    return str(path)


class Picture:
    """What a .svg says: boxes {id: {"name", "tip", "total", "self"}} and arrows [(from, to, tip)]."""

    def __init__(self, path):
        self.root = ElementTree.parse(path).getroot()
        self.boxes = {}
        for g in self.root.find(".//%sg[@id='boxes']" % SVG):
            tip = g.find(SVG + "title").text
            texts = [t.text for t in g.findall(SVG + "text")]
            shares = [t for t in texts if re.match(r"total [\d.]+ %  self [\d.]+ %$", t)]
            assert len(shares) == 1, texts
            total, own = (float(x) for x in re.findall(r"([\d.]+) %", shares[0]))
            self.boxes[int(g.get("data-id"))] = {"name": tip.split("\n")[0], "tip": tip, "total": total, "self": own,
                                                 "texts": texts, "class": g.get("class"), "rect": g.find(SVG + "rect")}
        self.arrows = [(int(g.get("data-from")), int(g.get("data-to")), g) for g in self.root.find(".//%sg[@id='arrows']" % SVG)]
        self.text = "\n".join(t.text or "" for t in self.root.iter(SVG + "text"))

    def box(self, name):
        found = [b for b in self.boxes.values() if b["name"] == name]
        assert len(found) == 1, (name, [b["name"] for b in self.boxes.values()])
        return found[0]

    def calls(self):
        return {(self.boxes[a]["name"], self.boxes[b]["name"]) for a, b, _ in self.arrows}

    def arrow(self, caller, callee):
        found = [g for a, b, g in self.arrows if (self.boxes[a]["name"], self.boxes[b]["name"]) == (caller, callee)]
        assert len(found) == 1, (caller, callee)
        return found[0]


def read_png(path):
    """(width, height, rows of RGB bytes), by the specification: every checksum and filter is looked at."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, names, packed = 8, [], b""
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(name + body)
        names.append(name)
        if name == b"IHDR":
            width, height, bits, colour, method, filters, interlace = struct.unpack(">IIBBBBB", body)
        elif name == b"IDAT":
            packed += body
        at += 12 + length
    assert names[0] == b"IHDR" and names[-1] == b"IEND" and set(names) == {b"IHDR", b"IDAT", b"IEND"}
    assert (bits, colour, method, filters, interlace) == (8, 2, 0, 0, 0)
    raw = zlib.decompress(packed)
    size = 3 * width
    assert len(raw) == height * (size + 1)
    rows, above = [], bytearray(size)
    for y in range(height):
        line = bytearray(raw[y * (size + 1) + 1:(y + 1) * (size + 1)])
        assert raw[y * (size + 1)] == 2  # Up
        above = bytearray((a + b) & 255 for a, b in zip(line, above))
        rows.append(above)
    return width, height, rows


# --- the numbers ---


@pytest.mark.parametrize("filters", [[], ["--metric", "cpu"], ["--include", "hot"], ["--exclude", "hot"], ["--range", "0.1:0.5"]],
                         ids=lambda f: " ".join(f) or "none")
def test_boxes_are_the_reports_rows(known, tmp_path, filters):
    picture = Picture(graph(known, tmp_path / "x.svg", "--min-percent", "0", *filters))
    rows = known.rows(*filters)
    assert len(picture.boxes) == len([r for r in rows if r["total"]])
    for row in rows:
        if sum(r["name"] == row["name"] for r in rows) > 1 or not row["total"]:
            continue
        box = picture.box(row["name"])
        assert box["total"] == pytest.approx(row["total_percent"], abs=0.06)
        assert box["self"] == pytest.approx(row["self_percent"], abs=0.06)
    assert ("only " in picture.text) == bool(filters and filters[0] != "--metric")


def test_arrows_are_the_reports_callees(known, tmp_path):
    picture = Picture(graph(known, tmp_path / "x.svg", "--min-percent", "0", "--min-edge-percent", "0"))
    assert {("work", "hot"), ("work", "cold"), ("hot", "spin"), ("fall", "fall"), ("even", "odd"), ("odd", "even")} <= picture.calls()
    whole = known.report()["total"]
    rows = known.report("--callees")["rows"]
    alone = {r["name"] for r in rows if sum(x["name"] == r["name"] for x in rows) == 1}
    for row in rows:
        for callee in row["callees"]:
            if row["name"] not in alone or callee["name"] not in alone:
                continue  # there are several <module>
            label = picture.arrow(row["name"], callee["name"]).find(SVG + "text").text
            assert float(label.split(" %")[0]) == pytest.approx(100 * callee["total"] / whole, abs=0.06)


def test_recursion_is_drawn_as_such(known, tmp_path):
    picture = Picture(graph(known, tmp_path / "x.svg"))
    loop = picture.arrow("fall", "fall")
    assert "r" in loop.get("class").split() and "recursion" in loop.find(SVG + "title").text
    circle = [picture.arrow("even", "odd"), picture.arrow("odd", "even")]
    assert all("recursion" in g.find(SVG + "title").text for g in circle)
    assert sum("r" in g.get("class").split() for g in circle) == 1  # one of the two leads back up
    assert "c" in picture.box("even")["class"].split() and "c" in picture.box("odd")["class"].split()
    assert "c" not in picture.box("fall")["class"].split() and "recursion" in picture.text
    assert picture.box("fall")["total"] <= 100
    assert "style=dashed" in open(graph(known, tmp_path / "x.dot")).read()
    plain = Picture(graph(collapsed(tmp_path, "a;b 1", "a;c 2"), tmp_path / "plain.svg"))
    assert "recursion" not in plain.text


def test_pruning_says_what_it_left(tmp_path):
    lines = ["main;big 900"] + ["main;small%d %d" % (i, i % 3 + 1) for i in range(30)]
    whole = 900 + sum(i % 3 + 1 for i in range(30))
    run = collapsed(tmp_path, *lines)
    picture = Picture(graph(run, tmp_path / "x.svg"))
    assert {b["name"] for b in picture.boxes.values()} == {"main", "big"}
    assert ("left out: 30 functions below 0.5 %% of the whole; together they took %.1f %% themselves" % (100 * 60 / whole)
            in picture.text), picture.text
    everything = Picture(graph(run, tmp_path / "y.svg", "--min-percent", "0"))
    assert len(everything.boxes) == 32 and "left out" not in everything.text
    few = Picture(graph(run, tmp_path / "z.svg", "--min-percent", "0", "--limit", "5"))
    assert len(few.boxes) == 5 and "left out: 27 functions, each at most 0.312 %" in few.text
    no_calls = Picture(graph(run, tmp_path / "e.svg", "--min-percent", "0", "--min-edge-percent", "50"))
    assert len(no_calls.arrows) == 1 and "left out: 30 calls" in no_calls.text
    head = open(graph(run, tmp_path / "x.dot"), encoding="utf-8").readline()
    assert "left out: 30 functions and 0 calls" in head


def test_counted_calls_are_shown(tmp_path):
    def leaf():
        return sum(range(1000))

    def fall(n):
        leaf()
        return fall(n - 1) if n else 0

    profile = cProfile.Profile()
    profile.enable()
    for _ in range(12):
        fall(9)
    profile.disable()
    profile.dump_stats(tmp_path / "x.prof")
    counts = {name: (calls, primitive) for (_, _, name), (primitive, calls, _, _, _) in pstats.Stats(profile).stats.items()}
    assert counts["fall"] == (120, 12)
    picture = Picture(graph(tmp_path / "x.prof", tmp_path / "x.svg", "--min-percent", "0", "--min-edge-percent", "0"))
    assert "120 / 12×" in picture.box("fall")["texts"] and "120×" in picture.box("leaf")["texts"]
    assert picture.arrow("fall", "leaf").find(SVG + "text").text.endswith(" 120×")
    assert picture.arrow("fall", "fall").find(SVG + "text").text.endswith(" 108×")
    assert "120×" in open(graph(tmp_path / "x.prof", tmp_path / "x.dot"), encoding="utf-8").read()
    assert " calls" in picture.text


def test_exact_calls_are_shown(default_python, tmp_path):
    recording = record([default_python.path, workload("calls_known.py")], tmp_path / "x.pyro", "--calls")
    picture = Picture(graph(recording, tmp_path / "x.svg", "--min-percent", "0", "--min-edge-percent", "0", "--metric", "raw"))
    assert "177 / 1×" in picture.box("fib")["texts"] and "15×" in picture.box("leaf")["texts"]
    assert picture.arrow("shared", "leaf").find(SVG + "text").text.endswith(" 15×")
    assert picture.arrow("fib", "fib").find(SVG + "text").text.endswith(" 176×")
    assert picture.arrow("by_length", "<built-in method builtins.len>").find(SVG + "text").text.endswith(" 9×")


def test_modules_stand_together(tmp_path):
    lines = ["main (/x/app.py);a%d (/x/%s.py);b%d (/x/%s.py) 10" % (i, m, i, m) for i, m in enumerate(["one", "two"] * 4)]
    run = collapsed(tmp_path, *lines)
    picture = Picture(graph(run, tmp_path / "x.svg"))
    names = [t.text for t in picture.root.iter(SVG + "text") if t.get("class") == "module"]
    assert set(names) == {"one", "two"}
    plain = Picture(graph(run, tmp_path / "y.svg", "--no-clusters"))
    assert not [t for t in plain.root.iter(SVG + "text") if t.get("class") == "module"]
    dot = open(graph(run, tmp_path / "x.dot")).read()
    assert dot.count("subgraph cluster_") == 3 and 'label="two"' in dot
    assert "subgraph" not in open(graph(run, tmp_path / "y.dot", "--no-clusters")).read()


def test_boxes_never_overlap(known, tmp_path):
    picture = Picture(graph(known, tmp_path / "x.svg", "--min-percent", "0"))
    rects = [[float(b["rect"].get(k)) for k in ("x", "y", "width", "height")] for b in picture.boxes.values()]
    for i, (x, y, w, h) in enumerate(rects):
        for x2, y2, w2, h2 in rects[:i]:
            assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


# --- the kinds ---


def test_the_same_every_time(known, tmp_path):
    for kind in KINDS:
        a, b = graph(known, tmp_path / ("a." + kind)), graph(known, tmp_path / ("b." + kind))
        assert open(a, "rb").read() == open(b, "rb").read()


def test_png_is_a_picture(known, tmp_path):
    svg = Picture(graph(known, tmp_path / "x.svg"))
    width, height, rows = read_png(graph(known, tmp_path / "x.png", "--scale", "1"))
    assert (width, height) == (int(svg.root.get("width")), int(svg.root.get("height")))
    for box in svg.boxes.values():  # filled as the .svg says, at its lower left corner
        rect = box["rect"]
        x, y = int(float(rect.get("x"))) + 6, int(float(rect.get("y")) + float(rect.get("height"))) - 4
        assert bytes(rows[y][3 * x:3 * x + 3]).hex() == rect.get("fill")[1:], box["name"]
        dark = sum(rows[yy][3 * xx] < 110 for yy in range(y - 40, y) for xx in range(x, x + 80))
        assert dark > 40, "no text in " + box["name"]
    twice = read_png(graph(known, tmp_path / "y.png"))
    assert (twice[0], twice[1]) == (2 * width, 2 * height)


def test_a_large_png_is_scaled_down(tmp_path):
    run = collapsed(tmp_path, ";".join("f%d" % i for i in range(1500)) + " 5")
    done = pyrometer("graph", run, "-o", tmp_path / "x.png", "--limit", "5000", "--scale", "8", check=0)
    assert "scale" in done.stderr and len(done.stderr.splitlines()) == 1
    width, height = struct.unpack(">II", open(tmp_path / "x.png", "rb").read()[16:24])
    assert width < height <= 32000 and width * height <= 48e6


def test_dot_by_graphviz(known, tmp_path):
    if not shutil.which("dot"):
        pytest.skip("no graphviz")
    done = subprocess.run(["dot", "-Tsvg", graph(known, tmp_path / "x.dot")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    titles = [t.text for t in ElementTree.fromstring(done.stdout).iter(SVG + "text")]
    assert {"work", "hot", "fall"} <= set(titles) and done.stderr == b""


def test_export_dot_is_the_same(known, tmp_path):
    exported = pyrometer("export", "dot", known.path, check=0).stdout
    assert open(graph(known, tmp_path / "x.dot"), encoding="utf-8").read() == exported


# --- hostile names ---


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A speedscope file: its names can be anything."""
    names = EVIL + ["m" * 1000000, "", " ", "\\N\\G\"", "caf\u00e9 \u4e2d\u6587 \U0001f525", "\ufffe\uffff"]
    frames = [{"name": n, "file": "/tmp/" + n[:5000] + ".py", "line": 7} for n in names] + [{"name": "root"}]
    stacks = [[len(names), i, (i + 1) % len(names)] for i in range(len(names))]
    path = tmp_path_factory.mktemp("hostile") / "x.speedscope.json"
    path.write_text(json.dumps({
        "$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames},
        "profiles": [{"type": "sampled", "name": "t", "unit": "seconds", "startValue": 0, "endValue": len(stacks),
                      "samples": stacks, "weights": [1.0] * len(stacks)}]}))
    return str(path)


def test_hostile_names_are_text(hostile, tmp_path):
    path = graph(hostile, tmp_path / "x.svg", "--title", EVIL[2])
    raw = open(path, "rb").read()
    assert raw.count(b"<script") == 1 and raw.count(b"</script>") == 1 and b"<img" not in raw and len(raw) < 1e6
    assert not re.search("[\0-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u2028\u2029]", raw.decode("utf-8"))
    names = {b["name"] for b in Picture(path).boxes.values()}
    for evil in EVIL[:5] + [EVIL[6], EVIL[9]]:
        assert evil in names, evil
    assert "\\u202etxt.exe\\u202c" in names
    read_png(graph(hostile, tmp_path / "x.png", "--title", EVIL[7].replace("\0", ""), "--scale", "0.5"))
    dot = graph(hostile, tmp_path / "x.dot", "--title", EVIL[1])
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", dot], stdout=subprocess.DEVNULL, check=True)


# --- odd shapes ---


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lines", [
    ["only 1"], ["a;a;a;a 1"], ["a;b;a;b;c;a 3", "c;b;a 2"], [";".join("f%d" % i for i in range(3000)) + " 5"],
    ["r;" + ";".join(["x", "y"] * 3000) + " 1"], ["main;leaf%d 1" % i for i in range(400)], ["alone%d 1" % i for i in range(300)],
    ["f%d;f%d;f%d %d" % (i % 37, i * 7 % 41, i * i % 43, i % 5 + 1) for i in range(900)],
], ids=["one", "loop", "circle", "deep", "pair", "star", "parts", "tangle"])
def test_odd_shapes(tmp_path, kind, lines):
    out = graph(collapsed(tmp_path, *lines), tmp_path / ("x." + kind), "--min-percent", "0", *(["--scale", "0.3"] if kind == "png" else []))
    if kind == "svg":
        assert Picture(out).boxes
    elif kind == "png":
        read_png(out)


def test_a_recording_without_source_and_torn(known, tmp_path):
    whole = open(known.path, "rb").read()
    (tmp_path / "torn.pyro").write_bytes(whole[:len(whole) * 2 // 3])
    for kind in KINDS:
        done = pyrometer("graph", tmp_path / "torn.pyro", "-o", tmp_path / ("x." + kind))
        assert done.returncode in (0, 1) and done.stderr, done.stderr
        assert (done.returncode == 0) == (tmp_path / ("x." + kind)).exists()


def test_recursion_workload(python, tmp_path):
    run = record([python.path, workload("recursion.py")], tmp_path / "x.pyro")
    picture = Picture(graph(run, tmp_path / "x.svg"))
    assert {("even", "odd"), ("odd", "even")} <= picture.calls()
    assert "c" in picture.box("even")["class"].split()


# --- refusals ---


def refused(*args, status):
    return one_line_error(pyrometer("graph", *args), status)


def test_refusals_of_the_command_line(known, tmp_path):
    out = tmp_path / "x.svg"
    assert "-o" in refused(known.path, status=2)
    assert ".svg, .png or .dot" in refused(known.path, "-o", tmp_path / "x.pdf", status=2)
    assert "one RUN" in refused(known.path, known.path, "-o", out, status=2)
    assert "0 and 100" in refused("--min-percent", "101", known.path, "-o", out, status=2)
    assert "0 and 100" in refused("--min-edge-percent", "101", known.path, "-o", out, status=2)
    assert "--limit 0" in refused("--limit", "0", known.path, "-o", out, status=2)
    assert "--scale" in refused("--scale", "3", known.path, "-o", out, status=2)
    assert "--scale 9" in refused("--scale", "9", known.path, "-o", tmp_path / "x.png", status=2)
    assert "wall" in refused("--metric", "pages", known.path, "-o", out, status=2)
    assert not out.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_of_the_output(known, tmp_path, kind):
    out = tmp_path / ("x." + kind)
    out.write_text("mine")
    assert "--force" in refused(known.path, "-o", out, status=1)
    assert out.read_text() == "mine"
    graph(known, out, "--force")
    assert out.stat().st_size > 1000
    (tmp_path / ("dir." + kind)).mkdir()
    assert "directory" in refused(known.path, "--force", "-o", tmp_path / ("dir." + kind), status=1)
    assert "no such file" in refused(known.path, "-o", tmp_path / "none" / ("x." + kind), status=1)
    copy = tmp_path / ("run." + kind)
    shutil.copy(known.path, copy)
    assert "recording itself" in refused(copy, "--force", "-o", copy, status=1)
    if os.path.exists("/dev/full"):
        (tmp_path / ("full." + kind)).symlink_to("/dev/full")
        assert "no space" in refused(known.path, "--force", "-o", tmp_path / ("full." + kind), status=1)
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        assert "permission" in refused(known.path, "-o", tmp_path / "closed" / ("x." + kind), status=1)


def test_a_reader_who_went_away(known, tmp_path):
    fifo = tmp_path / "x.svg"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["head", "-c", "10", fifo], stdout=subprocess.DEVNULL)
    done = subprocess.run([harness.PYROMETER, "graph", known.path, "--force", "-o", fifo], stderr=subprocess.PIPE, encoding="utf-8")
    reader.wait()
    assert done.returncode in (0, 1, -signal.SIGPIPE) and len(done.stderr.splitlines()) <= 1


def test_nothing_to_draw(known, tmp_path):
    out = tmp_path / "x.svg"
    assert "no recordings" in refused("-o", out, status=1)
    assert "no thread" in refused(known.path, "--thread", "nobody", "-o", out, status=1)
    assert "no samples" in refused(known.path, "--include", "nobody_is_called_this", "-o", out, status=1)
    assert "--min-percent" in refused(collapsed(tmp_path, "a 1", "b 1"), "--min-percent", "90", "-o", out, status=1)
    (tmp_path / "empty.pyro").write_bytes(b"")
    assert "empty" in refused(tmp_path / "empty.pyro", "-o", out, status=1)
    (tmp_path / "noise.pyro").write_bytes(b"\x7f\x00noise" * 100)
    refused(tmp_path / "noise.pyro", "-o", out, status=1)
    assert not out.exists()


# --- in a browser ---


def test_svg_in_the_browser(browser, known, tmp_path):
    browser.open(graph(known, tmp_path / "x.svg"))
    hot = browser.js("return graph.boxes.find((b) => b.all.startsWith('hot\\n')).id")
    browser.js("graph.boxes[arguments[0]].g.querySelector('rect').dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))", hot)
    dim = browser.js("return graph.boxes.filter((b) => b.g.classList.contains('dim')).map((b) => b.all.split('\\n')[0])")
    assert "cold" in dim and not {"hot", "work", "spin"} & set(dim)
    browser.js("graph.show(null)")
    assert browser.js("return document.querySelectorAll('.dim').length") == 0
    assert browser.js("return graph.search('^hot')") == 1 and browser.text("search") == "1 found"
    assert browser.js("return graph.search('([')") == 0
    for name in ("hot", "work"):  # names fit into their boxes
        inside = browser.js("""const g = graph.boxes.find((b) => b.all.startsWith(arguments[0] + '\\n')).g;
            const box = g.querySelector('rect').getBoundingClientRect();
            return Array.from(g.querySelectorAll('text'), (t) => t.getBoundingClientRect()).every((r) => r.left >= box.left && r.right <= box.right)""", name)
        assert inside
    browser.quiet()


def test_hostile_names_do_nothing(browser, hostile, tmp_path):
    browser.open(graph(hostile, tmp_path / "x.svg", "--title", EVIL[1]))
    browser.js("graph.search('script|img')")
    assert browser.js("return document.querySelectorAll('img').length") == 0
    assert browser.js("return window.pwned === undefined")
    browser.quiet()


def test_as_images(browser, known, tmp_path):
    width = int(Picture(graph(known, tmp_path / "a.svg")).root.get("width"))
    graph(known, tmp_path / "b.png")
    (tmp_path / "x.html").write_text("<!DOCTYPE html><img src=a.svg><img src=b.png>")
    browser.open(tmp_path / "x.html")
    assert browser.js("return Array.from(document.images, (i) => [i.complete, i.naturalWidth])") == [[True, width], [True, 2 * width]]
    browser.logs()

"""`flame`: the file itself (sums, escaping, sizes, refusals), and the picture in a real browser.

The browser is Chromium, headless, driven through chromedriver; without it those tests are skipped by name.
Every page is loaded with a log of its console and of its network: both must stay empty.
"""
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

import harness
from browser import EVIL
from harness import one_line_error, pyrometer, record

ROOT = harness.ROOT
SVG = "{http://www.w3.org/2000/svg}"
MODES = [[], ["--bottom-up"], ["--by-line"], ["--by-thread"], ["--by-time"], ["--color", "heat"]]

KNOWN = """
import threading, time
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def hot():
    spin(0.4)
def cold():
    spin(0.1)
def work():
    hot()
    cold()
thread = threading.Thread(target=work, name="helper")
thread.start()
work()
thread.join()
"""

HOSTILE = """
import time
NAMES = %r
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
for name in NAMES:
    source = "def f(spin):\\n    spin(0.06)\\n"
    code = compile(source, "/tmp/" + name[:200].replace("\\0", "") + ".py", "exec")
    space = {}
    exec(code, space)
    f = space["f"]
    names = {"co_name": name}
    if hasattr(f.__code__, "co_qualname"):
        names["co_qualname"] = name
    f.__code__ = f.__code__.replace(**names)
    f(spin)
"""


# --- recordings, made once ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("flame")


@pytest.fixture(scope="module")
def known(folder):
    program = folder / "known.py"
    program.write_text(KNOWN)
    return record([harness.default_python().path, str(program)], folder / "known.pyro")


@pytest.fixture(scope="module")
def hostile(folder):
    program = folder / "hostile.py"
    program.write_text(HOSTILE % (EVIL,))
    return record([harness.default_python().path, str(program)], folder / "hostile.pyro")


def flame(run, output, *options, check=0):
    pyrometer("flame", run if isinstance(run, str) else run.path, "-o", output, *options, check=check)
    return str(output)


def data_of(path):
    """The data that a page carries, as its script reads it."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert len(found) == 1
    return json.loads(found[0])


def labels_of(data):
    return [label[0] for label in data["labels"]]


# --- sums ---


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
@pytest.mark.parametrize("metric", ["wall", "cpu"])
def test_the_whole_is_the_reports(known, tmp_path, mode, metric):
    report = known.report("--metric", metric)
    data = data_of(flame(known, tmp_path / "x.html", "--metric", metric, *mode))
    assert data["whole"] * 1e-9 == pytest.approx(report["total"], rel=1e-9)
    assert data["wholeSamples"] == report["samples"]
    if data["kind"] == "time":
        assert sum(lane[2] for lane in data["lanes"]) == data["whole"]
    if not data["folded"] or data["kind"] == "tree":
        assert sum(data["self"]) == data["whole"]
        assert sum(data["samples"]) == data["wholeSamples"]


def test_selves_are_the_reports(known, tmp_path):
    data = data_of(flame(known, tmp_path / "x.html"))
    selves = {}
    for label, own in zip(data["label"], data["self"]):
        selves[labels_of(data)[label]] = selves.get(labels_of(data)[label], 0) + own * 1e-9
    for row in known.rows():
        if row["self"]:
            assert selves[row["name"]] == pytest.approx(sum(r["self"] for r in known.rows() if r["name"] == row["name"]), rel=1e-9)


@pytest.mark.parametrize("filters", [["--thread", "helper"], ["--include", "hot"], ["--exclude", "hot"], ["--range", "0.1:0.3"]],
                         ids=" ".join)
@pytest.mark.parametrize("mode", [[], ["--by-thread"], ["--by-time"], ["--bottom-up"]], ids=" ".join)
def test_filters_mean_the_same(known, tmp_path, mode, filters):
    report = known.report(*filters)
    data = data_of(flame(known, tmp_path / "x.html", *mode, *filters))
    assert data["whole"] * 1e-9 == pytest.approx(report["total"], rel=1e-9)
    assert any(fact.startswith("only ") for fact in data["facts"])
    if mode == ["--by-thread"] or mode == ["--by-time"]:
        whole = sum(lane[2] for lane in data["lanes"]) if mode == ["--by-time"] else sum(data["self"])
        assert whole == data["whole"]


def test_threads_are_a_level(known, tmp_path):
    data = data_of(flame(known, tmp_path / "x.html", "--by-thread"))
    first = [labels_of(data)[label] for label, depth in zip(data["label"], data["depth"]) if depth == 1]
    assert set(first) == {"MainThread", "helper"}
    lanes = [lane[0] for lane in data_of(flame(known, tmp_path / "y.html", "--by-time"))["lanes"]]
    assert set(lanes) == {"MainThread", "helper"}


def test_order_of_time(known, tmp_path):
    """hot comes before cold in each thread, whatever weighs more."""
    data = data_of(flame(known, tmp_path / "x.html", "--by-time"))
    names = labels_of(data)
    for lane in range(len(data["lanes"])):
        starts = {}
        for label, at, start in zip(data["label"], data["lane"], data["start"]):
            if at == lane:
                starts.setdefault(names[label], start)
        assert starts["work"] <= starts["hot"] < starts["cold"]


def test_diff_with_itself(known, tmp_path):
    out = tmp_path / "diff.html"
    pyrometer("flame", "--diff", known.path, known.path, "-o", out, check=0)
    data = data_of(out)
    assert data["diff"] and data["colour"] == "change"
    assert data["self"] == data["before"] and data["whole"] == data["wholeBefore"]


def test_svg_widths(known, tmp_path):
    tree = ElementTree.parse(flame(known, tmp_path / "x.svg"))
    blocks = tree.find(".//%sg[@id='blocks']" % SVG)
    widths = {}
    for g in blocks:
        name = g.find(SVG + "title").text.split("\n")[0]
        widths.setdefault(name, float(g.find(SVG + "rect").get("width")))
    row = known.row("work")
    assert widths["work"] <= widths["all"] == pytest.approx(1200 - 24)
    assert sum(float(g.find(SVG + "rect").get("width")) for g in blocks if g.find(SVG + "title").text.startswith("work\n")) == pytest.approx(
        widths["all"] * row["total"] / known.report()["total"], rel=1e-3)


# --- levels of detail ---


def test_many_stacks_fold(tmp_path):
    """More distinct stacks than blocks: the file stays small, says what it folded, and the sums hold."""
    stacks = tmp_path / "many.collapsed"
    with open(stacks, "w") as f:
        for i in range(200000):
            f.write("main;a%d;b%d;c%d;d%d %d\n" % (i % 7, i % 331, i // 331 % 331, i, 1 + i % 5))
    total = sum(1 + i % 5 for i in range(200000))
    page = flame(str(stacks), tmp_path / "x.html")
    assert os.path.getsize(page) < 20e6
    data = data_of(page)
    assert data["folded"] and any("folded" in note for note in data["notes"])
    assert sum(data["self"]) == data["whole"] == total
    assert len(data["label"]) < 250000
    svg = flame(str(stacks), tmp_path / "x.svg")
    assert os.path.getsize(svg) < 20e6
    assert " more)" in open(svg, encoding="utf-8").read()


def test_long_names_are_cut(tmp_path):
    """A hundred thousand long names would fill gigabytes: all are shown, none whole."""
    stacks = tmp_path / "long.collapsed"
    with open(stacks, "w") as f:
        for i in range(40000):
            f.write("main;%s%d 1\n" % ("name_" * 400, i))
    page = flame(str(stacks), tmp_path / "x.html")
    assert os.path.getsize(page) < 20e6
    names = labels_of(data_of(page))
    assert len(set(names)) == len(names) > 39000
    assert max(len(name) for name in names) < 400


# --- hostile names ---


def test_hostile_names_are_text(hostile, tmp_path):
    page = flame(hostile, tmp_path / "x.html", "--title", EVIL[0])
    with open(page, "rb") as f:
        raw = f.read()
    assert raw.count(b"<script") == 2 and raw.count(b"</script>") == 2
    assert raw.count(b"<img") == 0
    text = raw.decode("utf-8")
    assert not re.search("[\0-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u2028\u2029]", text.split("</style>")[1].split("<script>")[0])
    names = labels_of(data_of(page))
    for evil in EVIL[:5] + [EVIL[6], EVIL[9]]:
        assert evil in names, evil
    assert "\\u202etxt.exe\\u202c" in names
    assert [n for n in names if n.startswith("nnnn")][0].count("…") == 1
    svg = flame(hostile, tmp_path / "x.svg", "--title", EVIL[2])
    titles = [t.text.split("\n")[0] for t in ElementTree.parse(svg).iter(SVG + "title")]
    for evil in EVIL[:5] + [EVIL[6]]:
        assert evil in titles, evil


def test_policy_names_the_script(known, tmp_path):
    import base64
    import hashlib
    text = open(flame(known, tmp_path / "x.html"), encoding="utf-8").read()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert "default-src &#39;none&#39;" in policy and "unsafe" not in policy
    for tag in ("script", "style"):
        inner = re.search(r"<%s>(.*?)</%s>" % (tag, tag), text, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert "%s-src &#39;sha256-%s&#39;" % (tag, digest) in policy
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org)|url\(|@import", text)


@pytest.mark.parametrize("name", sorted(n for n in os.listdir(os.path.join(ROOT, "src", "view")) if n.endswith(".js")))
def test_scripts_parse(name):
    node = shutil.which("node")
    if not node:
        pytest.skip("no node")
    subprocess.run([node, "--check", os.path.join(ROOT, "src", "view", name)], check=True)


# --- refusals ---


def refused(*args, status):
    line = one_line_error(pyrometer("flame", *args), status)
    return line


def test_refusals_of_the_command_line(known, tmp_path):
    assert "-o" in refused(known.path, status=2)
    assert ".html or .svg" in refused(known.path, "-o", tmp_path / "x.png", status=2)
    assert ".html or .svg" in refused(known.path, "-o", tmp_path / "x", status=2)
    out = tmp_path / "x.html"
    assert "--diff takes two" in refused("--diff", known.path, "-o", out, status=2)
    assert "one RUN" in refused(known.path, known.path, "-o", out, status=2)
    assert "--bottom-up" in refused("--by-time", "--bottom-up", known.path, "-o", out, status=2)
    assert "--by-thread" in refused("--diff", "--by-thread", known.path, known.path, "-o", out, status=2)
    assert "module, change, heat" in refused("--color", "pink", known.path, "-o", out, status=2)
    assert "--diff" in refused("--color", "change", known.path, "-o", out, status=2)
    assert "wall" in refused("--metric", "pages", known.path, "-o", out, status=2)
    assert not out.exists()


def test_refusals_of_the_output(known, tmp_path):
    out = tmp_path / "x.html"
    out.write_text("mine")
    assert "--force" in refused(known.path, "-o", out, status=1)
    assert out.read_text() == "mine"
    flame(known, out, "--force")
    assert data_of(out)["whole"]
    (tmp_path / "dir.svg").mkdir()
    assert "directory" in refused(known.path, "--force", "-o", tmp_path / "dir.svg", status=1)
    assert "no such file" in refused(known.path, "-o", tmp_path / "none" / "x.svg", status=1)
    copy = tmp_path / "run.html"
    shutil.copy(known.path, copy)
    assert "recording itself" in refused(copy, "--force", "-o", copy, status=1)
    if os.path.exists("/dev/full"):
        (tmp_path / "full.html").symlink_to("/dev/full")
        assert "no space" in refused(known.path, "--force", "-o", tmp_path / "full.html", status=1)
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        assert "permission" in refused(known.path, "-o", tmp_path / "closed" / "x.svg", status=1)


def test_nothing_to_draw(known, tmp_path, default_python):
    out = tmp_path / "x.html"
    assert "no recordings" in refused("-o", out, status=1)
    assert "no thread" in refused(known.path, "--thread", "nobody", "-o", out, status=1)
    assert "no samples" in refused(known.path, "--include", "nobody_is_called_this", "-o", out, status=1)
    assert "when" in refused(_collapsed(tmp_path, "main;f 3\n"), "--by-time", "-o", out, status=1)
    (tmp_path / "empty.pyro").write_bytes(b"")
    assert "empty" in refused(tmp_path / "empty.pyro", "-o", out, status=1)
    (tmp_path / "noise.pyro").write_bytes(b"\x7f\x00noise" * 100)
    refused(tmp_path / "noise.pyro", "-o", out, status=1)
    short = record([default_python.path, "-S", "-c", "pass"], tmp_path / "short.pyro", "--sample=1")
    done = pyrometer("flame", short.path, "-o", out)
    assert done.returncode in (0, 1) and (done.returncode == 0) == out.exists()


def _collapsed(tmp_path, text):
    path = tmp_path / "stacks.collapsed"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("suffix", ["html", "svg"])
def test_one_sample(tmp_path, suffix):
    out = flame(_collapsed(tmp_path, "only 1\n"), tmp_path / ("x." + suffix))
    if suffix == "html":
        data = data_of(out)
        assert data["whole"] == 1 and labels_of(data)[data["label"][1]] == "only"
    else:
        assert len(ElementTree.parse(out).find(".//%sg[@id='blocks']" % SVG)) == 2


@pytest.mark.parametrize("mode", [["--by-line"], ["--bottom-up"], []], ids=" ".join)
def test_deep_recursion(tmp_path, mode):
    out = flame(_collapsed(tmp_path, ";".join(["deep"] * 5000) + " 7\n"), tmp_path / "x.html", *mode)
    assert max(data_of(out)["depth"]) == 5000
    flame(str(tmp_path / "stacks.collapsed"), tmp_path / "x.svg", *mode)


# --- in a browser ---


def test_click_zooms(browser, known, tmp_path):
    browser.open(flame(known, tmp_path / "x.html"))
    assert browser.state()["from"] == 0 and browser.state()["to"] == 1
    hot = browser.block("hot")
    part = browser.js("return flame.numbers(arguments[0])", hot)
    browser.click(hot)
    state = browser.state()
    assert state["from"] == pytest.approx(part["left"]) and state["to"] == pytest.approx(part["left"] + part["wide"])
    browser.settle()
    assert browser.js("return flame.box(arguments[0]).width", hot) == pytest.approx(
        browser.js("return document.getElementById('canvas').clientWidth"), abs=1)
    assert not browser.js("return document.getElementById('reset').disabled")
    browser.js("document.getElementById('reset').click()")
    assert (browser.state()["from"], browser.state()["to"]) == (0, 1)
    browser.quiet()


def test_the_page_says_what_it_shows(browser, known, tmp_path):
    browser.open(flame(known, tmp_path / "x.html"))
    report = known.report()
    assert "known.py" in browser.text("title") and "known.py" in browser.driver.title
    assert "{:,} samples".format(report["samples"]) in browser.text("facts")
    root = browser.js("return flame.numbers(0)")
    assert root["total"] * 1e-9 == pytest.approx(report["total"], rel=1e-9) and root["wide"] == 1
    row = known.row("hot")
    total = browser.js("let sum = 0; for (let i = 0; i < flame.count; i++) if (flame.name(i) === 'hot') sum += flame.numbers(i).total; return sum")
    assert total * 1e-9 == pytest.approx(row["total"], rel=1e-9)
    browser.at("Mov", browser.js("return flame.box(flame.find('hot'))"))
    tip = browser.text("tip")
    assert "hot" in tip and "known.py:" in tip and " %" in tip and "samples" in tip and "self" in tip
    assert "hot" in browser.text("details")
    browser.quiet()


def test_search_shows_the_matched_share(browser, known, tmp_path):
    browser.open(flame(known, tmp_path / "x.html"))
    row, whole = known.row("hot"), known.report()["total"]
    browser.press("/")
    browser.press("^hot$")
    assert browser.js("return document.activeElement.id") == "search"
    share = float(browser.text("matched").split(" %")[0])
    assert share == pytest.approx(100 * row["total"] / whole, abs=0.06)
    # what lies under another match is counted once
    browser.js("const s = document.getElementById('search'); s.value = 'hot|spin|work'; s.dispatchEvent(new Event('input'))")
    share = float(browser.text("matched").split(" %")[0])
    assert share == pytest.approx(100 * sum(r["total"] for r in known.rows() if r["name"] == "work") / whole, abs=0.06)
    browser.js("const s = document.getElementById('search'); s.value = '(['; s.dispatchEvent(new Event('input'))")
    assert browser.text("matched").startswith("0.0 %")
    browser.js("document.getElementById('search').focus()")
    browser.press("\ue00c")
    assert browser.text("matched") == "" and browser.js("return document.getElementById('search').value") == ""
    browser.quiet()


def test_keyboard(browser, known, tmp_path):
    down, up, left, right, enter, escape, back = "\ue015", "\ue013", "\ue012", "\ue014", "\ue007", "\ue00c", "\ue003"
    browser.open(flame(known, tmp_path / "x.html"))
    browser.press(down)
    assert browser.state()["selected"] == 0
    browser.press(down)
    first = browser.state()["selected"]
    assert browser.js("return flame.numbers(arguments[0]).depth", first) == 1
    browser.press(right)
    second = browser.state()["selected"]
    browser.press(left)
    assert browser.state()["selected"] == first
    browser.press(up)
    assert browser.state()["selected"] == 0
    if second != first:
        browser.press(down, right, enter)
        assert browser.state()["zoomed"] == second and browser.state()["from"] > 0
        browser.press(back)
        assert browser.state()["from"] == 0
        browser.press(enter, escape)
    assert (browser.state()["from"], browser.state()["to"]) == (0, 1)
    browser.press("/", "spin")
    browser.press(enter)
    assert browser.js("return flame.name(flame.state().selected)") == "spin"
    browser.press(escape)
    browser.press("?")
    assert browser.js("return document.getElementById('help').open")
    browser.press(escape)
    assert not browser.js("return document.getElementById('help').open")
    browser.press("c")
    assert browser.state()["colour"] == "heat"
    browser.quiet()


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
def test_every_mode_draws(browser, known, tmp_path, mode):
    browser.open(flame(known, tmp_path / "x.html", *mode))
    browser.settle()
    assert browser.state()["matched"] == 0
    box = browser.js("return flame.box(flame.find('hot'))")
    drawn = browser.js("""
        const canvas = document.getElementById('canvas'), box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
        const at = canvas.getContext('2d').getImageData((arguments[0] - box.left) * ratio, (arguments[1] - box.top) * ratio, 1, 1).data;
        return Array.from(at)""", box["x"] + box["width"] / 2, box["y"] + 2)
    assert drawn[:3] != [255, 255, 255], (box, drawn)
    browser.quiet()


def test_diff_in_the_browser(browser, known, tmp_path):
    out = tmp_path / "diff.html"
    pyrometer("flame", "--diff", known.path, known.path, "-o", out, check=0)
    browser.open(out)
    browser.at("Mov", browser.js("return flame.box(flame.find('hot'))"))
    assert "before" in browser.text("tip") and "0.00 points" in browser.text("tip")
    browser.js("const w = document.getElementById('width'); w.value = 'before'; w.dispatchEvent(new Event('change'))")
    browser.settle()
    assert browser.js("return flame.numbers(0).wide") == 1
    browser.quiet()


@pytest.mark.parametrize("suffix", ["html", "svg"])
def test_hostile_names_do_nothing(browser, hostile, tmp_path, suffix):
    browser.open(flame(hostile, tmp_path / ("x." + suffix), "--title", EVIL[1]))
    if suffix == "html":
        for evil in EVIL[:5]:
            browser.at("Mov", browser.js("return flame.box(flame.find(arguments[0]))", evil))
        browser.js("const s = document.getElementById('search'); s.value = 'script|img'; s.dispatchEvent(new Event('input'))")
        assert browser.js("return document.querySelectorAll('img, script').length") == 1
        assert "<img" in browser.driver.title
    else:
        assert browser.js("return document.querySelectorAll('img').length") == 0
    assert browser.js("return window.pwned === undefined")
    browser.quiet()


def test_the_policy_forbids_the_network(browser, known, tmp_path):
    browser.open(flame(known, tmp_path / "x.html"))
    blocked = browser.driver.execute_async_script("""
        const done = arguments[0], seen = [];
        document.addEventListener('securitypolicyviolation', (e) => seen.push(e.effectiveDirective));
        const img = new Image(); img.src = 'http://127.0.0.1:9/x.png';
        fetch('http://127.0.0.1:9/').catch(() => {}).then(() => setTimeout(() => done(seen), 100));
        const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s);""")
    assert set(blocked) >= {"connect-src", "img-src", "script-src-elem"}, blocked
    assert browser.js("return window.pwned === undefined")
    browser.logs()


def test_many_blocks_in_the_browser(browser, tmp_path):
    stacks = tmp_path / "many.collapsed"
    with open(stacks, "w") as f:
        for i in range(150000):
            f.write("main;a%d;b%d;c%d 1\n" % (i % 7, i % 331, i))
    browser.open(flame(str(stacks), tmp_path / "x.html"))
    browser.settle()
    assert browser.js("return flame.count") > 100000
    browser.click(browser.block("a3"))
    browser.settle()
    assert browser.state()["to"] - browser.state()["from"] == pytest.approx(1 / 7, rel=0.01)
    browser.quiet()


def test_deep_page_scrolls(browser, tmp_path):
    browser.open(flame(_collapsed(tmp_path, ";".join("f%d" % i for i in range(3000)) + " 7\n"), tmp_path / "x.html"))
    browser.js("document.getElementById('chart').scrollTop = 1e9")
    browser.settle()
    box = browser.js("return flame.box(flame.find('f2999'))")
    assert 0 < box["y"] < 700
    browser.at("Mov", box)
    assert browser.js("return flame.name(flame.state().hovered)") == "f2999"
    browser.quiet()


def test_svg_zooms_and_searches(browser, known, tmp_path):
    browser.open(flame(known, tmp_path / "x.svg"))
    browser.js("flame.blocks.find((b) => b.name === 'hot').rect.dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    a, b = browser.js("return flame.view()")
    assert 0 <= a < b <= 1 and b - a < 1
    assert browser.js("return flame.blocks.find((b) => b.name === 'hot').rect.width.baseVal.value") == pytest.approx(1176, abs=1)
    browser.js("document.getElementById('reset').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert browser.js("return flame.view()") == [0, 1]
    browser.js("flame.search('^hot$|/hot')")
    browser.js("flame.search('(^|\\\\n)hot$')")
    browser.js("flame.search('hot')")
    share = float(browser.text("matched").split(" %")[0])
    assert share == pytest.approx(100 * known.row("hot")["total"] / known.report()["total"], abs=0.06)
    browser.quiet()


def test_svg_as_an_image(browser, known, hostile, tmp_path):
    flame(known, tmp_path / "a.svg")
    flame(hostile, tmp_path / "b.svg")
    (tmp_path / "x.html").write_text("<!DOCTYPE html><img src=a.svg><img src=b.svg>")
    browser.open(tmp_path / "x.html")
    assert browser.js("return Array.from(document.images, (i) => [i.complete, i.naturalWidth])") == [[True, 1200], [True, 1200]]
    browser.logs()


def test_dark_and_print(browser, known, tmp_path):
    browser.open(flame(known, tmp_path / "x.html"))
    light = browser.js("return getComputedStyle(document.body).backgroundColor")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    browser.settle()
    assert browser.js("return getComputedStyle(document.body).backgroundColor") != light
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    pdf = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(pdf["data"]) > 1000
    browser.quiet()


@pytest.mark.parametrize("letter", ["x", "é", "<", "\u202e"])
@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_names_of_a_megabyte(tmp_path, letter, suffix):
    """Cut to what can be read, in a file that stays small and well-formed."""
    long_name = letter * (2**20 // len(letter.encode()))
    (tmp_path / "long.collapsed").write_text("main;%s;leaf 70\nmain;%s_2 30\n" % (long_name, long_name), encoding="utf-8")
    out = tmp_path / ("long" + suffix)
    for mode in ([], ["--bottom-up"], ["--by-line"]):
        pyrometer("flame", tmp_path / "long.collapsed", "--force", "-o", out, *mode, check=0)
        assert out.stat().st_size < 20e6
        text = out.read_text(encoding="utf-8")
        assert "main" in text
        if suffix == ".svg":
            ElementTree.fromstring(text)

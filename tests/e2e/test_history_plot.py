"""`history --metric`: the same runs in the terminal, as .svg and as .png."""
import os
import pathlib
import random
import re
import struct
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

import harness
from harness import one_line_error, pyrometer
from test_history_check import insert_runs, noisy

UTF8 = dict(os.environ, LC_ALL="C.UTF-8")


@pytest.fixture
def history(tmp_path, monkeypatch):
    """40 runs of `true`, the last 15 slower by a quarter, and one of `env true`."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(8)
    pyrometer("run", "--quiet", "--no-profile", "--", "true", check=0)
    for i, level in enumerate([1] * 5 + [1.25] * 3):
        insert_runs([{"elapsed_time_sec": noisy(rng, level), "max_res_set_sz_kb": 2000 + 10 * k} for k in range(5)],
                    git_commit="%040x" % (0xabcdef0000 + i))
    pyrometer("run", "--quiet", "--no-profile", "--", "env", "true", check=0)
    return tmp_path


def plot(*args, env=UTF8, check=0):
    return pyrometer("history", *args, env=env, check=check)


def test_terminal(history):
    out = plot("true", "--metric", "elapsed_time_sec").stdout
    assert "elapsed_time_sec (s)" in out and "41 runs" in out
    assert re.search("[\u2801-\u28ff]", out) and "┤" in out and "└" in out
    change = [line for line in out.splitlines() if "▲" in line]
    assert len(change) == 1 and re.search(r"▲ \+(1[5-9]|2\d|3[0-5]) %", change[0]), out
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "\x1b" not in out


def test_plain_characters(history):
    for out in (plot("true", "--metric", "elapsed_time_sec", "--ascii").stdout,
                plot("true", "--metric", "elapsed_time_sec", env=dict(os.environ, LC_ALL="C")).stdout):
        assert out.isascii() and "*" in out and "^ +" in out


def test_several_metrics_and_commands(history):
    out = plot("true", "--metric", "elapsed_time_sec", "--metric", "peak_memory").stdout
    assert "elapsed_time_sec (s)" in out and "max_res_set_sz_kb (MiB)" in out
    out = plot("true", "env true", "--metric", "elapsed_time_sec").stdout
    assert "2 commands" in out and "● true" in out and "○ env true" in out
    assert plot("--metric", "elapsed_time_sec").stdout.count("○ ") >= 1
    # words of one command need no quotes
    assert "1 runs" in plot("env", "true", "--metric", "elapsed_time_sec").stdout


def test_groups(history):
    out = plot("true", "--metric", "elapsed_time_sec", "--group-by", "commit").stdout
    assert "by commit" in out
    assert "0000000000" in out or "(none)" in out
    for by in ("branch", "python", "host", "group", "tag:x", "version:y"):
        plot("true", "--metric", "elapsed_time_sec", "--group-by", by)


def test_svg(history):
    plot("true", "env true", "--metric", "elapsed_time_sec", "--metric", "peak_memory", "-o", "p.svg")
    root = ElementTree.parse("p.svg").getroot()
    name = "{http://www.w3.org/2000/svg}"
    texts = [t.text for t in root.iter(name + "text")]
    assert "elapsed_time_sec" in texts and "max_res_set_sz_kb" in texts and "env true" in texts
    assert any(re.fullmatch(r"\+\d+ %", t or "") for t in texts)
    # one for each run and metric, and two of the legend
    assert len(list(root.iter(name + "circle"))) == 2 * 42 + 2
    width, height = float(root.get("width")), float(root.get("height"))
    for circle in root.iter(name + "circle"):
        assert 0 < float(circle.get("cx")) < width and 0 < float(circle.get("cy")) < height


def test_png(history):
    plot("true", "--metric", "elapsed_time_sec", "-o", "p.png")
    data = pathlib.Path("p.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width == 1920 and height > 300


def test_many_runs(history):
    rng = random.Random(9)
    insert_runs([{"elapsed_time_sec": noisy(rng, 1)} for _ in range(5000)], command=1)
    out = plot("true", "--metric", "elapsed_time_sec").stdout
    assert "5,041 runs" in out and "neighbouring runs" in out
    plot("true", "--metric", "elapsed_time_sec", "-o", "p.svg")
    assert pathlib.Path("p.svg").stat().st_size < 1 << 20
    assert "10 runs" in plot("true", "--metric", "elapsed_time_sec", "--last", "10").stdout


def test_bad_days(history):
    assert "no runs with the metric 'joy'" in one_line_error(plot("true", "--metric", "joy", check=None), 1)
    assert "no runs with the metric" in one_line_error(plot("joy", "--metric", "elapsed_time_sec", check=None), 1)
    assert ".svg or .png" in one_line_error(plot("true", "--metric", "elapsed_time_sec", "-o", "p.gif", check=None), 2)
    assert "--group-by" in one_line_error(plot("true", "--metric", "elapsed_time_sec", "--group-by", "joy", check=None), 2)
    assert "--metric makes a plot" in one_line_error(plot("true", "--metric", "elapsed_time_sec", "--json", check=None), 2)
    plot("true", "--metric", "elapsed_time_sec", "-o", "p.svg")
    assert "exists" in one_line_error(plot("true", "--metric", "elapsed_time_sec", "-o", "p.svg", check=None), 1)
    plot("true", "--metric", "elapsed_time_sec", "-o", "p.svg", "--force")
    with open("/dev/full", "w") as full:
        assert "cannot write" in one_line_error(pyrometer("history", "true", "--metric", "elapsed_time_sec", stdout=full), 1)
    done = subprocess.run("'%s' history true --metric elapsed_time_sec | head -c 10" % harness.PYROMETER, shell=True, stderr=subprocess.PIPE)
    assert done.stderr == b""


def test_names_that_bite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pyrometer("run", "--quiet", "--no-profile", "--", "sh", "-c", ": '\x1b[31m</text><script>&\u202e'", check=0)
    out = plot("--metric", "elapsed_time_sec").stdout
    assert "\x1b" not in out and "\u202e" not in out
    plot("--metric", "elapsed_time_sec", "-o", "p.svg")
    ElementTree.parse("p.svg")
    assert "<script" not in pathlib.Path("p.svg").read_text(encoding="utf-8")

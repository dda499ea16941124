"""`attach`: a recording of a program that already runs, which never notices."""
import signal
import subprocess

import pytest

import harness
from harness import PYROMETER, Recording, pyrometer, spin_text, task_states, wait_until, workload


@pytest.fixture
def busy(python, target):
    return target([python.path, workload("chains.py"), "10", "20000", "120"])


def test_for(busy, tmp_path):
    pyrometer("attach", "--for", "0.6", "-o", tmp_path / "x.pyro", busy.pid, check=0)
    assert busy.alive()
    recording = Recording(tmp_path / "x.pyro")
    assert recording.row("main", file="chains.py")["total_percent"] > 90
    assert recording.stats()["samples"] > 50
    assert "whole" in recording.verify().stdout


def test_ctrl_c_ends_the_recording_only(busy, tmp_path):
    process = subprocess.Popen([PYROMETER, "attach", "-o", str(tmp_path / "x.pyro"), str(busy.pid)],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    wait_until(lambda: (tmp_path / "x.pyro").exists(), "the file")
    try:
        process.wait(timeout=0.7)
    except subprocess.TimeoutExpired:
        pass
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=harness.HANG)
    assert process.returncode == 0, err
    assert busy.alive()
    assert set(task_states(busy.pid)) <= set("RSD")
    recording = Recording(tmp_path / "x.pyro")
    assert recording.row("main", file="chains.py")["total"] > 0
    assert "whole" in recording.verify().stdout


def test_target_that_ends(default_python, target, tmp_path):
    """The recording ends with the program; that is a success."""
    one = target([default_python.path, "-c", "print('ready', flush=True)\n" + spin_text("last_words", 1)])
    done = pyrometer("attach", "-o", tmp_path / "x.pyro", one.pid)
    assert done.returncode == 0, done.stderr
    assert Recording(tmp_path / "x.pyro").row("last_words")


@pytest.mark.strict
def test_end_between_looks(default_python, target, tmp_path):
    """The next look is minutes off, but the end of the program is the end of the recording."""
    one = target([default_python.path, "-c", "import time; print('ready', flush=True); time.sleep(0.5)"])
    pyrometer("attach", "--quiet", "--sample=0.001", "-o", tmp_path / "x.pyro", one.pid, check=0)
    assert not one.alive()
    assert Recording(tmp_path / "x.pyro").stats()["ticks_taken"] == 1


def test_without_output_goes_to_the_runs(default_python, target, tmp_path):
    one = target([default_python.path, workload("chains.py"), "10", "20000", "60"])
    pyrometer("attach", "--for", "0.3", "--quiet", one.pid, check=0)
    assert Recording("@").row("main", file="chains.py")


def test_children_too(default_python, target, tmp_path):
    text = (
        "import os, time\n"
        "print('ready', flush=True)\n"
        "def in_child():\n"
        "    end = time.perf_counter() + 5\n"
        "    while time.perf_counter() < end: pass\n"
        "time.sleep(0.7)\n"
        "if os.fork() == 0:\n"
        "    in_child(); os._exit(0)\n"
        "os.wait()\n"
    )
    one = target([default_python.path, "-c", text])
    pyrometer("attach", "--for", "1.5", "--quiet", "-o", tmp_path / "x.pyro", one.pid, check=0)
    assert Recording(tmp_path / "x.pyro").row("in_child")


def test_idle_program(python, target, tmp_path):
    one = target([python.path, "-c", "import time\nprint('ready', flush=True)\ndef idle():\n    time.sleep(120)\nidle()"])
    pyrometer("attach", "--for", "0.5", "-o", tmp_path / "x.pyro", one.pid, check=0)
    row = Recording(tmp_path / "x.pyro").row("idle")
    assert row and row["total_percent"] > 90


def test_traced_program(default_python, target, tmp_path):
    """Somebody else's debugger on the target does not matter: nothing is stopped or traced by us."""
    one = target([default_python.path, workload("chains.py"), "10", "20000", "60"])
    with open("/proc/%d/status" % one.pid) as f:
        before = [line for line in f if line.startswith("TracerPid")]
    process = subprocess.Popen([PYROMETER, "attach", "--quiet", "--for", "1", "-o", str(tmp_path / "x.pyro"), str(one.pid)],
                               stdin=subprocess.DEVNULL)
    seen = set()
    while process.poll() is None:
        seen.update(task_states(one.pid))
        with open("/proc/%d/status" % one.pid) as f:
            assert [line for line in f if line.startswith("TracerPid")] == before
    assert process.returncode == 0
    assert not seen & set("Tt"), seen

"""`attach`: a recording of a program that already runs, which never notices."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

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


def test_what_only_a_parent_learns_is_not_known(default_python, target, tmp_path):
    one = target([default_python.path, workload("chains.py"), "10", "20000", "120"])
    pyrometer("attach", "--for", "0.3", "--quiet", "-o", tmp_path / "x.pyro", one.pid, check=0)
    recording = Recording(tmp_path / "x.pyro")
    run = recording.info()["run"]
    assert run["elapsed_seconds"] > 0.2 and run["finished"]
    for key in ("user_seconds", "system_seconds", "peak_rss_bytes", "exit_status"):
        assert run[key] is None, key
    assert recording.stats()["exit_status"] is None
    text = pyrometer("info", recording.path, check=0).stdout
    assert "\nelapsed_ns" in text and not re.search("^(exit_status|user_ns|peak_rss_bytes)", text, re.M), text


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


def test_target_that_is_killed(default_python, target, tmp_path):
    """SIGKILL for the program ends the recording, too: what was seen until then is kept, in a whole file."""
    one = target([default_python.path, workload("chains.py"), "10", "20000", "120"])
    path = tmp_path / "x.pyro"
    process = subprocess.Popen([PYROMETER, "attach", "-o", str(path), str(one.pid)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               encoding="utf-8")
    wait_until(lambda: path.exists() and path.stat().st_size > 4096, "the first samples")
    one.process.kill()
    err = process.communicate(timeout=harness.HANG)[1]
    assert process.returncode == 0 and "hottest functions" in err, err
    assert Recording(path).row("main", file="chains.py")
    assert "whole" in Recording(path).verify().stdout


@pytest.mark.strict
def test_output_is_refused_and_forced(default_python, target, tmp_path):
    one = target([default_python.path, workload("chains.py"), "10", "20000", "60"])
    path = tmp_path / "x.pyro"
    path.write_bytes(b"precious")
    line = harness.one_line_error(pyrometer("attach", "--for", "0.2", "-o", path, one.pid), 1)
    assert "--force" in line and path.read_bytes() == b"precious" and one.alive()
    pyrometer("attach", "--for", "0.2", "--quiet", "--force", "-o", path, one.pid, check=0)
    assert "whole" in Recording(path).verify().stdout


# --- the sampler only reads ---


never_stops_or_writes = harness.seccomp(harness.KILL, harness.PTRACE, harness.PROCESS_VM_WRITEV)
filtered = pytest.mark.skipif(os.uname().machine != "x86_64" or "PYROMETER_SANITIZED" in os.environ,
                              reason="the filter is written for x86-64, and a sanitizer traces us at the end")


@filtered
def test_the_filter_kills():
    """Or the two tests after this one would prove nothing."""
    for call in ("ptrace(0, 0, 0, 0)", "process_vm_writev(0, 0, 0, 0, 0, 0)"):
        done = subprocess.run([sys.executable, "-c", "import ctypes; ctypes.CDLL(None)." + call], preexec_fn=never_stops_or_writes)
        assert done.returncode == -signal.SIGSYS, call


def memory_for_writing(pid, of):
    """The descriptors of a process that could write to another one's memory."""
    found = []
    for path in glob.glob("/proc/%d/fd/*" % pid):
        try:
            flags = re.search(r"flags:\s*(\d+)", open(path.replace("/fd/", "/fdinfo/")).read())
            if re.fullmatch("/proc/%d/(task/.*/)?mem" % of, os.readlink(path)) and int(flags.group(1), 8) & os.O_ACCMODE:
                found.append(path)
        except OSError:  # closed meanwhile
            pass
    return found


@filtered
@pytest.mark.long
def test_attach_and_dump_only_read(python, target, tmp_path):
    """No ptrace, nothing written to the program, nothing of ours inside it: the kernel would kill us for the first two."""
    one = target([python.path, workload("chains.py"), "10", "20000", "120"])
    process = subprocess.Popen([PYROMETER, "attach", "--quiet", "--for", "0.4", "-o", str(tmp_path / "x.pyro"), str(one.pid)],
                               stdin=subprocess.DEVNULL, preexec_fn=never_stops_or_writes)
    while process.poll() is None:
        assert not memory_for_writing(process.pid, one.pid)
        time.sleep(0.02)
    assert process.returncode == 0
    assert Recording(tmp_path / "x.pyro").row("main", file="chains.py")
    dump = pyrometer("dump", "--locals", one.pid, preexec_fn=never_stops_or_writes, check=0)
    assert "main" in dump.stdout
    with open("/proc/%d/maps" % one.pid) as f:
        assert "libpyrometer" not in f.read()


@filtered
@pytest.mark.long
def test_run_only_reads(python, tmp_path):
    text = spin_text("spin", 0.3) + "print(open('/proc/self/maps').read())\n"
    done = pyrometer("run", "--quiet", "-o", tmp_path / "x.pyro", "--", python.path, "-c", text, preexec_fn=never_stops_or_writes, check=0)
    assert Recording(tmp_path / "x.pyro").row("spin")
    assert "[stack]" in done.stdout and "libpyrometer" not in done.stdout


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


def test_numbers_of_a_container(python, is_root, tmp_path):
    """In a pid namespace of its own a process counts its threads otherwise than we do. Who sleeps there sleeps all the same."""
    if not is_root:
        pytest.skip("a namespace needs root")
    text = (
        "import threading, time\n"
        "def nap():\n    time.sleep(300)\n"
        "threading.Thread(target=nap, daemon=True).start()\n"
        "print('ready', flush=True)\n"
        "def busy():\n    while True: pass\n"
        "busy()\n"
    )
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", python.path, "-c", text], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"ready\n"
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as f:
            pid = int(f.read().split()[0])
        pyrometer("attach", "--for", "1", "--quiet", "-o", tmp_path / "x.pyro", str(pid), check=0)
        rows = {row["name"]: row for row in Recording(tmp_path / "x.pyro").rows("--metric", "wall")}
        cpu = {row["name"]: row["self"] for row in Recording(tmp_path / "x.pyro").rows("--metric", "cpu")}
        assert {"nap", "busy"} <= set(rows)
        assert cpu.get("busy", 0) > 0 and cpu.get("nap", 0) < rows["nap"]["self"] / 10, (cpu, rows)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

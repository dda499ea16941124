"""Children, however they were started, are in the one recording."""
import json
import os
import re
import subprocess

import pytest

from harness import pyrometer, record, spin_text, workload

WAYS = ["fork", "mp_fork", "mp_spawn", "mp_forkserver", "subprocess", "shell", "posix_spawn", "empty_env", "exec"]


def test_every_way(python, tmp_path):
    recording = record([python.path, workload("children.py"), "0.2"], tmp_path / "x.pyro")
    assert recording.stdout.split() == WAYS
    names = {r["name"].split(".")[-1] for r in recording.rows()}
    missing = [way for way in WAYS if "child_" + way not in names]
    assert not missing, "not in the recording: %s" % missing
    processes = recording.rows("--by", "process")
    assert len(processes) >= len(WAYS)
    stats = recording.stats()
    assert stats["processes_python"] >= len(WAYS) + 1
    assert stats["processes_seen"] >= stats["processes_python"]


# Forked children of 60 ms, each in a function of its own.
TWENTY = """
import os, time
source = '''
def child_%d():
    end = time.perf_counter() + 0.06
    while time.perf_counter() < end: {spin}
'''
for i in range(20):
    exec(source % i)
    if os.fork() == 0:
        globals()['child_%d' % i]()
        os._exit(0)
    {after}
for i in range({left}): os.wait()
"""


def test_children_of_50_ms(python, tmp_path):
    """Every Python child that lives 50 ms is seen: twenty of them, one after the other."""
    recording = record([python.path, "-c", TWENTY.format(spin="pass", after="os.wait()", left=0)], tmp_path / "x.pyro")
    found = {r["name"] for r in recording.rows() if re.fullmatch(r"child_\d+", r["name"])}
    assert len(found) == 20, "only %s" % sorted(found)


@pytest.mark.once  # sanitizers make us too slow for twenty at once
@pytest.mark.parametrize("rate, after, left", [("10", "os.wait()", 0), ("0.01", "pass", 20), ("10", "pass", 20), ("1000", "pass", 20)],
                         ids=["10-in_turn", "0.01-at_once", "10-at_once", "1000-at_once"])
def test_children_between_looks(default_python, tmp_path, rate, after, left):
    """They are in the recording however seldom it looks, even if no look falls into their life."""
    text = TWENTY.format(spin="time.sleep(0.06)", after=after, left=left)
    stats = record([default_python.path, "-c", text], tmp_path / "x.pyro", "--sample=" + rate).stats()
    assert stats["processes_python"] == stats["processes_seen"] == 21, stats


def test_fresh_children_of_50_ms(default_python, tmp_path):
    """The same for interpreters that are started afresh."""
    text = (
        "import subprocess, sys\n"
        "for i in range(8):\n"
        "    subprocess.run([sys.executable, '-S', '-c', 'import time\\ndef fresh_%d():\\n    end = time.perf_counter() + 0.06\\n"
        "    while time.perf_counter() < end: pass\\nfresh_%d()' % (i, i)])\n"
    )
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro")
    found = {r["name"] for r in recording.rows() if re.fullmatch(r"fresh_\d+", r["name"])}
    assert len(found) == 8, "only %s" % sorted(found)


def test_others_are_counted(default_python, tmp_path):
    text = "import subprocess\nfor i in range(5): subprocess.run(['sleep', '0.15'])\n"
    stats = record([default_python.path, "-c", text], tmp_path / "x.pyro").stats()
    assert stats["processes_other"] >= 5, stats


def test_short_ones_are_counted(default_python, tmp_path):
    """Each was seen, or its number was missed between two looks (others' numbers, too: hence no equality)."""
    text = "import subprocess, time\nfor i in range(30): subprocess.run(['true'])\ntime.sleep(0.1)\n"  # time for a last look
    stats = record([default_python.path, "-c", text], tmp_path / "x.pyro").stats()
    assert stats["processes_seen"] - 1 + stats["numbers_vanished"] >= 30, stats
    assert stats["processes_seen"] == (stats["processes_python"] + stats["processes_other"] + stats["processes_short"]
                                       + stats["processes_refused"]), stats


def test_orphan_is_followed(default_python, tmp_path):
    """A child whose parent has gone (a daemon's way) still belongs to the program while it runs."""
    text = (
        "import os, time\n"
        "r, w = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        def grandchild():\n"
        "            end = time.perf_counter() + 0.6\n"
        "            while time.perf_counter() < end: pass\n"
        "        grandchild()\n"
        "        os.write(w, b'x')\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "os.read(r, 1)\n"
    )
    assert record([default_python.path, "-c", text], tmp_path / "x.pyro").row("grandchild")


@pytest.mark.parametrize("instrument", ["--sample", "--calls"])
def test_who_outlives_the_command_is_told(default_python, tmp_path, instrument):
    """The recording ends with the command. What a daemon does later is not in it, and that is said."""
    text = (
        "import os, time\n"
        "def work():\n"
        "    end = time.perf_counter() + 0.3\n"
        "    while time.perf_counter() < end: pass\n"
        "r, w = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.close(w)\n"
        "    work()\n"
        "    os.read(r, 1)\n"  # until its parent has ended
        "    time.sleep(1)\n"
        "    os._exit(0)\n"
        "work()\n"
    )
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro", instrument)
    assert recording.stats()["processes_left"] == 1
    assert "1 process that went on unrecorded after the command's end" in pyrometer("report", recording.path, check=0).stdout
    whole = record([default_python.path, "-c", text + "os.close(w)\nos.wait()\n"], tmp_path / "y.pyro", instrument)
    assert whole.stats()["processes_left"] == 0
    assert "went on" not in pyrometer("report", whole.path, check=0).stdout


def test_a_child_in_its_parents_memory_is_no_process_of_its_own(python, tmp_path):
    """posix_spawn: until its exec the child runs in the memory of its parent, and whoever reads that finds the parent's stack. Here
    it waits there, for a pipe to be opened."""
    os.mkfifo(tmp_path / "fifo")
    text = (
        "import os, sys\n"
        "pid = os.posix_spawn('/bin/true', ['true'], os.environ,\n"
        "                     file_actions=[(os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)])\n"
        "os.waitpid(pid, 0)\n"
    )
    opener = subprocess.Popen(["sh", "-c", 'sleep 0.5; : > "$1"', "sh", tmp_path / "fifo"])
    recording = record([python.path, "-c", text, tmp_path / "fifo"], tmp_path / "x.pyro")
    opener.wait()
    stats = recording.stats()
    assert stats["processes_python"] == 1 and len(recording.report("--by", "process")["rows"]) == 1


def test_exec_of_the_main_process(python, tmp_path):
    """python → python by exec, same pid: both are in the recording."""
    after = spin_text("after_exec", 0.4)
    text = spin_text("before_exec", 0.4) + "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', %r])\n" % after
    recording = record([python.path, "-c", text], tmp_path / "x.pyro")
    assert recording.row("before_exec")
    assert recording.row("after_exec")


def test_two_versions_in_one_recording(tmp_path):
    from harness import find_pythons
    pythons = find_pythons()
    if len(pythons) < 2:
        pytest.skip("only one CPython found")
    oldest, newest = pythons[0], pythons[-1]
    text = "import subprocess\nsubprocess.run([%r, '-c', %r])\n" % (newest.path, spin_text("in_newest", 0.4))
    recording = record([oldest.path, "-c", spin_text("in_oldest", 0.4) + text], tmp_path / "x.pyro")
    assert recording.row("in_oldest") and recording.row("in_newest")
    info = json.dumps(recording.info())
    for python in (oldest, newest):
        assert ".".join(map(str, python.version)) in info or python.minor in info


def test_process_filter(default_python, tmp_path):
    text = (
        "import os, time\n"
        "pid = os.fork()\n"
        "def in_child():\n"
        "    end = time.perf_counter() + 0.4\n"
        "    while time.perf_counter() < end: pass\n"
        "def in_parent():\n"
        "    end = time.perf_counter() + 0.4\n"
        "    while time.perf_counter() < end: pass\n"
        "if pid == 0:\n"
        "    in_child(); os._exit(0)\n"
        "in_parent(); os.wait(); print(pid)\n"
    )
    recording = record([default_python.path, "-c", text], tmp_path / "x.pyro")
    child = int(recording.stdout)
    names = [r["name"] for r in recording.rows("--process", str(child))]
    assert "in_child" in names and "in_parent" not in names
    done = pyrometer("report", recording.path, "--process", str(os.getpid() + 1000000))
    assert done.returncode in (0, 1)

"""`selftest`: a line for each claim."""
import os
import re
import shutil
import subprocess

import pytest

from harness import HANG, PYROMETER, forbid_process_vm_readv, pyrometer


@pytest.mark.serial
def test_selftest(virgin):
    done = pyrometer("selftest")
    out = done.stdout + done.stderr
    assert done.returncode == 0, out
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    assert len(lines) >= 4, out
    for word in ("python", "right", "share", "rate"):
        assert word in out.lower(), out
    assert "\x1b" not in out
    assert not list(virgin.iterdir()), "a test leaves nothing behind"


@pytest.mark.strict
def test_missed_looks_are_told(default_python, tmp_path):
    """An interpreter whose program lies about the truth, and which stops the recorder for a while: the line says that it came too late."""
    script = tmp_path / "python3"
    script.write_text("#!/bin/sh\nrecorder=$PPID\n(/bin/sleep 0.2; kill -STOP $recorder; /bin/sleep 0.5; kill -CONT $recorder) &\n"
                      "'%s' -c \"$2\" > /dev/null\nwait\necho 1 1 1\n" % default_python.path)
    script.chmod(0o755)
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path), "LANG": "C.UTF-8", **asan()}
    done = pyrometer("selftest", env=env, check=1)
    line, = [x for x in done.stdout.splitlines() if "shares" in x]
    assert re.match(r"FAIL  .*; [1-9]\d? % of the looks were missed: the machine is too busy", line), done.stdout
    assert "1 of the claims does not hold" in done.stdout or "of the claims do not hold" in done.stdout, done.stdout


def selftest(folder, *before, python=None, **kwargs):
    """(status, the line about rights), with no interpreter to be found but this one."""
    if python:
        os.symlink(python, folder / "python3")
    env = {"PATH": str(folder), "HOME": str(folder), "LANG": "C.UTF-8"}
    done = subprocess.run([*before, PYROMETER, "selftest"], env=dict(env, **asan()), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", timeout=HANG, **kwargs)
    line, = [x for x in done.stdout.splitlines() if "rights: " in x]
    return done.returncode, line


def asan():
    return {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}


@pytest.mark.strict
def test_root_without_the_capability(is_root, default_python, virgin, tmp_path_factory):
    """What root may not do is tried, not taken for granted."""
    setpriv = shutil.which("setpriv")
    if not is_root or not setpriv:
        pytest.skip("dropping rights needs root and setpriv")
    folder = tmp_path_factory.mktemp("bin")
    status, line = selftest(folder, setpriv, "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace", python=default_python.path)
    assert status == 1 and re.match("FAIL  .*CAP_SYS_PTRACE", line), line
    assert not list(virgin.iterdir())


@pytest.mark.strict
def test_container_forbids(tmp_path_factory):
    if os.uname().machine != "x86_64":
        pytest.skip("the filter is written for x86-64")
    status, line = selftest(tmp_path_factory.mktemp("bin"), preexec_fn=forbid_process_vm_readv)
    assert status == 1 and re.match("FAIL  .*seccomp", line), line


@pytest.mark.strict
def test_rights_there_are(is_root, tmp_path_factory):
    _, line = selftest(tmp_path_factory.mktemp("bin"))
    assert re.match("ok    rights: .*other users" if is_root else "(ok  |FAIL)  rights: ", line), line

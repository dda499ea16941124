"""Colour is for terminals."""
import os
import pty
import subprocess

from harness import PYROMETER, pyrometer, read_to_end, record, workload


def in_terminal(args, env):
    main, child = pty.openpty()
    process = subprocess.Popen([PYROMETER, *args], stdin=child, stdout=child, stderr=child, env=env)
    os.close(child)
    out = read_to_end(main)
    os.close(main)
    assert process.wait() == 0
    return out


def check_colour(args):
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    env["TERM"] = "xterm-256color"
    assert b"\x1b[" in in_terminal(args, env)
    assert b"\x1b[" not in in_terminal(args, dict(env, NO_COLOR="1"))
    assert b"\x1b[" not in in_terminal(args, dict(env, TERM="dumb"))
    done = pyrometer(*args, env=env, check=0)
    assert "\x1b" not in done.stdout + done.stderr and len(done.stdout + done.stderr) > 100


def test_colour_only_on_a_terminal(default_python, tmp_path):
    recording = record([default_python.path, workload("shares.py"), "0.5"], tmp_path / "x.pyro")
    check_colour(["report", recording.path])


def test_colour_of_the_summary(default_python, tmp_path):
    check_colour(["run", "--no-history", "--force", "-o", str(tmp_path / "x.pyro"), "--", default_python.path, "-c", "pass"])

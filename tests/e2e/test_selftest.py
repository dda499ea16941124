"""`selftest`: a line for each claim."""
import pytest

from harness import pyrometer


@pytest.mark.serial
def test_selftest():
    done = pyrometer("selftest")
    out = done.stdout + done.stderr
    assert done.returncode == 0, out
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    assert len(lines) >= 4, out
    for word in ("python", "right", "share", "rate"):
        assert word in out.lower(), out
    assert "\x1b" not in out

"""The driver of the tests: what it forgives and what it does not."""
import os
import sys

import pytest

import harness

sys.path.insert(0, os.path.join(harness.ROOT, "tests"))
import run_all  # noqa: E402

ONCE_WRONG = """
import os, pytest
def first(name):
    if os.path.exists(name):
        return False
    open(name, "w").close()
    return True
def test_share(): assert not first({0!r} + "/share")
def test_broken(): assert False
@pytest.mark.strict
def test_count(): assert not first({0!r} + "/count")
@pytest.mark.strict
def test_right(): pass
"""


@pytest.mark.strict
def test_what_is_strict_has_one_try(tmp_path, monkeypatch):
    (tmp_path / "test_some.py").write_text(ONCE_WRONG.format(str(tmp_path)))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    strict:\n    serial:\n")
    monkeypatch.setattr(run_all, "E2E", str(tmp_path))
    monkeypatch.setattr(run_all, "LOGS", str(tmp_path / "logs"))
    found = {test.split("::")[1]: how for test, how, _ in run_all.pytest("some", ["-c", str(tmp_path / "pytest.ini"), "-m", "not serial"])}
    assert found == {"test_share": "passed", "test_broken": "failed", "test_count": "failed", "test_right": "passed"}


def test_a_stray_store_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(run_all.tempfile, "gettempdir", lambda: str(tmp_path / "a" / "b"))
    assert run_all.stray_store() is None
    (tmp_path / ".pyrometer").mkdir()
    assert run_all.stray_store() == str(tmp_path.resolve() / ".pyrometer")

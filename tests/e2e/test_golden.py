"""Files written by released versions stay readable, and say what they said."""
import glob
import json
import os

import pytest

from harness import ROOT, Recording, pyrometer

GOLDEN = sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "*.pyro")))


def test_there_are_some():
    if not GOLDEN:
        pytest.skip("tests/golden holds no recordings yet")


@pytest.mark.parametrize("path", GOLDEN, ids=os.path.basename)
def test_golden(path):
    with open(path[:-len(".pyro")] + ".json", encoding="utf-8") as f:
        expected = json.load(f)
    got = json.loads(pyrometer("report", path, "--json", check=0).stdout)
    # where the file lies is not what it says
    got["run"].pop("path")
    expected["run"].pop("path", None)
    assert got == expected
    assert "whole" in Recording(path).verify().stdout

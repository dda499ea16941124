"""Files written by released versions stay readable, and say what they said."""
import glob
import json
import os

import pytest

from harness import ROOT, Recording, pyrometer

pytestmark = pytest.mark.strict

GOLDEN = sorted(glob.glob(os.path.join(ROOT, "tests", "golden", "*.pyro")))


def test_there_are_some():
    assert GOLDEN, "tests/golden holds no recordings"
    for path in GOLDEN:
        assert os.path.exists(path[:-len(".pyro")] + ".json"), path


def known(got, expected):
    """What is said, less the keys that were added since: docs/json.md allows these, and no other change."""
    if isinstance(expected, dict):
        return {key: known(got[key], value) for key, value in expected.items() if key in got}
    if isinstance(expected, list) and len(got) == len(expected):
        return [known(g, e) for g, e in zip(got, expected)]
    return got


@pytest.mark.parametrize("path", GOLDEN, ids=os.path.basename)
def test_golden(path):
    with open(path[:-len(".pyro")] + ".json", encoding="utf-8") as f:
        expected = json.load(f)
    got = json.loads(pyrometer("report", path, "--json", check=0).stdout)
    # where the file lies is not what it says
    got["run"].pop("path")
    expected["run"].pop("path", None)
    assert known(got, expected) == expected
    assert "whole" in Recording(path).verify().stdout

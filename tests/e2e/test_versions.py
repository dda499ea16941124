"""Which CPythons were there to test with: a missing one is a skip with its name."""
import pytest

import harness


@pytest.mark.parametrize("version", harness.EXPECTED_VERSIONS)
def test_found(version):
    if not any(p.minor == version for p in harness.find_pythons()):
        pytest.skip("CPython %s not found" % version)

"""Removed rows leave nothing in the memory of the process."""

import os
import sys

import pytest

# Failing assertions in a helper module should be as detailed as those in the tests.
pytest.register_assert_rewrite(f"{__name__}.planting")

needs_memory_scan = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.skipif(
        "asan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer maps terabytes"
    ),
]

"""Tests of the benchmarks; a package named `benchmarks` would hide them."""

import pytest

# Comparisons that stand outside of the tests tell as much as those in them when they fail.
pytest.register_assert_rewrite(f"{__name__}.making")

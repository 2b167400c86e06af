"""Tests of the benchmarks; a package of the same name would stand in their way."""

import pytest

# Comparisons that stand outside of the tests tell as much as those in them when they fail.
pytest.register_assert_rewrite(f"{__name__}.making")

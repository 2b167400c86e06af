"""Tests of the benchmarks; a package named `benchmarks` would hide them."""

import pytest

# Failing assertions in a helper module should be as detailed as those in the tests.
pytest.register_assert_rewrite(f"{__name__}.making")

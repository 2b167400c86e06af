"""Tests of the engine itself, through its bindings."""

import pytest

# Failing assertions in a helper module should be as detailed as those in the tests.
pytest.register_assert_rewrite(f"{__name__}.comparing")

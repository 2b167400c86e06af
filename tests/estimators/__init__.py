"""Tests of the estimators."""

import pytest

# Failing assertions in a helper module should be as detailed as those in the tests.
pytest.register_assert_rewrite(f"{__name__}.refused_calls", f"{__name__}.wrong_labels")

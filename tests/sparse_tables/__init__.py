"""Tables that are mostly zeros: what comes in, what it makes, and what stays of it."""

import pytest

# Comparisons that stand outside of the tests tell as much as those in them when they fail.
pytest.register_assert_rewrite(f"{__name__}.making")

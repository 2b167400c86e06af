"""Reading and validating tables, targets, weights and ids."""

import pytest

# Failing assertions in a helper module should be as detailed as those in the tests.
pytest.register_assert_rewrite(f"{__name__}.sparse_tables")

"""The parameter `random_state`."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return the 64-bit seed of all hashes of a fit."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**63, dtype=np.int64))

"""Copies that a store makes of rows before the engine gets them are overwritten too."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from graftboost import GraftBoostRegressor
from graftboost.store import Store

from . import needs_memory_scan
from .memory_scan import Secret, count_in_memory
from .planting import N_ROWS, make_rows

pytestmark = needs_memory_scan

N_ADDED = 20


@pytest.mark.parametrize("refused", [False, True])
def test_added_rows(tmp_path: Path, refused: bool) -> None:
    """Categories are replaced by codes in a copy, and the journal has another copy."""
    rows = make_rows("regression", N_ROWS, None, seed=1)
    rows.X[:, 11] = np.random.default_rng(0).integers(0, 5, N_ROWS) * 2
    model = GraftBoostRegressor(n_estimators=2, n_jobs=1, categorical_features=[11])
    model.fit(rows.X, rows.y)
    added = make_rows("regression", N_ADDED, None, seed=2)
    added.X[:, 11] = 4.0
    value = Secret.draw(8, 0x3FF1)
    for row in added.X:  # in all rows, because freed memory is soon overwritten in part
        value.write(row[3:4])
    with Store.create(tmp_path / "store", model) as store:
        if refused:
            with pytest.raises(ValueError, match="already holds a row with id 0"):
                store.add(added.X, added.y, row_ids=np.arange(N_ADDED))
        else:
            store.add(added.X, added.y)
        assert count_in_memory({"feature": value}) == {"feature": N_ADDED}  # those of the caller
        added.wipe()
        gc.collect()
        assert count_in_memory({"feature": value}) == {"feature": 0}

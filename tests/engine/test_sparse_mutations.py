"""No invalid sparse table or file makes the engine read or write out of bounds."""

from __future__ import annotations

import numpy as np
import pytest
from graftboost._engine import SparseTable

from graftboost.persistence import model_file

from .making import LOSSES, Data, fit_bins, fit_engine_model, update_engine_model
from .mutating import REFUSALS, Mutator, change, n_mutations
from .sparse_tables import TRAINING, make_data, sparse

CASES = [(12, False), (20, True), (300, False)]
N_MUTATIONS = n_mutations(1200) // len(CASES)


@pytest.mark.parametrize(
    ("begin", "columns"),
    [
        ([0, 2, 1, 3], [0, 1, 2]),
        ([0, 1, 2, 9], [0, 1, 2]),
        ([1, 1, 2, 3], [0, 1, 2]),
        ([-1, 1, 2, 3], [0, 1, 2]),
        ([0, 1, 2, 3], [0, 7, 2]),
        ([0, 1, 2, 3], [0, -1, 2]),
        ([0, 3, 3, 3], [0, 2, 1]),
        ([0, 3, 3, 3], [0, 1, 1]),
    ],
)
def test_invalid_tables_are_refused(begin: list[int], columns: list[int]) -> None:
    engine_model = fit_engine_model(make_data(0, "squared", n_rows=50, n_columns=3))

    def score() -> None:
        table = SparseTable(
            np.array(begin, dtype=np.int64), np.array(columns, dtype=np.int32), np.ones(3), 3
        )
        engine_model.raw_scores(table, n_threads=1)

    with pytest.raises((ValueError, IndexError)):
        score()


@pytest.mark.parametrize(("n_columns", "weighted"), CASES)
def test_mutations(n_columns: int, weighted: bool) -> None:
    loss = LOSSES[n_columns % 3]
    data = make_data(
        3, loss, n_rows=70, n_columns=n_columns, weighted=weighted, missing=True, busy=0.2
    )
    held = data.take(np.arange(55))
    bins = fit_bins(sparse(held), rare_below=4)
    training = {**TRAINING, "max_leaf_nodes": 5, "min_samples_leaf": 4}
    engine_model = fit_engine_model(sparse(held), bins, **training)
    update_engine_model(
        engine_model, sparse(data.take(np.arange(55, 66))), held.ids[:2], tolerance=1e9
    )
    mutate = Mutator(model_file.pack_engine_model(engine_model))
    n_refused = sum(not _use(mutate(seed), data, seed) for seed in range(N_MUTATIONS))
    assert 0.3 * N_MUTATIONS < n_refused < N_MUTATIONS


def _use(content: bytes, data: Data, seed: int) -> bool:
    """Use a file in every way, if it is accepted as a model."""
    try:
        engine_model = model_file.unpack_engine_model(content)
        engine_model.raw_scores(sparse(data).X, 1)
        engine_model.apply(data.X, 1)
        engine_model.held_rows(engine_model.row_ids[:5].copy())
        change(engine_model, sparse(data.take(np.arange(3))), seed, tolerance=0.3)
    except REFUSALS:
        return False
    return True

"""No invalid file makes the engine read or write out of bounds.

``GRAFTBOOST_MUTATIONS=100000 make sanitize ARGS="-k mutations"`` tries many more.
"""

from __future__ import annotations

import numpy as np
import pytest
from graftboost._engine import EngineModel

from graftboost.persistence import model_file

from .making import Data, fit_engine_model, make_data, update_engine_model
from .mutating import REFUSALS, Mutator, change, n_mutations

N_MUTATIONS = n_mutations(3000)
CASES = [("logistic", False), ("softmax", True), ("squared", True), ("logistic", True)]


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize(("loss", "weighted"), CASES)
def test_mutations(loss: str, weighted: bool, deferred: bool) -> None:
    data = make_data(3, loss, n_rows=60, weighted=weighted, missing=True, categories=weighted)
    engine_model = fit_engine_model(
        data, n_estimators=3, max_leaf_nodes=5, min_samples_leaf=3, subsample=0.8 if weighted else 1
    )
    if deferred:
        nothing = data.take(np.arange(0))
        update_engine_model(engine_model, nothing, data.ids[:5], "fidelity", 0.0, regrow=False)
        assert engine_model.rows_deferred == 5
    mutate = Mutator(model_file.pack_engine_model(engine_model))
    refused = 0
    for seed in range(N_MUTATIONS // len(CASES)):
        refused += not _use(mutate(seed), data, seed)
    assert 0.3 * N_MUTATIONS < refused * len(CASES) < N_MUTATIONS


def _use(content: bytes, data: Data, seed: int) -> bool:
    """Use a file in every way, if it is accepted as a model."""
    try:
        engine_model = model_file.unpack_engine_model(content)
        engine_model.raw_scores(data.X, 1)
        engine_model.apply(data.X, 1)
        change(engine_model, data.take(np.arange(3)), seed)
    except REFUSALS:
        return False
    return True


def test_a_model_without_trees() -> None:
    """It has rows and therefore a state, which is checked."""
    engine_model = fit_engine_model(make_data(0, n_rows=200))
    parts = {name: np.concatenate(pieces) for name, _, pieces in engine_model.arrays(True, False)}
    for name in parts:
        if name.startswith(("tree_", "node_", "kept_")):
            parts[name] = parts[name][:0].copy()
    summary = engine_model.summary(True, False) | {"n_estimators": 0}
    with pytest.raises(ValueError, match="n_estimators is below 1"):
        EngineModel.from_arrays(summary, parts, None)

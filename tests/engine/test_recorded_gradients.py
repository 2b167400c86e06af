"""Recorded gradients: two bytes for classes, rounded by a hash of seed, tree and row id."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graftboost._engine import EngineModel

from .making import LOSSES, Data, fit_bins, fit_engine_model, make_data, trees, update_engine_model

OF_CLASSES = [loss for loss in LOSSES if loss != "squared"]


def recorded_by_id(model: EngineModel) -> list[dict[int, int]]:
    """What each row recorded, per tree."""
    return [
        dict(zip(model.row_ids.tolist(), model.recorded(t).tolist(), strict=True))
        for t in range(model.n_trees)
    ]


def keep_structure(model: EngineModel, added: Data, removed: np.ndarray) -> None:
    update_engine_model(model, added, removed, "fidelity", fidelity=0.0)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_shards", [1, 3])
def test_bytes_per_row_and_tree(loss: str, n_shards: int) -> None:
    data = make_data(0, loss)
    model = fit_engine_model(data, n_shards=n_shards)
    pieces = {name: found for name, _, found in model.arrays(True, False)}
    gradients, leaves = pieces["tree_recorded"], pieces["tree_leaf_ids"]
    assert {array.dtype.name for array in gradients} == {"int32" if loss == "squared" else "int16"}
    n_bytes = sum(array.nbytes for array in [*gradients, *leaves])
    assert n_bytes == (5 if loss == "squared" else 3) * len(data.y) * model.n_trees


@pytest.mark.parametrize("loss", OF_CLASSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("subsample", [1.0, 0.6])
def test_neither_order_nor_shards_nor_threads_matter(
    loss: str, weighted: bool, subsample: float
) -> None:
    data = make_data(1, loss, weighted=weighted)
    bins = fit_bins(data)
    expected = recorded_by_id(fit_engine_model(data, bins, subsample=subsample))
    shuffled = data.take(np.random.default_rng(0).permutation(len(data.y)))
    ways: list[dict[str, Any]] = [{}, {"n_shards": 4}, {"n_threads": 3}]
    for way in ways:
        model = fit_engine_model(shuffled, bins, subsample=subsample, **way)
        assert recorded_by_id(model) == expected
        model.refresh(2)
        model.check_state(1)
        assert recorded_by_id(model) == expected  # nothing has changed since


@pytest.mark.parametrize("loss", OF_CLASSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_removed_and_added_again_record_the_same(loss: str, weighted: bool) -> None:
    data = make_data(2, loss, weighted=weighted)
    model = fit_engine_model(data)
    before, were = recorded_by_id(model), trees(model)
    some = data.take(np.arange(20, 35))
    keep_structure(model, data.take(np.arange(0)), some.ids)
    keep_structure(model, some, np.empty(0, dtype=np.int64))
    assert recorded_by_id(model) == before
    assert [tree["value"] for tree in trees(model)] == [tree["value"] for tree in were]


@pytest.mark.parametrize("loss", OF_CLASSES)
def test_ids_and_seeds_decide_how_gradients_are_rounded(loss: str) -> None:
    """Those of the first iteration follow from equal scores, so only rounding differs."""
    data = make_data(3, loss, n_rows=119)  # of classes that are not of equal size
    first = fit_engine_model(data)
    renamed = Data(data.X, data.y, None, data.ids + 5_000_000_000, data.n_categories, loss)
    others = [fit_engine_model(data, seed=1), fit_engine_model(renamed, fit_bins(data))]
    for other in others:
        difference = other.recorded(0) - first.recorded(0)
        assert set(difference.tolist()) == {-1, 0, 1}


def test_rounding_is_right_on_average() -> None:
    """Rows of a class have the same gradient in the first tree, which is no multiple of 2^-15."""
    n_rows = 30_000
    data = make_data(4, n_rows=n_rows)
    data.y[:] = np.arange(n_rows) % 7 == 0
    gradients = fit_engine_model(data, n_estimators=1).recorded(0)
    share = data.y.mean()
    for label, exact in ((0, share * 2**15), (1, (share - 1) * 2**15)):
        found = gradients[data.y == label]
        assert set(found.tolist()) == {int(np.floor(exact)), int(np.ceil(exact))}
        part = exact - np.floor(exact)
        error = np.sqrt(part * (1 - part) / len(found))
        assert abs(found.mean() - exact) < 4 * error


@pytest.mark.parametrize("loss", OF_CLASSES)
def test_rows_outside_the_subsample_record_zero(loss: str) -> None:
    data = make_data(5, loss)
    model = fit_engine_model(data, subsample=0.5)
    added = make_data(6, loss, n_rows=40)
    added.ids[:] += 10**6
    keep_structure(model, added, data.ids[:10])
    for t in range(model.n_trees):
        gradients = model.recorded(t)
        # Gradients are far from zero in so few trees, so these are the rows outside.
        assert 0.3 * len(gradients) < np.count_nonzero(gradients == 0) < 0.7 * len(gradients)
    model.check_state(1)

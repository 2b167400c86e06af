"""The same rows with the same ids give the same model, in any order and with any threads."""

from __future__ import annotations

import numpy as np
import pytest

from .making import LOSSES, Data, fit_bins, fit_engine_model, make_data, trees


def model_of(data: Data, n_threads: int, **training: float) -> list[dict[str, list[object]]]:
    bins = fit_bins(data, n_threads)
    return trees(fit_engine_model(data, bins, n_threads=n_threads, **training))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("subsample", [1.0, 0.6])
def test_order_of_rows(loss: str, weighted: bool, subsample: float) -> None:
    data = make_data(3, loss, n_rows=400, weighted=weighted, missing=True, categories=True)
    shuffled = data.take(np.random.default_rng(0).permutation(400))
    assert model_of(data, 1, subsample=subsample) == model_of(shuffled, 1, subsample=subsample)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_number_of_threads(loss: str, weighted: bool) -> None:
    # Enough rows for threads to share the work within a tree.
    data = make_data(5, loss, n_rows=60_000, weighted=weighted, missing=True, categories=True)
    alone = model_of(data, 1, n_estimators=2)
    assert model_of(data, 2, n_estimators=2) == alone
    assert model_of(data, 5, n_estimators=2) == alone


def test_sampled_bins_do_not_depend_on_order_or_threads() -> None:
    rng = np.random.default_rng(0)
    n_rows = 300_000  # more than are used without sampling
    X = rng.normal(size=(n_rows, 3)).round(3).astype(np.float32)
    data = Data(X, np.zeros(n_rows), None, np.arange(n_rows), (0, 0, 0), "squared")
    shuffled = data.take(rng.permutation(n_rows))
    bins, again = fit_bins(data, 1), fit_bins(shuffled, 2)
    for f in range(3):
        assert bins.edges(f).tolist() == again.edges(f).tolist()
        assert not np.isin(bins.edges(f), X[:, f].astype(np.float64)).any()


def test_memory_layout_and_precision_do_not_matter() -> None:
    data = make_data(7, n_rows=300)
    fortran = Data(
        np.asfortranarray(data.X), data.y, data.weight, data.ids, data.n_categories, data.loss
    )
    strided = np.repeat(np.repeat(data.X, 2, axis=0), 3, axis=1)[::2, ::3]
    every_other = Data(strided, data.y, data.weight, data.ids, data.n_categories, data.loss)
    double = Data(
        data.X.astype(np.float64), data.y, data.weight, data.ids, data.n_categories, data.loss
    )
    for other in (fortran, every_other, double):
        assert model_of(other, 1) == model_of(data, 1)


@pytest.mark.parametrize("subsample", [0.5, 0.9])
def test_subsample_follows_the_row_id(subsample: float) -> None:
    data = make_data(2, n_rows=2_000)
    engine_model = fit_engine_model(data, subsample=subsample, n_estimators=3)
    shares = [engine_model.tree(t)["n"][0] / 2_000 for t in range(3)]
    assert np.allclose(shares, subsample, atol=0.05)
    assert len(set(shares)) > 1

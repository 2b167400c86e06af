"""The bin edges of columns."""

from __future__ import annotations

import numpy as np
import pytest
from graftboost._engine import BinMap
from hypothesis import given
from hypothesis import strategies as st

from graftboost.reference import edge_between


def bins_of(column: np.ndarray, **settings: object) -> BinMap:
    options = {"max_bins": 1024, "split_sample": 0.1, "width": False, "seed": 0, **settings}
    edges = {0: options.pop("edges")} if "edges" in options else {}
    categories = {0: options.pop("n_categories")} if "n_categories" in options else {}
    return BinMap.fit(column[:, None], None, categories, bin_edges=edges, n_threads=1, **options)


def test_few_values_keep_every_boundary() -> None:
    edges = bins_of(np.array([3.0, 1.0, 2.0, 2.0, 1.0])).edges(0)
    assert edges.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("width", [False, True])
@pytest.mark.parametrize("max_bins", [2, 10, 255, 1024, 65_535])
@pytest.mark.parametrize("split_sample", [0.1, 1.0])
def test_at_most_max_bins(width: bool, max_bins: int, split_sample: float) -> None:
    column = np.random.default_rng(0).normal(size=80_000)
    bins = bins_of(column, width=width, max_bins=max_bins, split_sample=split_sample)
    limit = min(max_bins - 1, int(np.ceil(split_sample * max_bins)))
    assert 1 <= len(bins.edges(0)) <= limit
    codes = bins.encode(column[:, None])
    assert codes.min() == 1
    assert codes.max() == len(bins.edges(0)) + 1


def test_65535_distinct_bins() -> None:
    column = np.arange(70_000, dtype=np.float64)
    bins = bins_of(column, max_bins=65_535, split_sample=1.0)
    assert bins.n_codes(0) == 65_536
    assert len(np.unique(bins.encode(column[:, None]))) == 65_535


def test_quantile_bins_have_about_equal_numbers_of_rows() -> None:
    column = np.random.default_rng(1).exponential(size=50_000)
    counts = np.bincount(
        bins_of(column, max_bins=100, split_sample=1.0).encode(column[:, None])[:, 0]
    )
    assert counts[1:].min() >= 450
    assert counts[1:].max() <= 550


def test_255_bins_and_missing_values_fit_one_byte() -> None:
    column = np.append(np.random.default_rng(2).normal(size=5_000), np.nan)
    bins = bins_of(column, max_bins=255, split_sample=1.0)
    assert len(bins.edges(0)) == 254
    assert bins.n_codes(0) == 256
    assert bins.encode(column[:, None]).max() == 255


def test_frequent_values_take_no_bins_from_the_others() -> None:
    """Every frequent value has a bin of its own, and the other rows fill the other bins evenly."""
    rng = np.random.default_rng(3)
    frequent = np.array([-1.0, 0.0, 0.5])
    rest = rng.normal(size=10_000)
    column = np.concatenate([rest, frequent.repeat([20_000, 60_000, 10_000])])
    bins = bins_of(column, max_bins=103, split_sample=1.0)
    assert len(bins.edges(0)) == 102
    counts = np.bincount(bins.encode(column[:, None])[:, 0], minlength=104)[1:]
    own = bins.encode(frequent[:, None])[:, 0] - 1
    # A bin of rest may end at a frequent value when it is up to half full.
    assert (counts[own] <= np.array([20_000, 60_000, 10_000]) + 100).all()
    others = np.delete(counts, own)
    assert len(others) == 100
    assert others.min() >= 49
    assert others.max() <= 151


@given(
    counts=st.lists(st.one_of(st.integers(1, 4), st.integers(1, 500)), min_size=3, max_size=80),
    max_bins=st.integers(2, 40),
)
def test_all_quantile_bins_are_used_and_none_is_too_large(counts: list[int], max_bins: int) -> None:
    """Apart from its most frequent value, no bin has more rows than bins have on average."""
    column = np.arange(len(counts), dtype=np.float64).repeat(counts)
    bins = bins_of(column, max_bins=max_bins, split_sample=1.0)
    assert len(bins.edges(0)) + 1 == min(max_bins, len(counts))
    codes = bins.encode(np.arange(len(counts), dtype=np.float64)[:, None])[:, 0]
    for code in np.unique(codes):
        together = np.array(counts)[codes == code]
        assert (together.sum() - together.max()) * max_bins <= sum(counts)


def test_width_bins_have_about_equal_widths() -> None:
    column = np.random.default_rng(1).exponential(size=50_000)
    edges = bins_of(column, width=True, max_bins=100, split_sample=1.0).edges(0)
    assert np.diff(edges[:20]).max() < 2 * np.diff(edges[:20]).min()


@pytest.mark.parametrize("column", [np.full(50, 4.0), np.full(50, np.nan), np.empty(0)])
def test_columns_without_edges(column: np.ndarray) -> None:
    bins = bins_of(column)
    assert len(bins.edges(0)) == 0
    assert bins.encode(np.array([[4.0], [np.nan], [1e9]]))[:, 0].tolist() == [1, 0, 1]


def test_given_edges_are_used_unchanged() -> None:
    bins = bins_of(np.random.default_rng(0).normal(size=1_000), edges=[-1.0, 0.0, 7.5])
    assert bins.edges(0).tolist() == [-1.0, 0.0, 7.5]
    assert bins.encode(np.array([[-1.0], [-0.5], [7.5], [8.0]]))[:, 0].tolist() == [1, 2, 3, 4]


def test_categories() -> None:
    bins = bins_of(np.array([0.0, 1.0, 2.0]), n_categories=3)
    values = np.array([[0.0], [1.0], [2.0], [3.0], [-1.0], [np.nan]])
    assert bins.encode(values)[:, 0].tolist() == [1, 2, 3, 4, 4, 0]


def test_floats_and_doubles_fall_into_the_same_bins() -> None:
    column = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    bins = bins_of(column)
    singles = bins.encode(column[:, None])
    assert (singles == bins.encode(column[:, None].astype(np.float64))).all()


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(finite, finite)
def test_an_edge_lies_strictly_between(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    if low == high:
        return
    edge = edge_between(low, high)
    assert low <= edge < high
    assert edge > low or not low < low / 2 + high / 2 < high


@pytest.mark.parametrize(
    ("low", "high", "edge"),
    [(1.0, 2.0, 1.5), (0.1, 0.9, 0.5), (99.0, 101.0, 100.0), (-1.0, 3.0, 1.0)],
)
def test_edges_have_few_digits(low: float, high: float, edge: float) -> None:
    assert edge_between(low, high) == edge

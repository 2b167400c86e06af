"""Updates of tables that are mostly zeros: sparse, dense and the reference agree, bit for bit."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse
from graftboost._engine import Forest, SparseTable
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from graftboost import GraftBoostClassifier, GraftBoostRegressor, reference, saving
from graftboost.reference.trees import candidates
from graftboost.sparse import for_engine

from .making import CLASSES, Data, fit_bins, fit_forest, trees, update_forest
from .mutating import Mutator

LOSSES = ["logistic", "softmax", "squared"]
COUNTS = (
    "strategy",
    "trees_touched",
    "nodes_checked",
    "nodes_retrained",
    "rows_retrained",
    "nodes_shifted",
    "rows_shifted",
)


# --- tables -------------------------------------------------------------------------------------


def make_cells(
    rng: np.random.Generator, n_rows: int, n_columns: int, missing: bool, busy: float = 0.3
) -> np.ndarray:
    """Columns that some rows have: none, a few, many or all; some of them only from halfway on."""
    X = np.zeros((n_rows, n_columns))
    half = n_rows // 2
    few = [0.0, 1 / n_rows, 3 / n_rows, 0.05, 0.1]
    for f in range(n_columns):
        shares = few if rng.random() > busy else [0.12, 0.13, 0.3, 0.7, 1.0]
        share = np.full(n_rows, rng.choice(shares))
        if rng.random() < 0.4:
            share[half:] = rng.choice([0.0, 0.1, 0.3, 0.6])
        match rng.integers(5):
            case 0:
                values = np.ones(n_rows)
            case 1:
                values = rng.integers(1, 4, n_rows).astype(float)
            case 2:
                values = rng.normal(size=n_rows).round(1)
            case 3:
                values = rng.normal(size=n_rows)
            case _:
                values = rng.choice([-1.0, 1.0], n_rows)
        X[:, f] = np.where(rng.random(n_rows) < share, values, 0.0)
        if missing and rng.random() < 0.3:
            X[rng.random(n_rows) < rng.choice([0.02, 0.2]), f] = np.nan
    return X


def make_target(rng: np.random.Generator, X: np.ndarray, loss: str) -> np.ndarray:
    """A target that several columns explain, be they rare or not."""
    chosen = rng.choice(X.shape[1], min(5, X.shape[1]), replace=False)
    signal = np.nan_to_num(X[:, chosen]) @ rng.choice([-2.0, 1.0, 3.0], len(chosen))
    signal = signal + rng.normal(scale=0.4, size=len(X))
    if loss == "squared":
        return 30 * signal + 7
    n_classes = CLASSES[loss]
    cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return np.searchsorted(cuts, signal).astype(np.float64)


def make_data(
    seed: int,
    loss: str,
    *,
    n_rows: int,
    n_columns: int,
    weighted: bool = False,
    missing: bool = False,
    categories: bool = False,
    dtype: Any = np.float64,
    busy: float = 0.3,
) -> Data:
    """Rows for the engine, as an array."""
    rng = np.random.default_rng(seed)
    X = make_cells(rng, n_rows, n_columns, missing, busy)
    n_categories = [0] * n_columns
    if categories:
        for f in range(0, n_columns, 3):
            n_categories[f] = int(rng.integers(2, 5))
            others = rng.integers(1, n_categories[f] + 1, n_rows)  # the last is unseen
            X[:, f] = np.where(rng.random(n_rows) < rng.choice([0.02, 0.3, 0.9]), others, 0)
    weight = None
    if weighted:
        weight = rng.exponential(size=n_rows)
        weight[rng.random(n_rows) < 0.15] = 0.0
        weight[0] = weight.max() + 1
    ids = rng.choice(10 * n_rows, n_rows, replace=False).astype(np.int64)
    X = X.astype(dtype)
    return Data(X, make_target(rng, X, loss), weight, ids, tuple(n_categories), loss)


def sparse(data: Data) -> Data:
    """The same rows as a sparse table."""
    return replace(data, X=for_engine(scipy.sparse.csr_array(data.X)))


# --- the engine and the reference ---------------------------------------------------------------

TRAINING: dict[str, Any] = {
    "n_estimators": 2,
    "learning_rate": 0.3,
    "max_leaf_nodes": 6,
    "min_samples_leaf": 5,
    "l2_regularization": 0.1,
}


def find_features(data: Data, rare_below: int) -> list[reference.Feature]:
    options: dict[str, Any] = {"max_bins": 64, "split_sample": 0.5, "seed": 0}
    return [
        reference.Feature(n_categories=n)
        if n
        else reference.fit_feature(data.X[:, f].tolist(), f, rare_below=rare_below, **options)
        for f, n in enumerate(data.n_categories)
    ]


def fit_reference(
    data: Data, features: list[reference.Feature], training: dict[str, Any]
) -> reference.Model:
    return reference.fit(
        data.X.tolist(),
        data.y.tolist(),
        None if data.weight is None else data.weight.tolist(),
        loss=data.loss,
        features=features,
        row_ids=data.ids.tolist(),
        n_classes=CLASSES[data.loss],
        **training,
    )


def assert_same_trees(forest: Forest, model: reference.Model) -> None:
    """Compare every node and every recorded gradient.

    Of a leaf that no candidate can split, the test means nothing.
    """
    assert forest.base_scores.tolist() == model.base
    assert forest.n_trees == len(model.trees)
    for t, tree in enumerate(model.trees):
        nodes = tree.nodes
        expected: dict[str, list[Any]] = {
            "left": [node.left for node in nodes],
            "right": [node.right for node in nodes],
            "parent": [node.parent for node in nodes],
            "leaf": [node.leaf for node in nodes],
            "feature": [node.test.feature for node in nodes],
            "low": [node.test.low for node in nodes],
            "span": [node.test.span for node in nodes],
            "gain": [node.gain for node in nodes],
            "value": [node.value for node in nodes],
            "g": [node.sums.g for node in nodes],
            "h": [node.sums.h for node in nodes],
            "n": [node.sums.n for node in nodes],
        }
        assert {name: values.tolist() for name, values in forest.tree(t).items()} == expected
        recorded = dict(zip(forest.row_ids.tolist(), forest.recorded(t).tolist(), strict=True))
        assert {i: recorded[i] for i in model.gradients[t]} == model.gradients[t]


def follow_reference(
    everything: Data, n_fitted: int, steps: list[Any], seed: int, **changes: Any
) -> None:
    """Fit and update a sparse forest, a dense one, one without memory, and the reference."""
    training = {**TRAINING, **changes}
    rare_below = training["min_samples_leaf"]
    held = everything.take(np.arange(n_fitted))
    features = find_features(held, rare_below)
    bins = fit_bins(sparse(held), rare_below=rare_below)
    for f, feature in enumerate(features):
        assert bins.edges(f).tolist() == list(feature.edges)
    from_dense = fit_bins(held, rare_below=rare_below)
    forests = {
        "sparse": fit_forest(sparse(held), bins, **training),
        "dense": fit_forest(held, from_dense, **training),
        "no memory": fit_forest(sparse(held), bins, stats_memory=0, **training),
        "dense, no memory": fit_forest(held, from_dense, stats_memory=0, **training),
    }
    model = fit_reference(held, features, training)
    rows_now = set(held.ids.tolist())
    assert_same_trees(forests["sparse"], model)
    places = {i: place for place, i in enumerate(everything.ids.tolist())}
    rng = np.random.default_rng(seed)
    for kind, n_out, n_in, (rule_name, tolerance), refreshes in steps:
        inside = np.array(sorted(rows_now), dtype=np.int64)
        outside = np.array(sorted(set(places) - rows_now), dtype=np.int64)
        if kind != "any":
            # Only rows that have something in one column come, or go.
            column = everything.X[:, rng.integers(everything.X.shape[1])]
            has = np.array([column[places[i]] != 0 for i in inside], dtype=bool)
            inside = inside[has] if kind == "drain" else inside[:0]
            has = np.array([column[places[i]] != 0 for i in outside], dtype=bool)
            outside = outside[has] if kind == "flood" else outside[:0]
        out = rng.permutation(inside)[: min(n_out, len(rows_now) - 20)]
        into = everything.take(
            np.array([places[i] for i in rng.permutation(outside)[:n_in]], dtype=np.intp)
        )
        if not len(out) and not len(into.ids):
            continue
        how = (rule_name, tolerance, max(1, int(np.ceil(min(32 * tolerance, 1e9)))))
        found = {}
        for name, forest in forests.items():
            is_sparse = name in ("sparse", "no memory")
            counts = update_forest(forest, sparse(into) if is_sparse else into, out, *how)
            found[name] = tuple(getattr(counts, field) for field in ("refitted", *COUNTS[1:]))
            forest.check_state(n_threads=1)
        assert len(set(found.values())) == 1, found
        rows_now = rows_now - set(out.tolist()) | set(into.ids.tolist())
        if counts.refitted:  # the reference has no opinion on what is cheaper
            order = [places[i] for i in forests["sparse"].row_ids.tolist()]
            model = fit_reference(everything.take(np.array(order)), features, training)
        else:
            weights = [None] * len(into.ids) if into.weight is None else into.weight.tolist()
            rows = zip(into.ids.tolist(), into.X.tolist(), into.y.tolist(), weights, strict=True)
            added = {i: (x, y, w) for i, x, y, w in rows}
            tolerated = reference.ToleranceRule(*how)
            retrained = reference.update(model, added, out.tolist(), tolerated)
            assert retrained == counts.nodes_retrained
        if refreshes:
            for forest in forests.values():
                forest.refresh(n_threads=1)
            reference.refresh(model)
        for forest in forests.values():
            assert_same_trees(forest, model)
            forest.check_state(n_threads=1)
    expected = [model.scores(x) for x in everything.X.tolist()]
    assert forests["sparse"].raw_scores(sparse(everything).X, n_threads=1).tolist() == expected
    assert forests["sparse"].raw_scores(everything.X, n_threads=1).tolist() == expected
    assert forests["dense"].raw_scores(sparse(everything).X, n_threads=1).tolist() == expected


RULES = st.one_of(
    st.tuples(st.just("regret"), st.sampled_from([0.0, 0.1, 1.2, 30.0, np.inf])),
    st.tuples(st.just("rank"), st.sampled_from([0.0, 0.1, 1.0, np.inf])),
)
STEPS = st.tuples(
    st.sampled_from(["any", "any", "flood", "drain"]),
    st.integers(0, 12),
    st.integers(0, 12),
    RULES,
    st.sampled_from([False, False, True]),
)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    weighted=st.booleans(),
    missing=st.booleans(),
    categories=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    n_columns=st.integers(3, 20),
    max_leaf_nodes=st.integers(2, 8),
    min_samples_leaf=st.integers(1, 9),
    subsample=st.sampled_from([1.0, 0.7]),
    steps=st.lists(STEPS, min_size=1, max_size=4),
)
def test_updates_are_those_of_the_reference(
    seed: int,
    loss: str,
    weighted: bool,
    missing: bool,
    categories: bool,
    dtype: Any,
    n_columns: int,
    max_leaf_nodes: int,
    min_samples_leaf: int,
    subsample: float,
    steps: list[Any],
) -> None:
    data = make_data(
        seed,
        loss,
        n_rows=110,
        n_columns=n_columns,
        weighted=weighted,
        missing=missing,
        categories=categories,
        dtype=dtype,
    )
    follow_reference(
        data,
        75,
        steps,
        seed,
        max_leaf_nodes=max_leaf_nodes,
        min_samples_leaf=min_samples_leaf,
        subsample=subsample,
    )


@pytest.mark.parametrize("n_columns", [257, 300, 520])
@pytest.mark.parametrize("how", ["regret", "rank"])
def test_many_columns_and_the_reference(n_columns: int, how: str) -> None:
    """More columns than are watched one by one."""
    loss = LOSSES[n_columns % 3]
    data = make_data(n_columns, loss, n_rows=80, n_columns=n_columns, missing=True, busy=0.05)
    tolerances = [0.1, 1.2, 30.0] if how == "regret" else [0.0, 0.1, 1.0]
    steps = [
        ("any", 2, 2, (how, tolerances[0]), False),
        ("flood", 0, 8, (how, tolerances[1]), False),
        ("any", 3, 0, (how, tolerances[2]), False),
        ("drain", 8, 0, (how, tolerances[1]), False),
    ]
    follow_reference(
        data,
        55,
        steps,
        n_columns,
        max_leaf_nodes=4,
        n_estimators=1 if loss == "softmax" else 2,
    )


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    weighted=st.booleans(),
    missing=st.booleans(),
    rare_below=st.integers(1, 12),
)
def test_splits_stand_among_their_candidates_as_in_the_reference(
    seed: int, loss: str, weighted: bool, missing: bool, rare_below: int
) -> None:
    data = make_data(
        seed, loss, n_rows=100, n_columns=25, weighted=weighted, missing=missing, busy=0.2
    )
    training = {**TRAINING, "min_samples_leaf": rare_below}
    held = data.take(np.arange(80))
    bins = fit_bins(sparse(held), rare_below=rare_below)
    forest = fit_forest(sparse(held), bins, **training)
    model = fit_reference(held, find_features(held, rare_below), training)
    into, out = data.take(np.arange(80, 90)), held.ids[:8]
    counts = update_forest(forest, sparse(into), out, "regret", np.inf)
    if counts.refitted:
        return
    weights = [None] * len(into.ids) if into.weight is None else into.weight.tolist()
    rows = zip(into.ids.tolist(), into.X.tolist(), into.y.tolist(), weights, strict=True)
    added = {i: (x, y, w) for i, x, y, w in rows}
    reference.update(model, added, out.tolist(), reference.ToleranceRule("regret", np.inf))
    codes = {row_id: row.codes for row_id, row in model.rows.items()}
    for t, tree in enumerate(model.trees):
        found, recorded = forest.splits(t), model.recorded(t)
        for s, i in enumerate(found["node"]):
            node = tree.nodes[i]
            left = tree.nodes[node.left].sums
            present = model.settings.gain(node.sums, model.settings.score(node.sums, left))
            worth = [
                (test, model.settings.gain(node.sums, score))
                for score, test in candidates(model.settings, node.rows, codes, recorded)
            ]
            others = (gain for test, gain in worth if test.feature != node.test.feature)
            assert found["gain"][s] == present
            assert found["n_better"][s] == sum(gain > present for _, gain in worth)
            assert found["other_gain"][s] == max(others, default=-np.inf)


@settings(max_examples=150, deadline=None)
@given(
    column=st.lists(
        st.one_of(
            st.just(0.0),
            st.just(0.0),
            st.just(-0.0),
            st.sampled_from([1.0, -1.0, 0.5, np.nan, 5e-324, -5e-324]),
            st.floats(allow_nan=True, allow_infinity=False),
        ),
        min_size=1,
        max_size=80,
    ),
    stored=st.booleans(),
    max_bins=st.integers(2, 40),
    split_sample=st.sampled_from([0.1, 0.5, 1.0]),
    width=st.booleans(),
    rare_below=st.integers(0, 20),
)
def test_bins_are_those_of_the_reference(
    column: list[float],
    stored: bool,
    max_bins: int,
    split_sample: float,
    width: bool,
    rare_below: int,
) -> None:
    values = np.array(column)[:, None]
    table = scipy.sparse.csr_array(values)
    if stored:  # zeros and all
        rows, columns = np.indices(values.shape)
        table = scipy.sparse.csr_array((values.ravel(), (rows.ravel(), columns.ravel())))
    options: dict[str, Any] = {
        "max_bins": max_bins,
        "split_sample": split_sample,
        "width": width,
        "seed": 0,
        "rare_below": rare_below,
    }
    feature = reference.fit_feature(column, 0, **options)
    ids = np.arange(len(column))
    for X in (values, for_engine(table)):
        bins = fit_bins(Data(X, ids.astype(float), None, ids, (0,), "squared"), **options)
        assert bins.edges(0).tolist() == list(feature.edges)
        assert bins.cut.tolist() == ([] if feature is reference.bins.RARE else [0])
        for other in (values, for_engine(table)):
            assert bins.encode(other)[:, 0].tolist() == [feature.code(v) for v in column]


# --- what bounds save, in groups of columns -----------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_columns", [255, 256, 257, 600])
def test_what_bounds_save_decides_nothing(loss: str, n_columns: int) -> None:
    """A copy through bytes has lost the bounds, and yet goes the same way; so has a dense one."""
    data = make_data(n_columns, loss, n_rows=900, n_columns=n_columns, missing=True, busy=0.05)
    held = data.take(np.arange(600))
    training = {**TRAINING, "n_estimators": 4, "max_leaf_nodes": 10, "l2_regularization": 0.0}
    bins = fit_bins(sparse(held), rare_below=5)
    forest = fit_forest(sparse(held), bins, **training)
    dense = fit_forest(held, bins, **training)
    bare = fit_forest(sparse(held), bins, stats_memory=0, **training)
    rng, first = np.random.default_rng(n_columns), 600
    for _ in range(12):
        copied = pickle.loads(pickle.dumps(forest))
        last = first + int(rng.integers(0, 12))
        out = rng.choice(forest.row_ids, rng.integers(1, 10), replace=False)
        into = data.take(np.arange(first, last))
        how = ("regret", rng.choice([0.1, 0.3, 1.2, 1e9])) if rng.random() < 0.7 else ("rank", 0.05)
        found = {
            tuple(getattr(counts, field) for field in ("refitted", *COUNTS[1:]))
            for counts in (
                update_forest(forest, sparse(into), out, *how, places=2),
                update_forest(copied, sparse(into), out, *how, places=2),
                update_forest(dense, into, out, *how, places=2),
                update_forest(bare, sparse(into), out, *how, places=2),
            )
        }
        assert len(found) == 1, found
        expected = trees(forest)
        assert trees(copied) == expected
        assert trees(dense) == expected
        assert trees(bare) == expected
        first = last
    for each in (forest, copied, dense, bare):
        each.check_state(n_threads=1)


# --- tables that lie ----------------------------------------------------------------------------


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
def test_tables_that_are_not_sound_are_refused(begin: list[int], columns: list[int]) -> None:
    forest = fit_forest(make_data(0, "squared", n_rows=50, n_columns=3))

    def use() -> None:
        table = SparseTable(
            np.array(begin, dtype=np.int64), np.array(columns, dtype=np.int32), np.ones(3), 3
        )
        forest.raw_scores(table, n_threads=1)

    with pytest.raises((ValueError, IndexError)):
        use()


# --- files that are almost right ----------------------------------------------------------------


@pytest.mark.parametrize(("n_columns", "weighted"), [(12, False), (20, True), (300, False)])
def test_mutations(n_columns: int, weighted: bool) -> None:
    """No file makes the engine read or write where it should not."""
    loss = LOSSES[n_columns % 3]
    data = make_data(
        3, loss, n_rows=70, n_columns=n_columns, weighted=weighted, missing=True, busy=0.2
    )
    held = data.take(np.arange(55))
    bins = fit_bins(sparse(held), rare_below=4)
    training = {**TRAINING, "max_leaf_nodes": 5, "min_samples_leaf": 4}
    forest = fit_forest(sparse(held), bins, **training)
    update_forest(forest, sparse(data.take(np.arange(55, 66))), held.ids[:2], tolerance=1e9)
    mutate = Mutator(saving.pack_forest(forest))
    n_refused = sum(not use(mutate(seed), data, seed) for seed in range(400))
    assert 120 < n_refused < 400


def use(content: bytes, data: Data, seed: int) -> bool:
    """Do all that there is to do with a model, if it is one."""
    try:
        forest = saving.unpack_forest(content)
        forest.raw_scores(sparse(data).X, 1)
        forest.apply(data.X, 1)
        forest.held_rows(forest.row_ids[:5].copy())
        rng = np.random.default_rng(seed)
        added = sparse(replace(data.take(np.arange(3)), ids=10**6 + np.arange(3)))
        update_forest(forest, added, rng.choice(forest.row_ids, 4, replace=False), tolerance=0.3)
        forest.refresh(1)
        forest.splits(0)
        forest.refit(1)
        forest.check_state(1)
    except (ValueError, RuntimeError, TypeError, OverflowError, IndexError):
        return False
    return True


# --- estimators ---------------------------------------------------------------------------------

N_POOL = 150


def as_form(X: np.ndarray, form: str) -> Any:
    """The same table in another form; "messy" has all that a sparse table may have."""
    match form:
        case "dense":
            return X
        case "csc":
            return scipy.sparse.csc_matrix(X)
        case "messy":
            rows, columns = np.nonzero(X)
            values = X[rows, columns] / 2  # each cell comes twice, and zeros among them
            zeros = np.zeros(len(X), dtype=X.dtype)
            order = np.random.default_rng(len(values)).permutation(2 * len(values) + len(X))
            parts = [
                np.concatenate([values, values, zeros])[order],
                np.concatenate([rows, rows, np.arange(len(X))])[order],
                np.concatenate([columns, columns, np.arange(len(X)) % X.shape[1]])[order],
            ]
            by_row = np.argsort(parts[1], kind="stable")
            begin = np.searchsorted(parts[1][by_row], np.arange(len(X) + 1))
            return scipy.sparse.csr_matrix((parts[0][by_row], parts[2][by_row], begin), X.shape)
        case _:
            return scipy.sparse.csr_array(X)


class Sequences(RuleBasedStateMachine):
    """The same updates to models of every sort, which stay the same model."""

    columns = (3, 40)
    n_estimators = 3
    bytes_for: ClassVar[dict[str, float]] = {"bare": 0, "bare dense": 0.0, "tight": 5_000}

    @initialize(
        seed=st.integers(0, 100_000),
        loss=st.sampled_from(LOSSES),
        weighted=st.sampled_from(["no", "yes", "later"]),
        missing=st.booleans(),
        categories=st.booleans(),
        subsample=st.sampled_from([1.0, 0.7]),
        max_leaf_nodes=st.integers(2, 12),
        min_samples_leaf=st.integers(1, 12),
        l2_regularization=st.sampled_from([0.0, 0.5]),
        dtype=st.sampled_from([np.float32, np.float64]),
        n_fitted=st.integers(30, 100),
        unseen=st.booleans(),
        binning=st.sampled_from(["quantile", "width"]),
        data=st.data(),
    )
    def fit(
        self,
        seed: int,
        loss: str,
        weighted: str,
        missing: bool,
        categories: bool,
        subsample: float,
        max_leaf_nodes: int,
        min_samples_leaf: int,
        l2_regularization: float,
        dtype: Any,
        n_fitted: int,
        unseen: bool,
        binning: str,
        data: Any,
    ) -> None:
        self.rng = rng = np.random.default_rng(seed)
        n_columns = data.draw(st.integers(*self.columns))
        busy = 0.3 if n_columns < 100 else 0.05
        self.X = make_cells(rng, N_POOL, n_columns, missing, busy).astype(dtype)
        self.y: Any = make_target(rng, self.X, loss)
        if loss != "squared":
            self.y = np.array(["ash", "birch", "cedar"])[self.y.astype(int)]
        self.weight = rng.exponential(size=N_POOL) + (rng.random(N_POOL) < 0.8) - 0.3
        self.weight = self.weight.clip(0.0)
        self.weighted = weighted
        can_be_fitted = np.arange(N_POOL)
        if unseen and loss == "softmax":
            can_be_fitted = can_be_fitted[self.y != "birch"]
        first = can_be_fitted[:n_fitted]
        for label in np.unique(self.y[first]) if loss != "squared" else []:
            self.weight[first[self.y[first] == label][0]] = 1.0  # every class has to count
        self.weight[first[0]] = 2.0
        parameters: dict[str, Any] = {
            "n_estimators": self.n_estimators,
            "learning_rate": 0.3,
            "subsample": subsample,
            "max_leaf_nodes": max_leaf_nodes,
            "min_samples_leaf": min_samples_leaf,
            "l2_regularization": l2_regularization,
            "binning": binning,
            "max_bins": 64,
            "split_sample": 0.5,
            "categorical_features": [0, n_columns - 1] if categories else None,
            "n_jobs": 1,
        }
        Estimator = GraftBoostRegressor if loss == "squared" else GraftBoostClassifier
        self.forms = {"sparse": "csr", "dense": "dense", "bare": "csr", "bare dense": "dense"}
        self.forms["tight"] = "messy"
        weight = self.weight[first] if weighted == "yes" else None
        self.models = {
            name: Estimator(stats_memory=self.bytes_for.get(name), **parameters).fit(
                as_form(self.X[first], form), self.y[first], weight, row_ids=first
            )
            for name, form in self.forms.items()
        }
        self.held = set(first.tolist())

    def change(self, out: np.ndarray, into: np.ndarray, how: tuple[str, float]) -> None:
        """Make one update to all models, and compare what they report."""
        if len(out) >= len(self.held) + len(into):
            out = out[1:]
        if not len(out) and not len(into):
            return
        weighted = self.weighted == "yes" or (self.weighted == "later" and into.sum() % 4 == 0)
        reports = {}
        forms = {**self.forms, "tight": self.rng.choice(["dense", "csc", "messy"])}
        for name, model in self.models.items():
            model.set_params(tolerance_rule=how[0], tolerance=how[1])
            rows: dict[str, Any] = {}
            if len(into):
                rows["X"] = as_form(self.X[into], forms[name])
                rows["y"] = self.y[into]
                rows["sample_weight"] = self.weight[into] if weighted else None
                rows["row_ids"] = into
            reports[name] = model.update(**rows, remove=out)
        found = {
            name: tuple(getattr(report, field) for field in COUNTS)
            for name, report in reports.items()
        }
        assert len(set(found.values())) == 1, found
        for report in reports.values():
            assert sorted(report.added_ids.tolist()) == sorted(into.tolist())
            assert sorted(report.removed_ids.tolist()) == sorted(out.tolist())
        self.held = self.held - set(out.tolist()) | set(into.tolist())

    def outside(self) -> np.ndarray:
        return self.rng.permutation(np.array(sorted(set(range(N_POOL)) - self.held), dtype=int))

    def inside(self) -> np.ndarray:
        return self.rng.permutation(np.array(sorted(self.held), dtype=int))

    @rule(n_out=st.integers(0, 10), n_in=st.integers(0, 10), how=RULES)
    def update(self, n_out: int, n_in: int, how: tuple[str, float]) -> None:
        out = self.inside()[: min(n_out, len(self.held) - 10)]
        self.change(out, self.outside()[:n_in], how)

    @rule(place=st.integers(0, 10_000), most=st.integers(1, 40), how=RULES)
    def add_rows_that_have_a_column(self, place: int, most: int, how: tuple[str, float]) -> None:
        column = self.X[:, place % self.X.shape[1]]
        into = self.outside()
        self.change(np.array([], dtype=int), into[column[into] != 0][:most], how)

    @rule(place=st.integers(0, 10_000), most=st.integers(1, 40), how=RULES)
    def remove_rows_that_have_a_column(self, place: int, most: int, how: tuple[str, float]) -> None:
        column = self.X[:, place % self.X.shape[1]]
        out = self.inside()
        out = out[column[out] != 0][: min(most, len(self.held) - 10)]
        self.change(out, np.array([], dtype=int), how)

    @rule()
    def refit(self) -> None:
        for model in self.models.values():
            model.refit()

    @rule()
    def refresh(self) -> None:
        for model in self.models.values():
            model.refresh()

    @rule(deep=st.booleans(), name=st.sampled_from(["sparse", "dense", "bare", "tight"]))
    def copy(self, deep: bool, name: str) -> None:
        model = self.models[name]
        self.models[name] = copy.deepcopy(model) if deep else pickle.loads(pickle.dumps(model))

    @precondition(lambda self: hasattr(self, "models"))
    @invariant()
    def are_the_same_model(self) -> None:
        dense = self.models["dense"]
        expected = dense._raw_scores(self.X)
        importances = dense.feature_importances_.tolist()
        table = scipy.sparse.csr_matrix(self.X)
        for model in self.models.values():
            assert model.feature_importances_.tolist() == importances
        for model in self.models.values():
            model.check_state()
            assert set(model.row_ids_.tolist()) == self.held
            assert np.array_equal(model._raw_scores(self.X), expected)
            assert np.array_equal(model._raw_scores(table), expected)
            assert trees(model._forest) == trees(dense._forest)


class WideSequences(Sequences):
    """The same with more columns than are watched one by one."""

    columns = (257, 400)


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=25, stateful_step_count=12, deadline=None)
TestWideSequences = WideSequences.TestCase
TestWideSequences.settings = settings(max_examples=8, stateful_step_count=12, deadline=None)

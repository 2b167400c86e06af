"""Updates with sparse tables give the same models as updates with arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from tests.input.sparse_tables import (
    N_ROWS,
    TARGETS,
    WEIGHT,
    X,
    assert_same,
    assert_same_report,
    make_model,
)

RULES: list[dict[str, Any]] = [
    *[{"update_rule": "fidelity", "fidelity": fidelity} for fidelity in (0.0, 0.75, 1.0)],
    *[{"update_rule": "regret", "tolerance": tolerance} for tolerance in (0.0, None, np.inf)],
    *[{"update_rule": "rank", "tolerance": tolerance} for tolerance in (0.0, 0.05, np.inf)],
]


def some(values: np.ndarray | None, rows: Any) -> np.ndarray | None:
    return None if values is None else values[rows]


@pytest.mark.parametrize("first", ["sparse", "dense"])
@pytest.mark.parametrize("target", TARGETS)
def test_sparse_and_dense_updates_can_be_mixed(target: str, first: str) -> None:
    y = TARGETS[target]
    tables = [scipy.sparse.csr_array, np.asarray, scipy.sparse.csc_matrix, np.asfortranarray]
    if first == "dense":
        tables = tables[1:] + tables[:1]
    model = make_model(target).fit(tables[0](X[:150]), y[:150])
    dense = make_model(target).fit(X[:150], y[:150])
    for turn, begin in enumerate(range(150, N_ROWS, 15)):
        rows = slice(begin, begin + 15)
        out = dense.row_ids_[:: 20 + turn]
        report = model.update(tables[turn % 4](X[rows]), y[rows], remove=out)
        assert_same_report(report, dense.update(X[rows], y[rows], remove=out))
        assert_same(model, dense)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_updates_equal_those_with_arrays(target: str, weighted: bool, rule: dict[str, Any]) -> None:
    y, weight = TARGETS[target], WEIGHT if weighted else None
    models = [
        make_model(target, stats_memory=memory, subsample=0.8, **rule).fit(
            make(X[:180]), y[:180], some(weight, slice(180))
        )
        for make in (scipy.sparse.csr_array, np.asarray)
        for memory in (None, 0, 4_000)
    ]
    for turn in range(5):
        into = slice(180 + 12 * turn, 192 + 12 * turn)
        out = models[0].row_ids_[turn::31]
        reports = [
            model.update(make(X[into]), y[into], some(weight, into), remove=out)
            for model, make in zip(
                models, [scipy.sparse.csc_array] * 3 + [np.asarray] * 3, strict=True
            )
        ]
        for model, report in zip(models[1:], reports[1:], strict=True):
            assert_same_report(report, reports[0])
            assert_same(model, models[0])
        if turn in (2, 3):
            for model in models:
                model.refresh() if turn == 2 else model.refit()
            for model in models[1:]:
                assert_same(model, models[0])


def test_unseen_classes_and_first_weights() -> None:
    y = TARGETS["three classes"]
    known = np.flatnonzero(y != 1)
    model = make_model().fit(scipy.sparse.csr_array(X[known]), y[known], row_ids=known)
    dense = make_model().fit(X[known], y[known], row_ids=known)
    unseen = np.flatnonzero(y == 1)
    report = model.add(scipy.sparse.csr_array(X[unseen]), y[unseen], row_ids=unseen)
    assert report.strategy == "refit"
    assert_same_report(report, dense.add(X[unseen], y[unseen], row_ids=unseen))
    assert model.classes_.tolist() == [0, 1, 2]
    assert_same(model, dense)
    report = model.add(scipy.sparse.csr_array(X[:9]), y[:9], np.full(9, 2.5))
    assert report.strategy == "refit"
    assert_same_report(report, dense.add(X[:9], y[:9], np.full(9, 2.5)))
    assert_same(model, dense)


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, np.asarray])
def test_stats_memory_may_change_between_updates(make: Any) -> None:
    y = TARGETS["three classes"]
    model = make_model().fit(make(X[:180]), y[:180])
    other = make_model(stats_memory=0).fit(make(X[:180]), y[:180])
    for turn, memory in enumerate([0, None, 3_000, np.inf, 0.0, 1, None, 50]):
        other.set_params(stats_memory=memory)
        into = slice(180 + 5 * turn, 185 + 5 * turn)
        report = model.update(make(X[into]), y[into], remove=[turn, 20 + turn])
        assert_same_report(other.update(make(X[into]), y[into], remove=[turn, 20 + turn]), report)
        assert_same(other, model)

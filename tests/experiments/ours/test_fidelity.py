"""Fidelity, estimated and measured, on a few digits and patients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits

pytest.importorskip("matplotlib")

from benchmarks.settings import Settings
from datasets import Dataset
from experiments.harness.results import Done, Results
from experiments.ours.fidelity import EXPERIMENT, measuring
from experiments.ours.fidelity.tables import cells, estimated, is_known, measured, total_ratio
from tests.experiments.measured import measured as measure_cases

NAMES = ("digits", "diabetes")


def _load(name: str) -> Dataset:
    X, y = (load_digits if name == "digits" else load_diabetes)(return_X_y=True)
    task: Any = "classification" if name == "digits" else "regression"
    X, y = X[:300].astype("float32"), y[:300]
    return Dataset(name, task, X, y.astype(np.int64 if name == "digits" else float), X[:9], y[:9])


@pytest.fixture(scope="module")
def results() -> Results:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring.datasets, "load", _load)
        patch.setattr(measuring, "Settings", lambda: Settings(iterations=5, leaves=6, threads=1))
        patch.setattr(measuring, "SIZES", {"1 row": 1.0, "5 rows": 5.0, "0.1%": 0.05, "1%": 0.1})
        plan = {"quick": dict.fromkeys(NAMES, (280, (3, 2, 2, 1)))}
        patch.setattr(measuring, "DATA", plan)
        return measure_cases(EXPERIMENT.name, EXPERIMENT.cases("quick"))


def test_every_case_is_measured_both_ways(results: Results) -> None:
    assert len(list(results.where())) == len(NAMES) * 2 * 4
    for done in results.where():
        assert done.values["rows"] in (1, 5, 14, 28)
        assert ("groups" in done.values) == (done.labels["way"] == "remove")
        assert 0 <= done.values["auc_updated"] <= 1


def test_pooled_figures() -> None:
    values: dict[str, Any] = {
        "by_update": [1.0, 2.0],
        "by_refit": [2.0, 2.0],
        "achieved": [1.0, 2.0],
        "left": [1.0, 0.0],
        "groups": [[0.1, 0.2], [0.5, 0.4]],
    }
    assert measured(values).value == estimated(values) == 0.75
    assert total_ratio(values) == pytest.approx(1.0)
    assert np.isnan(estimated({"achieved": [0.0], "left": [0.0]}))


def test_pages_name_what_is_off(results: Results) -> None:
    shown = EXPERIMENT.tables(results)
    for name in NAMES:
        assert f"| {name} | forgetting |" in shown
        assert f"| {name} | learning |" in shown
    known = [name for name, ratio, _ in cells(results) if is_known(ratio)]
    assert (EXPERIMENT.answer(results) != "") == bool(known)
    assert len(EXPERIMENT.goals(results)) == 5
    empty = Results(EXPERIMENT.name, "quick")
    assert EXPERIMENT.answer(empty) == EXPERIMENT.remark(empty) == ""


def test_remark_lists_cases_outside_of_the_range() -> None:
    results = Results(EXPERIMENT.name, "quick")
    values = {"by_update": [3.0] * 5, "by_refit": [2.0] * 5, "achieved": [3.0], "left": [1.0]}
    groups = [[0.1 * i, 0.2 * i] for i in range(10)]
    values |= {"groups": groups, "auc_untouched": 0.7, "auc_updated": 0.6}
    labels: dict[str, Any] = {"data": "adult", "way": "remove", "size": "0.1%"}
    results.add(Done(labels, values, 0.1))
    remark = EXPERIMENT.remark(results)
    assert "outside of 0.75 to 1.2 for adult, remove 0.1% (1.50)" in remark
    assert "adult, remove 0.1% (0.75 instead of 1.50)" in remark
    assert "does not rise" not in remark
    groups[-1][1] = 0.0
    assert "does not rise from one to the next on adult" in EXPERIMENT.remark(results)
    verdicts = [goal.verdict() for goal in EXPERIMENT.goals(results)]
    assert [verdict.split(":")[0] for verdict in verdicts] == ["yes", "yes", "no", "no", "no"]


def test_a_panel_for_each_data_set(results: Results) -> None:
    assert len(EXPERIMENT.draw(results).axes) == len(NAMES)

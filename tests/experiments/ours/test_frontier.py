"""Forgetting against cost, on a few digits."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.datasets import load_digits

pytest.importorskip("matplotlib")

from benchmarks.settings import Settings
from benchmarks.updates.forgetting import estimated
from datasets import Dataset
from experiments.harness import draws
from experiments.harness.results import Done, Results
from experiments.ours import frontier
from experiments.ours.frontier import EXPERIMENT, _points

NAMES = ("optdigits", "pendigits")
NEW_SAMPLES = ("achieved", "memory_left")


def _digits(name: str, *arguments: Any, **named: Any) -> Dataset:
    X, y = load_digits(return_X_y=True)
    X = X.astype("float32")
    return Dataset(name, "classification", X[:400], y[:400], X[400:600], y[400:600])


@pytest.fixture(scope="module")
def results() -> Results:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontier.datasets, "load", _digits)
        patch.setattr(draws, "Settings", lambda: Settings(iterations=5, leaves=6, threads=1))
        patch.setattr(frontier, "DATA", {"quick": dict.fromkeys(NAMES, 2)})
        measured = Results(EXPERIMENT.name, "quick", "today")
        for case in EXPERIMENT.cases("quick"):
            measured.add(Done(dict(case.labels), case.measure(), 0.1))
    return measured


def test_both_controls_are_in_the_table(results: Results) -> None:
    text = EXPERIMENT.tables(results)
    for name in NAMES:
        assert f"| {name} | untouched | - | 0 | - | 0% | 0 | - |" in text
    assert text.count("|  | refit | - | 1 | - | 100% | 1 | - |") == len(NAMES)


def test_the_estimated_fidelity_is_beside_the_measured_forgetting(results: Results) -> None:
    lines = EXPERIMENT.tables(results).splitlines()
    (head,) = (line for line in lines if line.startswith("| data set"))
    assert "| forgetting | estimated | rows regrown |" in head
    for target in frontier.VALUES["quick"]["fidelity"]:
        of_target = [line for line in lines if f"| fidelity, the default | {target:g} |" in line]
        records = [dict(_points(results, name, "fidelity"))[target] for name in NAMES]
        assert len(of_target) == len(NAMES)
        for line, record in zip(of_target, records, strict=True):
            estimate = estimated(record)
            assert estimate is not None
            assert line.split(" | ")[4] == f"{estimate:.2f}"
    # The other rules estimate nothing.
    for line in lines:
        if "| regret |" in line or "| rank, the paper's σ |" in line:
            assert line.split(" | ")[4] == "-"


def test_results_from_before_the_fidelity_rule_can_be_shown(results: Results) -> None:
    old = Results(EXPERIMENT.name, "quick", "today")
    for done in results.where():
        records = [
            {**r, "samples": {k: v for k, v in r["samples"].items() if k not in NEW_SAMPLES}}
            for r in done.values["records"]
            if not r["library"].startswith("fidelity")
        ]
        old.add(Done(done.labels, {"records": records}, 0.1))
    text = EXPERIMENT.tables(old)
    assert "| regret | 1.2 |" in text
    assert "fidelity, the default" not in text
    assert EXPERIMENT.answer(old) == EXPERIMENT.remark(old) == ""
    for axis in EXPERIMENT.draw(old).axes:
        assert len(axis.containers) == len(frontier.TITLES) - 1


def test_the_answer_and_the_discussion_compare_both_rules(results: Results) -> None:
    assert "the default, a fidelity of 0.85, achieves" in EXPERIMENT.answer(results)
    assert "The paper's rule with σ = 0.1 achieves" in EXPERIMENT.answer(results)
    assert all(f"({name})" in EXPERIMENT.remark(results) for name in NAMES)
    empty = Results(EXPERIMENT.name, "quick")
    assert EXPERIMENT.answer(empty) == EXPERIMENT.remark(empty) == ""


def test_the_dashed_line_is_labelled_and_points_have_intervals(results: Results) -> None:
    figure = EXPERIMENT.draw(results)
    assert len(figure.axes) == len(NAMES)
    for axis in figure.axes:
        _, labels = axis.get_legend_handles_labels()
        assert "refit: forgetting 1" in labels
        assert len(axis.containers) == len(frontier.TITLES)  # points with error bars

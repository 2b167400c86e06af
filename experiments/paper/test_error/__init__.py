"""Test error after training, after adding rows and after removing rows (Table 6)."""

from __future__ import annotations

from collections.abc import Iterable

from datasets import paper
from datasets.paper import SETS
from experiments.harness.draws import SIZES
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.paper.test_error.measuring import PEERS, Errors, installed
from experiments.paper.test_error.showing import answer, draw, goals, remark, tables

SPLITS, QUICK_SPLITS = 5, 2
QUICK, QUICK_ROWS = ("adult", "optdigits", "abalone"), 1_500
LARGE = ("susy", "covtype")  # only their first split is updated and compared with other libraries
SLOWEST = "sklearn"  # on these sets, slower than all others together


def cases(scale: Scale) -> Iterable[Case]:
    """One case for each data set and split; the data that replaces SUSY is split once."""
    for name in SETS if scale == "full" else QUICK:
        splits = 1 if name == "susy" else SPLITS if scale == "full" else QUICK_SPLITS
        for split in range(splits):
            labels = {"data": name, "split": split}
            yield Case(labels, lambda name=name, split=split: _measure(name, split, scale))


def _measure(name: str, split: int, scale: Scale) -> Values:
    data = paper.load(name, split, max_rows=None if scale == "full" else QUICK_ROWS)
    # An official split does not vary, so the seed of the model does.
    errors = Errors(data, seed=split)
    peers, skipped = installed([p for p in PEERS if name not in LARGE or p != SLOWEST])
    values: Values = {"n_test": len(data.y_test), "skipped": skipped}
    if name in LARGE and split > 0:
        return {**values, "trained": errors.trained(())}
    values["trained"] = errors.trained(peers)
    values["updated"] = errors.updated(SIZES)
    return values


EXPERIMENT = Experiment(
    name="test-error",
    title="Test error",
    question=(
        "Is a model as accurate after an update as a retrained model, and as accurate as the "
        "paper's? Each data set is split at random five times into the paper's sizes; where it has "
        "an official split, five seeds are used. Rows are added to a model that was trained "
        "without them, or removed from a model that was trained on all. The error is the share of "
        "misclassified rows, or the mean squared error of targets scaled to [0, 1]."
    ),
    paper="Table 6",
    caption=(
        "Mean test error after rows were added (+) and removed (-). The dashed line is the "
        "untouched model. A star marks data that replaces the paper's."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
    goals=goals,
)

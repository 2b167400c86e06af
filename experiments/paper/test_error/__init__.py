"""The test error after training, after adding rows and after removing them."""

from __future__ import annotations

from collections.abc import Iterable

from datasets import paper
from datasets.paper import SETS
from experiments.harness.draws import SIZES
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.paper.test_error.measuring import PEERS, Errors, installed
from experiments.paper.test_error.showing import draw, goals, remark, tables

SPLITS, QUICK_SPLITS = 5, 2
QUICK, QUICK_ROWS = ("adult", "optdigits", "abalone"), 1_500
LARGE = ("susy", "covtype")  # only their first split is updated and shown to the peers
SLOWEST = "sklearn"  # which takes longer on them than all others together


def cases(scale: Scale) -> Iterable[Case]:
    """One for each data set and split; the stand-in for SUSY is split once."""
    for name in SETS if scale == "full" else QUICK:
        splits = 1 if name == "susy" else SPLITS if scale == "full" else QUICK_SPLITS
        for split in range(splits):
            labels = {"data": name, "split": split}
            yield Case(labels, lambda name=name, split=split: _measure(name, split, scale))


def _measure(name: str, split: int, scale: Scale) -> Values:
    data = paper.load(name, split, max_rows=None if scale == "full" else QUICK_ROWS)
    # An official split is always the same: what can vary is the seed of the model.
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
        "Is a model as good after an update as one that is trained again, and as good as the "
        "paper's? Each set is split at random five times in the paper's sizes, or, where it has an "
        "official split, drawn from with five seeds. Rows are added to a model that was trained "
        "without them, or removed from one that was trained on all. The error is the share of "
        "wrong classes, or the mean squared error of targets scaled to [0, 1]."
    ),
    paper="Table 6",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
    goals=goals,
)

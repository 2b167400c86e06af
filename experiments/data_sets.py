"""The paper's data sets: how large they are there and here, and in what ours differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

import numpy as np

from benchmarks.markdown import in_percent, table
from datasets import Dataset, paper
from datasets.paper import SETS, PaperSet
from experiments.experiment import Case, Experiment, Scale, Values
from experiments.results import Results
from graftboost.audit import plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES = {"global_temperatures": "GlobalTemperatures", "web_traffic": "WebTraffic"}
SIZES = ("n_train", "n_test", "n_features", "n_classes")


def cases(scale: Scale) -> Iterable[Case]:
    """One for each data set, of the same size at both scales."""
    for name in SETS:
        yield Case({"data": name}, lambda name=name: sizes_of(paper.load(name)))
    for name in get_args(paper.Series):
        yield Case({"data": name}, lambda name=name: _series(name))


def sizes_of(data: Dataset) -> Values:
    """How large a data set is; a regression has 0 classes."""
    X = data.X_train
    classified = data.task == "classification"
    return {
        "n_train": len(X),
        "n_test": len(data.X_test),
        "n_features": X.shape[1],
        "n_classes": int(data.y_train.max()) + 1 if classified else 0,
        "missing": float(np.isnan(X).mean()),
    }


def _series(name: paper.Series) -> Values:
    X, _ = paper.series(name)
    return {"n_rows": len(X), "n_features": X.shape[1]}


def starred(name: str) -> str:
    """Title of a data set, with a star where another stands in for the paper's."""
    return SETS[name].title + ("*" if SETS[name].stand_in else "")


def tables(results: Results) -> str:
    """Ours beside the paper's."""
    rows = []
    for name, wanted in SETS.items():
        if (found := results.find(data=name)) is not None:
            sizes = [_beside(found[size], getattr(wanted, size)) for size in SIZES]
            missing = in_percent(found["missing"]) if found["missing"] else "none"
            rows.append([wanted.title, *sizes, missing, _note(wanted)])
    head = ["data set", "rows to train", "rows to test", "features", "classes", "missing", "note"]
    parts = ["In brackets what the paper has, where it is not the same.", table(head, rows)]
    series = [
        [title, f"{found['n_rows']:,}", f"{found['n_features']}"]
        for name, title in SERIES.items()
        if (found := results.find(data=name)) is not None
    ]
    if series:
        parts.append("The two time series, of which the paper gives no sizes:")
        parts.append(table(["series", "rows", "values before each"], series))
    return "\n\n".join(parts)


def _beside(ours: int, theirs: int) -> str:
    written = [f"{value:,}" if value else "regression" for value in (ours, theirs)]
    return written[0] if ours == theirs else f"{written[0]} ({written[1]})"


def _note(wanted: PaperSet) -> str:
    split = "official split" if wanted.official else "split at random"
    note = wanted.stand_in or wanted.differs
    return f"{split}; {note}" if note else split


def draw(results: Results) -> Figure:
    """Rows to train on, ours and the paper's."""
    figure, (axis,) = plotting.panels(1, size=(7.2, 3.2))
    names = [name for name in SETS if results.find(data=name) is not None]
    ours = [(results.find(data=name) or {})["n_train"] for name in names]
    groups = [starred(name) for name in names]
    theirs = [SETS[name].n_train for name in names]
    plotting.bars(axis, groups, {"here": ours, "in the paper": theirs})
    axis.set_title("Rows to train on (* a stand-in here)")
    plotting.logarithmic(axis)
    plotting.legend(figure)
    return figure


def remark(results: Results) -> str:
    """Where ours are smaller."""
    names = [name for name in SETS if results.find(data=name) is not None]
    equal = [n for n in names if (results.find(data=n) or {})["n_train"] == SETS[n].n_train]
    replaced = [SETS[name].title for name in names if SETS[name].stand_in]
    sentences = [f"{len(equal)} of {len(names)} have exactly the paper's number of rows to train."]
    if replaced:
        sentences.append(
            f"{' and '.join(replaced)} are stand-ins: their figures say nothing about the paper's, "
            "and tables beside the paper mark them."
        )
    sentences.append(
        "The paper does not say how it filled missing values or coded categories; here missing "
        "values stay missing, categories are numbers, and Adult alone is one-hot coded."
    )
    return " ".join(sentences)


EXPERIMENT = Experiment(
    name="datasets",
    title="Data sets",
    question=(
        "Which data is used, and is it the paper's? Each set is prepared and split in the paper's "
        "sizes; where it could not be had, another stands in and says so."
    ),
    paper="Table 1",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)

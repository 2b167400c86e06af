"""The paper's data sets (Table 1): their sizes there and here, and how ours differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

import numpy as np

from benchmarks.markdown import in_percent, listed, table
from datasets import Dataset, paper
from datasets.paper import SETS, PaperSet
from experiments.harness.data_sets import SERIES, starred
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Results
from graftboost.audit import plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = ("n_train", "n_test", "n_features", "n_classes")


def cases(scale: Scale) -> Iterable[Case]:
    """One case for each data set, with the same size at both scales."""
    for name in SETS:
        yield Case({"data": name}, lambda name=name: sizes_of(paper.load(name)))
    for name in get_args(paper.Series):
        yield Case({"data": name}, lambda name=name: _series(name))


def sizes_of(data: Dataset) -> Values:
    """Sizes of a data set; a regression has 0 classes."""
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


def tables(results: Results) -> str:
    """Our sizes, and the paper's."""
    rows = []
    for name, wanted in SETS.items():
        if (found := results.find(data=name)) is not None:
            sizes = [_beside(found[size], getattr(wanted, size)) for size in SIZES]
            missing = in_percent(found["missing"]) if found["missing"] else "none"
            rows.append([wanted.title, *sizes, missing, _note(wanted)])
    head = ["data set", "training rows", "test rows", "features", "classes", "missing", "note"]
    parts = ["The paper's figure is given in brackets where it differs.", table(head, rows)]
    series = [
        [title, f"{found['n_rows']:,}", f"{found['n_features']}"]
        for name, title in SERIES.items()
        if (found := results.find(data=name)) is not None
    ]
    if series:
        parts.append("The two time series, whose sizes the paper does not give:")
        parts.append(table(["series", "rows", "preceding values used"], series))
    return "\n\n".join(parts)


def _beside(ours: int, theirs: int) -> str:
    written = [f"{value:,}" if value else "regression" for value in (ours, theirs)]
    return written[0] if ours == theirs else f"{written[0]} ({written[1]})"


def _note(wanted: PaperSet) -> str:
    split = "official split" if wanted.official else "random split"
    note = wanted.stand_in or wanted.differs
    return f"{split}; {note}" if note else split


def draw(results: Results) -> Figure:
    """Training rows, ours and the paper's, as points on a logarithmic axis."""
    figure, (axis,) = plotting.panels(1, size=(7.2, 3.4))
    names = _names(results)
    ours = [(results.find(data=name) or {})["n_train"] for name in names]
    theirs = [SETS[name].n_train for name in names]
    places = range(len(names))
    axis.hlines(places, ours, theirs, color="#cccccc", linewidth=2, zorder=1)
    for title, rows, colour, marker in (
        ("in the paper", theirs, plotting.COLOURS[1], "s"),
        ("here", ours, plotting.COLOURS[0], "o"),
    ):
        axis.plot(rows, places, linestyle="", color=colour, marker=marker, label=title)
    axis.set_yticks(places, [starred(name) for name in names])
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.grid(True, axis="x", color="#e6e6e6", linewidth=0.8)
    axis.set_xlabel("training rows")
    plotting.legend(figure)
    return figure


def _names(results: Results) -> list[str]:
    return [name for name in SETS if results.find(data=name) is not None]


def answer(results: Results) -> str:
    """How many sets are the paper's."""
    names = _names(results)
    equal = [n for n in names if (results.find(data=n) or {})["n_train"] == SETS[n].n_train]
    text = f"{len(equal)} of {len(names)} data sets have the paper's number of training rows."
    if replaced := [SETS[name].title for name in names if SETS[name].stand_in]:
        text += (
            f" {listed(replaced)} are replaced by other data: their figures are not comparable "
            "with the paper's, and they are marked with a star."
        )
    return text


def remark(results: Results) -> str:
    """How the data is prepared."""
    return (
        "The paper does not state how it filled missing values or coded categories. Here, missing "
        "values stay missing, categories are numbers, and only Adult is one-hot encoded."
    )


EXPERIMENT = Experiment(
    name="datasets",
    title="Data sets",
    question=(
        "Which data is used, and is it the paper's? Each data set is prepared and split into the "
        "paper's sizes. Where the original data is not available, other data replaces it."
    ),
    paper="Table 1",
    caption="Training rows here and in the paper. A star marks data that replaces the paper's.",
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

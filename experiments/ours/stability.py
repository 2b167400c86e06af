"""How far a model wanders in a long sequence of updates, beside what a refit does."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import datasets
from benchmarks.libraries import LIBRARIES, OURS
from benchmarks.markdown import table
from benchmarks.settings import Settings
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Results
from graftboost.audit.plotting import COLOURS, CONTROL, MARKERS, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARE = 0.001  # of the rows that are exchanged in an update
POINTS = 10  # at which a sequence is compared with a refit
CONTROLS = 5  # refits without other rows, to find out how far refits wander

# How often the same row is removed and added, and the number of random updates.
DATA: dict[Scale, dict[str, tuple[int, int]]] = {
    "quick": {"adult": (5, 10)},
    "full": dict.fromkeys(
        ("adult", "electricity", "higgs_sample", "california_housing", "pendigits"), (50, 1000)
    ),
}
SEQUENCES = {"same row": "the same row", "random rows": "0.1% of the rows at random"}


def cases(scale: Scale) -> Iterator[Case]:
    """Both sequences on each data set."""
    for name, (n_same, n_random) in DATA[scale].items():
        for sequence, n in zip(SEQUENCES, (n_same, n_random), strict=True):
            yield Case({"data": name, "sequence": sequence}, partial(_measure, name, sequence, n))


class _Models:
    """A model of most training rows, and test rows to compare models by."""

    def __init__(self, name: str) -> None:
        data = datasets.load(name)
        self.X, self.y = data.X_train, data.y_train
        self.X_test, self.y_test = data.X_test, data.y_test
        order = np.random.default_rng(3).permutation(len(self.y))
        self.held, self.spare = order[len(order) // 10 :], order[: len(order) // 10]
        self.model: Any = LIBRARIES[OURS].model(data.task, Settings())
        self.model.fit(self.X[self.held], self.y[self.held], row_ids=self.held)

    def predict(self, model: Any) -> NDArray[np.float64]:
        """Predictions for the test rows; probabilities of all classes, if there are any."""
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(self.X_test))
        return np.asarray(model.predict(self.X_test))[:, None]

    def loss(self, model: Any) -> float:
        """Mean loss of the test rows."""
        predicted = self.predict(model)
        if not hasattr(model, "predict_proba"):
            return float(np.mean((predicted[:, 0] - self.y_test) ** 2))
        rows = np.arange(len(self.y_test))
        of_class = predicted[rows, np.searchsorted(model.classes_, self.y_test)]
        return float(-np.log(np.clip(of_class, 1e-12, 1.0)).mean())

    def distance(self, one: Any, other: Any) -> dict[str, float]:
        """Mean and largest absolute difference of predictions."""
        difference = np.abs(self.predict(one) - self.predict(other))
        return {"mean": float(difference.mean()), "largest": float(difference.max())}

    def exchange(self, model: Any, out: NDArray[np.int64], into: NDArray[np.int64]) -> None:
        """Remove rows and add others."""
        model.update(self.X[into], self.y[into], row_ids=into, remove=out)


def _same_row(models: _Models, n: int, compare: Callable[[int, Any], None]) -> Any:
    """Remove and add the row that the model remembers best of some."""
    model = copy.deepcopy(models.model)
    memory = model.memory(models.held[:500])
    row = memory.row_ids[[int(np.argmax(memory.memory))]]
    for i in range(n):
        model.remove(row)
        model.add(models.X[row], models.y[row], row_ids=row)
        if (i + 1) % max(n // POINTS, 1) == 0:
            compare(i + 1, model)
    return model


def _random_rows(models: _Models, n: int, compare: Callable[[int, Any], None]) -> Any:
    """Exchange random rows for others that the model does not hold."""
    model = copy.deepcopy(models.model)
    rng = np.random.default_rng(5)
    held, spare = models.held.copy(), models.spare.copy()
    n_rows = max(1, round(SHARE * len(held)))
    for i in range(n):
        out, into = (rng.choice(len(rows), n_rows, replace=False) for rows in (held, spare))
        models.exchange(model, held[out], spare[into])
        held[out], spare[into] = spare[into].copy(), held[out].copy()
        if (i + 1) % max(n // POINTS, 1) == 0:
            compare(i + 1, model)
    return model


def _measure(name: str, sequence: str, n: int) -> Values:
    """Follow a sequence of updates, and compare it with refits."""
    models = _Models(name)
    points: list[dict[str, float]] = []

    def compare(n_updates: int, model: Any) -> None:
        refitted = copy.deepcopy(model).refit()
        points.append(
            {
                "updates": n_updates,
                "loss": models.loss(model),
                "loss_refitted": models.loss(refitted),
                **models.distance(model, refitted),
            }
        )

    run = _same_row if sequence == "same row" else _random_rows
    last = run(models, n, compare)
    last.check_state()
    return {"points": points, "by_refit": _between_refits(models, last, sequence)}


def _between_refits(models: _Models, model: Any, sequence: str) -> dict[str, float]:
    """How far a refit differs from one without other rows than those of the sequence."""
    refitted = copy.deepcopy(model).refit()
    rng = np.random.default_rng(9)
    wandered = []
    for _ in range(CONTROLS):
        if sequence == "same row":
            memory = refitted.memory(rng.choice(refitted.row_ids_, 500, replace=False))
            rows = memory.row_ids[[int(np.argmax(memory.memory))]]
        else:
            n_rows = max(1, round(SHARE * refitted.n_rows_))
            rows = rng.choice(refitted.row_ids_, n_rows, replace=False)
        other = copy.deepcopy(refitted)
        other.remove(rows, fidelity=0.0)
        distance = models.distance(refitted, other.refit())
        loss = abs(models.loss(other) / models.loss(refitted) - 1)
        wandered.append({**distance, "loss": loss})
    return {what: float(np.mean([w[what] for w in wandered])) for what in wandered[0]}


def tables(results: Results) -> str:
    """The end of each sequence."""
    rows = []
    for done in results.where():
        last, by_refit = done.values["points"][-1], done.values["by_refit"]
        rows.append(
            [
                done.labels["data"],
                SEQUENCES[str(done.labels["sequence"])],
                f"{last['updates']:,.0f}",
                f"{last['loss'] / last['loss_refitted']:.4f}",
                f"{by_refit['loss']:.4f}",
                f"{last['mean']:.2g} and {last['largest']:.2g}",
                f"{by_refit['mean']:.2g} and {by_refit['largest']:.2g}",
            ]
        )
    head = [
        "data set",
        "removed and added",
        "updates",
        "test loss relative to a refit",
        "two refits, relative difference of test losses",
        "difference from a refit, mean and largest",
        "difference between two refits, mean and largest",
    ]
    return (
        "Each update removes rows and adds as many: the same row again and again, one that the "
        "model remembers well, or other rows at random. Differences are those of predictions for "
        "the test rows (probabilities, or targets): between the updated model and a refit of it, "
        "and between two refits, one of which was made without another row that is remembered "
        "well, or without 0.1% of the rows (means over several). Test loss is the log loss or the "
        "squared error. Two refits differ in it, too.\n\n" + table(head, rows)
    )


def answer(results: Results) -> str:
    """How far models wander, at most."""
    ratios = [
        done.values["points"][-1]["loss"] / done.values["points"][-1]["loss_refitted"]
        for done in results.where()
    ]
    if not ratios:
        return ""
    return (
        f"After the last update, the test loss is {min(ratios):.3f} to {max(ratios):.3f} times "
        "that of a refit."
    )


def remark(results: Results) -> str:
    """Sequences that wander further than refits do."""
    further = [
        f"{done.labels['data']}, {done.labels['sequence']}"
        for done in results.where()
        if done.values["points"][-1]["mean"] > done.values["by_refit"]["mean"]
    ]
    if not further:
        return "No model differs more from a refit than two refits differ from each other."
    return (
        "Predictions differ from those of a refit by more than those of two refits differ from "
        f"each other on: {'; '.join(further)}."
    )


def draw(results: Results) -> Figure:
    """Distance from a refit over the number of updates."""
    names = results.all_of("data")
    figure, axes = panels(len(names), columns=3)
    for axis, name in zip(axes, names, strict=True):
        for (sequence, title), colour, marker in zip(
            SEQUENCES.items(), COLOURS, MARKERS, strict=False
        ):
            values = results.find(data=name, sequence=sequence)
            if values is None:
                continue
            points = values["points"]
            axis.plot(
                [point["updates"] / points[-1]["updates"] for point in points],
                [point["mean"] for point in points],
                color=colour,
                marker=marker,
                markersize=4,
                label=title,
            )
            axis.axhline(values["by_refit"]["mean"], **CONTROL)
        axis.plot([], [], label="two refits", **CONTROL)
        axis.set_ylim(bottom=0)
        axis.set_title(name)
        axis.set_xlabel("part of all updates")
        axis.set_ylabel("mean difference")
    legend(figure)
    return figure


EXPERIMENT = Experiment(
    name="stability",
    title="Long sequences of updates",
    question=(
        "Does a model stay as good as a refit when it is updated again and again? One row is "
        "removed and added fifty times, and 0.1% of the rows are exchanged a thousand times."
    ),
    paper=None,
    caption=(
        "Mean absolute difference between the predictions of the updated model and those of a "
        "refit, in the course of a sequence of updates. The dashed lines are differences between "
        "two refits, one of which was made without other rows."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

"""Rows are added in twenty batches and removed again: is the model as accurate as a retrain?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.goal import points
from benchmarks.libraries import warm_up
from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.measure import scores
from benchmarks.settings import Settings
from datasets import Dataset, paper
from experiments.harness.contenders import CONTENDERS, Contender
from experiments.harness.contenders.ours import Ours, Paper, Tolerant
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Results
from graftboost.audit.plotting import legend, lines, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Way = Literal["up", "down"]
WAYS: dict[Way, str] = {"up": "5% to 100% and back", "down": "100% to 5% and back"}

BATCHES = 20
RULES = {kind.name: kind for kind in (Ours, Paper, Tolerant)}
UPDATED = tuple(RULES)
RETRAINED_OURS = "graftboost-retrained"
PEERS = ("lightgbm", "xgboost")
WHO = (*UPDATED, RETRAINED_OURS, *PEERS)
TITLES = {
    **{who: f"{kind.title}, updated" for who, kind in RULES.items()},
    RETRAINED_OURS: "graftboost, retrained",
    **{who: CONTENDERS[who].title for who in PEERS},
}
UNTOUCHED = "graftboost, untouched"
SHOWN = (Ours.name, Tolerant.name, RETRAINED_OURS, PEERS[0])  # in the picture, and the control


@dataclass(frozen=True)
class Plan:
    """How much is measured on one data set."""

    max_rows: int | None = None
    settings: Settings = field(default_factory=Settings)


SMALL = Settings(iterations=20)
QUICK = {"adult": Plan(3_000, SMALL), "pendigits": Plan(1_600, SMALL)}
FULL = dict.fromkeys(("adult", "credit_info", "optdigits", "pendigits", "letter"), Plan())


def cases(scale: Scale) -> Iterator[Case]:
    """One case for each data set and contender."""
    for name, plan in (QUICK if scale == "quick" else FULL).items():
        for who in WHO:
            yield Case({"data": name, "contender": who}, partial(measure, name, who, plan))


def measure(name: str, who: str, plan: Plan) -> Values:
    """Update a contender with the batches, or retrain it at each size."""
    kind = CONTENDERS[who] if who in PEERS else Ours
    if not kind.available():
        return {"skipped": [kind.library.title]}
    data = paper.load(name, max_rows=plan.max_rows)
    order = np.random.default_rng(0).permutation(len(data.y_train))
    batches = np.array_split(order, BATCHES)
    warm_up(kind.library, data.task, plan.settings)
    if who not in UPDATED:
        return _retrained(data, batches, kind, plan.settings)
    return {way: _updated(data, batches, RULES[who](data.task, plan.settings), way) for way in WAYS}


def _retrained(
    data: Dataset, batches: Sequence[NDArray[np.int64]], kind: type[Contender], settings: Settings
) -> Values:
    """Train on one batch, on two, on three, and so on."""
    values: Values = {"accuracy": [], "seconds": []}
    for held in range(1, len(batches) + 1):
        rows = np.concatenate(batches[:held])
        contender = kind(data.task, settings).fit(data.X_train[rows], data.y_train[rows])
        values["accuracy"].append(_accuracy(contender, data))
        values["seconds"].append(contender.seconds)
    return values


def _updated(
    data: Dataset, batches: Sequence[NDArray[np.int64]], contender: Ours, way: Way
) -> Values:
    """Start with one batch or with all, go to the other end, and return."""
    steps = sizes(way, len(batches))
    rows = np.concatenate(batches[: steps[0]])
    contender.fit(data.X_train[rows], data.y_train[rows])
    # Positions of the rows of each batch; batches are removed in reverse order.
    ends = np.cumsum([len(batch) for batch in batches[: steps[0]]])
    places = np.split(np.arange(len(rows)), ends[:-1])
    next_place = len(rows)
    values: Values = {"accuracy": [_accuracy(contender, data)], "seconds": [], "refitted": []}
    for held in steps[1:]:
        refits = contender.refits
        if held < len(places):
            contender.remove(places.pop())
        else:
            batch = batches[held - 1]
            contender.add(data.X_train[batch], data.y_train[batch])
            places.append(np.arange(next_place, next_place + len(batch)))
            next_place += len(batch)
        values["accuracy"].append(_accuracy(contender, data))
        values["seconds"].append(contender.seconds)
        values["refitted"].append(contender.refits > refits)
    return values


def sizes(way: Way, batches: int = BATCHES) -> list[int]:
    """Number of batches held after each step.

    Examples
    --------
    >>> sizes("up", 3), sizes("down", 3)
    ([1, 2, 3, 2, 1], [3, 2, 1, 2, 3])
    """
    up, down = list(range(1, batches + 1)), list(range(batches, 0, -1))
    return up + down[1:] if way == "up" else down + up[1:]


def _accuracy(contender: Contender, data: Dataset) -> float:
    return 1 - scores(data, contender.predict(data.X_test))["error"]


def _at_each_step(results: Results, name: str, who: str, way: Way, what: str) -> list[float] | None:
    """Values of a contender at each step, whether it is retrained or updated."""
    values = results.find(data=name, contender=who)
    if values is None or "skipped" in values:
        return None
    if who in UPDATED:
        found: list[float] = values[way][what]
        return found
    by_size = values[what]
    return [by_size[held - 1] for held in sizes(way, len(by_size))]


def tables(results: Results) -> str:
    """One row for each data set, way and rule."""
    rows = [
        row
        for name in results.all_of("data")
        for way in WAYS
        for who in UPDATED
        if (row := _row(results, name, way, who))
    ]
    head = [
        "data set",
        "way",
        "updated",
        "accuracy at the start, the middle and the end",
        "retrained on the same rows",
        "LightGBM",
        "XGBoost",
        "minus retrained, mean",
        "worst",
        "refits",
        "seconds of updates",
        "of retrains",
        "of LightGBM's retrains",
    ]
    caption = (
        f"Accuracy on the test rows. The {BATCHES} batches are removed in reverse order, so the "
        "rows held at a given size are the same in both directions. The difference is the accuracy "
        "of the updated model minus that of graftboost retrained on the same rows, over all steps. "
        "Refits: the number of steps at which a refit was cheaper than an update; it always is "
        "when more than a quarter of the rows change."
    )
    return f"{caption}\n\n{table(head, rows)}"


def _row(results: Results, name: str, way: Way, who: str) -> list[str] | None:
    accuracy = _at_each_step(results, name, who, way, "accuracy")
    if accuracy is None:
        return None
    seconds = _at_each_step(results, name, who, way, "seconds") or []
    refitted = _at_each_step(results, name, who, way, "refitted") or []
    apart = _differences(results, name, way, who)
    return [
        paper.SETS[name].title,
        WAYS[way],
        RULES[who].title,
        _at_three(accuracy),
        *(
            _at_three(_at_each_step(results, name, other, way, "accuracy"))
            for other in (RETRAINED_OURS, *PEERS)
        ),
        points(float(np.mean(apart))) if apart else "-",
        points(min(apart)) if apart else "-",
        f"{sum(refitted):.0f} of {len(refitted)}",
        in_seconds(sum(seconds)),
        *(_retrains(results, name, way, other) for other in (RETRAINED_OURS, PEERS[0])),
    ]


def _at_three(values: Sequence[float] | None) -> str:
    if values is None:
        return "-"
    return ", ".join(in_percent(values[i]) for i in (0, len(values) // 2, -1))


def _differences(results: Results, name: str, way: Way, who: str) -> list[float]:
    updated = _at_each_step(results, name, who, way, "accuracy")
    retrained = _at_each_step(results, name, RETRAINED_OURS, way, "accuracy")
    if updated is None or retrained is None:
        return []
    return [a - b for a, b in zip(updated[1:], retrained[1:], strict=True)]


def _retrains(results: Results, name: str, way: Way, who: str) -> str:
    seconds = _at_each_step(results, name, who, way, "seconds")
    return "-" if seconds is None else in_seconds(sum(seconds[1:]))


def draw(results: Results) -> Figure:
    """As in the paper: first growing on the left, first shrinking on the right."""
    names = results.all_of("data")
    figure, axes = panels(len(names) * len(WAYS), columns=2, size=(4.6, 2.5))
    for i, axis in enumerate(axes):
        name, way = names[i // len(WAYS)], list(WAYS)[i % len(WAYS)]
        found = {who: _at_each_step(results, name, who, way, "accuracy") for who in SHOWN}
        series = {TITLES[who]: _percent(v) for who, v in found.items() if v is not None}
        n_steps = max((len(values) for values in series.values()), default=1)
        if (start := found[UPDATED[0]]) is not None:
            series[UNTOUCHED] = _percent([start[0]] * n_steps)
        lines(axis, range(n_steps), series, controls=[UNTOUCHED])
        for j, line in enumerate(axis.get_lines()):
            line.set_markevery((j, 6))  # a marker at each step would hide the lines
        axis.set_title(f"{paper.SETS[name].title}, {WAYS[way]}")
        axis.set_ylabel("accuracy, %")
        axis.set_xlabel("rows held")
        ends = ["5%", "100%", "5%"] if way == "up" else ["100%", "5%", "100%"]
        axis.set_xticks([0, n_steps // 2, n_steps - 1], ends)
    legend(figure, columns=3)
    return figure


def _percent(values: Sequence[float]) -> list[float]:
    return [100 * value for value in values]


def _all_differences(results: Results, who: str) -> dict[tuple[str, Way], list[float]]:
    return {
        (name, way): found
        for name in results.all_of("data")
        for way in WAYS
        if (found := _differences(results, name, way, who))
    }


def answer(results: Results) -> str:
    """How far the default rule is from a retrain, and how often it refits."""
    apart = _all_differences(results, Ours.name)
    if not apart:
        return ""
    everything = [value for found in apart.values() for value in found]
    refits, steps = _refits(results, Ours.name, apart)
    return (
        f"The updated model differs from a retrained one by {points(float(np.mean(everything)))} "
        f"of accuracy on average and by {points(min(everything))} at worst. It was refitted at "
        f"{refits} of {steps} steps, because a batch of 5% changes most of the model and a refit "
        "is cheaper."
    )


def remark(results: Results) -> str:
    """Each rule, and what the comparison with the paper and with retrains leaves out."""
    rules = [
        _on_rule(results, who, apart)
        for who in UPDATED
        if (apart := _all_differences(results, who))
    ]
    discussion = (
        "The paper shows curves without figures; its curves of updated and retrained models "
        "coincide. A model that starts with 5% of the rows keeps the bins of these rows, while "
        "retrained models compute new ones."
    )
    return "\n".join(f"- {text}" for text in rules) + f"\n\n{discussion}"


def _refits(
    results: Results, who: str, apart: dict[tuple[str, Way], list[float]]
) -> tuple[int, int]:
    """Steps at which a contender was refitted, and all its steps."""
    flags: list[Any] = []
    for data, along in apart:
        flags += _at_each_step(results, data, who, along, "refitted") or []
    return sum(flags), len(flags)


def _on_rule(results: Results, who: str, apart: dict[tuple[str, Way], list[float]]) -> str:
    (name, way), worst = min(
        ((place, min(found)) for place, found in apart.items()), key=lambda pair: pair[1]
    )
    everything = [value for found in apart.values() for value in found]
    refits, steps = _refits(results, who, apart)
    return (
        f"{TITLES[who]}: the accuracy differs from that of the retrained model by "
        f"{points(float(np.mean(everything)))} on average and by {points(worst)} at worst "
        f"({paper.SETS[name].title}, {WAYS[way]}), with refits at {refits} of {steps} steps."
    )


EXPERIMENT = Experiment(
    name="batches",
    title="Continual batches",
    question=(
        "A model is trained on 5% of the rows; the rest is added in batches of 5% and then removed "
        "again. A second model does the reverse. Is the model at each size as accurate as a model "
        "retrained on the same rows? The control is the untouched model of the start."
    ),
    paper="figure of continual batch addition and removal",
    caption=(
        "Accuracy while batches are added and removed. The dashed line is the untouched model of "
        "the start. XGBoost and the paper's rule are in the table."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

"""Two time series added in blocks and removed again (Table 7): the error at every step."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.goal import Goal, times
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import listed, table
from benchmarks.settings import Settings
from benchmarks.updates.learners import TOLERANT
from datasets import paper
from experiments.harness.contenders import Contender
from experiments.harness.contenders.ours import Ours, Paper, Tolerant, Untouched
from experiments.harness.contenders.retrained import retrained
from experiments.harness.data_sets import SERIES
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Results
from graftboost.audit import plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Mean squared errors in thousandths: after the first block, after each addition and each removal.
PAPER = {
    "global_temperatures": (
        *(4.1934, 2.5431, 2.1156, 2.0351, 1.9593, 1.8940, 1.8973, 1.8532, 1.8200, 1.7850),
        *(1.8127, 1.9902, 2.0115, 2.1137, 2.0756, 2.1654, 2.1349, 2.4975, 3.6064),
    ),
    "web_traffic": (
        *(4.0984, 3.8383, 3.0296, 3.1297, 2.9149, 2.9525, 2.8682, 2.9024, 2.9141, 2.9049),
        *(2.8432, 3.3453, 2.9007, 3.1288, 3.1187, 2.9539, 3.0132, 3.8429, 4.4339),
    ),
}
UNIT = 1e-3

BLOCKS, PIECES = 10, 10
TEST_SHARE = 0.1
SPLITS, QUICK_SPLITS = 5, 1
SAME_ORDER = 1.5  # times the paper's error, at the worst step


class Follower(NamedTuple):
    """A model that follows the series, and the number of pieces in which it takes a block.

    A block is a large part of the rows, for which a refit is mostly cheaper than an update. Updates
    in place occur with smaller pieces.
    """

    kind: type[Contender]
    pieces: int
    title: str


FOLLOWERS = {
    OURS: Follower(Ours, 1, Ours.title),
    "pieces": Follower(Ours, PIECES, f"{Ours.title}, in pieces"),
    Tolerant.name: Follower(Tolerant, PIECES, f"{Tolerant.title}, in pieces"),
    Paper.name: Follower(Paper, 1, Paper.title),
    "retrained": Follower(retrained(OURS), 1, f"{Ours.title}, retrained"),
    YARDSTICK: Follower(retrained(YARDSTICK), 1, f"{LIBRARIES[YARDSTICK].title}, retrained"),
    Untouched.name: Follower(Untouched, 1, Untouched.title),
}


def cases(scale: Scale) -> Iterable[Case]:
    """One case for each series and draw of test rows; both scales use all rows."""
    for name in get_args(paper.Series):
        for split in range(SPLITS if scale == "full" else QUICK_SPLITS):
            labels = {"data": name, "split": split}
            yield Case(labels, lambda name=name, split=split: follow(*paper.series(name), split))


def follow(X: NDArray[np.float32], y: NDArray[np.float64], split: int) -> Values:
    """Errors of all models at every step, and the number of refits."""
    in_test = np.zeros(len(y), dtype=np.bool_)
    drawn = np.random.default_rng(split).permutation(len(y))
    in_test[drawn[: round(TEST_SHARE * len(y))]] = True
    X_rest, y_rest = X[~in_test], y[~in_test]
    blocks = np.array_split(np.arange(len(y_rest)), BLOCKS)
    values: Values = {"errors": {}, "refits": {}, "skipped": []}
    for name, (kind, pieces, _) in FOLLOWERS.items():
        if not kind.available():
            values["skipped"].append(kind.library.title)
            continue
        model, errors = kind("regression", Settings()), []
        for step in _steps(model, X_rest, y_rest, blocks, pieces):
            step()
            errors.append(float(np.mean((model.predict(X[in_test]) - y[in_test]) ** 2)))
        values["errors"][name] = errors
        values["refits"][name] = getattr(model, "refits", 0)
    return values


def _steps(
    model: Contender,
    X: NDArray[np.float32],
    y: NDArray[np.float64],
    blocks: list[NDArray[np.int64]],
    pieces: int,
) -> Iterator[Callable[[], object]]:
    """What a model has to do: learn the first block, take in the others, let them go again."""
    first, *others = blocks
    yield lambda: model.fit(X[first], y[first])
    for block in others:
        yield lambda block=block: [model.add(X[p], y[p]) for p in np.array_split(block, pieces)]
    for block in reversed(others):
        yield lambda block=block: [model.remove(p) for p in np.array_split(block[::-1], pieces)]


def tables(results: Results) -> str:
    """One table for each series."""
    head = (
        "Mean squared error in thousandths, for series scaled to [0, 1], on a tenth of the rows "
        "drawn at random. Mean over the draws."
    )
    parts = [head]
    for name in _names(results):
        means = {model: _mean_errors(results, name, model) for model in _models(results)}
        rows = [
            [_step_name(i), *(f"{m[i] / UNIT:.3f}" for m in means.values()), f"{theirs:.3f}"]
            for i, theirs in enumerate(PAPER[name])
        ]
        counts = [f"{_mean_refits(results, name, model):.3g}" for model in means]
        rows.append(["refits or retrains", *counts, ""])
        titles = [FOLLOWERS[model].title for model in means]
        parts += [f"**{SERIES[name]}**", table(["step", *titles, "the paper"], rows)]
    return "\n\n".join(parts)


def _names(results: Results) -> list[str]:
    return [name for name in PAPER if results.find(data=name) is not None]


def _models(results: Results) -> list[str]:
    return [m for m in FOLLOWERS if all(m in done.values["errors"] for done in results.where())]


def _mean_errors(results: Results, name: str, model: str) -> list[float]:
    splits = [done.values["errors"][model] for done in results.where(data=name)]
    return [statistics.fmean(errors) for errors in zip(*splits, strict=True)]


def _mean_refits(results: Results, name: str, model: str) -> float:
    if FOLLOWERS[model].kind.in_place:
        return statistics.fmean(done.values["refits"][model] for done in results.where(data=name))
    return 2.0 * (BLOCKS - 1)  # at each step


def _step_name(step: int) -> str:
    if step == 0:
        return "first 10%"
    if step < BLOCKS:
        return f"add, {10 * (step + 1)}%"
    return f"remove, {10 * (2 * BLOCKS - 1 - step)}%"


def draw(results: Results) -> Figure:
    """Errors at each step, for four models and the paper."""
    names = _names(results)
    figure, axes = plotting.panels(len(names), columns=1, size=(8.5, 3.2))
    held = [*range(1, BLOCKS + 1), *range(BLOCKS - 1, 0, -1)]
    shown = [m for m in ("pieces", "tolerant", "retrained") if m in _models(results)]
    control = FOLLOWERS[Untouched.name].title
    for axis, name in zip(axes, names, strict=True):
        series = {
            FOLLOWERS[model].title: [error / UNIT for error in _mean_errors(results, name, model)]
            for model in [*shown, Untouched.name]
        }
        series["the paper's figures"] = list(PAPER[name])
        plotting.lines(axis, [f"{10 * n}%" for n in held], series, controls=[control])
        axis.set_title(SERIES[name])
        axis.set_ylabel("squared error, thousandths")
        axis.axvline(BLOCKS - 1, color="#cccccc", linewidth=1, zorder=0)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("rows held, while blocks are added and then removed")
    plotting.legend(figure, columns=3)
    return figure


def goals(results: Results) -> list[Goal]:
    """Errors relative to the paper's, at the worst step."""
    ratios = {
        name: max(_ratios(results, name)) if results.find(data=name) is not None else None
        for name in PAPER
    }
    what = "series: squared error relative to the paper's, worst step"
    return [Goal(what, SAME_ORDER, ratios, times)]


def _ratios(results: Results, name: str, model: str = OURS) -> list[float]:
    errors = _mean_errors(results, name, model)
    return [ours / UNIT / theirs for ours, theirs in zip(errors, PAPER[name], strict=True)]


def answer(results: Results) -> str:
    """Errors relative to the paper's, and to a retrain if blocks are split into pieces."""
    parts = []
    for name in _names(results):
        ratios = _ratios(results, name)
        parts.append(f"{min(ratios):.2f} to {max(ratios):.2f} times ({SERIES[name]})")
    pieces = [f"{_above(results, n, 'pieces')} ({SERIES[n]})" for n in _names(results)]
    return (
        f"The squared error is {listed(parts)} the paper's. With smaller updates, some of which "
        "are done in place, it differs from that of a model retrained at each step by "
        f"{listed(pieces)}."
    )


def remark(results: Results) -> str:
    """How often the model was refitted, and how far updates in place are from a retrain."""
    sentences = [
        f"{SERIES[name]}: {_mean_refits(results, name, OURS):.3g} of the {2 * (BLOCKS - 1)} "
        "updates with whole blocks were refits, which are cheaper for so many rows. In pieces, "
        f"{_mean_refits(results, name, 'pieces'):.3g} of {2 * (BLOCKS - 1) * PIECES} updates "
        f"were refits. Under the regret rule with tolerance {TOLERANT:g}, "
        f"{_mean_refits(results, name, 'tolerant'):.3g} were, and the error differs from that of a "
        f"retrained model by {_above(results, name, 'tolerant')}."
        for name in _names(results)
    ]
    sentences.append(
        "Updates and refits keep the bins of the first block; retrained models compute new ones. "
        "As in the paper, the test rows are drawn from all times, so the untouched model, which "
        "only has the first block, shows how much the later blocks contribute."
    )
    return " ".join(sentences)


def _above(results: Results, name: str, model: str) -> str:
    pairs = zip(
        _mean_errors(results, name, model), _mean_errors(results, name, "retrained"), strict=True
    )
    above = [ours / again - 1 for ours, again in pairs]
    return f"{100 * min(above):+.0f}% to {100 * max(above):+.0f}%"


EXPERIMENT = Experiment(
    name="time-series",
    title="Time series",
    question=(
        "Does a model follow a series that drifts? Each value is predicted from the 15 preceding "
        "ones. A tenth of the rows is drawn for testing; the others are added in ten blocks, the "
        "oldest first, and removed in reverse order."
    ),
    paper="Table 7",
    caption=(
        "Squared error while blocks are added and then removed. The dashed line is the untouched "
        "model of the first block. Updates with whole blocks, which are refits, are in the table."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
    goals=goals,
)

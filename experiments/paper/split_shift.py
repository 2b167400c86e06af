"""The rank of splits among their candidates after rows are added or removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.markdown import in_percent, listed, table
from benchmarks.updates.timing import rows_of
from datasets import paper
from experiments.harness.draws import SIZES, WAYS, Draws, Way
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Results
from experiments.harness.update_cases import each_way_and_size
from graftboost import audit
from graftboost.audit.plotting import legend, lines, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRETCH = 5  # iterations averaged in one point of the picture

# Data sets, how many of their rows are used (None for all), and how often rows are drawn.
DATA: dict[Scale, dict[str, tuple[int | None, int]]] = {
    "quick": {"adult": (2000, 1), "pendigits": (1500, 1)},
    "full": {
        "adult": (None, 3),
        "credit_info": (None, 3),
        "optdigits": (None, 1),
        "pendigits": (None, 1),
        "letter": (None, 1),
        "covtype": (60_000, 1),
    },
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, each way, each size."""
    yield from each_way_and_size(DATA[scale], SIZES, _measure)


def _measure(name: str, max_rows: int | None, way: Way, size: str, n_draws: int) -> Values:
    draws = Draws(paper.load(name, max_rows=max_rows))
    n_rows = rows_of(SIZES[size], len(draws.data.y_train))
    found = []
    for seed in range(n_draws):
        drawn = draws.draw(n_rows, seed)
        if way == "remove":
            found.append(audit.split_shift(draws.whole, drawn).figures)
        else:
            X, y = draws.data.X_train[drawn], draws.data.y_train[drawn]
            found.append(audit.split_shift(draws.fit(draws.without(drawn)), X=X, y=y).figures)
    means = np.mean([figures["mean_by_iteration"] for figures in found], axis=0)
    errors = np.mean([figures["error_by_iteration"] for figures in found], axis=0)
    shares = [figures["shares"] for figures in found]
    return {
        "shares": {rank: float(np.mean([s[rank] for s in shares])) for rank in shares[0]},
        "mean_by_iteration": means.tolist(),
        "error_by_iteration": (errors / np.sqrt(n_draws)).tolist(),
    }


def tables(results: Results) -> str:
    """Distribution of the ranks after the update."""
    rows, ranks = [], []
    for done in results.where():
        shares = done.values["shares"]
        ranks = list(shares)
        labels = [str(done.labels[label]) for label in ("data", "way", "size")]
        rows.append([*labels, *(in_percent(share) for share in shares.values())])
    return (
        "**Rank of each split after the update**: share of the splits by the number of better "
        "candidates in their node.\n\n" + table(["data set", "way", "rows", *ranks], rows)
    )


def draw(results: Results) -> Figure:
    """Mean number of better candidates by iteration, as in the paper."""
    names = results.all_of("data")
    figure, axes = panels(2 * len(names), columns=4, size=(3.3, 2.5))
    for i, axis in enumerate(axes):
        name, way = names[i // 2], WAYS[i % 2]
        series, bands = {}, {}
        for size in SIZES:
            values = results.find(data=name, way=way, size=size)
            if values is None:
                continue
            mean = _stretches(values["mean_by_iteration"])
            error = _stretches(values["error_by_iteration"]) / np.sqrt(STRETCH)
            series[size] = mean.tolist()
            bands[size] = ((mean - error).tolist(), (mean + error).tolist())
        x = [STRETCH * (point + 0.5) for point in range(len(next(iter(series.values()), [])))]
        lines(axis, x, series, bands=bands)
        if max(map(max, series.values()), default=0) > 2:
            axis.set_yscale("symlog", linthresh=1)
            axis.yaxis.set_major_formatter("{x:g}")
        axis.set_title(f"{name}, {'removed' if way == 'remove' else 'added'}")
        if i % 4 == 0:
            axis.set_ylabel("better candidates")
        if i >= len(axes) - 4:
            axis.set_xlabel("iteration")
    legend(figure)
    return figure


def _stretches(values: list[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    whole = len(values) // STRETCH * STRETCH
    return np.asarray(values[:whole]).reshape(-1, STRETCH).mean(axis=1)


def answer(results: Results) -> str:
    """How many splits stay the best, and how many of the others are second."""
    stay, second = {}, {}
    for size in SIZES:
        shares = [done.values["shares"] for done in results.where(size=size)]
        if shares:
            stay[size] = float(np.mean([s["0 (the best)"] for s in shares]))
            fallen = [s["1"] / (1 - s["0 (the best)"]) for s in shares if s["0 (the best)"] < 1]
            second[size] = float(np.mean(fallen)) if fallen else 0.0
    if not stay:
        return ""
    words = [f"{share:.0%} ({size})" for size, share in stay.items()]
    seconds = [f"{share:.0%} ({size})" for size, share in second.items()]
    return (
        f"On average, {listed(words)} of the splits remain the best candidate of their node after "
        f"the update. Of the splits that are overtaken, {listed(seconds)} become the second best."
    )


def remark(results: Results) -> str:
    """The paper's claim."""
    return (
        "The paper states that one row hardly ever changes the best split, and that larger changes "
        "mostly make it the second best. The second statement holds for small updates only. Splits "
        "that leave a child with fewer rows than allowed have no rank and are not in the picture."
    )


EXPERIMENT = Experiment(
    name="split-shift",
    title="Rank of splits after an update",
    question=(
        "Changed rows are booked in the histograms of all nodes, and no node is regrown. How many "
        "candidates of a node are then better than its split?"
    ),
    paper='figure "Observation of distance of best split changes"',
    caption=(
        "Mean number of candidates that are better than the current split, over the nodes of five "
        "iterations, with its standard error."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

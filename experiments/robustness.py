"""The paper's two conditions for a robust split, held against what happens."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.markdown import table
from benchmarks.updates.timing import rows_of
from datasets import paper
from experiments.draws import Draws
from experiments.experiment import Case, Experiment, Scale, Values
from experiments.results import Results
from graftboost import audit
from graftboost.plotting import bars, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONDITIONS = ("Distance Robust", "Robustness Split")
SHARES = (0.001, 0.01)
SAMPLES = (0.1, 1.0)  # of the boundaries that are candidates: the paper's alpha

# Data sets, how many of their rows are used (None for all), and how often rows are drawn.
DATA: dict[Scale, dict[str, tuple[int | None, int]]] = {
    "quick": {"adult": (2000, 1)},
    "full": {
        "adult": (None, 3),
        "credit_info": (None, 3),
        "optdigits": (None, 1),
        "pendigits": (None, 1),
        "letter": (5000, 1),
        "covtype": (30_000, 1),
    },
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, each share of candidates, each share of rows."""
    for name, (max_rows, n_draws) in DATA[scale].items():
        for sample in SAMPLES:
            for share in SHARES:
                measure = partial(_measure, name, max_rows, sample, share, n_draws)
                yield Case({"data": name, "alpha": sample, "rows": share}, measure)


def _measure(name: str, max_rows: int | None, sample: float, share: float, n_draws: int) -> Values:
    draws = Draws(paper.load(name, max_rows=max_rows), split_sample=sample)
    n_rows = rows_of(share, len(draws.data.y_train))
    found = [
        audit.robustness(draws.whole, draws.draw(n_rows, seed)).figures for seed in range(n_draws)
    ]
    values: Values = {"kept": float(np.mean([figures["kept"] for figures in found]))}
    for condition in CONDITIONS:
        values[condition] = {
            what: _mean([figures[condition][what] for figures in found])
            for what in ("robust", "kept_if_robust", "kept_if_not")
        }
    return values


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def tables(results: Results) -> str:
    """What was foreseen and what came."""
    rows = []
    for done in results.where():
        cells = [f"{done.values['kept']:.0%}"]
        for condition in CONDITIONS:
            found = done.values[condition]
            cells += [
                "-" if found[what] is None else f"{found[what]:.0%}"
                for what in ("robust", "kept_if_robust", "kept_if_not")
            ]
        labels = done.labels
        rows.append([str(labels["data"]), f"{labels['alpha']:g}", f"{labels['rows']:.1%}", *cells])
    head = ["data set", "α", "rows removed", "stay the best"]
    for condition in CONDITIONS:
        head += [f"{condition}: foreseen to stay", "of these stay", "of the others stay"]
    return table(head, rows)


def draw(results: Results) -> Figure:
    """What stays of those foreseen to and of the others."""
    names = results.all_of("data")
    figure, axes = panels(4, columns=2, size=(4.8, 2.7))
    for i, axis in enumerate(axes):
        condition, share = CONDITIONS[i % 2], SHARES[i // 2]
        found = [results.find(data=n, alpha=SAMPLES[0], rows=share) for n in names]
        series = {
            title: [
                float("nan")
                if v is None or v[condition][what] is None
                else 100 * v[condition][what]
                for v in found
            ]
            for title, what in (
                ("stay, of those foreseen to", "kept_if_robust"),
                ("stay, of the others", "kept_if_not"),
            )
        }
        bars(axis, names, series)
        axis.set_title(f"{condition}, {share:.1%} removed")
        axis.set_ylim(0, 100)
        if i % 2 == 0:
            axis.set_ylabel("per cent of the splits")
    legend(figure)
    return figure


def remark(results: Results) -> str:
    """Whether the conditions say what they seem to."""
    words = []
    for condition in CONDITIONS:
        done = [d.values[condition] for d in results.where()]
        kept = _mean([found["kept_if_robust"] for found in done])
        others = _mean([found["kept_if_not"] for found in done])
        if kept is not None:
            rest = "" if others is None else f" and of the others {others:.0%}"
            words.append(
                f"of the splits that {condition} calls robust {kept:.0%} stay the best{rest}"
            )
    by_alpha = {
        alpha: _mean([d.values["kept"] for d in results.where(alpha=alpha)]) for alpha in SAMPLES
    }
    fewer = ", ".join(f"α = {a:g} {k:.0%}" for a, k in by_alpha.items() if k is not None)
    return (
        f"On average {'; '.join(words)}. So a robust split is more likely to stay, but the "
        "conditions are no guarantee: they take a removed row for an average one, and they look at "
        "candidates of the split's own feature only, while many splits are overtaken by another "
        f"feature. That fewer candidates make splits more robust holds: {fewer} stay the best."
    )


EXPERIMENT = Experiment(
    name="robustness",
    title="Robust splits",
    question=(
        "The paper derives two conditions under which a split stays the best when a share λ of the "
        "rows goes. Distance Robust: the nearest other candidate of the feature is more than "
        "λ gain / (left score / left rows + right score / right rows) rows away; the paper counts "
        "the distance in bins, its proof in rows. Robustness Split: the gain is more than "
        "1 / (1 - λ) times that of the feature's next candidate. Which splits do stay?"
    ),
    paper="definitions 1 and 2",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)

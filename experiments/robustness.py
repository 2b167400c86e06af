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
from graftboost.audit.plotting import bars, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONDITIONS = ("Distance Robust", "Robustness Split", "Robustness Split, any feature")
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
    values: Values = {
        what: _mean([figures[what] for figures in found]) for what in ("kept", "by_another_feature")
    }
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
        share = f"{100 * float(labels['rows']):g}%"
        rows.append([str(labels["data"]), f"{labels['alpha']:g}", share, *cells])
    head = ["data set", "α", "rows removed", "stay the best"]
    for condition in CONDITIONS:
        head += [f"{condition}: foreseen to stay", "of these stay", "of the others stay"]
    return table(head, rows)


def draw(results: Results) -> Figure:
    """What stays of those foreseen to and of the others."""
    names = results.all_of("data")
    n = len(CONDITIONS)
    figure, axes = panels(n * len(SHARES), columns=n, size=(3.8, 2.7))
    for i, axis in enumerate(axes):
        condition, share = CONDITIONS[i % n], SHARES[i // n]
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
        axis.set_title(f"{condition}\n{100 * share:g}% removed")
        axis.set_ylim(0, 100)
        if i % n == 0:
            axis.set_ylabel("per cent of the splits")
    legend(figure)
    return figure


def remark(results: Results) -> str:
    """Whether the conditions say what they seem to."""
    words = []
    for condition in CONDITIONS:
        done = [d.values[condition] for d in results.where()]
        both = [d for d in done if d["kept_if_robust"] is not None and d["kept_if_not"] is not None]
        better = sum(d["kept_if_robust"] > d["kept_if_not"] for d in both)
        kept = _mean([d["kept_if_robust"] for d in done])
        if kept is not None:
            words.append(
                f"{condition}: of the splits foreseen to stay {kept:.0%} do, on average, and more "
                f"often than the others in {better} of {len(both)} cases that have both"
            )
    fewer = {
        alpha: _mean([d.values["kept"] for d in results.where(alpha=alpha)]) for alpha in SAMPLES
    }
    candidates = " and ".join(f"{k:.1%} with α = {a:g}" for a, k in fewer.items() if k is not None)
    another = _mean([d.values["by_another_feature"] for d in results.where()])
    text = (
        "; ".join(words)
        + ". So the conditions say that a split is likely to stay, and no more: they "
        "take a row that goes for an average one. "
    )
    if another is not None:
        text += (
            f"Of the splits overtaken {another:.0%} are by a candidate of another feature, which "
            "the first two do not look at. "
        )
    return text + (
        "That fewer candidates make splits more robust is to be seen in how many stay the best: "
        f"{candidates}."
    )


EXPERIMENT = Experiment(
    name="robustness",
    title="Robust splits",
    question=(
        "The paper derives two conditions under which a split stays the best when a share λ of the "
        "rows goes. Distance Robust: the nearest other candidate of the feature is more than "
        "λ gain / (left score / left rows + right score / right rows) rows away; the paper counts "
        "the distance in bins, its proof in rows. Robustness Split: the gain is more than "
        "1 / (1 - λ) times that of any other candidate, which its appendix takes to be of the same "
        "feature. Which splits do stay?"
    ),
    paper="definitions 1 and 2",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)

"""The paper's two conditions for robust splits, compared with the measured outcome."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.markdown import listed, table
from benchmarks.updates.timing import rows_of
from datasets import paper
from experiments.harness.draws import Draws
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.results import Results
from graftboost import audit
from graftboost.audit.plotting import bars, legend, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONDITIONS = ("Distance Robust", "Robustness Split", "Robustness Split, any feature")
SHARES = (0.001, 0.01)
CAPTION = (
    "Percentage of splits that remain the best candidate of their node; for each condition, the "
    "percentage that it predicts to remain, and how many of these and of the others do."
)
SAMPLES = (0.1, 1.0)  # share of bin boundaries that are candidates: the paper's alpha

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
    """Each data set, share of candidates and share of rows."""
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
    """Predicted and measured outcome."""
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
    head = ["data set", "α", "rows removed", "remain best"]
    for condition in CONDITIONS:
        head += [f"{condition}: predicted to remain", "of these remain", "of the others remain"]
    return f"{CAPTION}\n\n{table(head, rows)}"


def draw(results: Results) -> Figure:
    """Share of splits that remain, of those predicted to remain and of the others."""
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
                ("predicted to remain", "kept_if_robust"),
                ("others", "kept_if_not"),
            )
        }
        bars(axis, names, series)
        axis.set_title(f"{condition}\n{100 * share:g}% removed")
        axis.set_ylim(0, 100)
        if i % n == 0:
            axis.set_ylabel("splits that remain, %")
    legend(figure)
    return figure


def _kept(results: Results, condition: str) -> tuple[float, int, int] | None:
    """Share of the splits predicted to remain that do; cases where it is higher, and all cases."""
    done = [d.values[condition] for d in results.where()]
    both = [d for d in done if d["kept_if_robust"] is not None and d["kept_if_not"] is not None]
    better = sum(d["kept_if_robust"] > d["kept_if_not"] for d in both)
    kept = _mean([d["kept_if_robust"] for d in done])
    return None if kept is None else (kept, better, len(both))


def answer(results: Results) -> str:
    """How often the conditions are right."""
    found = {condition: _kept(results, condition) for condition in CONDITIONS}
    parts = [f"{v[0]:.0%} ({condition})" for condition, v in found.items() if v is not None]
    if not parts:
        return ""
    return (
        f"Of the splits that a condition predicts to remain the best, {listed(parts)} do, on "
        "average. The conditions indicate that a split is likely to remain; they do not guarantee "
        "it, because they treat the removed rows as average rows."
    )


def remark(results: Results) -> str:
    """Comparison with the splits for which the conditions do not hold."""
    parts = [
        f"{v[1]} of {v[2]} cases ({condition})"
        for condition in CONDITIONS
        if (v := _kept(results, condition)) is not None
    ]
    sentences = []
    if parts:
        sentences.append(
            "Splits that are predicted to remain do so more often than the other splits in "
            f"{listed(parts)}."
        )
    another = _mean([d.values["by_another_feature"] for d in results.where()])
    if another is not None:
        sentences.append(
            f"{another:.0%} of the overtaken splits are overtaken by a candidate of another "
            "feature, which the first two conditions do not consider."
        )
    fewer = {
        alpha: _mean([d.values["kept"] for d in results.where(alpha=alpha)]) for alpha in SAMPLES
    }
    rates = [f"{k:.1%} with α = {a:g}" for a, k in fewer.items() if k is not None]
    if rates:
        sentences.append(
            "The paper argues that fewer candidates make splits more robust. The share of splits "
            f"that remain the best is {listed(rates)}."
        )
    return " ".join(sentences)


EXPERIMENT = Experiment(
    name="robustness",
    title="Robust splits",
    question=(
        "The paper derives two conditions under which a split remains the best when a fraction λ "
        "of the rows is removed. Distance Robust: the nearest other candidate of the feature is "
        "more than λ gain / (left score / left rows + right score / right rows) rows away; the "
        "paper counts the distance in bins, its proof in rows. Robustness Split: the gain is more "
        "than 1 / (1 - λ) times that of any other candidate, which its appendix restricts to the "
        "same feature. Which splits do remain?"
    ),
    paper="definitions 1 and 2",
    caption=(
        "Share of splits that remain the best candidate, for splits that a condition predicts to "
        "remain and for the others, with α = 0.1."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

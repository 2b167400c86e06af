"""From one row to most of them: the effect of the size of an update on cost and quality."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.results import Record
from benchmarks.updates.timing import rows_of
from datasets import paper
from experiments.harness.draws import WAYS, Draws, Way
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.pictures import ABOVE, NODES, RATIO, TO_REFIT, above, draw_both_ways
from experiments.harness.records import (
    UPDATES,
    as_values,
    columns_of,
    mostly_refitted,
    names_in,
    records_of,
    update_tables,
)
from experiments.harness.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Data sets and how many of their rows are used; None for all.
DATA: dict[Scale, dict[str, int | None]] = {
    "quick": {"adult": 3000, "pendigits": 1500},
    "full": {
        "adult": None,
        "credit_info": None,
        "optdigits": None,
        "pendigits": None,
        "letter": None,
        "covtype": 30_000,
    },
}

# Fractions of the rows; 0 is a single row. Small updates are drawn more often, because they vary
# more and cost less.
DRAWS: dict[Scale, dict[float, int]] = {
    "quick": {0.0: 3, 0.001: 3, 0.01: 2, 0.5: 1},
    "full": {0.0: 3, 0.001: 5, 0.005: 2, 0.01: 2, 0.05: 1, 0.2: 1, 0.5: 1, 0.8: 1},
}
MOST_DRAWS = {"letter": 2, "covtype": 2}  # each takes seconds


SMALL = 0.01  # largest fraction of a small update


def head_of(share: float) -> str:
    """A share as the head of a column."""
    return f"{100 * share:g}%" if share else "1 row"


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, each way."""
    for name, max_rows in DATA[scale].items():
        for way in WAYS:
            measure = partial(_measure, name, max_rows, way, DRAWS[scale])
            yield Case({"data": name, "way": way}, measure)


def _measure(name: str, max_rows: int | None, way: Way, draws: dict[float, int]) -> Values:
    data = paper.load(name, max_rows=max_rows)
    updates = Draws(data)
    records = []
    for share, wanted in draws.items():
        n_rows = rows_of(share, len(data.y_train))
        n_draws = min(wanted, MOST_DRAWS.get(name, wanted))
        records += updates.measure(way, n_rows, n_draws, share=share)
    return as_values(records)


def tables(results: Results) -> str:
    """Seconds, nodes, forgetting and test error over the size of the update."""
    records = records_of(results)
    columns = columns_of(records, "share", head_of)
    seconds = f"**Seconds of an update**, median over the draws. {UPDATES}"
    return update_tables(records, "share", columns, seconds)


def draw(results: Results) -> Figure:
    """Seconds, nodes, test error and forgetting under the default rule."""
    records = records_of(results)
    measures = (TO_REFIT, NODES, ABOVE, RATIO)
    columns = columns_of(records, "share", head_of)
    return draw_both_ways(records, "share", columns, measures, "rows of the update")


def answer(results: Results) -> str:
    """Where updates become refits."""
    records = [r for r in records_of(results) if r.library == "graftboost"]
    if not records:
        return ""
    return (
        "The time and the number of regrown nodes grow with the update until a refit is cheaper. "
        "Under the default rule, most draws are refits from these sizes on: "
        f"{_first_refits(records)}."
    )


def remark(results: Results) -> str:
    """How little the test error shows of small updates."""
    records = [r for r in records_of(results) if r.library == "graftboost"]
    small = [r for r in records if float(r.case["share"]) <= SMALL]
    if not small:
        return ""
    updated = max(abs(above(r)) for r in small)
    untouched = max(abs(above(r, "error_untouched")) for r in small)
    return (
        "The paper shows curves without figures, in which time and regrown nodes also grow with "
        f"the update. The test error shows little of small updates: up to {head_of(SMALL)}, that "
        f"of the updated model is within {updated:.2f} points of the refitted model's, and that of "
        f"the untouched model within {untouched:.2f}. Forgetting and learning of the changed rows "
        "show the effect."
    )


def _first_refits(records: list[Record]) -> str:
    words = []
    for name in names_in(records):
        refitted = [
            float(r.case["share"]) for r in records if r.data == name and mostly_refitted(r)
        ]
        words.append(f"{name} {head_of(min(refitted)) if refitted else 'never'}")
    return ", ".join(words)


EXPERIMENT = Experiment(
    name="ablation-size",
    title="Ablation: size of the update",
    question=(
        "How do time, regrown nodes and test error change with |D'|, from one row to 80% of the "
        "rows? Rows are removed from a model trained on all rows, or added to a model trained "
        "without them."
    ),
    paper='figures "Different fine-tuning ratio" and "The impact of |D\'| ..."',
    caption=(
        "Updates of growing size under the default rule. The dashed lines are the untouched model "
        "(forgetting 0), a refit (forgetting 1) and the time of a refit. Points are missing where "
        "the update is a refit or the figure is not reliable."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

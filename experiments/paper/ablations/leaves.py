"""Number of leaves: its effect on accuracy and on the time of an update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.markdown import listed
from benchmarks.settings import Settings
from experiments.harness.experiment import Case, Experiment, Scale
from experiments.harness.results import Results
from experiments.paper.ablations.one_row import (
    Size,
    cases_of,
    changes,
    draw_sizes,
    tables_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAVES: dict[Scale, tuple[int, ...]] = {
    "quick": (4, 20, 100),
    "full": (4, 10, 20, 40, 60, 100, 200),
}
REPEATS: dict[Scale, int] = {"quick": 1, "full": 1}
LARGE = ("credit_info", "covtype")  # in the paper, together with two sets that are not available


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set and number of leaves, which LightGBM has too."""
    sizes = [Size(leaves, Settings(leaves=leaves), {}) for leaves in LEAVES[scale]]
    return cases_of("leaves", sizes, scale, REPEATS[scale])


def tables(results: Results) -> str:
    """Test error, and seconds of one row and of training."""
    return tables_of(results, "leaves", "LightGBM has the same number of leaves.")


def draw(results: Results) -> Figure:
    """Test error, seconds and acceleration over the number of leaves."""
    return draw_sizes(results, "leaves")


def answer(results: Results) -> str:
    """From the fewest to the most leaves."""
    known = changes(results, "leaves")
    if not known:
        return ""
    parts = [f"{low:.0f} to {high:.0f} ({name})" for name, (_, _, low, high) in known.items()]
    fallen = sum(high < low for _, _, low, high in known.values())
    large = [high < low for name, (_, _, low, high) in known.items() if name in LARGE]
    return (
        f"From {min(results.all_of('leaves'))} to {max(results.all_of('leaves'))} leaves, the "
        f"speed-up of adding one row over our own training goes from {listed(parts)}. It falls on "
        f"{fallen} of {len(known)} data sets, {sum(large)} of {len(large)} large ones among them; "
        "in the paper it rises on large data sets."
    )


def remark(results: Results) -> str:
    """The paper's findings."""
    return (
        "The paper shows curves without figures: accuracy is stable from 20 leaves on, except on "
        "covtype, and more leaves lower the speed-up on small data sets and raise it on large "
        "ones. Trees of small data sets run out of rows before they have 200 leaves, because a "
        "leaf needs 20 rows."
    )


EXPERIMENT = Experiment(
    name="ablation-leaves",
    title="Ablation: number of leaves",
    question=(
        "Do more leaves make the model more accurate, or the addition of one row slower compared "
        "with training?"
    ),
    paper='figure "The impact of the # bins and # leaves ..."',
    caption=(
        "Test error, seconds to add one row, and the speed-up over training, by number of leaves."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

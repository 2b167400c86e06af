"""Number of bins: its effect on accuracy and on the time of an update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

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

BINS: dict[Scale, tuple[int, ...]] = {
    "quick": (128, 1024, 4096),
    "full": (128, 256, 512, 1024, 2048, 4096),
}
REPEATS: dict[Scale, int] = {"quick": 1, "full": 2}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, each number of bins."""
    sizes = [Size(bins, Settings(), {"max_bins": bins}) for bins in BINS[scale]]
    return cases_of("bins", sizes, scale, REPEATS[scale])


def tables(results: Results) -> str:
    """Test error, and seconds of one row and of training."""
    lightgbm = "LightGBM always uses its default of 255 bins, all of which are candidates."
    return tables_of(results, "bins", lightgbm)


def draw(results: Results) -> Figure:
    """Test error, seconds and acceleration over the number of bins."""
    return draw_sizes(results, "bins")


def answer(results: Results) -> str:
    """From the fewest to the most bins."""
    known = changes(results, "bins")
    if not known:
        return ""
    errors = {name: abs(high - low) for name, (low, high, *_) in known.items()}
    worst = max(errors, key=errors.__getitem__)
    factors = [high / low for *_, low, high in known.values()]
    return (
        f"From {min(results.all_of('bins'))} to {max(results.all_of('bins')):,} bins, the test "
        f"error changes by at most {100 * errors[worst]:.2f} points ({worst}). The speed-up of "
        "adding one row over our own training changes by a factor of "
        f"{min(factors):.2f} to {max(factors):.2f}."
    )


def remark(results: Results) -> str:
    """The paper's finding, and why bins have little effect."""
    return (
        "The paper shows curves without figures, in which the number of bins has little effect on "
        "accuracy and speed-up. A tenth of a feature's bin boundaries are candidates at any number "
        "of bins, and features with few distinct values have few boundaries at any limit."
    )


EXPERIMENT = Experiment(
    name="ablation-bins",
    title="Ablation: number of bins",
    question=(
        "Do more bins make the model more accurate, or the addition of one row slower compared "
        "with training?"
    ),
    paper='figure "The impact of the # bins and # leaves ..."',
    caption=(
        "Test error, seconds to add one row, and the speed-up over training, by number of bins."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

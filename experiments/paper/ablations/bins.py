"""Bins of a feature: what finer ones do to accuracy and to the time of an update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.settings import Settings
from experiments.harness.experiment import Case, Experiment, Scale
from experiments.harness.results import Results
from experiments.paper.ablations.one_row import (
    Plenty,
    Size,
    cases_of,
    change,
    draw_sizes,
    table_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS: dict[Scale, tuple[int, ...]] = {
    "quick": (128, 1024, 4096),
    "full": (128, 256, 512, 1024, 2048, 4096),
}
PLENTY: dict[Scale, Plenty] = {
    "quick": Plenty({"adult": 5000, "pendigits": 1500}, rows=5, repeats=1),
    "full": Plenty(
        {
            "adult": None,
            "credit_info": None,
            "optdigits": None,
            "pendigits": None,
            "letter": None,
            "covtype": 100_000,
        },
        rows=20,
        repeats=2,
    ),
}


def cases(scale: Scale) -> Iterator[Case]:
    """Each data set, each number of bins."""
    sizes = [Size(bins, Settings(), {"max_bins": bins}) for bins in BINS[scale]]
    return cases_of("bins", sizes, PLENTY[scale])


def tables(results: Results) -> str:
    """Test error, time of one row, and of training."""
    return (
        "Rows come in one by one; seconds are the median, those of training the best. LightGBM has "
        "its own number of bins, 255, and no candidates are drawn from them. The untouched model "
        "lacks the rows, and the retrained one is `refit()` after they came in.\n\n"
        + table_of(results, "bins", "bins")
    )


def draw(results: Results) -> Figure:
    """Test error, seconds and acceleration over the number of bins."""
    return draw_sizes(results, "bins", "bins")


def remark(results: Results) -> str:
    """What thirty-two times as many bins change."""
    found = {name: change(results, "bins", name) for name in results.all_of("data")}
    known = {name: values for name, values in found.items() if values is not None}
    if not known:
        return ""
    errors = {name: abs(high - low) for name, (low, high, *_) in known.items()}
    worst = max(errors, key=errors.__getitem__)
    factors = [high / low for *_, low, high in known.values()]
    return (
        "The paper, which shows pictures only, finds that the number of bins has little effect on "
        "accuracy and on the acceleration. From the fewest to the most bins, test error changes by "
        f"at most {100 * errors[worst]:.2f} points here ({worst}), and how many times faster one "
        f"row is than our own training by a factor of {min(factors):.2f} to {max(factors):.2f}. Of "
        "a feature's boundaries a tenth are candidates at any number of bins, and features with "
        "few values have few boundaries whatever the limit."
    )


EXPERIMENT = Experiment(
    name="ablation-bins",
    title="Ablation: number of bins",
    question=(
        "Do finer bins make the model better, or the addition of one row slower beside training "
        "again?"
    ),
    paper='figure "The impact of the # bins and # leaves ..."',
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)

"""Seconds and memory of a fit (Table 2), compared with other libraries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks import memory
from benchmarks.goals import geometric_mean
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library
from benchmarks.markdown import in_bytes, in_seconds, table
from benchmarks.measure import measure
from benchmarks.settings import Settings
from datasets import Dataset, paper
from datasets.paper import SETS
from experiments.harness.data_sets import starred
from experiments.harness.experiment import Case, Experiment, Scale, Values
from experiments.harness.pictures import points
from experiments.harness.results import Results
from graftboost.audit import plotting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Seconds and megabytes of the paper's Table 2, in the order of `SETS`. OnlineGB, DeltaBoost and
# ThunderGBM, which it also has, were not run here.
PAPER_SECONDS = {
    OURS: (2.673, 1.818, 64.935, 177.1, 0.276, 0.368, 0.352, 9.336, 0.582, 0.427),
    "lightgbm": (0.516, 1.836, 97.622, 211, 0.106, 0.131, 0.203, 4.581, 0.098, 0.09),
    "xgboost": (9.467, 13.314, 1634.82, 2230.03, 0.752, 0.574, 1.171, 63.917, 0.186, 0.21),
    "catboost": (1.532, 3.447, 108.95, 303.56, 0.177, 0.183, 0.232, 6.14, 0.533, 0.858),
}
PAPER_MEGABYTES = {
    OURS: (577.18, 1096.71, 16576.4, 24333.3, 1081.15, 1959.49, 1805.76, 9665.21, 762.78, 531.88),
    "lightgbm": (150.45, 149.19, 1688.57, 4109.54, 121.08, 135.45, 161.97, 542.47, 215.15, 214.95),
    "xgboost": (179.13, 140.88, 2093.95, 7467.32, 131.11, 120.93, 121.59, 770.3, 204.74, 200.91),
    "catboost": (83.02, 129.09, 1503.93, 3090.55, 29.41, 36.64, 99.79, 595.27, 40.97, 27.91),
}

PLACES = {name: place for place, name in enumerate(SETS)}  # positions in these tuples

QUICK, QUICK_ROWS = ("adult", "pendigits", "abalone"), 3_000
TURNS, LEAST_TURNS, LONG = 5, 2, 60.0  # fewer turns if they take longer than LONG seconds
TESTED = 10_000  # test rows: prediction is not measured here


def cases(scale: Scale) -> Iterable[Case]:
    """One case for each data set."""
    for name in SETS if scale == "full" else QUICK:
        yield Case({"data": name}, lambda name=name: _measure(name, scale))


def _measure(name: str, scale: Scale) -> Values:
    data = paper.load(name, max_rows=None if scale == "full" else QUICK_ROWS)
    data = replace(data, X_test=data.X_test[:TESTED], y_test=data.y_test[:TESTED])
    if scale == "full":
        return costs(data, Settings(), TURNS)
    return costs(data, Settings(), turns=1, peaks=name == QUICK[0])


def costs(data: Dataset, settings: Settings, turns: int, *, peaks: bool = True) -> Values:
    """Best seconds of several fits and peak memory, for every installed library."""
    there, skipped = _installed()
    start = time.perf_counter()
    records = measure(data, there, settings, 1, _quiet)
    left = min(turns, max(LEAST_TURNS, int(LONG / (time.perf_counter() - start)))) - 1
    records += measure(data, there, settings, left, _quiet)
    seconds: dict[str, list[float]] = {}
    for record in records:
        seconds.setdefault(record.library, []).extend(record.samples.get("fit_seconds", []))
    values: Values = {
        "rows": len(data.y_train),
        "turns": 1 + left,
        "seconds": {library: min(found) for library, found in seconds.items() if found},
        "skipped": skipped,
    }
    if peaks and memory.available():
        found = memory.measure_peaks(data, there, settings, _quiet)
        best = {record.library: record.best("peak_bytes") for record in found}
        values["bytes"] = {library: peak for library, peak in best.items() if peak is not None}
    return values


def _installed() -> tuple[list[Library], list[str]]:
    there = [library for library in LIBRARIES.values() if library.available()]
    return there, [library.title for library in LIBRARIES.values() if library not in there]


def _quiet(line: str) -> None:
    pass


def tables(results: Results) -> str:
    """Seconds and memory, with the paper's in brackets."""
    turns = sorted({done.values["turns"] for done in results.where()}) or [0]
    words = f"{turns[0]}" if len(turns) == 1 else f"{turns[0]} to {turns[-1]}"
    seconds = (
        f"**Seconds of a fit** on {Settings().threads} threads, the best of {words}. In brackets: "
        "the paper's seconds, on one thread of another machine. A star marks data that replaces "
        "the paper's."
    )
    parts = [seconds, _table(results, "seconds", in_seconds, PAPER_SECONDS, 1.0)]
    if any("bytes" in done.values for done in results.where()):
        peaks = (
            "**Peak memory of a fit in addition to its input**, measured in a separate process. In "
            "brackets: the paper's total allocated memory, which includes the input."
        )
        parts += [peaks, _table(results, "bytes", in_bytes, PAPER_MEGABYTES, 1e6)]
    return "\n\n".join(parts)


def _table(
    results: Results,
    what: str,
    write: Callable[[float], str],
    theirs: Mapping[str, Sequence[float]],
    unit: float,
) -> str:
    rows = []
    for done in results.where():
        if what not in done.values:
            continue
        name = str(done.labels["data"])
        cells = [starred(name)]
        for library in LIBRARIES:
            value = done.values[what].get(library)
            cell = "-" if value is None else write(value)
            if library in theirs:
                cell += f" ({write(unit * theirs[library][PLACES[name]])})"
            cells.append(cell)
        rows.append(cells)
    return table(["data set", *(library.title for library in LIBRARIES.values())], rows)


def draw(results: Results) -> Figure:
    """Seconds and memory as points on logarithmic axes."""
    figure, axes = plotting.panels(2, columns=1, size=(9.0, 2.9))
    done = list(results.where())
    groups = [starred(str(each.labels["data"])) for each in done]
    panels = {"seconds": ("Seconds of a fit", 1.0), "bytes": ("Peak memory, megabytes", 1e-6)}
    for axis, (what, (title, unit)) in zip(axes, panels.items(), strict=True):
        series = {
            library.title: [_or_nan(each.values, what, name) * unit for each in done]
            for name, library in LIBRARIES.items()
        }
        points(axis, groups, series)
        axis.set_title(title)
        if done:
            plotting.logarithmic(axis)
    plotting.legend(figure, columns=5)
    return figure


def _or_nan(values: Values, what: str, library: str) -> float:
    return float(values.get(what, {}).get(library, math.nan))


def answer(results: Results) -> str:
    """Seconds and memory relative to LightGBM."""
    sentences = []
    if seconds := _to_yardstick(results, "seconds"):
        sentences.append(f"A fit takes {_spread(seconds, 'time')}.")
    if peaks := _to_yardstick(results, "bytes"):
        sentences.append(
            f"It needs {_spread(peaks, 'memory')}, because it stores leaf ids, recorded "
            "gradients and histograms."
        )
    return " ".join(sentences)


def remark(results: Results) -> str:
    """LightGBM on the paper's machine and on this one."""
    sentences = []
    two, more = _beside_paper(results, several=False), _beside_paper(results, several=True)
    if results.scale == "full" and two and more and geometric_mean(more) > 2 * geometric_mean(two):
        sentences.append(
            "LightGBM is the same program in both comparisons. Here it takes "
            f"{geometric_mean(two):.2f} times the paper's seconds for binary classification and "
            f"regression, but {geometric_mean(more):.1f} times for several classes. The paper's "
            "seconds for several classes, including those of its own program, therefore do not "
            "seem to include one tree per class and iteration, which is what is trained here."
        )
    if results.scale == "quick":
        sentences.append("The paper's figures are for whole data sets, these for small samples.")
    return " ".join(sentences)


def _to_yardstick(results: Results, what: str) -> list[float]:
    found = (done.values.get(what, {}) for done in results.where())
    return [each[OURS] / each[YARDSTICK] for each in found if {OURS, YARDSTICK} <= each.keys()]


def _spread(ratios: Sequence[float], what: str) -> str:
    times = f"{geometric_mean(ratios):.2g} times LightGBM's {what}"
    if len(ratios) == 1:
        return times
    return (
        f"{times} (geometric mean over {len(ratios)} data sets; {min(ratios):.2g} to "
        f"{max(ratios):.2g})"
    )


def _beside_paper(results: Results, *, several: bool) -> list[float]:
    """LightGBM's seconds relative to the paper's, on the paper's own sets."""
    ratios = []
    for done in results.where():
        wanted, name = SETS[str(done.labels["data"])], str(done.labels["data"])
        seconds = done.values["seconds"].get(YARDSTICK)
        if seconds is not None and not wanted.stand_in and (wanted.n_classes > 2) == several:
            ratios.append(seconds / PAPER_SECONDS[YARDSTICK][PLACES[name]])
    return ratios


EXPERIMENT = Experiment(
    name="training",
    title="Training time and memory",
    question=(
        "What does it cost to train a model that can be updated later? All libraries train the "
        "same number of leaves and iterations on the same arrays, in turns (A B C A B C). The data "
        "is prepared as in the paper."
    ),
    paper="Table 2",
    caption=(
        "Seconds and peak memory (in addition to the input) of a fit. Both axes are logarithmic. A "
        "star marks data that replaces the paper's."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

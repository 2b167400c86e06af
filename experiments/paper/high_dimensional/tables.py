"""The paper's tables of high-dimensional data, with our figures, and the discussion."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.goal import fold
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import in_bytes, in_seconds, listed, table
from experiments.harness.contenders.ours import Ours, Paper
from experiments.harness.draws import ONE_ROW, SIZES, WAYS, Way
from experiments.harness.experiment import Values
from experiments.harness.results import Results
from experiments.paper.high_dimensional import paper_figures
from experiments.paper.high_dimensional.measuring import PEERS, SETS, TRAINING, UPDATING, WHO
from experiments.paper.high_dimensional.paper_figures import Figures
from graftboost.audit.ratio import Ratio

DOING = {"add": "Adding", "remove": "Removing"}
WORDS = {"add": "learning", "remove": "forgetting"}
CRASHED = "crashed"


OF_SETS = "**Data sets.** In brackets: the paper's data set that is replaced."
OF_SECONDS = (
    "**Seconds of a fit**, the best of the turns. In brackets: the paper's, on its own data set "
    "and one thread of another machine."
)
OF_MEMORY = (
    "**Peak memory of a process that fits**, including the rows. In brackets: the paper's. For "
    "graftboost it is also given after an update, because the first update may compute histograms."
)
OF_UPDATES = (
    "**Updates**: median milliseconds per tree over the draws, and how many times faster they are "
    "than retraining the other libraries. In brackets: the paper's. Refits: the number of draws in "
    "which a refit was cheaper than an update. Learning and forgetting: 1 equals a full training, "
    "0 equals the untouched model, with a 95% interval over the rows of all draws. A dash means "
    "that even a full training causes no significant change."
)


def tables(results: Results) -> str:
    """Sizes, seconds and memory of training, and then the updates."""
    parts = [OF_SETS, _sizes_table(results)]
    seconds = [
        _training_row(values, name, "fit_seconds", in_seconds, paper_figures.SECONDS, 1.0)
        for name, values in measured(results, TRAINING).items()
    ]
    titles = [LIBRARIES[who].title for who in WHO]
    parts += [OF_SECONDS, table(["data set", *titles], seconds)]
    parts += [OF_MEMORY, _memory_table(results), OF_UPDATES]
    parts += [f"**{DOING[way]}**\n\n{_updates_table(results, way)}" for way in WAYS]
    return "\n\n".join(parts)


def measured(results: Results, what: str) -> dict[str, Values]:
    """Values of trainings or of updates by data set."""
    found = {name: results.find(data=name, what=what) for name in SETS}
    return {name: v for name, v in found.items() if v is not None and "rows" in v}


def _sizes_table(results: Results) -> str:
    rows = []
    for name, values in measured(results, TRAINING).items():
        wanted = paper_figures.SETS[SETS[name].paper]
        rows.append(
            [
                SETS[name].title,
                f"{values['rows']:,} ({wanted.n_train:,})",
                f"{values['tested']:,} ({wanted.n_test:,})",
                f"{values['columns']:,} ({wanted.n_columns:,})",
                f"{values['stored']:.0f}",
                SETS[name].paper,
            ]
        )
    head = ["data set", "training rows", "test rows", "columns", "stored per row", "replaces"]
    return table(head, rows)


def best(values: Values, who: str, what: str) -> float | None:
    """Least value measured for a library, None if there is none."""
    found: list[float] = values["measured"].get(who, {}).get(what, [])
    return min(found, default=None)


def _training_row(
    values: Values,
    name: str,
    what: str,
    write: Callable[[float], str],
    papers: Mapping[str, Mapping[str, float | None]],
    unit: float,
) -> list[str]:
    """The title, and a value for each library, with the paper's in brackets."""
    cells = [SETS[name].title]
    for who in WHO:
        ours, theirs = best(values, who, what), papers[SETS[name].paper][who]
        absent = "failed" if who in values["failed"] else "-"
        text = absent if ours is None else write(ours)
        beside = CRASHED if theirs is None else write(unit * theirs)
        cells.append(f"{f'**{text}**' if who == OURS else text} ({beside})")
    return cells


def _memory_table(results: Results) -> str:
    rows = []
    for name, values in measured(results, TRAINING).items():
        updated = best(values, OURS, "updated_bytes")
        cells = _training_row(values, name, "process_bytes", in_bytes, paper_figures.MEGABYTES, 1e6)
        rows.append([*cells, "-" if updated is None else in_bytes(updated)])
    titles = [LIBRARIES[who].title for who in WHO]
    return table(["data set", *titles, "graftboost, after an update"], rows)


def _updates_table(results: Results, way: Way) -> str:
    rows = []
    for name, values in measured(results, UPDATING).items():
        for size in SIZES:
            ours = sample_of(values, way, size)
            if ours is None:
                continue
            theirs = figures(name, way, size)
            rows.append(
                [
                    SETS[name].title,
                    size if size == ONE_ROW else f"{size} ({ours['rows']})",
                    f"**{_a_tree(values, ours)}** ({theirs.ours:.3g} ms)",
                    f"{ours['refits']} of {len(ours['seconds'])}",
                    *(
                        _faster_cell(speed_up(results, name, who, way, size), theirs, who)
                        for who in PEERS
                    ),
                    _ratio_cell(ours),
                    _a_tree(values, sample_of(values, way, size, Paper.name)),
                ]
            )
    head = [
        "data set",
        "D'",
        "graftboost",
        "refits",
        *(f"to {LIBRARIES[who].title}" for who in PEERS),
        WORDS[way],
        Paper.title,
    ]
    return table(head, rows)


def figures(name: str, way: Way, size: str) -> Figures:
    """The paper's figures for the data set that this one replaces."""
    return paper_figures.UPDATES[way][SETS[name].paper][list(SIZES).index(size)]


def sample_of(values: Values, way: Way, size: str, who: str = Ours.name) -> Any:
    """Values of updates of one size, None if there are none."""
    return values.get(way, {}).get(who, {}).get(size)


def milliseconds_a_tree(values: Values, sample: Any) -> float:
    """Median over the draws."""
    seconds: list[float] = sample["seconds"]
    return 1e3 * median(seconds) / float(values["trees"])


def _a_tree(values: Values, sample: Any) -> str:
    return "-" if sample is None else f"{milliseconds_a_tree(values, sample):.3g} ms"


def speed_up(results: Results, name: str, who: str, way: Way, size: str) -> float | None:
    """How many times faster our update is than a training of another library."""
    training, updating = (measured(results, what).get(name) for what in (TRAINING, UPDATING))
    if training is None or updating is None:
        return None
    seconds, sample = best(training, who, "fit_seconds"), sample_of(updating, way, size)
    return None if seconds is None or sample is None else seconds / median(sample["seconds"])


def _faster_cell(times: float | None, theirs: Figures, who: str) -> str:
    papers = getattr(theirs, who)
    text = "-" if times is None else fold(times)
    return f"{text} ({CRASHED if papers is None else fold(papers)})"


def _ratio_cell(sample: Any) -> str:
    ratio = Ratio(*sample["ratio"]) if "ratio" in sample else None
    return "-" if ratio is None or ratio.low is None else str(ratio)


def answer(results: Results) -> str:
    """Fit and removal of one row relative to LightGBM."""
    fits, rows = [], []
    for name, values in measured(results, TRAINING).items():
        ours, theirs = (best(values, who, "fit_seconds") for who in (OURS, YARDSTICK))
        if ours and theirs:
            fits.append(f"{ours / theirs:.2g} ({SETS[name].title})")
        if times := speed_up(results, name, YARDSTICK, "remove", ONE_ROW):
            rows.append(f"{fold(times)} ({SETS[name].title})")
    if not fits or not rows:
        return ""
    return (
        f"A fit takes {listed(fits)} times as long as LightGBM's. Removing one row is faster than "
        f"LightGBM's retrain by a factor of {listed(rows)}."
    )


def remark(results: Results) -> str:
    """Sentences from the figures."""
    sentences = [*_beside_lightgbm(results), *_updates(results), *_slower(results)]
    sentences += [*_failed(results), *_stand_ins(results)]
    if results.scale == "quick":
        sentences.append(
            "The paper's figures are for whole data sets and 100 iterations, these for small "
            "samples and fewer iterations."
        )
    sentences.append(
        "XGBoost treats values that a sparse table does not store as missing; the others treat "
        "them as zero. The paper uses one thread; here all libraries use two. The paper's "
        "ThunderGBM, which needs a GPU, was not run."
    )
    return " ".join(sentences)


def _beside_lightgbm(results: Results) -> Iterator[str]:
    """Our fit relative to LightGBM's, here and in the paper."""
    here = []
    for name, values in measured(results, TRAINING).items():
        found = [
            best(values, who, what)
            for what in ("fit_seconds", "process_bytes")
            for who in (OURS, YARDSTICK)
        ]
        known = [value for value in found if value]
        if len(known) == len(found):
            here.append(_to_yardstick(SETS[name].title, known))
    there = []
    for name in paper_figures.SETS:
        of_paper = (paper_figures.SECONDS[name], paper_figures.MEGABYTES[name])
        both = [each[who] or math.nan for each in of_paper for who in (OURS, YARDSTICK)]
        there.append(_to_yardstick(name, both))
    if here:
        yield (
            f"A fit takes {listed(here)} times LightGBM's seconds and memory. In the paper, these "
            f"factors are {listed(there)}."
        )


def _to_yardstick(name: str, figures: Sequence[float]) -> str:
    """Our seconds and memory to LightGBM's, of four figures: ours, theirs, ours, theirs."""
    seconds, their_seconds, memory, their_memory = figures
    return f"{seconds / their_seconds:.2g} and {memory / their_memory:.2g} ({name})"


def _updates(results: Results) -> Iterator[str]:
    for way in WAYS:
        parts = []
        for name in measured(results, UPDATING):
            for size in (ONE_ROW, list(SIZES)[-1]):
                if times := speed_up(results, name, YARDSTICK, way, size):
                    papers = fold(figures(name, way, size).lightgbm)
                    parts.append(
                        f"{fold(times)} for {size} of {SETS[name].title} (the paper's: {papers})"
                    )
        if parts:
            yield (
                f"{DOING[way]}: LightGBM's retrain takes longer than an update by these factors: "
                f"{'; '.join(parts)}."
            )


def _slower(results: Results) -> Iterator[str]:
    slower = [
        f"{SETS[name].title} ({DOING[way].lower()} {size}, {fold(times)})"
        for name in measured(results, UPDATING)
        for way in WAYS
        for size in SIZES
        if (times := speed_up(results, name, YARDSTICK, way, size)) and times < 1
    ]
    if slower:
        yield f"An update is slower than LightGBM's retrain on {listed(slower)}."


def _failed(results: Results) -> Iterator[str]:
    for name, values in measured(results, TRAINING).items():
        for who, failure in values["failed"].items():
            yield f"{LIBRARIES[who].title} on {SETS[name].title}: {failure}."


def _stand_ins(results: Results) -> Iterator[str]:
    for name in measured(results, TRAINING):
        yield f"{SETS[name].title} replaces {SETS[name].paper}: {SETS[name].why}."

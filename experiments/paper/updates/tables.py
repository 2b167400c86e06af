"""The paper's table with more columns, forgetting and learning, and the discussion of both."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean, median
from typing import Any

from benchmarks.goal import fold
from benchmarks.goals import geometric_mean
from benchmarks.markdown import in_seconds, listed, table
from datasets import paper
from experiments.harness.contenders import CONTENDERS
from experiments.harness.contenders.ours import Ours, Predecessor
from experiments.harness.data_sets import starred
from experiments.harness.draws import ONE_ROW, SIZES, WAYS, Way
from experiments.harness.results import Results
from experiments.paper.updates.measuring import COMPARED, NEW_LEAVES, RETRAINED, RULES
from experiments.paper.updates.paper_figures import PAPER, Figures
from graftboost.audit.ratio import Ratio

OURS, *OTHER_RULES = [kind.name for kind in RULES]
PEERS = (*RETRAINED, *NEW_LEAVES, "sisa")
IN_PLACE = (OURS, *OTHER_RULES, *NEW_LEAVES, "sisa")
DOING = {"add": "Adding", "remove": "Removing"}
WORDS = {"add": "learning", "remove": "forgetting"}

SECONDS = (
    "Median seconds over the draws, and how many times faster graftboost is than each of the "
    "other methods, with the paper's figure in brackets. For "
    f'"{Predecessor.title}" that is the figure of the paper\'s predecessor: iGBDT for additions '
    "and MU in GBDT for removals. Refits: the number of draws in which a refit was cheaper than "
    "an update. A star marks data that replaces the paper's."
)
BOUGHT = (
    "The change in the loss of D' caused by the update, relative to the change caused by training "
    "the same model from scratch on the same rows: 1 equals a full training, 0 equals the "
    "untouched model. In brackets: a 95% interval over the rows of all draws. A dash means that "
    "even a full training causes no significant change."
)


def tables(results: Results) -> str:
    """Seconds for both ways, then forgetting and learning."""
    parts = [SECONDS]
    parts += [f"**{DOING[way]}: seconds**\n\n{_seconds_table(results, way)}" for way in WAYS]
    parts.append(BOUGHT)
    parts += [
        f"**{DOING[way]}: {WORDS[way]} of D'**\n\n{_bought_table(results, way)}" for way in WAYS
    ]
    return "\n\n".join(parts)


def _seconds_table(results: Results, way: Way) -> str:
    rows = []
    for name in results.all_of("data"):
        for size in SIZES:
            ours = sample_of(results, name, OURS, way, size)
            if ours is None:
                continue
            theirs = paper_figures(name, way, size)
            rows.append(
                [
                    starred(name),
                    f"{size} ({ours['rows']})" if size != ONE_ROW else size,
                    f"**{in_seconds(median(ours['seconds']))}** ({in_seconds(theirs.ours)})",
                    f"{ours['refits']} of {len(ours['seconds'])}",
                    *(
                        _faster_cell(speed_up(results, name, who, way, size), theirs, who)
                        for who in (*OTHER_RULES, *PEERS)
                    ),
                ]
            )
    titles = [CONTENDERS[who].title for who in (*OTHER_RULES, *PEERS)]
    return table(["data set", "D'", "graftboost", "refits", *titles], rows)


def _faster_cell(times: float | None, theirs: Figures, who: str) -> str:
    if times is None:
        return "-"
    if who == Predecessor.name:
        return f"{fold(times)} ({fold(theirs.predecessor / theirs.ours)})"
    if who in Figures._fields:
        return f"{fold(times)} ({fold(getattr(theirs, who))})"
    return fold(times)


def _bought_table(results: Results, way: Way) -> str:
    rows = []
    for name in results.all_of("data"):
        for size in COMPARED:
            cells = [_ratio_cell(ratio_of(results, name, who, way, size)) for who in IN_PLACE]
            rows.append([starred(name), size, *cells, "0"])
    titles = [CONTENDERS[who].title for who in (*IN_PLACE, "untouched")]
    return table(["data set", "D'", *titles], rows)


def _ratio_cell(ratio: Ratio | None) -> str:
    if ratio is None or ratio.low is None:
        return "-"
    return str(ratio)


def paper_figures(name: str, way: Way, size: str) -> Figures:
    """The paper's own figures."""
    return PAPER[way][name][list(SIZES).index(size)]


def sample_of(results: Results, name: str, who: str, way: Way, size: str) -> Any:
    """Values of a method that updates, None if there are none."""
    case = OURS if who in OTHER_RULES else who
    values = results.find(data=name, contender=case) or {}
    return values.get(way, {}).get(who, {}).get(size)


def seconds_of(results: Results, name: str, who: str, way: Way, size: str) -> float | None:
    """Median seconds of an update, or of a retrain."""
    if who in RETRAINED:
        values = results.find(data=name, contender=who) or {}
        return median(values["seconds"]) if "seconds" in values else None
    sample = sample_of(results, name, who, way, COMPARED[0] if who in NEW_LEAVES else size)
    return None if sample is None else median(sample["seconds"])


def speed_up(results: Results, name: str, who: str, way: Way, size: str) -> float | None:
    """How many times faster graftboost is."""
    ours = seconds_of(results, name, OURS, way, size)
    theirs = seconds_of(results, name, who, way, size)
    return theirs / ours if ours and theirs is not None else None


def ratio_of(results: Results, name: str, who: str, way: Way, size: str) -> Ratio | None:
    """Learning or forgetting."""
    sample = sample_of(results, name, who, way, size)
    return Ratio(*sample["ratio"]) if sample and "ratio" in sample else None


def answer(results: Results) -> str:
    """Speed-up over LightGBM's retrain, and forgetting of the default rule."""
    times = {size: _beside_lightgbm(results, "remove", size) for size in SIZES}
    known = [(size, pair[0]) for size, pair in times.items() if pair is not None]
    sentences = []
    if known:
        parts = [f"{fold(ours)} ({size})" for size, ours in known]
        sentences.append(
            "Removing rows is faster than retraining LightGBM by these factors, in the geometric "
            f"mean over the paper's data sets: {listed(parts)}."
        )
    found = {who: _mean_ratio(results, who, "remove") for who in (Ours.name, "lightgbm-refit")}
    if all(value is not None for value in found.values()):
        ours, refit = found.values()
        sentences.append(
            f"The update achieves a mean forgetting of {ours:.2f}, and LightGBM's `refit`, which "
            f"only recomputes leaf values, {refit:.2f}."
        )
    return " ".join(sentences)


def remark(results: Results) -> str:
    """Sentences from the figures."""
    sentences = [_against_lightgbm(results, way) for way in WAYS]
    sentences += [*_slower(results), *_bought(results), *_least(results), *_predecessor(results)]
    sentences += _stand_ins(results)
    if results.scale == "quick":
        sentences.append(
            "The paper's figures are for whole data sets and 100 iterations, these for small "
            "samples and fewer iterations."
        )
    sentences.append(
        "The paper uses one thread; here all methods use two. The paper's seconds for several "
        "classes seem to be those of a single class: its LightGBM trains the 2,600 trees of Letter "
        "in 0.2 s, faster than the 100 trees of Adult. Our seconds include all trees. They exclude "
        "the state that the first update of a fitted model builds for later updates."
    )
    return " ".join(sentence for sentence in sentences if sentence)


def _beside_lightgbm(results: Results, way: Way, size: str) -> tuple[float, float] | None:
    """Geometric mean of the speed-up on the paper's data sets, ours and the paper's."""
    pairs = [
        (times, paper_figures(name, way, size).lightgbm)
        for name in results.all_of("data")
        if not paper.SETS[name].stand_in
        and (times := speed_up(results, name, "lightgbm", way, size))
    ]
    if not pairs:
        return None
    ours, theirs = (geometric_mean(column) for column in zip(*pairs, strict=True))
    return ours, theirs


def _against_lightgbm(results: Results, way: Way) -> str:
    parts = []
    for size in SIZES:
        if (pair := _beside_lightgbm(results, way, size)) is not None:
            ours, theirs = pair
            parts.append(f"{fold(ours)} for {size} (the paper's: {fold(theirs)})")
    if not parts:
        return ""
    return (
        f"{DOING[way]}: LightGBM's retrain takes longer than an update by these factors, in the "
        f"geometric mean over the paper's data sets: {listed(parts)}."
    )


def _slower(results: Results) -> Iterator[str]:
    slower = [
        f"{starred(name)} ({DOING[way].lower()} {size}, {fold(times)})"
        for name in results.all_of("data")
        for way in WAYS
        for size in SIZES
        if (times := speed_up(results, name, "lightgbm", way, size)) and times < 1
    ]
    if slower:
        yield f"An update is slower than LightGBM's retrain on {listed(slower)}."


def _least(results: Results) -> Iterator[str]:
    """Where the default rule forgets significantly less than a refit."""
    left = [
        f"{starred(name)} {size} ({ratio.value:.2f}, {ratio.low:.2f} to {ratio.high:.2f})"
        for name in results.all_of("data")
        for size in COMPARED
        if (ratio := ratio_of(results, name, Ours.name, "remove", size))
        and ratio.value is not None
        and ratio.low is not None
        and ratio.high is not None
        and ratio.high < 1
    ]
    if left:
        yield (
            f"The default rule forgets significantly less than a refit on {listed(left)}. It "
            "regrows as much as its target needs, by default a fidelity of 0.75. A higher fidelity "
            "forgets more and takes longer."
        )


def _bought(results: Results) -> Iterator[str]:
    for way in WAYS:
        parts = [
            f"{value:.2f} ({CONTENDERS[who].title})"
            for who in IN_PLACE
            if (value := _mean_ratio(results, who, way)) is not None
        ]
        if parts:
            yield f"The mean {WORDS[way]} is {listed(parts)}."


def _mean_ratio(results: Results, who: str, way: Way) -> float | None:
    """Mean learning or forgetting over the data sets and sizes at which it is significant."""
    found = [
        ratio.value
        for name in results.all_of("data")
        for size in COMPARED
        if (ratio := ratio_of(results, name, who, way, size)) and ratio.low is not None
    ]
    known = [value for value in found if value is not None]
    return mean(known) if known else None


def _predecessor(results: Results) -> Iterator[str]:
    samples = [
        sample
        for name in results.all_of("data")
        for way in WAYS
        for size in SIZES
        if (sample := sample_of(results, name, Predecessor.name, way, size))
    ]
    if samples:
        refits, draws = (sum(column) for column in zip(*map(_refits, samples), strict=True))
        yield (
            f'"{Predecessor.title}" is the rule of the paper\'s predecessor. The predecessor '
            "computes fresh gradients in every iteration of the update; here they are computed "
            f"once, after the update. {refits} of its {draws} updates were refits, which were "
            "cheaper and limit its seconds."
        )


def _refits(sample: Any) -> tuple[int, int]:
    return sample["refits"], len(sample["seconds"])


def _stand_ins(results: Results) -> Iterator[str]:
    for name in results.all_of("data"):
        if stand_in := paper.SETS[name].stand_in:
            yield f"{starred(name)}: {stand_in}."

"""Tables of fidelity, estimated and measured."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from benchmarks.goal import Goal
from benchmarks.markdown import table
from experiments.harness.experiment import Values
from experiments.harness.results import Results
from experiments.ours.fidelity.measuring import SIZES
from graftboost.audit.ratio import Ratio, ratio_of_sums

WIDEST = 0.5  # a measured fidelity with a wider interval says little
CLOSE = 0.1
LEAST, MOST = 0.75, 1.2
TOLD_APART = 0.6  # by losses, from this AUC on
NAMES = {"remove": "forgetting", "add": "learning"}

FIDELITY = (
    "**Measured fidelity** of updates with default parameters, pooled over the draws, with a 95% "
    "bootstrap interval over the draws, and after the slash the fidelity that the updates "
    f"**estimated**. A star marks intervals that are wider than {WIDEST:g}: more draws would be "
    "needed."
)
WORK = (
    "**Work**: rows regrown, as a percentage of the rows visited by a refit, mean over the draws. "
    "In brackets the share of the draws that were refits, if there are any."
)
MEMORY = (
    "**Memory of removed rows**, estimated before the removal -> change in loss that a refit "
    "causes. Rows are sorted by the estimate and divided into ten groups. The table shows the "
    "means of the first, the fifth, the eighth, the ninth and the tenth group, and the ratio of "
    "the totals. 0.1% of the rows are removed."
)
AUC = (
    "**Telling models apart** by the losses of the removed rows: the probability that a loss under "
    "the refitted model is larger than one under the untouched or the updated model. 0.5 means "
    "that they cannot be told apart. 0.1% of the rows are removed."
)


def measured(values: Values) -> Ratio:
    """The fidelity over all draws, with its interval."""
    return ratio_of_sums(values["by_update"], values["by_refit"])


def estimated(values: Values) -> float:
    """The fidelity that the updates estimated, over all draws."""
    achieved, left = math.fsum(values["achieved"]), math.fsum(values["left"])
    return achieved / (achieved + left) if achieved + left > 0 else math.nan


def is_known(ratio: Ratio) -> bool:
    """Whether enough draws were made to tell the fidelity."""
    return ratio.low is not None and ratio.high is not None and ratio.high - ratio.low <= WIDEST


def cells(results: Results) -> list[tuple[str, Ratio, float]]:
    """The name, the measured and the estimated fidelity of every case."""
    return [
        (
            f"{done.labels['data']}, {done.labels['way']} {done.labels['size']}",
            measured(done.values),
            estimated(done.values),
        )
        for done in results.where()
    ]


def tables(results: Results) -> str:
    """All tables of the page."""
    texts = {
        FIDELITY: _fidelity_table(results),
        WORK: _work_table(results),
        MEMORY: _memory_table(results),
        AUC: _auc_table(results),
    }
    return "\n\n".join(f"{caption}\n\n{shown}" for caption, shown in texts.items())


def _by_size(results: Results, write: Any) -> str:
    rows = []
    for name in results.all_of("data"):
        for way, called in NAMES.items():
            found = [results.find(data=name, way=way, size=size) for size in SIZES]
            if any(found):
                texts = ["-" if values is None else write(values) for values in found]
                rows.append([name, called, *texts])
    return table(["data set", "", *SIZES], rows)


def _fidelity_table(results: Results) -> str:
    def write(values: Values) -> str:
        ratio = measured(values)
        return f"{ratio}{'' if is_known(ratio) else '*'} / {estimated(values):.2f}"

    return _by_size(results, write)


def _work_table(results: Results) -> str:
    def write(values: Values) -> str:
        share = math.fsum(values["regrown"]) / len(values["regrown"])
        refits = math.fsum(values["refits"]) / len(values["refits"])
        return f"{100 * share:.2g}%" + (f" ({100 * refits:.0f}%)" if refits else "")

    return _by_size(results, write)


def _memory_table(results: Results) -> str:
    rows = []
    for name in results.all_of("data"):
        values = results.find(data=name, way="remove", size="0.1%")
        if values is None or len(values["groups"]) < 10:
            continue
        groups = values["groups"]
        shown = [f"{groups[i][0]:.4f} -> {groups[i][1]:.4f}" for i in (0, 4, 7, 8, 9)]
        rows.append([name, *shown, f"{total_ratio(values):.2f}"])
    head = ["data set", "first", "fifth", "eighth", "ninth", "tenth", "estimated / measured"]
    return table(head, rows)


def total_ratio(values: Values) -> float:
    """The estimated memory of all rows, relative to the change in their losses."""
    estimate, change = (math.fsum(group[i] for group in values["groups"]) for i in (0, 1))
    return estimate / change if change else math.nan


def _auc_table(results: Results) -> str:
    rows = []
    for name in results.all_of("data"):
        values = results.find(data=name, way="remove", size="0.1%")
        if values is not None:
            rows.append([name, f"{values['auc_untouched']:.3f}", f"{values['auc_updated']:.3f}"])
    return table(["data set", "untouched", "updated"], rows)


def _shares(results: Results) -> tuple[int, int, int]:
    """Cases that are known, whose fidelity is in the wanted range, and whose estimate is close."""
    known = [(ratio, estimate) for _, ratio, estimate in cells(results) if is_known(ratio)]
    inside = sum(LEAST <= (ratio.value or 0) <= MOST for ratio, _ in known)
    close = sum(abs((ratio.value or 0) - estimate) <= CLOSE for ratio, estimate in known)
    return len(known), inside, close


def answer(results: Results) -> str:
    """How often the target is reached, and how often the estimate is close."""
    n, inside, close = _shares(results)
    values = [ratio.value for _, ratio, _ in cells(results) if is_known(ratio) and ratio.value]
    if not n:
        return ""
    return (
        f"With default parameters, updates achieve a fidelity of {min(values):.2f} to "
        f"{max(values):.2f}, {math.fsum(values) / n:.2f} on average; it is between {LEAST:g} and "
        f"{MOST:g} in {inside} of {n} cases whose interval is narrow enough to tell. The estimated "
        f"fidelity is within {CLOSE:g} of the measured one in {close} of them."
    )


def remark(results: Results) -> str:
    """Cases outside of the wanted range, and data sets whose groups are out of order."""
    outside = [
        f"{name} ({ratio.value:.2f})"
        for name, ratio, _ in cells(results)
        if is_known(ratio) and ratio.value and not LEAST <= ratio.value <= MOST
    ]
    far = [
        f"{name} ({estimate:.2f} instead of {ratio.value:.2f})"
        for name, ratio, estimate in cells(results)
        if is_known(ratio) and ratio.value and abs(ratio.value - estimate) > CLOSE
    ]
    parts = []
    if outside:
        parts.append(f"The fidelity is outside of {LEAST:g} to {MOST:g} for {', '.join(outside)}.")
    if far:
        parts.append(f"The estimate is off by more than {CLOSE:g} for {', '.join(far)}.")
    unordered = [name for name in results.all_of("data") if not _rises(results, name)]
    if unordered:
        parts.append(
            "The measured memory of the three most remembered tenths does not rise from one to the "
            f"next on {', '.join(unordered)}."
        )
    return " ".join(parts)


def _rises(results: Results, name: str) -> bool:
    values = results.find(data=name, way="remove", size="0.1%")
    if values is None:
        return True
    return all(a[1] <= b[1] for a, b in pairwise(values["groups"][-3:]))


def goals(results: Results) -> list[Goal]:
    """The figures that updates with default parameters are meant to reach."""
    known = {name: ratio.value for name, ratio, _ in cells(results) if is_known(ratio)}
    n, _, close = _shares(results)
    told_apart = {
        str(done.labels["data"]): done.values["auc_updated"]
        for done in results.where(way="remove", size="0.1%")
        if done.values["auc_untouched"] >= TOLD_APART
    }

    def digits(value: float) -> str:
        return f"{value:.2f}"

    def percent(value: float) -> str:
        return f"{100 * value:.0f}%"

    return [
        Goal("fidelity, on average", 0.85, known, digits, mean=True, least=True),
        Goal("fidelity, the least", LEAST, known, digits, least=True),
        Goal("fidelity, the largest", MOST, known, digits),
        Goal(
            f"cases whose estimated fidelity is within {CLOSE:g}",
            0.9,
            {"all": close / n if n else None},
            percent,
            least=True,
        ),
        Goal("AUC of the updated model, where the untouched has 0.6", 0.53, told_apart, digits),
    ]

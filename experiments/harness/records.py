"""Records of updates: how a case stores them, and how tables show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict

from benchmarks.markdown import in_percent, in_seconds, table
from benchmarks.results import Record
from benchmarks.updates.forgetting import pooled
from experiments.harness.draws import RULES, TITLES
from experiments.harness.experiment import Label, Values
from experiments.harness.results import Results

# A ratio with a wider interval, or from fewer rows, is not shown.
WIDEST = 2.0
FEWEST_ROWS = 20

REFIT = "refit"
UNKNOWN = "?"

UPDATES = f'"{REFIT}" marks updates in which most of the draws were refits, which were cheaper.'
REGROWN = (
    "**Nodes regrown**, median over the draws, with the rows of these nodes as a percentage of the "
    "rows visited by one full training."
)
ERRORS = (
    "**Test error** of the updated / refitted / untouched model, mean over the draws, under the "
    "default rule."
)
RATIOS = (
    "**Forgetting** is (loss of the removed rows after the update - before) / (their loss after "
    "`refit()` - before), summed over the draws; **learning** is the same ratio for added rows. An "
    f'untouched model has 0 and a refitted model has 1. "{UNKNOWN}" means that the figure is not '
    f"reliable: the draws have fewer than {FEWEST_ROWS} rows together, or the bootstrap interval "
    f"over the draws is wider than {WIDEST:g}. A single draw has no interval."
)

Columns = Mapping[str, Label]  # heads of columns, and the value of the label for each


def as_values(records: Iterable[Record]) -> Values:
    """Records as JSON values."""
    return {"records": [asdict(record) for record in records]}


def records_of(results: Results, **labels: Label) -> list[Record]:
    """Records of all cases with these labels."""
    return [
        Record(**stored) for done in results.where(**labels) for stored in done.values["records"]
    ]


def find(records: Sequence[Record], data: str, rule: str, **case: Label) -> Record | None:
    """First record of a rule on a data set whose case has these values."""
    for record in records:
        named = (record.data, record.library) == (data, rule)
        if named and case.items() <= record.case.items():
            return record
    return None


def names_in(records: Sequence[Record]) -> list[str]:
    """Data sets in the order they were measured."""
    return list(dict.fromkeys(record.data for record in records))


def mostly_refitted(record: Record) -> bool:
    """Whether at least half of the draws were refits."""
    refits = record.samples["refits"]
    return 2 * sum(refits) >= len(refits)


def mean(record: Record, measure: str) -> float:
    """Mean over the draws."""
    values = record.samples[measure]
    return math.fsum(values) / len(values)


def seconds_text(record: Record) -> str:
    """Median seconds of an update, and whether it was a refit."""
    text = in_seconds(record.median("update_seconds") or 0.0)
    return f"{text}, {REFIT}" if mostly_refitted(record) else text


def nodes_text(record: Record) -> str:
    """Median of the nodes regrown, with their rows as a percentage of one training's."""
    if mostly_refitted(record):
        return REFIT
    share = 100 * (record.median("rows_regrown") or 0.0)
    return f"{record.median('nodes_regrown'):,.0f} ({share:.2g}%)"


def errors_text(record: Record) -> str:
    """Mean test error of the updated, refitted and untouched model."""
    measures = ("error_updated", "error_refitted", "error_untouched")
    return " / ".join(in_percent(mean(record, measure)) for measure in measures)


def ratio(record: Record) -> float | None:
    """Forgetting or learning over all draws, None if it is not reliable."""
    n_draws = len(record.samples["loss_before"])
    found = pooled(record)
    if n_draws * float(record.case["rows"]) < FEWEST_ROWS:
        return None
    # A single draw has no interval and is always shown.
    if n_draws > 1 and (found.low is None or found.high is None or found.high - found.low > WIDEST):
        return None
    return found.value


def ratio_text(record: Record) -> str:
    """Forgetting or learning, or that it is not reliable."""
    value = ratio(record)
    return UNKNOWN if value is None else f"{value:.2f}"


def wide_table(
    records: Sequence[Record],
    label: str,
    columns: Columns,
    write: Callable[[Record], str],
    rules: Sequence[str],
) -> str:
    """One row for each data set, way and rule, one column for each value of a label."""
    rows = []
    for name in names_in(records):
        for way in dict.fromkeys(str(r.case["way"]) for r in records if r.data == name):
            for rule in rules:
                found = [
                    find(records, name, rule, way=way, **{label: value})
                    for value in columns.values()
                ]
                cells = ["-" if record is None else write(record) for record in found]
                rows.append([name, way, *([TITLES[rule]] if len(rules) > 1 else []), *cells])
    head = ["data set", "way", *(["rule"] if len(rules) > 1 else []), *columns]
    return table(head, rows)


def columns_of(records: Sequence[Record], label: str, head_of: Callable[[float], str]) -> Columns:
    """A column for each value of a label, in increasing order."""
    return {head_of(value): value for value in sorted({float(r.case[label]) for r in records})}


def update_tables(
    records: Sequence[Record],
    label: str,
    columns: Columns,
    seconds_caption: str,
    write_seconds: Callable[[Record], str] = seconds_text,
) -> str:
    """Tables of seconds, regrown nodes, forgetting and test error, by the values of a label."""
    both = tuple(RULES)
    return "\n\n".join(
        [
            seconds_caption,
            wide_table(records, label, columns, write_seconds, both),
            REGROWN,
            wide_table(records, label, columns, nodes_text, both),
            RATIOS,
            wide_table(records, label, columns, ratio_text, both),
            ERRORS,
            wide_table(records, label, columns, errors_text, ("graftboost",)),
        ]
    )

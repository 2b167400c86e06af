"""All parts, by their names on the command line and in stored runs."""

from __future__ import annotations

from benchmarks.updates import (
    booking,
    classes,
    drift,
    fractions,
    large,
    one_row,
    refresh,
    rows,
    sizes,
    stream,
    subsample,
)

PARTS = {
    part.name: part
    for part in (
        one_row.PART,
        fractions.PART,
        booking.PART,
        large.PART,
        sizes.PART,
        rows.PART,
        refresh.PART,
        stream.PART,
        classes.PART,
        drift.PART,
        subsample.PART,
    )
}
PARTS_BY_KIND = {part.kind: part for part in PARTS.values()}

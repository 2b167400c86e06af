"""All parts, by their names on the command line and in stored runs."""

from __future__ import annotations

from benchmarks.sparse import fit, fractions, one_hot, one_row, stream

PARTS = {
    part.name: part for part in (fit.PART, one_row.PART, fractions.PART, stream.PART, one_hot.PART)
}
PARTS_BY_KIND = {part.kind: part for part in PARTS.values()}

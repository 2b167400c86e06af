"""All parts, by the names that the command line and the stored runs know them by."""

from __future__ import annotations

from benchmarks.sparse import fit, fractions, one_hot, one_row, stream

PARTS = {
    part.name: part for part in (fit.PART, one_row.PART, fractions.PART, stream.PART, one_hot.PART)
}
PARTS_BY_KIND = {part.kind: part for part in PARTS.values()}

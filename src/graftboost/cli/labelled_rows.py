"""Rows with targets from a file, to train on or to add."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graftboost.cli import tables
from graftboost.cli.column_roles import ColumnRoles, feature_names, has_text_classes, text_columns
from graftboost.cli.output import Output

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class LabelledRows:
    """The rows of a file, as `fit` and `add` take them; `weight` and `ids` may be None."""

    table: pa.Table
    X: pa.Table
    y: Any
    weight: Any
    ids: Any

    @classmethod
    def of(
        cls, table: pa.Table, roles: ColumnRoles, features: list[str], data: Path
    ) -> LabelledRows:
        """Divide the columns of a file."""

        def optional(name: str | None) -> Any:
            return None if name is None else tables.column(table, name, data)

        return cls(
            table,
            tables.features(table, features, data),
            tables.column(table, roles.target, data),
            optional(roles.weight),
            optional(roles.row_id),
        )


def read_to_fit(output: Output, data: Path, roles: ColumnRoles) -> LabelledRows:
    """Read the rows that a model is to be trained on."""
    with output.working(f"Reading {data}"):
        table = tables.read(data)
    for name in (roles.target, roles.row_id, roles.weight, *roles.keep, *roles.drop):
        if name is not None:
            tables.column(table, name, data)
    features = roles.features(table.column_names)
    if not features:
        raise ValueError(
            f"{data} has no columns left for features. Use fewer columns for --keep and --drop."
        )
    return LabelledRows.of(table, roles, features, data)


def read_to_add(
    output: Output, data: Path, roles: ColumnRoles, model: Any, text: Iterable[str] = ()
) -> LabelledRows:
    """Read the rows that are to be added to a model; `text` names other columns of text."""
    text = [*text, *(name for name in text_columns(model) if name != roles.target)]
    if has_text_classes(model):
        text.append(roles.target)
    with output.working(f"Reading {data}"):
        table = tables.read(data, text=text)
    return LabelledRows.of(table, roles, feature_names(model), data)

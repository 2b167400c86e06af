"""Where the rows of a shard come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class RawRows:
    """Rows as the user supplied them: arguments of `fit`."""

    X: Any
    y: Any
    sample_weight: Any = None
    row_ids: Any = None


@dataclass(frozen=True)
class ColumnRoles:
    """Which columns of a table are not features.

    Attributes
    ----------
    target : str
        The column with the targets.
    row_ids, sample_weight : str or None
        The columns with ids and weights, if there are any.
    drop : tuple of str
        Columns that are ignored.
    """

    target: str
    row_ids: str | None = None
    sample_weight: str | None = None
    drop: tuple[str, ...] = ()

    def divide(self, frame: Any) -> RawRows:
        """Return the features and the other columns of a data frame apart."""
        import narwhals as nw

        frame = nw.from_native(frame, eager_only=True)
        for role in (self.target, self.row_ids, self.sample_weight, *self.drop):
            if role is not None and role not in frame.columns:
                raise ValueError(
                    f"there is no column {role!r} in the table, which has the columns "
                    f"{', '.join(map(repr, frame.columns[:10]))}. Pass the name of one of these."
                )

        def column(name: str | None) -> Any:
            return None if name is None else frame[name].to_native()

        features = [
            name
            for name in frame.columns
            if name not in (self.target, self.row_ids, self.sample_weight, *self.drop)
        ]
        ids = None if self.row_ids is None else frame[self.row_ids].to_numpy()
        weight = None if self.sample_weight is None else frame[self.sample_weight].to_numpy()
        return RawRows(frame.select(features).to_native(), column(self.target), weight, ids)


class Source(Protocol):
    """Rows that a shard reads."""

    def read(self) -> RawRows:
        """Return the rows."""
        ...


@dataclass(frozen=True)
class GivenRows:
    """Rows that are sent to the shard."""

    rows: RawRows

    def read(self) -> RawRows:
        """See `Source`."""
        return self.rows


@dataclass(frozen=True)
class GivenFrames:
    """Data frames that are sent to the shard."""

    frames: Sequence[Any]
    roles: ColumnRoles

    def read(self) -> RawRows:
        """See `Source`."""
        import pyarrow as pa

        tables = [
            frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame)
            for frame in self.frames
        ]
        return self.roles.divide(_joined(tables, self.roles))


@dataclass(frozen=True)
class ParquetFiles:
    """Files that the shard reads itself."""

    paths: Sequence[str]
    roles: ColumnRoles

    def read(self) -> RawRows:
        """See `Source`."""
        import pyarrow.parquet as pq

        tables = [pq.read_table(path) for path in self.paths]
        return self.roles.divide(_joined(tables, self.roles))


def _joined(tables: Sequence[Any], roles: ColumnRoles) -> Any:
    """Return tables of Arrow as one; columns of text become categorical."""
    import pyarrow as pa

    tables = [_without_index(table, roles) for table in tables]
    table = pa.concat_tables(tables, promote_options="permissive")
    for position, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            categories = table.column(position).dictionary_encode()
            table = table.set_column(position, field.name, categories)
    return table


def _without_index(table: Any, roles: ColumnRoles) -> Any:
    """Return a table without the index of the pandas frame that it was made from."""
    about = table.schema.pandas_metadata or {}
    index = [name for name in about.get("index_columns", []) if isinstance(name, str)]
    wanted = (roles.target, roles.row_ids, roles.sample_weight)
    return table.drop_columns(
        [name for name in index if name in table.column_names and name not in wanted]
    )

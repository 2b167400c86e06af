"""Read and write files of rows: CSV, Parquet and Arrow."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

CSV, PARQUET, ARROW = (".csv", ".tsv"), (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


def read(path: Path, text: Iterable[str] = ()) -> pa.Table:
    """Read a file of rows.

    Parameters
    ----------
    path : Path
        The file; its extension determines the format.
    text : iterable of str, default=()
        Columns that are text even if they look like numbers.

    Returns
    -------
    pyarrow.Table
        The rows.
    """
    import pyarrow as pa

    kind = _kind(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist. Check the path.")
    try:
        if kind in CSV:
            from pyarrow import csv

            return csv.read_csv(
                path,
                parse_options=csv.ParseOptions(delimiter="\t" if kind == ".tsv" else ","),
                convert_options=csv.ConvertOptions(
                    column_types={name: pa.string() for name in text},
                    strings_can_be_null=True,
                ),
            )
        if kind in PARQUET:
            from pyarrow import parquet

            table = parquet.read_table(path)
            # pandas stores an index without a name like this; it is not a feature.
            unnamed = [name for name in table.column_names if name.startswith("__index_level_")]
            return table.drop_columns(unnamed)
        from pyarrow import feather

        return feather.read_table(path)
    except pa.ArrowInvalid as error:
        raise ValueError(f"{path} could not be read: {error}") from error


def write(table: pa.Table, path: Path | None) -> None:
    """Write rows to a file, or as CSV to standard output."""
    from pyarrow import csv

    if path is None:
        sys.stdout.flush()
        csv.write_csv(table, sys.stdout.buffer)
        return
    kind = _kind(path)
    if kind in CSV:
        csv.write_csv(table, path, csv.WriteOptions(delimiter="\t" if kind == ".tsv" else ","))
    elif kind in PARQUET:
        from pyarrow import parquet

        parquet.write_table(table, path)
    else:
        from pyarrow import feather

        feather.write_feather(table, path, compression="uncompressed")


def _kind(path: Path) -> str:
    kind = path.suffix.lower()
    if kind not in (*CSV, *PARQUET, *ARROW):
        raise ValueError(
            f"{path} has an unknown extension. Use .csv, .tsv, .parquet, .arrow or .feather, "
            "according to its format."
        )
    return kind


def column(table: pa.Table, name: str, path: Path) -> Any:
    """Return a column of a file as an array."""
    _check_there(table, name, path)
    return table.column(name).to_numpy()


def values(table: pa.Table, name: str, path: Path) -> list[Any]:
    """Return a column of a file as Python values, with None for missing values."""
    _check_there(table, name, path)
    found: list[Any] = table.column(name).to_pylist()
    return found


def _check_there(table: pa.Table, name: str, path: Path) -> None:
    n = table.column_names.count(name)
    if n != 1:
        raise ValueError(
            f"{path} has {n or 'no'} column{'s' if n > 1 else ''} named {name!r}. Its columns are: "
            f"{', '.join(table.column_names)}."
        )


def features(table: pa.Table, names: list[str], path: Path) -> pa.Table:
    """Return columns as features; text columns become categorical."""
    import pyarrow as pa

    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise ValueError(
            f"{path} lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}, which "
            "the model needs. Add the missing data."
        )
    for name in names:
        _check_there(table, name, path)
    chosen = table.select(names)
    for position, field in enumerate(chosen.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            chosen = chosen.set_column(
                position, field.name, chosen.column(position).dictionary_encode()
            )
    return chosen

"""The command `fit`: create a store from a file of rows."""

from __future__ import annotations

import ast
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.cli.column_roles import ColumnRoles
from graftboost.cli.output import SHORT_DIGEST, Output
from graftboost.store import Store

if TYPE_CHECKING:
    import pyarrow as pa

# An integer target with at most this many distinct values is a classification.
MOST_CLASSES = 20


def fit(
    output: Output,
    data: Path,
    path: Path,
    roles: ColumnRoles,
    task: str,
    parameters: list[str],
    request: str | None,
) -> None:
    """Train a model and create a store from it."""
    from graftboost.cli import tables
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor

    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} already exists. Choose another directory for the store.")
    with output.working(f"Reading {data}"):
        rows = tables.read(data)
    for name in (roles.target, roles.row_id, roles.weight, *roles.keep, *roles.drop):
        if name is not None:
            tables.column(rows, name, data)
    names = roles.features(rows.column_names)
    if not names:
        raise ValueError(
            f"{data} has no columns left for features. Use fewer columns for --keep and --drop."
        )
    y = _target(rows.column(roles.target))
    classifies = is_of_classes(y) if task == "auto" else task == "classification"
    kind = GraftBoostClassifier if classifies else GraftBoostRegressor
    model = kind(**read_parameters(parameters))
    X = tables.features(rows, names, data)
    ids = None if roles.row_id is None else tables.column(rows, roles.row_id, data)
    weight = None if roles.weight is None else tables.column(rows, roles.weight, data)
    verbose, model.verbose = model.verbose, int(output.is_watched)
    start = time.perf_counter()
    model.fit(X, y, weight, row_ids=ids)
    fitted = time.perf_counter()
    model.verbose = verbose
    with output.working(f"Writing {path}"):
        kept = _kept(rows, roles.keep, data, model.row_ids_, ids)
        store = Store.create(
            path, model, attributes=kept or None, notes=asdict(roles), request=request
        )
    with store:
        output.result(
            {
                "store": str(path),
                "model": type(model).__name__,
                "rows": model.n_rows_,
                "features": len(names),
                "classes": [str(c) for c in model.classes_] if classifies else None,
                "trees": store.n_trees,
                "attributes": roles.keep,
                "seconds": round(fitted - start, 3),
                "digest": store.digest if output.as_json else store.digest[:SHORT_DIGEST],
            }
        )


def _kept(
    rows: pa.Table, names: list[str], data: Path, held: NDArray[np.int64], ids: Any
) -> dict[str, Any]:
    """Return the columns to keep, for the rows that the model holds; others are held out."""
    from graftboost.cli import tables

    positions = {
        int(row_id): i for i, row_id in enumerate(range(rows.num_rows) if ids is None else ids)
    }
    order = [positions[row_id] for row_id in held.tolist()]
    columns = {name: tables.values(rows, name, data) for name in names}
    return {name: [column[position] for position in order] for name, column in columns.items()}


def _target(column: Any) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    return values


def is_of_classes(y: NDArray[Any]) -> bool:
    """Tell whether a target is one of classes."""
    if y.dtype.kind in "iu":
        return len(np.unique(y)) <= MOST_CLASSES
    return y.dtype.kind != "f"


def read_parameters(given: list[str]) -> dict[str, Any]:
    """Return parameters that were given in the form NAME=VALUE."""
    parameters = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(
                f"--set {pair} is not of the form NAME=VALUE. Example: max_leaf_nodes=63."
            )
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = float(value) if value in ("inf", "nan") else value
    return parameters

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
from graftboost.cli.labelled_rows import read_to_fit
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
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor

    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} already exists. Choose another directory for the store.")
    rows = read_to_fit(output, data, roles)
    classifies = is_of_classes(rows.y) if task == "auto" else task == "classification"
    kind = GraftBoostClassifier if classifies else GraftBoostRegressor
    model = kind(**read_parameters(parameters))
    verbose, model.verbose = model.verbose, int(output.is_watched)
    start = time.perf_counter()
    model.fit(rows.X, rows.y, rows.weight, row_ids=rows.ids)
    fitted = time.perf_counter()
    model.verbose = verbose
    with output.working(f"Writing {path}"):
        kept = _kept(rows.table, roles.keep, data, model.row_ids_, rows.ids)
        store = Store.create(
            path, model, attributes=kept or None, notes=asdict(roles), request=request
        )
    with store:
        output.result(
            {
                "store": str(path),
                "model": type(model).__name__,
                "rows": model.n_rows_,
                "features": model.n_features_in_,
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

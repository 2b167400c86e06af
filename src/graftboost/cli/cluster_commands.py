"""The commands with --ray: a model in the processes of a Ray cluster instead of a store."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from graftboost.cli.chosen_rows import ChosenRows
from graftboost.cli.column_roles import ColumnRoles
from graftboost.cli.fit_command import is_of_classes, read_parameters
from graftboost.cli.labelled_rows import read_to_add, read_to_fit
from graftboost.cli.output import Output
from graftboost.persistence.atomic_file import replacing

COLUMNS = "columns.json"  # the roles of columns, beside the files of the model


@contextlib.contextmanager
def _cluster(address: str) -> Iterator[None]:
    """Connect to a Ray cluster; "local" starts one on this machine, for this command."""
    # Ray's own progress bars would mix with ours.
    os.environ.setdefault("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    try:
        if address == "local":
            from graftboost.distributed.local_cluster import local_cluster
        import ray
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "--ray needs Ray. Install it with: pip install 'graftboost[ray]'", name="ray"
        ) from error
    if ray.is_initialized():  # by a program that runs this command
        yield
        return
    if address == "local":
        with local_cluster():
            yield
        return
    with contextlib.redirect_stdout(None):
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _model(path: Path, address: str) -> Iterator[Any]:
    """Provide the model of a folder; its processes are started if they are not running."""
    if not (path / COLUMNS).is_file():
        raise FileNotFoundError(
            f"{path} was not created by `graftboost fit` with --ray. Check the path, or omit --ray."
        )
    with _cluster(address):
        from graftboost.distributed import RayGraftBoostClassifier, RayGraftBoostRegressor

        about = json.loads((path / COLUMNS).read_text())
        kind = RayGraftBoostClassifier if about["classifies"] else RayGraftBoostRegressor
        yield kind.connect(path.absolute().name, storage=path.absolute().parent)


def _roles_of(path: Path) -> ColumnRoles:
    return ColumnRoles(**json.loads((path / COLUMNS).read_text())["roles"])


def fit(
    output: Output,
    data: Path,
    path: Path,
    roles: ColumnRoles,
    task: str,
    parameters: list[str],
    address: str,
    n_shards: int,
) -> None:
    """Train a model on the rows of a file, or of the Parquet files in a folder."""
    if roles.keep:
        raise ValueError(
            "--keep cannot be used with --ray: models of a cluster keep no other columns. Use "
            "--drop."
        )
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} already exists. Choose another directory for the model.")
    files = _parquet_files(data)
    rows = read_to_fit(output, files[0] if files else data, roles)
    classifies = is_of_classes(rows.y) if task == "auto" else task == "classification"
    with _cluster(address):
        from graftboost.distributed import RayGraftBoostClassifier, RayGraftBoostRegressor

        kind = RayGraftBoostClassifier if classifies else RayGraftBoostRegressor
        model = kind(
            n_shards=n_shards,
            storage=path.absolute().parent,
            name=path.absolute().name,
            **read_parameters(parameters),
        )
        model.verbose = int(output.is_watched)
        start = time.perf_counter()
        if files:
            model.fit(
                [str(file) for file in files],
                roles.target,
                roles.weight,
                row_ids=roles.row_id,
                drop=roles.drop,
            )
        else:
            model.fit(rows.X, rows.y, rows.weight, row_ids=rows.ids)
        seconds = time.perf_counter() - start
        about = {"classifies": classifies, "roles": asdict(roles)}
        with replacing(path / COLUMNS) as file:
            file.write(json.dumps(about).encode())
        output.result(
            {
                "folder": str(path),
                "model": kind.__name__,
                "shards": n_shards,
                "rows": model.n_rows_,
                "features": model.n_features_in_,
                "classes": [str(c) for c in model.classes_] if classifies else None,
                "iterations": model.n_iter_,
                "seconds": round(seconds, 3),
            }
        )


def add(output: Output, path: Path, data: Path, later: bool, address: str) -> None:
    """Add the rows of a file."""
    with _model(path, address) as model:
        rows = read_to_add(output, data, _roles_of(path), model.frozen())
        with output.working(f"Adding {rows.table.num_rows:,} rows"):
            report = model.add(rows.X, rows.y, rows.weight, row_ids=rows.ids, regrow=not later)
        _show_change(output, model, report)


def remove(
    output: Output, path: Path, rows: ChosenRows, compact: bool, later: bool, address: str
) -> None:
    """Remove rows."""
    if rows.condition is not None:
        raise ValueError(
            "--where cannot be used with --ray: models of a cluster keep no other columns. Pass "
            "IDS or --ids-file."
        )
    chosen = rows.given_ids()
    with _model(path, address) as model:
        with output.working(f"Removing {len(chosen):,} rows"):
            report = model.remove(chosen, regrow=not later)
        if compact:
            with output.working("Rewriting the files"):
                model.compact()
        _show_change(output, model, report)


def predict(path: Path, data: Path, to: Path | None, probabilities: bool, address: str) -> None:
    """Predict for the rows of a file."""
    from graftboost.cli.query_commands import write_predictions

    with _model(path, address) as model:
        write_predictions(model.frozen(), _roles_of(path).row_id, data, to, probabilities)


def _parquet_files(data: Path) -> list[Path]:
    if not data.is_dir():
        return []
    files = sorted(data.glob("*.parquet"))
    if not files:
        raise FileNotFoundError(f"{data} is a folder without .parquet files. Check the path.")
    return files


def _show_change(output: Output, model: Any, report: Any) -> None:
    n_rows = model.n_rows_
    output.result(
        {
            "rows": n_rows,
            "n_added": len(report.added_ids),
            "n_removed": len(report.removed_ids),
            "strategy": report.strategy,
            "fidelity": None if np.isnan(report.fidelity) else round(report.fidelity, 4),
            "seconds": dict(report.seconds),
        },
        f"{report}\n{n_rows:,} rows in the model",
    )

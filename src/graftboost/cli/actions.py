"""What the commands do."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graftboost.cli.output import Output
from graftboost.container import InvalidFileError
from graftboost.printable import printable
from graftboost.store import Receipt, Store, StoreError

if TYPE_CHECKING:
    import pyarrow as pa

    from graftboost.report import UpdateReport

# A target of whole numbers is one of classes if there are at most so many.
MOST_CLASSES = 20
SHORT = 12  # digits of a digest that people are shown


@dataclass(frozen=True)
class ColumnRoles:
    """What each column of a file is for; the others are features."""

    target: str
    row_id: str | None
    weight: str | None
    keep: list[str]
    drop: list[str]

    def features(self, names: list[str]) -> list[str]:
        """Return the columns that are features."""
        others = {self.target, self.row_id, self.weight, *self.keep, *self.drop}
        return [name for name in names if name not in others]


# --- fitting --------------------------------------------------------------------------------------


def fit(
    output: Output,
    data: Path,
    path: Path,
    roles: ColumnRoles,
    task: str,
    parameters: list[str],
    request: str | None,
) -> None:
    """Train a model and make a store of it."""
    from graftboost.cli import tables
    from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor

    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} is there already. Choose another directory for the store.")
    with output.working(f"Reading {data}"):
        rows = tables.read(data)
    for name in (roles.target, roles.row_id, roles.weight, *roles.keep, *roles.drop):
        if name is not None:
            tables.column(rows, name, data)
    names = roles.features(rows.column_names)
    if not names:
        raise ValueError(f"{data} has no column left that could be a feature.")
    y = _target(rows.column(roles.target))
    classifies = _is_of_classes(y) if task == "auto" else task == "classification"
    kind = GraftBoostClassifier if classifies else GraftBoostRegressor
    model = kind(**_parameters(parameters))
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
                "kept_beside_the_rows": roles.keep,
                "seconds": round(fitted - start, 3),
                "digest": store.digest if output.as_json else store.digest[:SHORT],
            }
        )


def _kept(
    rows: pa.Table, names: list[str], data: Path, held: NDArray[np.int64], ids: Any
) -> dict[str, Any]:
    """Return the columns to keep, for the rows that the model holds: some may be held out."""
    from graftboost.cli import tables

    places = {
        int(row_id): i for i, row_id in enumerate(range(rows.num_rows) if ids is None else ids)
    }
    order = [places[row_id] for row_id in held.tolist()]
    columns = {name: tables.values(rows, name, data) for name in names}
    return {name: [column[place] for place in order] for name, column in columns.items()}


def _target(column: Any) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy()
    return values


def _is_of_classes(y: NDArray[Any]) -> bool:
    if y.dtype.kind in "iu":
        return len(np.unique(y)) <= MOST_CLASSES
    return y.dtype.kind != "f"


def _parameters(given: list[str]) -> dict[str, Any]:
    parameters = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set {pair}: write it as NAME=VALUE, such as max_leaf_nodes=63.")
        try:
            parameters[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parameters[name] = float(value) if value in ("inf", "nan") else value
    return parameters


# --- changes --------------------------------------------------------------------------------------


def add(output: Output, path: Path, data: Path, request: str | None) -> None:
    """Add the rows of a file."""
    from graftboost.cli import tables

    with Store.open(path) as store:
        roles = _roles(store)
        model = store.model
        text = [name for name in _text_columns(model) if name != roles.target]
        if _has_text_classes(model):
            text.append(roles.target)
        text += [name for name in store.attribute_names if store.is_text(name)]
        with output.working(f"Reading {data}"):
            rows = tables.read(data, text=text)
        X = tables.features(rows, _feature_names(model), data)
        y = tables.column(rows, roles.target, data)
        ids = None if roles.row_id is None else tables.column(rows, roles.row_id, data)
        weight = None if roles.weight is None else tables.column(rows, roles.weight, data)
        kept = {name: tables.values(rows, name, data) for name in store.attribute_names}
        with output.working(f"Adding {rows.num_rows:,} rows"):
            report = store.add(X, y, weight, row_ids=ids, attributes=kept or None, request=request)
        _show_change(output, store, report)


def remove(
    output: Output,
    path: Path,
    ids: list[int],
    ids_file: Path | None,
    condition: str | None,
    compact: bool,
    request: str | None,
) -> None:
    """Remove rows."""
    with Store.open(path) as store:
        chosen = _chosen(store, ids, ids_file, condition)
        if not len(chosen):
            output.result(
                {"removed": 0, "rows": store.n_rows}, "No row was found; none was removed."
            )
            return
        with output.working(f"Removing {len(chosen):,} rows"):
            report = store.remove(chosen, request=request)
        if compact:
            with output.working("Writing the files anew"):
                store.compact()
        _show_change(output, store, report)


def refit(output: Output, path: Path, request: str | None) -> None:
    """Train all again."""
    with Store.open(path) as store:
        with output.working(f"Training on {store.n_rows:,} rows"):
            store.refit(request=request)
        receipt = store.last_receipt
        text = f"All trees were refitted to the {store.n_rows:,} rows held."
        output.result(_as_result(store, receipt), f"{text}\nrequest {printable(receipt.request)}")


def compact(output: Output, path: Path) -> None:
    """Write the files anew."""
    with Store.open(path) as store:
        with output.working("Writing the files anew"):
            store.compact()
        size = sum(file.stat().st_size for file in path.iterdir())
        output.result(
            {"store": str(path), "bytes": size},
            f"The files of {path} hold the {store.n_rows:,} rows of the model and nothing of "
            f"others: {size:,} bytes.",
        )


def _show_change(output: Output, store: Store, report: UpdateReport) -> None:
    receipt = store.last_receipt
    output.result(
        {**_as_result(store, receipt), "seconds": dict(report.seconds)},
        f"{report}\n{store.n_rows:,} rows are held; request {printable(receipt.request)}",
    )


def _chosen(
    store: Store, ids: list[int], ids_file: Path | None, condition: str | None
) -> NDArray[np.int64]:
    """Return the ids of the rows that a command names, in whichever way."""
    given = sum([bool(ids), ids_file is not None, condition is not None])
    if given != 1:
        raise ValueError(
            "Name the rows in one way: by their ids, by --ids-file, or by --where. "
            f"{given or 'None'} of these {'were' if given != 1 else 'was'} given."
        )
    if condition is not None:
        return store.find(condition)
    if ids_file is not None:
        text = sys.stdin.read() if str(ids_file) == "-" else ids_file.read_text()
        try:
            ids = [int(line) for line in text.split()]
        except ValueError as error:
            raise ValueError(
                f"{ids_file} is to hold whole numbers, one a line: {error}."
            ) from error
    return np.array(ids, dtype=np.int64)


# --- looking --------------------------------------------------------------------------------------


def predict(path: Path, data: Path, to: Path | None, probabilities: bool) -> None:
    """Predict for the rows of a file."""
    import pyarrow as pa

    from graftboost.cli import tables

    row_id = None
    if path.is_dir():
        with Store.open(path, read_only=True) as store:
            model, row_id = store.model, store.notes.get("row_id")
    else:
        from graftboost.estimators import load

        model = load(path)
    rows = tables.read(data, text=_text_columns(model))
    X = tables.features(rows, _feature_names(model), data)
    columns = {}
    if row_id in rows.column_names:
        columns[row_id] = rows.column(row_id)
    columns["prediction"] = pa.array(model.predict(X))
    if probabilities:
        if not hasattr(model, "predict_proba"):
            raise ValueError("--probabilities is for classes, and this model predicts numbers.")
        for label, column in zip(model.classes_, model.predict_proba(X).T, strict=True):
            columns[f"probability_{label}"] = pa.array(column)
    tables.write(pa.table(columns), to)


def info(output: Output, path: Path) -> None:
    """Show what a store holds."""
    with Store.open(path, read_only=True) as store:
        last = store.last_receipt
        output.result(
            {
                "store": str(path),
                **store.summary(),
                "changes": last.number,
                "last_change": last.time,
                "digest": store.digest if output.as_json else store.digest[:SHORT],
                "bytes": sum(file.stat().st_size for file in path.iterdir()),
            }
        )


def history(output: Output, path: Path, last: int | None) -> None:
    """List all changes."""
    with Store.open(path, read_only=True) as store:
        first = 0 if last is None else store.last_receipt.number + 1 - last

        def rows() -> Iterator[Receipt]:
            return (receipt for receipt in store.receipts() if receipt.number >= first)

        output.table(
            ("change", "time (UTC)", "action", "added", "removed", "strategy", "request"),
            rows,
            content=asdict,
            cells=lambda r: (
                r.number,
                r.time[:19],
                r.action,
                r.n_added,
                r.n_removed,
                r.strategy,
                r.request,
            ),
        )


def receipt(output: Output, path: Path, request: str | None, row: int | None) -> None:
    """Show a receipt."""
    if (request is None) == (row is None):
        raise ValueError("Name a request (or the number of a change), or a row with --row.")
    with Store.open(path, read_only=True) as store:
        if row is not None:
            found = None
            for each in store.receipts():
                if each.removes(row):
                    found = each
            if found is None:
                raise KeyError(f"No change removed the row with id {row}.")
            chosen = found
        else:
            assert request is not None
            chosen = store.receipt(request)
        output.result(_as_result(store, chosen), chosen.in_words(store.refitted_since(chosen)))


def verify(output: Output, path: Path) -> None:
    """Check everything."""
    with Store.open(path, read_only=True) as store:
        with output.working("Checking"):
            try:
                store.verify()
            except StoreError as error:
                raise InvalidFileError(str(error)) from error
        n = store.last_receipt.number + 1
        output.result(
            {"store": str(path), "verified": True, "receipts": n},
            f"{path} is sound: {n:,} receipts follow from each other, all checksums are right, and "
            f"every sum in the model is that of its {store.n_rows:,} rows.",
        )


def audit(
    output: Output,
    path: Path,
    ids: list[int],
    ids_file: Path | None,
    condition: str | None,
    details: bool,
    plot: Path | None,
) -> None:
    """Say what removing rows would forget."""
    from graftboost.audit import audit_removal

    with Store.open(path, read_only=True) as store:
        chosen = _chosen(store, ids, ids_file, condition)
        if not len(chosen):
            output.result({"rows": 0}, "No row was found; there is nothing to audit.")
            return
        with output.working(f"Auditing the removal of {len(chosen):,} rows"):
            found = audit_removal(store.model, chosen)
        if plot is not None:
            axes = found.plot()
            figure = (axes[0] if isinstance(axes, list) else axes).get_figure(root=True)
            assert figure is not None
            figure.savefig(plot, dpi=150)
        parts = {part.name: dict(part.figures) for part in found.parts}
        output.result(
            {"summary": found.summary, "figures": dict(found.figures), "parts": parts},
            str(found if details else replace(found, parts=())),
        )


def _as_result(store: Store, receipt: Receipt) -> dict[str, Any]:
    return {**asdict(receipt), "refitted_since": store.refitted_since(receipt)}


# --- what a store remembers of its columns --------------------------------------------------------


def _roles(store: Store) -> ColumnRoles:
    try:
        roles = ColumnRoles(**store.notes)
        names: list[Any] = [roles.target, roles.row_id, roles.weight, *roles.keep, *roles.drop]
        if names[0] is None or not all(isinstance(name, str | None) for name in names):
            raise TypeError
        return roles
    except TypeError:
        raise ValueError(
            f"{store.path} was not made by `graftboost fit`, so it is not known which column is "
            "the target. Add rows with Store.add in Python."
        ) from None


def _feature_names(model: Any) -> list[str]:
    try:
        return list(model.feature_names_in_)
    except AttributeError:
        raise ValueError(
            "The model was trained on columns without names, so it is not known which columns of "
            "the file they are. Use it from Python."
        ) from None


def _text_columns(model: Any) -> list[str]:
    """Return the features that are categories by their text, even if some look like numbers."""
    return [
        str(_feature_names(model)[feature])
        for feature, categories in model._columns.categories.items()
        if categories.kind == "text"
    ]


def _has_text_classes(model: Any) -> bool:
    classes = getattr(model, "classes_", None)
    return classes is not None and classes.dtype.kind in "OU"

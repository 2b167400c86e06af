"""The commands that only read: `predict`, `info`, `history`, `receipt`, `verify` and `audit`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graftboost.cli.chosen_rows import ChosenRows
from graftboost.cli.column_roles import feature_names, text_columns
from graftboost.cli.output import SHORT_DIGEST, Output
from graftboost.cli.receipt_result import as_result
from graftboost.persistence.file_format import InvalidFileError
from graftboost.store import Receipt, Store, StoreError


def predict(path: Path, data: Path, to: Path | None, probabilities: bool) -> None:
    """Predict for the rows of a file."""
    row_id = None
    if path.is_dir():
        with Store.open(path, read_only=True) as store:
            model, row_id = store.model, store.notes.get("row_id")
    else:
        from graftboost.estimators import load

        model = load(path)
    write_predictions(model, row_id, data, to, probabilities)


def write_predictions(
    model: Any, row_id: str | None, data: Path, to: Path | None, probabilities: bool
) -> None:
    """Predict for the rows of a file; if it has the column of ids, it is written as well."""
    import pyarrow as pa

    from graftboost.cli import tables

    rows = tables.read(data, text=text_columns(model))
    X = tables.features(rows, feature_names(model), data)
    columns = {}
    if row_id in rows.column_names:
        columns[row_id] = rows.column(row_id)
    columns["prediction"] = pa.array(model.predict(X))
    if probabilities:
        if not hasattr(model, "predict_proba"):
            raise ValueError(
                "--probabilities is given, but the model is a regressor. Omit the option."
            )
        for label, column in zip(model.classes_, model.predict_proba(X).T, strict=True):
            columns[f"probability_{label}"] = pa.array(column)
    tables.write(pa.table(columns), to)


def info(output: Output, path: Path) -> None:
    """Show a summary of a store."""
    with Store.open(path, read_only=True) as store:
        last = store.last_receipt
        output.result(
            {
                "store": str(path),
                **store.summary(),
                "changes": last.number,
                "last_change": last.time,
                "digest": store.digest if output.as_json else store.digest[:SHORT_DIGEST],
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
        raise ValueError("Pass either REQUEST (an id or the number of a change) or --row.")
    with Store.open(path, read_only=True) as store:
        if row is not None:
            found = None
            for each in store.receipts():
                if each.removes(row):
                    found = each
            if found is None:
                raise KeyError(f"No change has removed the row with id {row}. Check the id.")
            chosen = found
        else:
            assert request is not None
            chosen = store.receipt(request)
        words = chosen.in_words(
            store.refitted_since(chosen), store.regrown_by(chosen) if chosen.deferred else None
        )
        output.result(as_result(store, chosen), words)


def verify(output: Output, path: Path) -> None:
    """Verify a store."""
    with Store.open(path, read_only=True) as store:
        with output.working("Verifying"):
            try:
                store.verify()
            except StoreError as error:
                raise InvalidFileError(str(error)) from error
        n = store.last_receipt.number + 1
        output.result(
            {"store": str(path), "verified": True, "receipts": n},
            f"{path} is valid: the chain of {n:,} receipts is complete, all checksums match, and "
            f"all stored sums match the {store.n_rows:,} training rows.",
        )


def audit(
    output: Output,
    path: Path,
    rows: ChosenRows,
    details: bool,
    plot: Path | None,
) -> None:
    """Audit the removal of rows."""
    from graftboost.audit import audit_removal

    with Store.open(path, read_only=True) as store:
        chosen = rows.ids_in(store)
        if not len(chosen):
            output.result({"rows": 0}, "No rows were found; there is nothing to audit.")
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

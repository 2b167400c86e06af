"""The commands that change a store: `add`, `remove`, `regrow`, `refit` and `compact`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graftboost.cli.chosen_rows import ChosenRows
from graftboost.cli.column_roles import roles_of
from graftboost.cli.labelled_rows import read_to_add
from graftboost.cli.output import Output
from graftboost.cli.receipt_result import as_result
from graftboost.store import Store
from graftboost.store.printable import printable

if TYPE_CHECKING:
    from graftboost.estimators.report import UpdateReport


def add(output: Output, path: Path, data: Path, later: bool, request: str | None) -> None:
    """Add the rows of a file."""
    from graftboost.cli import tables

    with Store.open(path) as store:
        roles = roles_of(store)
        text = [name for name in store.attribute_names if store.is_text(name)]
        rows = read_to_add(output, data, roles, store.model, text)
        kept = {name: tables.values(rows.table, name, data) for name in store.attribute_names}
        with output.working(f"Adding {rows.table.num_rows:,} rows"):
            report = store.add(
                rows.X,
                rows.y,
                rows.weight,
                row_ids=rows.ids,
                attributes=kept or None,
                request=request,
                regrow=not later,
            )
        _show_change(output, store, report)


def remove(
    output: Output,
    path: Path,
    rows: ChosenRows,
    compact: bool,
    later: bool,
    request: str | None,
) -> None:
    """Remove rows."""
    with Store.open(path) as store:
        chosen = rows.ids_in(store)
        if not len(chosen):
            output.result(
                {"removed": 0, "rows": store.n_rows}, "No rows were found; nothing was removed."
            )
            return
        with output.working(f"Removing {len(chosen):,} rows"):
            report = store.remove(chosen, request=request, regrow=not later)
        if compact:
            with output.working("Rewriting the files"):
                store.compact()
        _show_change(output, store, report)


def regrow(
    output: Output, path: Path, work: float | None, fidelity: float | None, request: str | None
) -> None:
    """Regrow nodes for rows that were only booked."""
    with Store.open(path) as store:
        n_rows = store.summary()["rows_not_yet_regrown"]
        with output.working(f"Regrowing nodes for {n_rows:,} rows"):
            report = store.regrow(work, fidelity=fidelity, request=request)
        if not n_rows:
            output.result({"rows_not_yet_regrown": 0}, "There is nothing to regrow.")
            return
        _show_change(output, store, report)


def refit(output: Output, path: Path, request: str | None) -> None:
    """Refit all trees."""
    with Store.open(path) as store:
        with output.working(f"Refitting on {store.n_rows:,} rows"):
            store.refit(request=request)
        receipt = store.last_receipt
        text = f"All trees were refitted on {store.n_rows:,} rows."
        output.result(as_result(store, receipt), f"{text}\nrequest {printable(receipt.request)}")


def compact(output: Output, path: Path) -> None:
    """Rewrite the files."""
    with Store.open(path) as store:
        with output.working("Rewriting the files"):
            store.compact()
        size = sum(file.stat().st_size for file in path.iterdir())
        output.result(
            {"store": str(path), "bytes": size},
            f"The files of {path} contain only the {store.n_rows:,} rows of the model: {size:,} "
            "bytes.",
        )


def _show_change(output: Output, store: Store, report: UpdateReport) -> None:
    receipt = store.last_receipt
    output.result(
        {**as_result(store, receipt), "seconds": dict(report.seconds)},
        f"{report}\n{store.n_rows:,} rows in the model; request {printable(receipt.request)}",
    )

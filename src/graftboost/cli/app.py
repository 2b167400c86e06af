"""The interface of the command line: commands, arguments and options.

Their implementation is imported when a command runs, so that help, completion and usage errors are
fast.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from graftboost.cli.output import Output, failing_clearly

app = typer.Typer(
    name="graftboost",
    help=(
        "Gradient boosted trees that forget: train a model, add and remove rows in place, and "
        "prove it."
    ),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="Directory of the store.")]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A .csv, .parquet, .arrow or .feather file of rows.")
]
Ids = Annotated[
    list[int] | None,
    typer.Argument(metavar="[IDS]...", help="Ids of rows.", show_default=False),
]
IdsFile = Annotated[
    Path | None,
    typer.Option(
        "--ids-file", metavar="FILE", help="A file of ids, one id per line; - reads standard input."
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="A condition on kept columns, such as \"customer == 17 and region != 'x'\".",
    ),
]
Request = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Id of the request in the receipt.", show_default="a new id"),
]
Later = Annotated[
    bool,
    typer.Option("--later", help="Only book the rows now; the command regrow does the rest later."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help=(
            "Keep the rows in the processes of a Ray cluster, and STORE as the folder of their "
            "files: an address, auto, or local for processes on this machine."
        ),
    ),
]


def _without_request(request: str | None) -> None:
    if request is not None:
        raise ValueError(
            "--request cannot be used with --ray: models of a cluster write no receipts. Omit it."
        )


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Handle options without a command."""
    if version:
        from graftboost import __version__

        typer.echo(f"graftboost {__version__}")
        raise typer.Exit


@app.command()
@failing_clearly
def fit(
    data: Data,
    store: StorePath,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    row_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="The column of row ids, which are integers.",
            show_default="rows are numbered from 0",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column to keep for --where, which is not a feature. Repeatable.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to ignore. Repeatable."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column of row weights.")
    ] = None,
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(
            metavar="KIND",
            help=(
                "classification, regression, or auto: classification if the target is text or has "
                "few distinct integers."
            ),
        ),
    ] = "auto",
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the estimator, such as max_leaf_nodes=63. Repeatable.",
        ),
    ] = None,
    request: Request = None,
    json: Json = False,
    ray: Ray = None,
    shards: Annotated[
        int, typer.Option(min=1, metavar="N", help="With --ray: the number of processes.")
    ] = 2,
) -> None:
    """Train a model on the rows of a file, and create a store from it.

    With --ray, DATA may be a folder of .parquet files, which the processes read themselves.
    """
    from graftboost.cli import fit_command
    from graftboost.cli.column_roles import ColumnRoles

    columns = ColumnRoles(target, row_id, weight, keep or [], drop or [])
    if ray is not None:
        from graftboost.cli import cluster_commands

        _without_request(request)
        cluster_commands.fit(Output(json), data, store, columns, task, parameter or [], ray, shards)
        return
    fit_command.fit(Output(json), data, store, columns, task, parameter or [], request)


@app.command()
@failing_clearly
def add(
    store: StorePath,
    data: Data,
    later: Later = False,
    request: Request = None,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Add the rows of a file with the same columns as the file passed to fit."""
    from graftboost.cli import change_commands

    if ray is not None:
        from graftboost.cli import cluster_commands

        _without_request(request)
        cluster_commands.add(Output(json), store, data, later, ray)
        return
    change_commands.add(Output(json), store, data, later, request)


@app.command()
@failing_clearly
def remove(
    store: StorePath,
    ids: Ids = None,
    ids_file: IdsFile = None,
    where: Where = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Also rewrite the files without the rows.")
    ] = False,
    later: Later = False,
    request: Request = None,
    json: Json = False,
    ray: Ray = None,
) -> None:
    """Remove rows by ids, by a file of ids, or by a condition."""
    from graftboost.cli import change_commands
    from graftboost.cli.chosen_rows import ChosenRows

    chosen = ChosenRows(ids or [], ids_file, where)
    if ray is not None:
        from graftboost.cli import cluster_commands

        _without_request(request)
        cluster_commands.remove(Output(json), store, chosen, compact, later, ray)
        return
    change_commands.remove(Output(json), store, chosen, compact, later, request)


@app.command()
@failing_clearly
def regrow(
    store: StorePath,
    work: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="The most work to do, as a fraction of a refit, such as 0.05.",
            show_default="no limit",
        ),
    ] = None,
    fidelity: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION",
            help="The fraction of what a retrain would forget that is to be reached.",
            show_default="the parameter of the model",
        ),
    ] = None,
    request: Request = None,
    json: Json = False,
) -> None:
    """Regrow nodes for rows that were added or removed with --later."""
    from graftboost.cli import change_commands

    change_commands.regrow(Output(json), store, work, fidelity, request)


@app.command()
@failing_clearly
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A store, or a file written by save().")
    ],
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file: .csv, .parquet, .arrow or .feather.",
            show_default="CSV on standard output",
        ),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", "-p", help="Include the probability of each class.")
    ] = False,
    ray: Ray = None,
) -> None:
    """Predict for the rows of a file."""
    from graftboost.cli import query_commands

    if ray is not None:
        from graftboost.cli import cluster_commands

        cluster_commands.predict(model, data, output, probabilities, ray)
        return
    query_commands.predict(model, data, output, probabilities)


@app.command()
@failing_clearly
def info(store: StorePath, json: Json = False) -> None:
    """Show a summary of a store."""
    from graftboost.cli import query_commands

    query_commands.info(Output(json), store)


@app.command()
@failing_clearly
def history(
    store: StorePath,
    last: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Show only the last N changes.", show_default="all"),
    ] = None,
    json: Json = False,
) -> None:
    """List all changes."""
    from graftboost.cli import query_commands

    query_commands.history(Output(json), store, last)


@app.command()
@failing_clearly
def receipt(
    store: StorePath,
    request: Annotated[
        str | None,
        typer.Argument(metavar="REQUEST", help="Id of the request, or number of the change."),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Show the last removal of the row with this id."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the receipt of a change."""
    from graftboost.cli import query_commands

    query_commands.receipt(Output(json), store, request, row)


@app.command()
@failing_clearly
def verify(store: StorePath, json: Json = False) -> None:
    """Verify the chain of receipts, all checksums, and every stored sum of the model."""
    from graftboost.cli import query_commands

    query_commands.verify(Output(json), store)


@app.command()
@failing_clearly
def refit(store: StorePath, request: Request = None, json: Json = False) -> None:
    """Train all trees again on the rows the model holds."""
    from graftboost.cli import change_commands

    change_commands.refit(Output(json), store, request)


@app.command()
@failing_clearly
def compact(store: StorePath, json: Json = False) -> None:
    """Rewrite the files, so that they no longer contain data of removed rows."""
    from graftboost.cli import change_commands

    change_commands.compact(Output(json), store)


@app.command()
@failing_clearly
def audit(
    store: StorePath,
    ids: Ids = None,
    ids_file: IdsFile = None,
    where: Where = None,
    details: Annotated[
        bool, typer.Option("--details", help="Include the tables of each part of the audit.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot the audit to a .png, .svg or .pdf file."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure on a copy of the model what removing rows would forget."""
    from graftboost.cli import query_commands
    from graftboost.cli.chosen_rows import ChosenRows

    chosen = ChosenRows(ids or [], ids_file, where)
    query_commands.audit(Output(json), store, chosen, details, plot)


@app.command()
@failing_clearly
def demo() -> None:
    """Remove customers from a model, and compare with retraining; takes a minute."""
    from graftboost.cli import demo as tour

    tour.main()

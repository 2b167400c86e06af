"""The words of the command line: commands, arguments and options.

What they do is in `graftboost.cli.actions`, which is imported when a command runs: help, completion
and mistakes are answered at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from graftboost.cli.output import Output, failing_clearly

app = typer.Typer(
    name="graftboost",
    help=(
        "Gradient boosted trees that forget: train a model, add and remove rows in place, and show "
        "that it was done."
    ),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)

StorePath = Annotated[Path, typer.Argument(metavar="STORE", help="Directory of the store.")]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Rows: a .csv, .parquet, .arrow or .feather file.")
]
Ids = Annotated[
    list[int] | None,
    typer.Argument(metavar="[IDS]...", help="Ids of rows.", show_default=False),
]
IdsFile = Annotated[
    Path | None,
    typer.Option("--ids-file", metavar="FILE", help="A file of ids, one a line; - reads them in."),
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Rows by the columns kept beside them, such as \"customer == 17 and region != 'x'\".",
    ),
]
Request = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="What the receipt calls this.", show_default="a new name"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@app.callback(invoke_without_command=True)
def common(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """What can be asked for without a command."""
    if version:
        from graftboost import __version__

        typer.echo(f"graftboost {__version__}")
        raise typer.Exit


@app.command()
@failing_clearly
def fit(
    data: Data,
    store: StorePath,
    target: Annotated[str, typer.Option(metavar="COLUMN", help="What is to be predicted.")],
    row_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMN",
            help="Whole numbers by which rows are known.",
            show_default="rows are numbered",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Keep a column beside the rows, out of the features, to find rows by. Repeatable.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave a column out altogether. Repeatable."),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="How often each row counts.")
    ] = None,
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(
            metavar="KIND",
            help=(
                "classification, regression, or auto: classes if the target is text or few whole "
                "numbers."
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
) -> None:
    """Train a model on the rows of a file, and make a store of it."""
    from graftboost.cli import fit_command
    from graftboost.cli.column_roles import ColumnRoles

    columns = ColumnRoles(target, row_id, weight, keep or [], drop or [])
    fit_command.fit(Output(json), data, store, columns, task, parameter or [], request)


@app.command()
@failing_clearly
def add(store: StorePath, data: Data, request: Request = None, json: Json = False) -> None:
    """Add the rows of a file, which has the columns of the one that the model was trained on."""
    from graftboost.cli import change_commands

    change_commands.add(Output(json), store, data, request)


@app.command()
@failing_clearly
def remove(
    store: StorePath,
    ids: Ids = None,
    ids_file: IdsFile = None,
    where: Where = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Also write the files anew, without the rows.")
    ] = False,
    request: Request = None,
    json: Json = False,
) -> None:
    """Remove rows: these ids, those in a file, or those of which a condition holds."""
    from graftboost.cli import change_commands

    change_commands.remove(Output(json), store, ids or [], ids_file, where, compact, request)


@app.command()
@failing_clearly
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A store, or a file that save() wrote.")
    ],
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where to: .csv, .parquet, .arrow or .feather.",
            show_default="CSV on standard output",
        ),
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", "-p", help="Also the probability of each class.")
    ] = False,
) -> None:
    """Predict for the rows of a file."""
    from graftboost.cli import query_commands

    query_commands.predict(model, data, output, probabilities)


@app.command()
@failing_clearly
def info(store: StorePath, json: Json = False) -> None:
    """Show what a store holds."""
    from graftboost.cli import query_commands

    query_commands.info(Output(json), store)


@app.command()
@failing_clearly
def history(
    store: StorePath,
    last: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Only so many of the last changes.", show_default="all"
        ),
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
        typer.Argument(metavar="REQUEST", help="Name of the request, or number of the change."),
    ] = None,
    row: Annotated[
        int | None, typer.Option(metavar="ID", help="The last removal of the row with this id.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the receipt of a change."""
    from graftboost.cli import query_commands

    query_commands.receipt(Output(json), store, request, row)


@app.command()
@failing_clearly
def verify(store: StorePath, json: Json = False) -> None:
    """Check the chain of receipts, all checksums, and every sum in the model."""
    from graftboost.cli import query_commands

    query_commands.verify(Output(json), store)


@app.command()
@failing_clearly
def refit(store: StorePath, request: Request = None, json: Json = False) -> None:
    """Train all trees again from the rows held, as if removed rows had never been there."""
    from graftboost.cli import change_commands

    change_commands.refit(Output(json), store, request)


@app.command()
@failing_clearly
def compact(store: StorePath, json: Json = False) -> None:
    """Write the files anew, so that none holds anything of removed rows."""
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
        bool, typer.Option("--details", help="Also the tables of each part of the audit.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it: a .png, .svg or .pdf file.")
    ] = None,
    json: Json = False,
) -> None:
    """Say what removing rows would forget and what it would not, on a copy of the model."""
    from graftboost.cli import query_commands

    query_commands.audit(Output(json), store, ids or [], ids_file, where, details, plot)


@app.command()
@failing_clearly
def demo() -> None:
    """Have a model forget customers, beside training again: a minute's tour."""
    from graftboost.cli import demo as tour

    tour.main()

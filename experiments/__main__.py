"""The command line: ``python -m experiments [list|run|report]``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from datasets import FOLDER_VARIABLE, ROOT
from experiments.harness.catalogue import EXPERIMENTS
from experiments.harness.experiment import SCALES, Experiment
from experiments.harness.pages import write_pages
from experiments.harness.running import run

RESULTS = ROOT / "experiments" / "results"
INDEX = ROOT / "docs" / "results.md"


def parser() -> argparse.ArgumentParser:
    """Arguments of the command line."""
    result = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    commands = result.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the experiments")
    running = commands.add_parser("run", help="measure, and save the results as JSON")
    running.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    running.add_argument("--data", type=Path, metavar="DIR", help="folder with the data sets")
    which = running.add_mutually_exclusive_group()
    which.add_argument("--again", action="store_true", help="repeat measurements that exist")
    which.add_argument(
        "--resume",
        action="store_true",
        help="repeat those of other commits, and continue an interrupted run of this one",
    )
    reporting = commands.add_parser("report", help="write a page for each experiment")
    for each, default in ((running, "quick"), (reporting, "full")):
        each.add_argument("--scale", choices=SCALES, default=default, help=f"default: {default}")
        each.add_argument("--output", type=Path, metavar="DIR", help="folder of the results")
    reporting.add_argument(
        "--page", type=Path, help="index of the pages; default: docs/results.md, quick: --output"
    )
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    args = parser().parse_args(argv)
    console = Console(stderr=True)
    if args.command == "list":
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.name:<20}{experiment.title}")
        return 0
    folder = args.output or RESULTS / args.scale
    if args.command == "report":
        index = args.page or (INDEX if args.scale == "full" else folder / "results.md")
        write_pages(list(EXPERIMENTS.values()), args.scale, folder, index)
        console.print(f"wrote {index}")
        return 0
    unknown = [name for name in args.names if name not in EXPERIMENTS]
    if unknown:
        console.print(f"error: {unknown[0]!r} is not one of {', '.join(EXPERIMENTS)}")
        return 2
    if args.data is not None:
        if not args.data.is_dir():
            console.print(f"error: --data {args.data} is not a folder")
            return 2
        os.environ[FOLDER_VARIABLE] = str(args.data)
    chosen: list[Experiment] = [EXPERIMENTS[name] for name in args.names or EXPERIMENTS]
    results = run(chosen, args.scale, folder, again=args.again, resume=args.resume, console=console)
    return 1 if any(each.failures() for each in results) else 0


if __name__ == "__main__":
    sys.exit(main())

"""The arguments of the command line."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

import datasets
from benchmarks.builds import parts as builds
from benchmarks.libraries import LIBRARIES
from benchmarks.sparse import parts as sparse
from benchmarks.updates import parts as updates

DESCRIPTION = "Measure speed, memory and losses, or write the pages about saved measurements."
INDEX = datasets.ROOT / "docs" / "performance.md"

# Names for --data, for all commands except "sparse", and for "sparse".
DATA = [*datasets.SOURCES, *datasets.MADE]
SPARSE_DATA = [*datasets.SPARSE, *datasets.CODED]

# Names for --only, by command.
PARTS = {"updates": [*updates.PARTS], "sparse": [*sparse.PARTS], "builds": [*builds.PARTS]}


def _names(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        chosen = [name.strip() for name in text.split(",") if name.strip()]
        for name in chosen:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return chosen

    return parse


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _fidelities(text: str) -> list[float]:
    values = [float(word) for word in text.split(",")]
    if not all(0 <= value <= 1 for value in values):
        raise argparse.ArgumentTypeError(f"must all be from 0 to 1, got {text}")
    return values


def _two_positive(text: str) -> list[int]:
    values = [_positive(word) for word in text.split(",")]
    if len(values) != 2:
        raise argparse.ArgumentTypeError(f"must be two numbers, as in 10,3; got {text}")
    return values


def parser() -> argparse.ArgumentParser:
    """Parser of the arguments."""
    result = argparse.ArgumentParser(prog="python -m benchmarks", description=DESCRIPTION)
    result.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=[
            "fit",
            "columns",
            "many-rows",
            "threads",
            "accuracy",
            "memory",
            "import",
            "updates",
            "store",
            "sparse",
            "distributed",
            "all",
            "builds",
            "report",
        ],
    )
    result.add_argument(
        "folders",
        nargs="*",
        type=Path,
        metavar="OLD NEW",
        help="of builds: folders made by `pip install --no-deps --target FOLDER .`",
    )
    result.add_argument(
        "--data",
        type=_names([*DATA, *datasets.SPARSE]),
        metavar="NAMES",
        help=f"of {', '.join(DATA)}; of sparse: {', '.join(SPARSE_DATA)}; default: all, of builds: "
        "a few",
    )
    result.add_argument(
        "--libraries",
        type=_names(list(LIBRARIES)),
        metavar="NAMES",
        help=f"of {', '.join(LIBRARIES)}; default: all that are installed",
    )
    result.add_argument("--threads", type=_positive, default=2, help="default: 2")
    result.add_argument("--repeats", type=_positive, help="runs of each; default: 2 to 5, quick: 1")
    result.add_argument("--quick", action="store_true", help="small data sets, a few minutes")
    result.add_argument(
        "--only",
        type=_names([name for names in PARTS.values() for name in names]),
        metavar="PARTS",
        help="; ".join(f"of {what}: {', '.join(names)}" for what, names in PARTS.items())
        + "; default: all",
    )
    result.add_argument(
        "--fidelity",
        type=_fidelities,
        metavar="VALUES",
        help="targets of updates of fractions, as in 0.5,0.75,0.9; default: the estimator's",
    )
    result.add_argument(
        "--draws",
        type=_two_positive,
        metavar="N,N",
        help="draws of up to 0.1%% and of 1%% of the rows; default: 10,3, quick: 2,1",
    )
    result.add_argument(
        "--resume",
        action="store_true",
        help="continue an interrupted run of the same command and commit",
    )
    result.add_argument(
        "--output", type=Path, metavar="DIR", help="results; default: benchmarks/results"
    )
    result.add_argument(
        "--page",
        type=Path,
        default=INDEX,
        help="index of the pages that report writes; default: docs/performance.md",
    )
    return result


def command_of(args: argparse.Namespace) -> str:
    """Command that repeats the measurement, without the folder of the results."""
    words = ["python", "-m", "benchmarks", args.what]
    for option in ("data", "libraries", "only", "fidelity", "draws"):
        if values := getattr(args, option):
            words += [f"--{option}", ",".join(f"{value}" for value in values)]
    if args.threads != 2:
        words += ["--threads", str(args.threads)]
    if args.quick:
        words.append("--quick")
    if args.repeats:
        words += ["--repeats", str(args.repeats)]
    return shlex.join(words)


def refusal(args: argparse.Namespace) -> str | None:
    """Why an argument is invalid for this command; None if all are valid."""
    if len(args.folders) != (2 if args.what == "builds" else 0):
        return "builds needs two folders, OLD and NEW; other commands take none"
    known_data = {"sparse": SPARSE_DATA, "builds": [*DATA, *datasets.SPARSE]}
    known = {
        "--data": known_data.get(args.what, DATA),
        "--only": PARTS.get(args.what, [*updates.PARTS, *sparse.PARTS]),
    }
    for option, names in known.items():
        for name in getattr(args, option.removeprefix("--")) or ():
            if name not in names:
                return f"argument {option}: {args.what} has {', '.join(names)}, not {name!r}"
    return None

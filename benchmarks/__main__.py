"""The command line: ``python -m benchmarks``, followed by what to measure, or ``report``."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import datasets
from benchmarks import columns, many_rows, memory, store
from benchmarks.builds import parts as builds
from benchmarks.builds.build import BuildError
from benchmarks.goals import goals, goals_table
from benchmarks.import_time import measure_imports
from benchmarks.libraries import LIBRARIES, OURS, YARDSTICK, Library
from benchmarks.measure import measure
from benchmarks.memory import measure_memory
from benchmarks.pages import write_pages
from benchmarks.report import as_markdown
from benchmarks.results import Run, load_runs, new_run
from benchmarks.settings import Settings
from benchmarks.sparse import parts as sparse
from benchmarks.updates import parts as updates
from benchmarks.updates.part import Part, Plan

RESULTS = datasets.ROOT / "benchmarks" / "results"
INDEX = datasets.ROOT / "docs" / "performance.md"
QUICK = ["adult", "pendigits", "abalone"]
QUICK_MEMORY = ["adult"]

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
    """Arguments of the command line."""
    result = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    result.add_argument(
        "what",
        nargs="?",
        default="all",
        choices=[
            "fit",
            "columns",
            "many-rows",
            "memory",
            "import",
            "updates",
            "store",
            "sparse",
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
    result.add_argument("--repeats", type=_positive, help="runs of each; default: 5, quick: 1")
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


def main(argv: Sequence[str] | None = None) -> int:
    """Measure or report; returns the exit code."""
    reader = parser()
    args = reader.parse_intermixed_args(argv)  # options may precede OLD and NEW
    if refusal := _refusal(args):
        reader.error(refusal)
    if args.output is None:
        args.output = RESULTS / "quick" if args.quick else RESULTS
    try:
        if args.what == "report":
            written = write_pages(args.page, load_runs(args.output))
            _say(f"wrote {', '.join(written)}")
        elif args.what == "builds":
            _builds(args)
        else:
            _measure_all(args)
    except (datasets.DataNotFoundError, BuildError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _refusal(args: argparse.Namespace) -> str | None:
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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _measure_all(args: argparse.Namespace) -> None:
    start = time.perf_counter()
    _warn_if_busy()
    if args.what in ("fit", "memory", "all"):
        libraries = _installed([LIBRARIES[name] for name in args.libraries or LIBRARIES])
    if args.what in ("fit", "all"):
        _fit(args, libraries)
    if args.what in (columns.KIND, "all"):
        _columns(args)
    if args.what in (many_rows.KIND, "all"):
        _many_rows(args)
    if args.what in ("memory", "all"):
        _memory(args, libraries)
    if args.what in ("import", "all"):
        _import(args)
    if args.what in ("updates", "all"):
        _parts(args, updates.PARTS)
    if args.what in ("store", "all"):
        _store(args)
    if args.what in ("sparse", "all"):
        _sparse(args)
    _say(f"done in {time.perf_counter() - start:.0f} s; saved in {args.output}")


def _begin(args: argparse.Namespace, kind: str, libraries: Sequence[Library], repeats: int) -> Run:
    """A new run, or with --resume the saved one that it would continue."""
    settings = Settings(threads=args.threads)
    run = new_run(kind, command_of(args), libraries, settings, repeats)
    if args.resume:
        saved = load_runs(args.output).get(run.name)
        if saved is not None and saved.is_continued_by(run):
            return saved
    return run


def _left(run: Run, names: Iterable[str]) -> list[str]:
    """The data sets that a run has no records of yet."""
    return [name for name in names if name not in run.data_names()]


def _warn_if_busy() -> None:
    # Libraries that busy-wait for a core can take ten times as long on a busy machine.
    if hasattr(os, "getloadavg") and (load := os.getloadavg()[0]) > 0.5:
        _say(f"warning: this machine is busy (load {load:.1f}): the figures are not reliable")


def _installed(libraries: Iterable[Library]) -> list[Library]:
    found = []
    for library in libraries:
        if library.available():
            found.append(library)
        else:
            _say(f"skipping {library.title}: it is not installed")
    return found


def _repeats(args: argparse.Namespace) -> int:
    return int(args.repeats or (1 if args.quick else 5))


def _fit(args: argparse.Namespace, libraries: Sequence[Library]) -> None:
    names = args.data or (QUICK if args.quick else list(datasets.SOURCES))
    _require(names)
    run = _begin(args, "fit", libraries, _repeats(args))
    for name in _left(run, names):
        run.records += measure(datasets.load(name), libraries, run.settings, run.repeats, _say)
        run.save(args.output)  # after each data set, so that an interrupted run is kept
    _finish(run, args.output)


def _columns(args: argparse.Namespace) -> None:
    compared = _installed([LIBRARIES[OURS], LIBRARIES[YARDSTICK]])
    run = _begin(args, columns.KIND, compared, _repeats(args))
    for name in _left(run, datasets.SKEWED):
        run.records += columns.measure_columns(
            name, compared, run.settings, run.repeats, args.quick, _say
        )
        run.save(args.output)
    _finish(run, args.output)


def _many_rows(args: argparse.Namespace) -> None:
    repeats = args.repeats or (1 if args.quick else 2)
    run = _begin(args, many_rows.KIND, [LIBRARIES[OURS]], repeats)
    if not run.records:
        run.records += many_rows.measure_many_rows(run.settings, repeats, args.quick, _say)
    _finish(run, args.output)


def _memory(args: argparse.Namespace, libraries: Sequence[Library]) -> None:
    if not memory.available():
        _say("skipping memory: this system does not report the peak memory of a process")
        return
    names = args.data or (QUICK_MEMORY if args.quick else DATA)
    _require(names)
    run = _begin(args, "memory", libraries, _repeats(args))
    for name in _left(run, names):
        chosen = libraries
        if name in datasets.MADE and not args.libraries:
            # Large, and used for our own goal only: other libraries on request.
            chosen = [library for library in libraries if library.name == OURS]
        run.records += measure_memory(name, chosen, run.settings, _say)
        run.save(args.output)
    _finish(run, args.output)


def _import(args: argparse.Namespace) -> None:
    chosen = [LIBRARIES[name] for name in (OURS, "sklearn")]
    repeats = args.repeats or 5  # fast enough for quick runs too
    run = _begin(args, "import", chosen, repeats)
    if not run.records:
        run.records += measure_imports(repeats, _say)
    _finish(run, args.output)


def _sparse(args: argparse.Namespace) -> None:
    try:
        _parts(args, sparse.PARTS)
    except datasets.DataNotFoundError as error:
        if args.what == "sparse":
            raise
        _say(f"skipping sparse: {error}")  # unlike the others, these are not on OpenML


def _parts(args: argparse.Namespace, known: Mapping[str, Part]) -> None:
    parts = [part for name, part in known.items() if not args.only or name in args.only]
    names = {part.name: part.names(args.data, args.quick) for part in parts}
    _require([name for of_part in names.values() for name in of_part])
    wanted = dict.fromkeys(peer for part in parts if names[part.name] for peer in part.peers)
    if args.libraries:
        wanted = dict.fromkeys(peer for peer in wanted if peer.name in args.libraries)
    peers = _installed(wanted)
    for part in parts:
        if names[part.name]:
            there = [peer for peer in part.peers if peer in peers]
            _one_part(part, names[part.name], there, args)
        else:
            _say(f"skipping {part.name}: it measures {', '.join(part.data)} only")


def _one_part(
    part: Part, names: Sequence[str], peers: Sequence[Library], args: argparse.Namespace
) -> None:
    run = _begin(args, part.kind, [LIBRARIES[OURS], *peers], _repeats(args))
    plan = Plan(
        run.settings,
        tuple(peers),
        run.repeats,
        _say,
        quick=args.quick,
        fidelities=tuple(args.fidelity or ()),
        draws=tuple(args.draws or ((2, 1) if args.quick else (10, 3))),
    )
    for name in _left(run, names):
        run.records += part.records(name, plan)
        run.save(args.output)
    _finish(run, args.output)


def _store(args: argparse.Namespace) -> None:
    known = (*store.SAVED, *store.REMOVED_FROM)
    names = list(dict.fromkeys(store.QUICK if args.quick else known))
    if args.data:
        names = [name for name in names if name in args.data]
    _require(names)
    peers = _installed([LIBRARIES[YARDSTICK]])
    run = _begin(args, store.KIND, [LIBRARIES[OURS], *peers], _repeats(args))
    if not run.records:
        run.records += store.measure_store(names, run.settings, run.repeats, args.quick, _say)
    _finish(run, args.output)


def _builds(args: argparse.Namespace) -> None:
    _warn_if_busy()
    usual = builds.QUICK_DATA if args.quick else builds.DATA
    names = {part: args.data or usual[part] for part in args.only or builds.PARTS}
    _require([name for of_part in names.values() for name in of_part])
    plan = Plan(Settings(threads=args.threads), (), _repeats(args), _say, quick=args.quick)
    old, new = args.folders
    for text in builds.compare(old, new, names, plan):
        print(f"{text}\n", flush=True)


def _require(names: Sequence[str]) -> None:
    for name in names:
        if name in datasets.SOURCES:
            datasets.path_of(name)
        elif name in datasets.SPARSE:
            datasets.sparse_path_of(name)


def _finish(run: Run, folder: Path) -> None:
    run.save(folder)
    text = as_markdown(run)
    measured = [goal for goal in goals({run.name: run}) if goal.measured is not None]
    if measured:
        text += "\n\n" + goals_table(measured)
    print(f"{text}\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())

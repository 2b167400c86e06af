"""The command line: ``python -m benchmarks``, followed by what to measure, or ``report``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import datasets
from benchmarks import accuracy, columns, distributed, many_rows, memory, store, threads
from benchmarks.arguments import command_of, parser, refusal
from benchmarks.builds import parts as builds
from benchmarks.builds.build import BuildError
from benchmarks.goals import goals, goals_table
from benchmarks.import_time import measure_imports
from benchmarks.libraries import FIXED, LIBRARIES, OURS, YARDSTICK, Library
from benchmarks.measure import measure
from benchmarks.memory import measure_memory
from benchmarks.pages import write_pages
from benchmarks.report import as_markdown
from benchmarks.results import Run, load_runs, new_run, this_commit
from benchmarks.settings import Settings
from benchmarks.sparse import parts as sparse
from benchmarks.updates import parts as updates
from benchmarks.updates.part import Part, Plan

RESULTS = datasets.ROOT / "benchmarks" / "results"
QUICK = ["adult", "pendigits", "abalone"]
QUICK_MEMORY = ["adult"]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure or report; returns the exit code."""
    reader = parser()
    args = reader.parse_intermixed_args(argv)  # options may precede OLD and NEW
    if reason := refusal(args):
        reader.error(reason)
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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _measure_all(args: argparse.Namespace) -> None:
    start = time.perf_counter()
    _warn_if_busy()
    if args.resume and not this_commit():
        _say("warning: the package has no commit or differs from it, so nothing can be resumed")
    if args.what in ("fit", "memory", "all"):
        libraries = _installed([LIBRARIES[name] for name in args.libraries or LIBRARIES])
    if args.what in ("fit", "all"):
        _fit(args, libraries)
    if args.what == "all" and args.threads != 1:
        _fit_on_one_thread(args)
    if args.what in (threads.KIND, "all"):
        _threads(args)
    if args.what in (accuracy.KIND, "all"):
        _accuracy(args)
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
    if args.what == distributed.KIND:  # needs Ray and Dask, so it is not among all
        _distributed(args)
    _say(f"done in {time.perf_counter() - start:.0f} s; saved in {args.output}")


def _begin(
    args: argparse.Namespace,
    kind: str,
    libraries: Sequence[Library],
    repeats: int,
    n_threads: int | None = None,
) -> Run:
    """A new run, or with --resume the saved one that it would continue."""
    settings = Settings(threads=n_threads or args.threads)
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


def _repeats(args: argparse.Namespace, usual: int = 5) -> int:
    return int(args.repeats or (1 if args.quick else usual))


def _fit(args: argparse.Namespace, libraries: Sequence[Library]) -> None:
    names = args.data or (QUICK if args.quick else list(datasets.SOURCES))
    _measure_fits(args, names, _begin(args, "fit", libraries, _repeats(args)), libraries)


def _fit_on_one_thread(args: argparse.Namespace) -> None:
    """The fits with a goal for one thread; `fit --threads 1` has other libraries too."""
    compared = _installed([LIBRARIES[OURS], LIBRARIES[YARDSTICK]])
    names = args.data or (QUICK[:1] if args.quick else datasets.names_of("classification"))
    run = _begin(args, "fit", compared, _repeats(args, usual=2), n_threads=1)
    _measure_fits(args, names, run, compared)


def _measure_fits(
    args: argparse.Namespace, names: Sequence[str], run: Run, libraries: Sequence[Library]
) -> None:
    _require(names)
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


def _threads(args: argparse.Namespace) -> None:
    if args.data and threads.DATA not in args.data:
        _say(f"skipping {threads.KIND}: it measures {threads.DATA} only")
        return
    compared = _installed([LIBRARIES[OURS], LIBRARIES[YARDSTICK]])
    run = _begin(args, threads.KIND, compared, _repeats(args, usual=2))
    if not run.records:
        run.records += threads.measure_threads(
            compared, run.settings, run.repeats, args.quick, _say
        )
    _finish(run, args.output)


def _accuracy(args: argparse.Namespace) -> None:
    names = [name for name in args.data or datasets.SOURCES if name in datasets.SOURCES]
    if args.quick and not args.data:
        names = QUICK
    _require(names)
    compared = _installed([LIBRARIES[OURS], LIBRARIES[YARDSTICK]])
    n_splits = accuracy.QUICK_SPLITS if args.quick else accuracy.SPLITS
    run = _begin(args, accuracy.KIND, compared, 1)
    for name in _left(run, names):
        run.records += accuracy.measure_accuracy(name, compared, run.settings, n_splits, _say)
        run.save(args.output)
    _finish(run, args.output)


def _many_rows(args: argparse.Namespace) -> None:
    run = _begin(args, many_rows.KIND, [LIBRARIES[OURS]], _repeats(args, usual=2))
    if not run.records:
        run.records += many_rows.measure_many_rows(run.settings, run.repeats, args.quick, _say)
    _finish(run, args.output)


def _memory(args: argparse.Namespace, libraries: Sequence[Library]) -> None:
    if not memory.available():
        _say("skipping memory: this system does not report the peak memory of a process")
        return
    names = args.data or (QUICK_MEMORY if args.quick else [*datasets.SOURCES, memory.LARGEST])
    _require(names)
    run = _begin(args, "memory", libraries, 1)
    if any(library.name == OURS for library in libraries):
        libraries = [*libraries, FIXED]
    for name in _left(run, names):
        chosen = libraries
        if name in datasets.MADE and not args.libraries:
            # Large, and used for our own goals only: other libraries on request.
            with_goals = (OURS, FIXED.name, YARDSTICK)
            chosen = [library for library in libraries if library.name in with_goals]
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
    run = _begin(args, part.kind, [LIBRARIES[OURS], *peers], _repeats(args, part.repeats))
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
    for name in _left(run, [*names, store.HELP]):
        run.records += store.measure_store(name, run.settings, run.repeats, args.quick, _say)
        run.save(args.output)
    _finish(run, args.output)


def _distributed(args: argparse.Namespace) -> None:
    names = list(distributed.QUICK if args.quick else distributed.DATA)
    if args.data:
        names = [name for name in names if name in args.data]
    _require(names)
    run = _begin(args, distributed.KIND, [LIBRARIES[OURS]], _repeats(args, usual=2))
    for name in _left(run, names):
        run.records += distributed.measure(name, run.settings, run.repeats, _say)
        run.save(args.output)
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

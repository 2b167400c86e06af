"""Runs as Markdown tables, for the terminal and the documentation."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from benchmarks import accuracy, columns, distributed, import_time, many_rows, store, threads
from benchmarks.goals import geometric_mean, summary
from benchmarks.libraries import ALL_LIBRARIES, LIBRARIES, OURS, YARDSTICK
from benchmarks.markdown import four_digits, in_bytes, in_percent, in_seconds, table
from benchmarks.results import Run
from benchmarks.sparse import parts as sparse
from benchmarks.updates import parts as updates

TEXTS: dict[str, Callable[[Run], str]] = {
    accuracy.KIND: accuracy.text,
    columns.KIND: columns.text,
    distributed.KIND: distributed.text,
    many_rows.KIND: many_rows.text,
    store.KIND: store.text,
    threads.KIND: threads.text,
}
PARTS_BY_KIND = {**updates.PARTS_BY_KIND, **sparse.PARTS_BY_KIND}


def as_markdown(run: Run) -> str:
    """The circumstances, tables and summary of a run."""
    parts = [_circumstances(run)]
    if run.kind == "fit":
        for title, measure, write, digits in FIT_TABLES:
            if any(measure in record.samples for record in run.records):
                parts += [f"**{title}**", ratio_table(run, measure, write, digits)]
        parts += [summary(run), quietness(run)]
    elif run.kind == "memory":
        parts.append(ratio_table(run, "peak_bytes", in_bytes, 2))
    elif run.kind in TEXTS:
        parts.append(TEXTS[run.kind](run))
    elif run.kind in PARTS_BY_KIND:
        parts.append(PARTS_BY_KIND[run.kind].text(run))
    else:
        parts.append(_import_table(run))
    return "\n\n".join(parts)


def ratio_table(run: Run, measure: str, write: Callable[[float], str], digits: int) -> str:
    """One row per data set, one column per library: ratio to LightGBM, and the figure."""
    columns = [name for name in ALL_LIBRARIES if any(r.library == name for r in run.records)]
    data_names = [
        name
        for name in run.data_names()
        if any(r.data == name and (measure in r.samples or r.failure) for r in run.records)
    ]
    rows = [
        [name, *(_cell(run, name, column, measure, write, digits) for column in columns)]
        for name in data_names
    ]
    if len(data_names) > 1 and YARDSTICK in columns:
        means = []
        for column in columns:
            ratios = [run.ratio(name, column, measure, YARDSTICK) for name in data_names]
            known = [ratio for ratio in ratios if ratio]
            text = f"{geometric_mean(known):.{digits}f}" if known else "-"
            means.append(_stressed(text, column))
        rows.append(["geometric mean", *means])
    return table(["data set", *(ALL_LIBRARIES[column].title for column in columns)], rows)


def _cell(
    run: Run,
    data: str,
    library: str,
    measure: str,
    write: Callable[[float], str],
    digits: int,
) -> str:
    if any(r.failure for r in run.records if (r.data, r.library) == (data, library)):
        return "failed"
    value = run.best(data, library, measure)
    if value is None:
        return "-"
    ratio = run.ratio(data, library, measure, YARDSTICK)
    if ratio is None:
        return _stressed(write(value), library)
    text = "1" if library == YARDSTICK else f"{ratio:.{digits}f}"
    return f"{_stressed(text, library)} ({write(value)})"


def _stressed(text: str, library: str) -> str:
    return f"**{text}**" if library == OURS and text != "-" else text


def _import_table(run: Run) -> str:
    rows = []
    for module in (import_time.OURS, import_time.YARDSTICK):
        seconds = run.best("import", module, "import_seconds")
        ratio = run.ratio("import", module, "import_seconds", import_time.YARDSTICK)
        figure = "failed"
        if seconds is not None and ratio is not None:
            figure = f"{_stressed(f'{ratio:.2f}', module)} ({in_seconds(seconds)})"
        rows.append([f"`import {module}`", figure])
    return table(["import", f"time relative to `{import_time.YARDSTICK}`"], rows)


def quietness(run: Run) -> str:
    """Ratio of the median run to the best run, which is near 1 on an idle machine."""
    spread = {
        f"{LIBRARIES[record.library].title} on {record.data}": median(seconds) / min(seconds)
        for record in run.records
        if len(seconds := record.samples.get("fit_seconds", [])) > 1
    }
    if not spread:
        return "Each fit ran only once, so these figures are not reliable."
    worst = max(spread, key=spread.__getitem__)
    return (
        f"Ratio of the median fit to the best fit: {geometric_mean(spread.values()):.2f} on "
        f"average, {spread[worst]:.2f} at worst ({worst})."
    )


FIT_TABLES: list[tuple[str, str, Callable[[float], str], int]] = [
    ("Fit time", "fit_seconds", in_seconds, 2),
    ("Predict time", "predict_seconds", in_seconds, 2),
    ("Test log loss", "log_loss", four_digits, 3),
    ("Test error", "error", in_percent, 3),
    ("Test squared error", "squared_error", four_digits, 3),
]


def _circumstances(run: Run) -> str:
    """The command, date, machine, versions and settings of a run."""
    machine = run.machine
    facts = [run.date, *([f"commit {run.commit}"] if run.commit else [])]
    facts += [machine["processor"], f"{machine['cores']} cores"]
    if "memory" in machine:
        facts.append(machine["memory"])
    facts += [machine["system"], f"Python {machine['Python']}"]
    versions = [f"{title} {version}" for title, version in run.versions.items()]
    how = [str(run.settings)] if run.kind != "import" else []
    if run.kind in ("fit", "import", columns.KIND, distributed.KIND, many_rows.KIND, store.KIND):
        how.append(f"best of {run.repeats}")
    if run.kind == "fit":
        turns = [len(r.samples["fit_seconds"]) for r in run.records if not r.failure]
        if min(turns, default=run.repeats) < run.repeats:
            how[-1] += ", of 2 or 1 for libraries other than graftboost and LightGBM"
    return (
        f"```bash\n{run.command}\n```\n\n"
        f"{', '.join(facts)}; {', '.join(versions)}; {', '.join(how)}."
    )

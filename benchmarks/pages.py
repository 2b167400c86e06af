"""The pages of the documentation: one for each group of benchmarks, and an index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import accuracy, answers, columns, distributed, many_rows, store, threads
from benchmarks.goals import goals, goals_table
from benchmarks.report import as_markdown
from benchmarks.results import Run

Runs = Mapping[str, Run]


@dataclass(frozen=True)
class Section:
    """The tables of one run on a page."""

    run: str  # name of the run
    title: str
    command: str  # that measures it
    introduction: str = ""


@dataclass(frozen=True)
class Page:
    """One group of benchmarks."""

    name: str  # of its file
    title: str
    answer: Callable[[Runs], str]  # in two sentences
    sections: tuple[Section, ...]
    introduction: str = ""


INTRODUCTION = """\
graftboost keeps, with every model, the state that lets rows be added and removed in place. These
pages show what a fit with that state costs compared with libraries that keep none, and what updates
cost compared with retraining. They are written by `python -m benchmarks report` from the
measurements in `benchmarks/results`; each table states the command that measures it.

Below each table is the commit of the package that was measured. Updates have the default target, a
fidelity of 0.85, unless a table says otherwise."""

GOALS = """\
A goal for several data sets is reached if the worst of them, named in brackets, reaches it, unless
the goal is an average."""

METHOD = """\
All libraries train on the same float32 arrays, with the same number of leaves, iterations and
threads, the same learning rate, and at least 20 rows per leaf where the library has such a limit.
Everything else is the library's default.

- **Fit time** is the time of `fit`, including binning or the construction of the library's own data
  set.
- **Predict time** is the time of `predict_proba` (classification) or `predict` (regression) for the
  test rows.
- Libraries take turns (A B C A B C) and the best run counts, so that a slow moment of the machine
  affects all of them. Below the tables is the ratio of the median run to the best run. If it is
  much larger than 1, the machine was busy and the figures are not reliable.
- **Memory** is the peak of the resident size during `fit` minus the resident size just before it,
  with the arrays loaded and the library warmed up, in a separate process. The high-water mark of
  the kernel is reset before the fit.
- **Import time** is measured inside fresh interpreters, without their start, from bytecode.
- A cell reads: ratio to LightGBM (the figure itself). Less is better, except for speed-ups.

The settings cannot make everything equal:

- XGBoost limits a leaf by its sum of hessians, not by its rows. By default it shrinks leaf values
  with an L2 term, as CatBoost does; graftboost, LightGBM and scikit-learn do not.
- CatBoost grows one tree per iteration for all classes, the others one per class. It also draws
  random row weights by default. Its depth is set to 16 so that the leaves are the limit.
- scikit-learn converts the arrays to float64 first. The memory for that is included in its figures.

The data sets are Parquet files named as in the tables, each with a column `target`, in the folder
that `GRAFTBOOST_DATA` names. A `split` column contains the official split into training and test
rows. Without it, 30 per cent of the rows are drawn for the test (half of them for covtype and
flights_3m), always the same. Strings become category codes, missing values stay NaN, and columns
that determine the target are dropped. `higgs_shaped` is synthetic: 5,500,000 rows, 28 features and
two classes; `higgs_shaped_2m` has the first 2,000,000 of these rows. Sparse data sets are `.npz`
files of scipy with the additional arrays `target` and, for most, `split`."""

COMMANDS = """\
```bash
make bench ARGS='all --resume'                 # everything: about 55 minutes on two cores
python -m benchmarks all --quick               # small data sets, one run each: a few minutes
python -m benchmarks fit --data adult,letter --libraries graftboost,lightgbm --repeats 10
python -m benchmarks columns                   # columns of few values, one of them frequent
python -m benchmarks many-rows                 # five million rows, unweighted and weighted
python -m benchmarks threads                   # 5,500,000 rows on one thread and on two
python -m benchmarks accuracy                  # test losses over three splits
python -m benchmarks updates                   # all tables of updates
python -m benchmarks store                     # all tables of stores and files
python -m benchmarks sparse                    # all tables of sparse data
python -m benchmarks distributed               # Ray, and Dask for comparison; not part of all
python -m benchmarks updates --only large      # millions of rows, with refits to compare with
python -m benchmarks updates --only fractions --data adult --fidelity 0.5,0.75,0.9
python -m benchmarks builds OLD NEW            # two builds of the engine compared, not saved
python -m benchmarks all --resume              # continue a run that was interrupted
python -m benchmarks report                    # write the saved runs to these pages
```

Runs are saved as JSON in `benchmarks/results` (or the folder of `--output`), and a run replaces the
earlier one of its kind. It is saved after each data set, and with `--resume` a run of the same
command and commit continues with the data sets that are left. Libraries that are not installed are
skipped by name."""

PAGES = (
    Page(
        "fit",
        "Fit and predict time",
        answers.fit,
        (
            Section("fit-threads-2", "Two threads", "python -m benchmarks fit"),
            Section("fit-threads-1", "One thread", "python -m benchmarks fit --threads 1"),
            Section(
                threads.KIND,
                "From one thread to two",
                "python -m benchmarks threads",
                "Fits of a table of millions of rows.",
            ),
            Section(accuracy.KIND, "Losses over several splits", "python -m benchmarks accuracy"),
            Section(
                columns.KIND,
                "Skewed columns and categories",
                "python -m benchmarks columns",
                "Synthetic tables of 20 columns with 2 to 300 values, or 2 to 10 (few_values). The "
                "most frequent value of a column has 30 to 97 per cent of the rows, 60 to 95 per "
                "cent (very_skewed), or no more than the others (uniform).",
            ),
            Section(
                many_rows.KIND,
                "Many rows",
                "python -m benchmarks many-rows",
                "Five million rows, nearly all of which share the first cell of a column. Without "
                "weights, a histogram packs the sum of hessians and the number of rows into one "
                "integer; with weights it does not. Both must give the same model.",
            ),
        ),
    ),
    Page(
        "memory",
        "Memory and import time",
        answers.memory,
        (
            Section(
                "memory",
                "Memory",
                "python -m benchmarks memory",
                "Peak memory of a fit in addition to its input. With `updatable=False`, a model "
                "keeps no state for updates.",
            ),
            Section("import", "Import", "python -m benchmarks import"),
        ),
    ),
    Page(
        "updates",
        "Updates",
        answers.updates,
        tuple(
            Section(f"updates-{part}", title, f"python -m benchmarks updates --only {part}")
            for part, title in (
                ("one-row", "One row"),
                ("fractions", "From one row to 1% of the rows"),
                ("booking", "Booking only"),
                ("large", "Millions of rows"),
                ("sizes", "From a few rows to half of them"),
                ("refresh", "Refresh"),
                ("rows", "Number of rows held"),
                ("stream", "A sliding window"),
                ("classes", "New classes"),
                ("drift", "Hundreds of updates"),
                ("subsample", "Half of the rows per tree"),
            )
        ),
        "The alternative to an update is a retrain. LightGBM is therefore retrained in the same "
        "run, on the same rows and between the updates, and its best run is the reference. "
        "Updates use the public methods, with all their checks. The first update of a model is "
        "excluded, and repeated updates with different rows are represented by their median.",
    ),
    Page(
        "store",
        "Models on disk",
        answers.store,
        (
            Section(
                store.KIND,
                "Stores and files",
                "python -m benchmarks store",
                "The time to open a store, remove a row durably and close it; the same as a "
                "separate process; and a file for prediction. See [store.md](../store.md).",
            ),
        ),
    ),
    Page(
        "distributed",
        "Distributed models",
        answers.distributed,
        (
            Section(
                distributed.KIND,
                "Shards on Ray",
                "python -m benchmarks distributed",
                "The shards of a model share the cores of this machine, so the figures show what "
                "the distribution costs, not what it gains. A fit includes starting the processes, "
                "moving the rows to them, and writing their files. The memory of a shard is what "
                "its process takes beyond one without rows, relative to what its share of the "
                "rows takes in a model of one process. See [distributed.md](../distributed.md).",
            ),
        ),
    ),
    Page(
        "sparse",
        "Sparse data",
        answers.sparse,
        tuple(
            Section(f"sparse-{part}", title, f"python -m benchmarks sparse --only {part}")
            for part, title in (
                ("fit", "Fits"),
                ("one-row", "One row"),
                ("fractions", "0.1% and 1% of the rows"),
                ("stream", "A sliding window over emails"),
                ("one-hot", "One-hot columns"),
            )
        ),
        "The columns are words of texts: there are very many, and nearly all values are zero. "
        "Tables are scipy's CSR. If the data has no split (spam_stream), the first 70% of the "
        "rows in order of time are the training rows.",
    ),
)


def write_pages(index: Path, runs: Runs) -> list[str]:
    """Write the index and all pages, to the folder that has the name of the index.

    Returns
    -------
    list of str
        Names of the files written.
    """
    folder = index.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (folder / f"{page.name}.md").write_text(_page(page, runs))
    index.write_text(_index(runs, folder.name))
    return [index.name, *(f"{folder.name}/{page.name}.md" for page in PAGES)]


def _index(runs: Runs, folder: str) -> str:
    entries = [
        f"- [{page.title}]({folder}/{page.name}.md): {page.answer(runs)}".removesuffix(": ")
        for page in PAGES
    ]
    parts = ["# Performance", INTRODUCTION, "\n".join(entries)]
    parts += ["## Goals", goals_table(goals(runs)), GOALS]
    parts += ["## Method", METHOD, "## Commands", COMMANDS]
    missing = [s for page in PAGES for s in page.sections if s.run not in runs]
    if missing:
        lines = [f"- {section.title}: `{section.command}`" for section in missing]
        parts += ["## Not measured yet", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _page(page: Page, runs: Runs) -> str:
    parts = [f"# {page.title}", page.answer(runs), page.introduction]
    for section in page.sections:
        run = runs.get(section.run)
        if run is not None:
            parts += [f"## {section.title}", section.introduction, as_markdown(run)]
    return "\n\n".join(part for part in parts if part) + "\n"

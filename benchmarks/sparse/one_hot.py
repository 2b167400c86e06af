"""Categories as one-hot columns of a sparse table, compared with categorical features."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

import datasets
from benchmarks.goal import Goal, times
from benchmarks.libraries import LIBRARIES, OURS, warm_up
from benchmarks.markdown import four_digits, in_seconds, table
from benchmarks.measure import log_loss
from benchmarks.results import Record, Run
from benchmarks.sparse.part import sparse_part
from benchmarks.updates.part import Plan
from benchmarks.updates.timing import new_model, timed
from datasets import CODED

CATEGORIES, ONE_HOT = "categories", "one-hot"
FORMS = (CATEGORIES, ONE_HOT)
FITS = 3  # of each form at most: the larger set has three million rows
COMPARED = 50_000  # training rows whose loss is compared
LIMIT = 1.3


def measure(name: str, plan: Plan) -> list[Record]:
    """Fit both forms of all rows, in turns."""
    data = datasets.load_coded(name)
    forms: dict[str, Any] = {CATEGORIES: data.frame, ONE_HOT: data.one_hot}
    records = {
        form: Record(name, OURS, case={"form": form, "rows": X.shape[0], "columns": X.shape[1]})
        for form, X in forms.items()
    }
    compared = np.random.default_rng(0).permutation(len(data.y))[:COMPARED]
    samples = {CATEGORIES: data.frame.iloc[compared], ONE_HOT: data.one_hot[compared]}
    warm_up(LIBRARIES[OURS], "classification", plan.settings)
    for _ in range(min(FITS, plan.repeats)):
        for form, record in records.items():
            model = new_model(plan)
            gc.collect()
            record.add("fit_seconds", timed(model.fit, forms[form], data.y)[0])
            loss = log_loss(model.predict_proba(samples[form]), data.y[compared])
            record.samples["log_loss"] = [loss]  # every turn gives the same model
            plan.say(f"{name}  as {form}  fit {record.samples['fit_seconds'][-1]:.3f} s")
            del model  # frees its memory before the next fit
    return list(records.values())


def tables(run: Run) -> str:
    """One row per data set."""
    rows = []
    for name in run.data_names():
        found = [run.find(name, OURS, form=form) for form in FORMS]
        ratio = _ratio(run, name)
        if ratio is None or found[0] is None or found[1] is None:
            continue
        seconds = [record.best("fit_seconds") or 0.0 for record in found if record]
        losses = [record.best("log_loss") or 0.0 for record in found if record]
        rows.append(
            [
                name,
                f"{found[0].case['rows']:,}",
                f"{found[0].case['columns']:,}",
                f"{found[1].case['columns']:,}",
                in_seconds(seconds[0]),
                f"**{times(ratio)}** ({in_seconds(seconds[1])})",
                four_digits(losses[0]),
                four_digits(losses[1]),
            ]
        )
    head = [
        "data set",
        "rows",
        "columns, with categories",
        "one-hot",
        "fit, with categories",
        "fit, one-hot",
        "log loss, with categories",
        "one-hot",
    ]
    return (
        "All rows in both forms: a data frame with categories, and a CSR table with one column per "
        f"category. Best of {min(FITS, run.repeats)}, in turns. The loss is that of up to "
        f"{COMPARED:,} training rows. It would be the same with `split_sample=1`; otherwise the "
        "candidates of a numerical feature depend on the position of its column."
        f"\n\n{table(head, rows)}"
    )


def _ratio(run: Run | None, name: str) -> float | None:
    found = [run.find(name, OURS, form=form) if run is not None else None for form in FORMS]
    seconds = [None if record is None else record.best("fit_seconds") for record in found]
    with_categories, one_hot = seconds
    return one_hot / with_categories if one_hot is not None and with_categories else None


def goals(run: Run | None) -> list[Goal]:
    """Fit time of one form relative to the other."""
    values = {name: _ratio(run, name) for name in CODED}
    return [
        Goal("sparse: fit time of one-hot columns relative to categories", LIMIT, values, times)
    ]


PART = sparse_part("one-hot", CODED, ("adult",), measure, tables, goals, peers=())

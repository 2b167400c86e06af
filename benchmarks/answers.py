"""The answer of each page of benchmarks, in two sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchmarks import import_time
from benchmarks import store as stores
from benchmarks.goal import fold, percent
from benchmarks.goals import geometric_mean
from benchmarks.libraries import OURS, YARDSTICK
from benchmarks.markdown import in_seconds, listed
from benchmarks.results import Run
from benchmarks.updates.forgetting import pooled
from benchmarks.updates.timing import times_faster

Runs = Mapping[str, Run]


def fit(runs: Runs) -> str:
    """Fit time and loss relative to LightGBM."""
    run = runs.get("fit-threads-2")
    if run is None or not (seconds := _ratios(run, "fit_seconds")):
        return ""
    predicted = _ratios(run, "predict_seconds")
    losses = [ratio - 1 for ratio in _ratios(run, "log_loss")]
    text = (
        f"On two threads, a fit takes {geometric_mean(seconds):.2f} times and a prediction "
        f"{geometric_mean(predicted):.2f} times as long as LightGBM's (geometric means over "
        f"{len(seconds)} data sets)."
    )
    if losses:
        text += (
            f" The test log loss differs from LightGBM's by {percent(sum(losses) / len(losses))} "
            f"on average and by {percent(max(losses))} at worst."
        )
    return text


def memory(runs: Runs) -> str:
    """Memory relative to LightGBM, and import time relative to scikit-learn."""
    run, imports = runs.get("memory"), runs.get("import")
    if run is None or imports is None or not (peaks := _ratios(run, "peak_bytes")):
        return ""
    ours, theirs = import_time.OURS, import_time.YARDSTICK
    ratio = imports.ratio("import", ours, "import_seconds", theirs)
    if ratio is None:
        return ""
    return (
        f"A fit needs {geometric_mean(peaks):.1f} times LightGBM's memory (geometric mean over "
        f"{len(peaks)} data sets), because it stores leaf ids, recorded gradients and "
        f"histograms. Importing the estimators takes {ratio:.2f} times as long as importing "
        f"`{theirs}`."
    )


def updates(runs: Runs) -> str:
    """Speed-up over LightGBM's retrain, and forgetting."""
    single, shares = runs.get("updates-one-row"), runs.get("updates-fractions")
    if single is None or shares is None:
        return ""
    removed = [
        record
        for record in shares.records
        if record.case.get("way") == "remove" and record.case.get("default")
    ]
    few = [record for record in removed if record.case["share"] == 0.001]
    times = [times_faster(single, r, "remove_seconds") for r in single.records]
    of_few = [times_faster(shares, record, "update_seconds") for record in few]
    forgetting = [pooled(record).value for record in few]
    ranges = [_range(values, fold) for values in (times, of_few)]
    forgotten = _range(forgetting, lambda value: f"{value:.2f}")
    if None in (*ranges, forgotten):
        return ""
    return (
        f"Removing one row is {ranges[0]} faster than retraining LightGBM, and removing 0.1% of "
        f"the rows {ranges[1]}. The forgetting of 0.1% of the rows is {forgotten}, where 0 is the "
        "untouched model and 1 a refit."
    )


def store(runs: Runs) -> str:
    """A durable removal, and the size of a file for prediction."""
    run = runs.get(stores.KIND)
    if run is None:
        return ""
    speeds, sizes = [], []
    for name in run.data_names():
        trained = run.best(name, YARDSTICK, "fit_seconds")
        removals = run.find(name, OURS, what="removals")
        seconds = removals.best("remove_seconds") if removals else None
        if trained and seconds:
            speeds.append(trained / seconds)
        file, theirs = run.find(name, OURS, what="file"), run.best(name, YARDSTICK, "bytes")
        ours = file.best("bytes") if file else None
        if ours and theirs:
            sizes.append(ours / theirs)
    faster, size = _range(speeds, fold), _range(sizes, lambda value: f"{value:.2f}")
    if faster is None or size is None:
        return ""
    return (
        f"Opening a store, removing a row durably and closing the store is {faster} faster than "
        f"retraining LightGBM. A file for prediction has {size} times the size of LightGBM's text "
        "file."
    )


def distributed(runs: Runs) -> str:
    """Whether models are the same, and what one row takes."""
    run = runs.get("distributed")
    if run is None:
        return ""
    records = [record for record in run.records if "is_same" in record.samples]
    same = all(record.best("is_same") for record in records)
    rows = _range([record.median("remove_seconds") or 0 for record in records], in_seconds)
    return (
        f"Distributed models are {'the same as' if same else 'NOT the same as'} those of one "
        f"process, bit for bit. Removing one row takes {rows}."
    )


def sparse(runs: Runs) -> str:
    """Fits and single rows relative to LightGBM."""
    fits, single = runs.get("sparse-fit"), runs.get("sparse-one-row")
    if fits is None or single is None:
        return ""
    seconds = [
        f"{ratio:.2f} ({name})"
        for name in fits.data_names()
        if (ratio := fits.ratio(name, OURS, "fit_seconds", YARDSTICK)) is not None
    ]
    times = [times_faster(single, record, "remove_seconds") for record in single.records]
    faster = _range(times, fold)
    if not seconds or faster is None:
        return ""
    return (
        f"A fit takes {listed(seconds)} times as long as LightGBM's. Removing one row is {faster} "
        "faster than retraining LightGBM."
    )


def _ratios(run: Run, measure: str) -> list[float]:
    """Our figures relative to LightGBM's, where both were measured."""
    found = (run.ratio(name, OURS, measure, YARDSTICK) for name in run.data_names())
    return [ratio for ratio in found if ratio is not None]


def _range(values: Sequence[float | None], write: Callable[[float], str]) -> str | None:
    """Least and greatest value, as in "62x to 8774x"; None if there is none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    low, high = write(min(known)), write(max(known))
    return low if low == high else f"{low} to {high}"

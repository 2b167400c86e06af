"""Check whether a record of the journal can be applied to the current model.

A journal with valid checksums may still have been written with malicious intent. The engine uses
class codes as indices and relies on lengths, so every record is checked before it is applied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graftboost.estimators.update_request import (
    RULES,
    UPDATE_PARAMETERS,
    AddedRows,
    RegrowRequest,
    Rule,
    UpdateRequest,
)
from graftboost.input.sparse import is_sparse
from graftboost.persistence.model_file import Saved
from graftboost.store.attributes import Attributes
from graftboost.store.receipts import as_ranges
from graftboost.store.records import Record

MOST_BINS = 65_535
MOST_JOBS = 2**31 - 1


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter that updates depend on has an invalid value."""
    check_update_parameters(parameters)
    max_bins: Any = parameters.get("max_bins")
    split_sample: Any = parameters.get("split_sample")
    if not isinstance(max_bins, int) or not 2 <= max_bins <= MOST_BINS:
        raise ValueError("max_bins is not valid")
    if not _is_number(split_sample) or not 0 < split_sample <= 1:
        raise ValueError("split_sample is not valid")
    if not isinstance(parameters.get("bin_edges"), Mapping | list | np.ndarray | None):
        raise ValueError("bin_edges is not valid")


def check_update_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise ValueError if a parameter that updates read is missing or invalid."""
    if any(name not in parameters for name in UPDATE_PARAMETERS):
        raise ValueError("a parameter that updates read is missing")
    _check_rule(parameters)
    memory, n_jobs = parameters["stats_memory"], parameters["n_jobs"]
    if memory is not None and not (_is_number(memory) and memory >= 0):
        raise ValueError("stats_memory is not valid")
    if n_jobs is not None and not (isinstance(n_jobs, int) and abs(n_jobs) <= MOST_JOBS):
        raise ValueError("n_jobs is not valid")


def _check_rule(parameters: Mapping[str, Any]) -> None:
    name, tolerance = parameters["update_rule"], parameters["tolerance"]
    if not isinstance(name, str) or name not in RULES:
        raise ValueError("update_rule is unknown")
    if tolerance is not None and not (_is_number(tolerance) and tolerance >= 0):
        raise ValueError("tolerance is not zero or positive")
    if tolerance is not None and name == "fidelity":
        raise ValueError("tolerance does not apply to update_rule")
    if not _is_number(parameters["fidelity"]) or not 0 <= parameters["fidelity"] <= 1:
        raise ValueError("fidelity is not between 0 and 1")
    floor = parameters["memory_floor"]
    if not _is_number(floor) or not 0 <= floor < math.inf:
        raise ValueError("memory_floor is not zero or positive")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and value == value


def check_record(record: Record, saved: Saved, attributes: Attributes) -> None:
    """Raise ValueError if a record cannot be applied to a model.

    Parameters
    ----------
    record : Record
        A result of `Record.restore`.
    saved : Saved
        The model before the change.
    attributes : Attributes
        The attributes of its rows.
    """
    check_update_parameters(record.parameters)
    if set(record.parameters) != set(UPDATE_PARAMETERS):
        raise ValueError("it sets parameters that updates do not read")
    change, parameters = record.change, {**saved.parameters, **record.parameters}
    if record.regrowing is not None:
        _check_regrowing(record.regrowing, parameters)
        return
    if change is None:
        if record.receipt.action not in ("refit", "refresh"):
            raise ValueError(f"a journal cannot contain the action {record.receipt.action!r}")
        return
    _check_change_rule(change.rule, parameters)
    defers = not change.rule.regrow and record.receipt.strategy == "in-place"
    if record.receipt.deferred != defers:
        raise ValueError("its receipt does not say whether nodes are regrown later")
    if change.is_empty:
        raise ValueError("it neither adds nor removes rows")
    _check_distinct(change.removed, "removed")
    _check_distinct(change.added_ids, "added_ids")
    if as_ranges(change.removed) != record.receipt.removed:
        raise ValueError("its receipt names other rows than it removes")
    if as_ranges(change.added_ids) != record.receipt.added:
        raise ValueError("its receipt names other rows than it adds")
    _check_classes(change, saved)
    if change.added is not None:
        _check_rows(change.added, change, saved)
        _check_attributes(record, attributes, len(change.added.ids))
    elif record.attributes:
        raise ValueError("it has attributes but no rows to add")


def _check_change_rule(rule: Rule, parameters: Mapping[str, Any]) -> None:
    """Raise unless the rule follows from the parameters; one update may have another target."""
    if not _is_number(rule.fidelity) or not 0 <= rule.fidelity <= 1:
        raise ValueError("fidelity of its rule is not between 0 and 1")
    if type(rule.regrow) is not bool:
        raise ValueError("regrow of its rule is not valid")
    if rule != replace(Rule.of(parameters), fidelity=rule.fidelity, regrow=rule.regrow):
        raise ValueError("its rule does not match its parameters")
    if rule.name != "fidelity" and not rule.regrow:
        raise ValueError("regrow of its rule does not apply")
    if rule.name != "fidelity" and rule.fidelity != 0:
        raise ValueError("fidelity of its rule does not apply")
    if type(rule.top_candidates) is not int:
        raise ValueError("top_candidates of its rule is not valid")


def _check_regrowing(request: RegrowRequest, parameters: Mapping[str, Any]) -> None:
    """Raise unless nodes can be regrown by this request."""
    _check_change_rule(request.rule, parameters)
    if request.rule.name != "fidelity" or not request.rule.regrow:
        raise ValueError("its rule does not regrow nodes")
    if type(request.work) is not float or not request.work > 0:
        raise ValueError("work is not positive")


def _check_distinct(ids: NDArray[np.int64], name: str) -> None:
    if len(np.unique(ids)) != len(ids):
        raise ValueError(f"{name} contains an id twice")


def _check_classes(change: UpdateRequest, saved: Saved) -> None:
    """Raise unless the known classes keep their order; new classes may be inserted."""
    known = saved.classes.get(saved.n_classes)
    if known is None or change.classes is None:
        if known is not None or change.classes is not None or change.relabel:
            raise ValueError("classes and relabel do not match the type of the model")
        return
    codes, n_classes = change.relabel, len(change.classes)
    if len(codes) != len(known):
        raise ValueError(f"relabel has {len(codes)} codes for {len(known)} classes")
    ascend = all(a < b for a, b in pairwise(codes))
    if not ascend or not 0 <= codes[0] <= codes[-1] < n_classes:
        raise ValueError(f"relabel does not give each class one of {n_classes} codes, in order")
    if not np.array_equal(change.classes[codes], known.astype(change.classes.dtype)):
        raise ValueError("classes does not contain the classes of the model")
    new = np.delete(np.arange(n_classes), codes)
    if len(new) and (change.added is None or not np.isin(new, change.added.y).all()):
        raise ValueError("no added row has the new class")


def _check_rows(added: AddedRows, change: UpdateRequest, saved: Saved) -> None:
    n_features = saved.engine_model.bins.n_features
    if added.X.shape[1] != n_features:
        raise ValueError(f"rows have {added.X.shape[1]} features, but the model has {n_features}")
    if not len(added.ids):
        raise ValueError("it adds no row")
    if np.isinf(added.X.data if is_sparse(added.X) else added.X).any():
        raise ValueError("added_X contains an infinite value")
    if not np.isfinite(added.y).all():
        raise ValueError("added_y contains a missing or infinite target")
    if change.classes is not None and not np.isin(added.y, np.arange(len(change.classes))).all():
        raise ValueError(f"added_y contains an invalid code for {len(change.classes)} classes")
    if added.weight is not None and not (np.isfinite(added.weight) & (added.weight >= 0)).all():
        raise ValueError("added_weight contains an invalid weight")


def _check_attributes(record: Record, attributes: Attributes, n_rows: int) -> None:
    values: Any
    for values in record.attributes.values():
        if not isinstance(values, np.ndarray) or values.dtype not in ("int64", "float64", "object"):
            raise ValueError("an attribute is not a column of numbers or text")
        if values.dtype == object and not all(isinstance(v, str | None) for v in values):
            raise ValueError("an attribute contains a value that is not text")
    if attributes or record.attributes:
        attributes.check(record.attributes, n_rows)

"""The parameter `bin_edges`: edges that the caller supplies instead of fitted ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graftboost.input.columns import Columns
from graftboost.input.table import Table, find_feature

# The engine has 65,536 codes per feature; one is "missing", and n edges make n + 1 bins.
MOST_EDGES = 65_534


def check_bin_edges(bin_edges: Any, table: Table, columns: Columns) -> dict[int, list[float]]:
    """Return the edges of the columns for which the parameter `bin_edges` supplies them."""
    if bin_edges is None:
        return {}
    if isinstance(bin_edges, Mapping):
        given = {find_feature(key, table, "bin_edges"): value for key, value in bin_edges.items()}
    elif len(bin_edges) == table.n_features:
        given = dict(enumerate(bin_edges))
    else:
        raise ValueError(
            f"bin_edges has {len(bin_edges)} entries, but X has {table.n_features} features. Pass "
            "one entry per feature (None to compute the edges), or a dict from feature names or "
            "indices to edges."
        )
    return {
        feature: _check_edges(values, feature, columns)
        for feature, values in given.items()
        if values is not None
    }


def _check_edges(values: Any, feature: int, columns: Columns) -> list[float]:
    name = feature if columns.names is None else repr(columns.names[feature])
    if feature in columns.categories:
        raise ValueError(
            f"bin_edges has edges for feature {name}, which is categorical and has no edges. "
            "Remove them, or exclude the feature from categorical_features."
        )
    try:
        edges = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        edges = np.array(np.nan)
    if edges.ndim != 1 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
        raise ValueError(
            f"bin_edges of feature {name} is {values!r}, but must be finite, strictly increasing "
            "numbers. Sort them and remove duplicates."
        )
    if len(edges) > MOST_EDGES:
        raise ValueError(
            f"bin_edges of feature {name} has {len(edges)} edges, but at most {MOST_EDGES} are "
            "possible. Pass fewer edges."
        )
    return [float(edge) for edge in edges]

"""The engine and the plain Python reference, fitted to the same rows and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from graftboost._engine import EngineModel

from graftboost import reference
from graftboost.reference.split_evaluation import candidates

from .making import CLASSES, Data


def find_features(data: Data, **changes: Any) -> list[reference.Feature]:
    """Features that are cut as `fit_bins` cuts them."""
    binning: dict[str, Any] = {"max_bins": 64, "split_sample": 0.5, "seed": 0, **changes}
    return [
        reference.Feature(n_categories=n)
        if n
        else reference.fit_feature(data.X[:, f].tolist(), f, **binning)
        for f, n in enumerate(data.n_categories)
    ]


def fit_reference(
    data: Data, features: list[reference.Feature], training: dict[str, Any]
) -> reference.Model:
    """The model that `fit_engine_model` fits."""
    return reference.fit(
        data.X.tolist(),
        data.y.tolist(),
        None if data.weight is None else data.weight.tolist(),
        loss=data.loss,
        features=features,
        row_ids=data.ids.tolist(),
        n_classes=CLASSES[data.loss],
        **training,
    )


def update_reference(
    model: reference.Model, added: Data, removed: np.ndarray, rule: reference.UpdateRule
) -> reference.Updated:
    """Add and remove rows."""
    weights = [None] * len(added.ids) if added.weight is None else added.weight.tolist()
    rows = zip(added.ids.tolist(), added.X.tolist(), added.y.tolist(), weights, strict=True)
    return reference.update(model, {i: (x, y, w) for i, x, y, w in rows}, removed.tolist(), rule)


def assert_same_trees(engine_model: EngineModel, model: reference.Model) -> None:
    """Compare every node and every recorded gradient."""
    assert engine_model.base_scores.tolist() == model.base
    assert engine_model.n_trees == len(model.trees)
    for t, tree in enumerate(model.trees):
        expected: dict[str, list[Any]] = {
            "left": [node.left for node in tree.nodes],
            "right": [node.right for node in tree.nodes],
            "parent": [node.parent for node in tree.nodes],
            "leaf": [node.leaf for node in tree.nodes],
            "feature": [node.split.feature for node in tree.nodes],
            "low": [node.split.low for node in tree.nodes],
            "span": [node.split.span for node in tree.nodes],
            "gain": [node.gain for node in tree.nodes],
            "value": [node.value for node in tree.nodes],
            "g": [node.sums.g for node in tree.nodes],
            "h": [node.sums.h for node in tree.nodes],
            "n": [node.sums.n for node in tree.nodes],
            "deferred_n": [node.deferred.n for node in tree.nodes],
            "deferred_recorded": [node.deferred.recorded for node in tree.nodes],
            "deferred_last": [node.deferred.last for node in tree.nodes],
        }
        found = {name: values.tolist() for name, values in engine_model.tree(t).items()}
        assert found == expected
        gradients = dict(
            zip(engine_model.row_ids.tolist(), engine_model.recorded(t).tolist(), strict=True)
        )
        assert {i: gradients[i] for i in model.gradients[t]} == model.gradients[t]


def assert_same_splits(engine_model: EngineModel, model: reference.Model) -> None:
    """Compare the rank of each split with the gains of all candidates, computed one by one."""
    codes = {row_id: row.codes for row_id, row in model.rows.items()}
    for t, tree in enumerate(model.trees):
        found, recorded = engine_model.splits(t), model.recorded(t)
        assert found["node"].tolist() == [i for i, node in enumerate(tree.nodes) if node.left >= 0]
        for s, i in enumerate(found["node"]):
            node = tree.nodes[i]
            left = tree.nodes[node.left].sums
            present = model.settings.gain(node.sums, model.settings.score(node.sums, left))
            worth = [
                (split, model.settings.gain(node.sums, score))
                for score, split in candidates(model.settings, node.rows, codes, recorded)
            ]
            own = [gain for split, gain in worth if split.feature == node.split.feature]
            assert found["gain"][s] == present
            assert found["n_better"][s] == sum(gain > present for _, gain in worth)
            others = (gain for split, gain in worth if split.feature != node.split.feature)
            assert found["other_gain"][s] == max(others, default=-np.inf)
            assert found["next_gain"][s] == max((g for g in own if g != present), default=-np.inf)
            assert (found["left_rows"][s], found["right_rows"][s]) == (
                left.n,
                tree.nodes[node.right].sums.n,
            )

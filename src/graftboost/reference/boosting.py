"""Boosting: train one tree after another, each on the gradients of the trees before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from graftboost.reference.bins import Feature, fit_feature
from graftboost.reference.hashing import dither, fraction
from graftboost.reference.loss import Loss, Sums
from graftboost.reference.split_evaluation import Settings
from graftboost.reference.tree import Tree
from graftboost.reference.tree_grower import grow


@dataclass(frozen=True)
class Row:
    """A row as the model holds it; target and weight are on the loss's grids."""

    codes: list[int]
    target: int
    weight: int


@dataclass
class DeferredRows:
    """The rows that were booked since nodes were last regrown for all of them."""

    n: int = 0
    achieved: int = 0  # change of their losses by booking, in units of memory
    settled: int = 0  # memory that was recovered by regrowing since then


@dataclass
class Model:
    """A trained model."""

    settings: Settings
    subsample: float
    seed: int
    rows: dict[int, Row] = field(default_factory=dict)  # by id
    base: list[float] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    gradients: list[dict[int, int]] = field(default_factory=list)  # per tree, by id
    deferred: DeferredRows = field(default_factory=DeferredRows)

    def encode(self, x: Sequence[float], y: float, weight: float | None) -> Row:
        """A raw row as the model holds it."""
        loss = self.settings.loss
        target = (
            round((y - loss.centre) / loss.scale / 2.0**-24) if loss.kind == "squared" else int(y)
        )
        if weight is None:
            return Row(self.codes(x), target, 1)
        return Row(self.codes(x), target, loss.weight_on_grid(weight))

    def codes(self, x: Sequence[float]) -> list[int]:
        """The codes of a raw row."""
        return [feature.code(v) for feature, v in zip(self.settings.features, x, strict=True)]

    def set_base(self) -> None:
        """Compute the scores before the first tree from the targets of the rows held."""
        rows = list(self.rows.values())
        self.base = self.settings.loss.base_scores(
            [r.target for r in rows], [r.weight for r in rows]
        )

    def scores_before(self, codes: Sequence[int], tree: int) -> list[float]:
        """The scores of a row before a tree: the sum of its leaf values in the earlier trees."""
        scores = list(self.base)
        for t in range(tree):
            scores[t % len(scores)] += self.trees[t].route(codes).value
        return scores

    def scores(self, x: Sequence[float]) -> list[float]:
        """Log odds, or log probabilities up to a constant, or the predicted target."""
        scores = self.scores_before(self.codes(x), len(self.trees))
        loss = self.settings.loss
        return [scores[0] * loss.scale + loss.centre] if loss.kind == "squared" else scores

    def in_bag(self, tree: int, row_id: int) -> bool:
        """Whether a row is in a tree's subsample."""
        return fraction(self.seed, tree, row_id) < self.subsample

    def recorded(self, tree: int) -> dict[int, Sums]:
        """The sums of each row's recorded gradient in a tree."""
        loss = self.settings.loss
        return {
            row_id: loss.row_sums(g, self.rows[row_id].weight)
            for row_id, g in self.gradients[tree].items()
        }

    def variance(self, tree: int) -> float:
        """The variance of what rows recorded in a tree over their mean hessian."""
        loss, rows = self.settings.loss, self.rows
        squares = sum(rows[row_id].weight * g * g for row_id, g in self.gradients[tree].items())
        variance = float(squares) * loss.square_unit
        hessian = float(self.trees[tree].nodes[0].sums.h) * loss.hessian_unit
        return variance / hessian if variance > 0 and hessian > 0 else 1.0

    def mean_weight(self) -> float:
        """The mean weight of the rows."""
        weight = float(sum(row.weight for row in self.rows.values()))
        return weight * self.settings.loss.weight_unit / float(len(self.rows))

    def fresh_gradient(self, tree: int, row_id: int) -> int:
        """The gradient of a row in a tree, from its scores before the tree's iteration."""
        n_scores = self.settings.loss.n_scores
        row = self.rows[row_id]
        scores = self.scores_before(row.codes, tree - tree % n_scores)
        return self.gradients_of(row_id, scores, tree - tree % n_scores)[tree % n_scores]

    def gradients_of(self, row_id: int, scores: Sequence[float], first_tree: int) -> list[int]:
        """The gradients that a row records in the trees of an iteration."""
        dithers = [dither(self.seed, first_tree + k, row_id) for k in range(len(scores))]
        return self.settings.loss.gradients(self.rows[row_id].target, scores, dithers)


def fit(
    X: Sequence[Sequence[float]],
    y: Sequence[float],
    sample_weight: Sequence[float] | None = None,
    *,
    loss: str,
    features: Sequence[Feature] | None = None,
    row_ids: Sequence[int] | None = None,
    n_classes: int = 2,
    n_estimators: int = 100,
    learning_rate: float = 0.1,
    max_leaf_nodes: int = 31,
    min_samples_leaf: int = 20,
    min_hessian: float = 0.1,
    l2_regularization: float = 0.0,
    subsample: float = 1.0,
    seed: int = 0,
) -> Model:
    """Train on raw rows. Classes and categories are numbers from 0 on."""
    if features is None:
        columns = zip(*X, strict=True)
        features = [
            fit_feature(list(c), f, seed=seed, rare_below=min_samples_leaf)
            for f, c in enumerate(columns)
        ]
    made = _make_loss(loss, 1 if loss == "squared" else n_classes, y, sample_weight)
    settings = Settings(
        tuple(features),
        made,
        max_leaf_nodes,
        min_samples_leaf,
        min_hessian,
        learning_rate,
        l2_regularization / made.weight_scale,
    )
    model = Model(settings, subsample, seed)
    weights: Sequence[float | None] = [None] * len(X) if sample_weight is None else sample_weight
    ids = range(len(X)) if row_ids is None else row_ids
    for row_id, x, target, weight in zip(ids, X, y, weights, strict=True):
        model.rows[row_id] = model.encode(x, target, weight)
    model.set_base()
    codes = {row_id: row.codes for row_id, row in model.rows.items()}
    scores = {row_id: list(model.base) for row_id in model.rows}
    for _ in range(n_estimators):
        gradients = {
            row_id: model.gradients_of(row_id, scores[row_id], len(model.trees))
            for row_id in model.rows
        }
        for k in range(settings.loss.n_scores):
            t = len(model.trees)
            bag = [row_id for row_id in model.rows if model.in_bag(t, row_id)]
            model.gradients.append({row_id: gradients[row_id][k] for row_id in bag})
            tree = grow(model.settings, bag, codes, model.recorded(t), max_leaf_nodes)
            model.trees.append(tree)
            for row_id in model.rows:
                scores[row_id][k] += tree.route(codes[row_id]).value
    return model


def _make_loss(
    kind: str, n_classes: int, y: Sequence[float], sample_weight: Sequence[float] | None
) -> Loss:
    """Make the loss. Its scales are powers of two that depend only on the extremes of y."""
    centre, scale = 0.0, 1.0
    if kind == "squared":
        centre = min(y) / 2 + max(y) / 2
        extent = max(y) / 2 - min(y) / 2
        scale = _power_of_two_above((extent or abs(centre) or 1.0) / 4)
    loss = Loss(kind, n_classes, centre, scale)
    return loss if sample_weight is None else _with_weights(loss, sample_weight)


def _with_weights(loss: Loss, sample_weight: Sequence[float]) -> Loss:
    """Set the scale and the unit of weights, and the typical weight.

    The unit is as fine as 64-bit sums allow, but at least 2^-20 or 2^-24 of the largest weight. The
    scale is the largest power of two up to the median weight.
    """
    top = _power_of_two_below(max(sample_weight))
    total = sum(round(math.ldexp(w / top, 40)) for w in sample_weight)
    room, most = (34, 20) if loss.kind == "squared" else (42, 24)
    bits = min(max(room + 40 - (total - 1).bit_length(), 0), most)
    units = sorted(max(1, round(math.ldexp(w / top, bits))) for w in sample_weight if w != 0)
    typical = units[(len(units) - 1) // 2]
    scale = max(math.ldexp(top, typical.bit_length() - 1 - bits), math.ulp(0.0))
    unit = math.ldexp(top / scale, -bits)
    return replace(
        loss,
        weighted=True,
        weight_scale=scale,
        weight_unit=unit,
        typical_weight=float(typical) * unit,
    )


def _power_of_two_below(x: float) -> float:
    return math.ldexp(1.0, math.frexp(x)[1] - 1)


def _power_of_two_above(x: float) -> float:
    mantissa, exponent = math.frexp(x)
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)

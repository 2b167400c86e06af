"""The algorithm of the engine in plain Python: to be read, stepped through, and tested against.

It is slow on purpose. Nothing here is vectorised, threaded or cached; every sum is taken over the
rows it is about. The C++ engine gives the same trees from the same rows, bit for bit, because both
add up integers and round floating-point numbers in the same places.

The order of reading is the order of training: `fit_feature` cuts a column into intervals, a `Loss`
says what a row records in a tree, `best_split` looks for the best candidate of a node, `grow` grows
a tree best-first, and `fit` boosts.

Examples
--------
>>> from graftboost.reference import fit
>>> rows = [[float(i), float(i % 3)] for i in range(60)]
>>> model = fit(rows, [i % 3 == 1 for i in range(60)], loss="logistic", n_estimators=3)
>>> model.trees[0].nodes[0].test
Test(feature=1, low=1, span=0)
>>> round(model.scores([7.0, 1.0])[0], 3)
0.071
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

__all__ = ["Feature", "Loss", "Model", "Node", "Sums", "Test", "Tree", "fit", "fit_feature"]

LEAF_GRID = 2.0**-32
LARGEST_LEAF_VALUE = 2.0**15
LEAST_GAIN = 1e-9
MISSING = 0
NEVER = -math.inf


# ----------------------------------------------------------------------------------------------
# Chance: a hash of (seed, what for, which one), never a stream.


def _mix(x: int) -> int:
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def fraction(seed: int, a: int, b: int) -> float:
    """A number in [0, 1) that depends on its arguments alone."""
    mask = 2**64 - 1
    hashed = _mix((_mix((_mix(seed & mask) + a) & mask) + b) & mask)
    return (hashed >> 11) * 2.0**-53


# ----------------------------------------------------------------------------------------------
# Bins: from values to codes.


@dataclass(frozen=True)
class Feature:
    """Codes of one column: 0 is missing, then intervals (numeric) or categories."""

    edges: tuple[float, ...] = ()
    n_categories: int = 0

    @property
    def n_codes(self) -> int:
        """Codes run from 0 to this, exclusive; the last of a categorical feature is "unseen"."""
        return self.n_categories + 2 if self.n_categories else len(self.edges) + 2

    def code(self, value: float) -> int:
        """The code of a value; one at or below an edge lies left of it."""
        if math.isnan(value):
            return MISSING
        if self.n_categories:
            return int(value) + 1 if 0 <= value < self.n_categories else self.n_categories + 1
        return 1 + bisect_left(self.edges, value)


def fit_feature(
    column: Sequence[float],
    index: int = 0,
    *,
    max_bins: int = 1024,
    split_sample: float = 0.1,
    width: bool = False,
    seed: int = 0,
) -> Feature:
    """Cut a numeric column (small enough to be looked at whole) into intervals."""
    ordered = sorted(v + 0.0 for v in column if not math.isnan(v))
    values = sorted(set(ordered))
    cut = _width_boundaries if width else _quantile_boundaries
    boundaries = cut(ordered, values, max_bins)
    limit = math.ceil(split_sample * max_bins)
    if len(boundaries) > limit:
        spacing = len(boundaries) / limit
        first = fraction(seed, index, 0) * spacing
        last = len(boundaries) - 1
        boundaries = [boundaries[min(int(first + k * spacing), last)] for k in range(limit)]
    return Feature(tuple(edge_between(values[b], values[b + 1]) for b in boundaries))


def _quantile_boundaries(ordered: list[float], values: list[float], max_bins: int) -> list[int]:
    """Boundary b lies between values[b] and values[b + 1]."""
    if len(values) <= max_bins:
        return list(range(len(values) - 1))
    chosen: list[int] = []
    for k in range(1, max_bins):
        rank = k * len(ordered) // max_bins
        # The first boundary with at least `rank` rows on its left.
        b = max(0, bisect_left(values, ordered[rank - 1])) if rank else 0
        if b + 1 >= len(values):
            break
        if not chosen or chosen[-1] != b:
            chosen.append(b)
    return chosen


def _width_boundaries(ordered: list[float], values: list[float], max_bins: int) -> list[int]:
    """Algorithm 4 of the paper: the width doubles until the bins are few enough."""
    width = 1e-10
    while values:
        chosen: list[int] = []
        start = 0
        while (start := bisect_right(values, values[start] + width)) < len(values):
            chosen.append(start - 1)
        if len(chosen) < max_bins:
            return chosen
        width *= 2
    return []


def edge_between(low: float, high: float) -> float:
    """The shortest decimal in the middle half of (low, high); low if they are neighbours."""
    middle, quarter = low / 2 + high / 2, high / 4 - low / 4
    if not low < middle < high:
        return low
    for digits in range(17):
        edge = float(f"{middle:.{digits}e}")
        if low + quarter <= edge <= high - quarter:
            return edge
    return middle


# ----------------------------------------------------------------------------------------------
# Losses: what a row records, what a leaf says.


class Sums(NamedTuple):
    """Integer sums over a set of rows."""

    g: int = 0
    h: int = 0
    n: int = 0

    def plus(self, other: Sums) -> Sums:
        """Sums over both sets of rows."""
        return Sums(self.g + other.g, self.h + other.h, self.n + other.n)

    def minus(self, other: Sums) -> Sums:
        """Sums over the rows of one set that are not in the other."""
        return Sums(self.g - other.g, self.h - other.h, self.n - other.n)


@dataclass(frozen=True)
class Loss:
    """Logistic, softmax or squared error, on fixed grids."""

    kind: str
    n_classes: int
    centre: float = 0.0
    scale: float = 1.0
    weight_unit: float = 1.0
    least_hessian: float = 0.1

    @property
    def n_scores(self) -> int:
        """Trees an iteration."""
        return self.n_classes if self.kind == "softmax" else 1

    @property
    def gradient_unit(self) -> float:
        """What one unit of a sum of g is worth."""
        return self.weight_unit * (2.0**-24 if self.kind == "squared" else 2.0**-20)

    @property
    def hessian_unit(self) -> float:
        """What one unit of a sum of h is worth."""
        return self.weight_unit * (2.0**-18 if self.kind == "squared" else 2.0**-20)

    def gradients(self, target: int, scores: Sequence[float]) -> list[int]:
        """What a row records, one number per tree of an iteration."""
        if self.kind == "squared":
            return [_clamp(round(scores[0] / 2.0**-24) - target, 2**31 - 1)]
        if self.kind == "logistic":
            chances, hits = [1.0 / (1.0 + math.exp(-scores[0]))], [target == 1]
        else:
            top = max(scores)
            parts = [math.exp(s - top) for s in scores]
            total = 0.0
            for part in parts:
                total += part
            chances = [part / total for part in parts]
            hits = [target == k for k in range(self.n_classes)]
        return [
            _clamp(round((p - (1.0 if hit else 0.0)) * 2.0**20), 2**20 - 1)
            for p, hit in zip(chances, hits, strict=True)
        ]

    def contribution(self, gradient: int, weight: int) -> Sums:
        """What a row with this recorded gradient puts into a tree's sums."""
        if self.kind == "squared":
            hessian = 2**18
        else:
            size = abs(gradient)
            hessian = (size * (2**20 - size) + 2**19) >> 20
        return Sums(gradient * weight, hessian * weight, int(weight != 0))

    def leaf_value(self, sums: Sums, learning_rate: float, l2: float) -> float:
        """A Newton step, capped and shrunk; a function of the sums alone."""
        g = float(sums.g) * self.gradient_unit
        h = float(sums.h) * self.hessian_unit + l2
        factor = (self.n_classes - 1.0) / self.n_classes if self.kind == "softmax" else 1.0
        limit = math.inf if self.kind == "squared" else 4.0
        step = max(-limit, min(limit, -(g / h))) if h > 0 else 0.0
        return on_leaf_grid(step * (learning_rate * factor))

    def base_scores(self, targets: Sequence[int], weights: Sequence[int]) -> list[float]:
        """Scores before the first tree."""
        if self.kind == "squared":
            total = sum(t * w for t, w in zip(targets, weights, strict=True))
            return [on_leaf_grid(float(total) / float(sum(weights)) * 2.0**-24)]
        counts = [0] * self.n_classes
        for target, weight in zip(targets, weights, strict=True):
            counts[target] += weight
        shares = [max(float(count), 0.5) for count in counts]
        if self.kind == "logistic":
            return [on_leaf_grid(math.log(shares[1] / shares[0]))]
        return [on_leaf_grid(math.log(share / math.fsum(shares))) for share in shares]


def _clamp(value: int, limit: int) -> int:
    return max(-limit, min(limit, value))


def on_leaf_grid(value: float) -> float:
    """The nearest multiple of 2^-32: sums of such numbers are exact."""
    value = max(-LARGEST_LEAF_VALUE, min(LARGEST_LEAF_VALUE, value))
    return round(value / LEAF_GRID) * LEAF_GRID


def _power_of_two_above(x: float) -> float:
    mantissa, exponent = math.frexp(x)
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)


# ----------------------------------------------------------------------------------------------
# Trees.


class Test(NamedTuple):
    """A code goes left if (code - low) modulo 2^16 is at most span."""

    feature: int
    low: int
    span: int

    def left(self, codes: Sequence[int]) -> bool:
        """Whether a row with these codes goes left."""
        return (codes[self.feature] - self.low) % 2**16 <= self.span


NO_TEST = Test(0, 0, 0)


@dataclass
class Node:
    """A split with its test, or a leaf with the best test that it did not get to use."""

    rows: list[int]
    sums: Sums
    parent: int = -1
    leaf: int = -1
    left: int = -1
    right: int = -1
    gain: float = NEVER
    test: Test = NO_TEST
    value: float = 0.0


@dataclass
class Tree:
    """Nodes in the order of growth; split s made nodes 2s + 1 and 2s + 2."""

    nodes: list[Node] = field(default_factory=list)

    def route(self, codes: Sequence[int]) -> Node:
        """The leaf that a row with these codes reaches."""
        node = self.nodes[0]
        while node.left >= 0:
            node = self.nodes[node.left if node.test.left(codes) else node.right]
        return node


@dataclass(frozen=True)
class Settings:
    """What growth depends on besides the rows."""

    features: tuple[Feature, ...]
    loss: Loss
    max_leaf_nodes: int
    min_samples_leaf: int
    learning_rate: float
    l2: float


def best_split(settings: Settings, histograms: list[list[Sums]], node: Sums) -> tuple[float, Test]:
    """The candidate with the largest gain (the paper's Eq. 5); among equals the first."""
    loss, l2 = settings.loss, settings.l2
    g = float(node.g) * loss.gradient_unit
    h = float(node.h) * loss.hessian_unit
    best_score, best = NEVER, NO_TEST
    for index, (feature, cells) in enumerate(zip(settings.features, histograms, strict=True)):
        for left, test in _candidates(index, feature, cells, node):
            if min(left.n, node.n - left.n) < settings.min_samples_leaf:
                continue
            left_g = float(left.g) * loss.gradient_unit
            left_h = float(left.h) * loss.hessian_unit
            right_g, right_h = g - left_g, h - left_h
            if min(left_h, right_h) < loss.least_hessian:
                continue
            score = left_g * left_g / (left_h + l2) + right_g * right_g / (right_h + l2)
            if score > best_score:
                best_score, best = score, test
    return (best_score - g * g / (h + l2) if best_score > NEVER else NEVER), best


def _candidates(
    index: int, feature: Feature, cells: list[Sums], node: Sums
) -> list[tuple[Sums, Test]]:
    """Sums on the left of each candidate of a feature, and its test."""
    if feature.n_categories:
        return [(cells[code], Test(index, code, 0)) for code in range(feature.n_codes)]
    missing = cells[MISSING]
    last = feature.n_codes - 1
    found = []
    below = Sums()
    for code in range(1, last + 1):
        below = below.plus(cells[code])
        right, left = Test(index, 1, code - 1), Test(index, 0, code)  # where missing rows go
        if not missing.n and code < last:
            found.append((below, left if 2 * below.n >= node.n else right))
        elif missing.n:
            found.append((below, right))
            if code < last:
                found.append((below.plus(missing), left))
    return found


def grow(
    settings: Settings, codes: Sequence[Sequence[int]], rows: list[int], recorded: list[Sums]
) -> Tree:
    """Grow one tree best-first from `rows`, which recorded `recorded` (indexed by row)."""

    def new_node(rows: list[int], parent: int, leaf: int) -> Node:
        histograms = [[Sums()] * feature.n_codes for feature in settings.features]
        sums = Sums()
        for row in rows:
            sums = sums.plus(recorded[row])
            for cells, code in zip(histograms, codes[row], strict=True):
                cells[code] = cells[code].plus(recorded[row])
        node = Node(rows, sums, parent, leaf)
        if sums.n >= 2 * settings.min_samples_leaf:
            node.gain, node.test = best_split(settings, histograms, sums)
        node.value = settings.loss.leaf_value(sums, settings.learning_rate, settings.l2)
        return node

    tree = Tree([new_node(rows, -1, 0)])
    for n_leaves in range(1, settings.max_leaf_nodes):
        leaves = [i for i, node in enumerate(tree.nodes) if node.left < 0]
        index = max(leaves, key=lambda i: tree.nodes[i].gain)
        split = tree.nodes[index]
        if not split.gain > LEAST_GAIN:
            break
        sides: tuple[list[int], list[int]] = ([], [])
        for row in split.rows:
            sides[not split.test.left(codes[row])].append(row)
        split.left, split.right = len(tree.nodes), len(tree.nodes) + 1
        tree.nodes.append(new_node(sides[0], index, split.leaf))
        tree.nodes.append(new_node(sides[1], index, n_leaves))
        split.leaf = -1
    return tree


# ----------------------------------------------------------------------------------------------
# Boosting.


@dataclass
class Model:
    """What `fit` returns."""

    features: tuple[Feature, ...]
    loss: Loss
    base: list[float]
    trees: list[Tree]

    def codes(self, row: Sequence[float]) -> list[int]:
        """The codes of a raw row."""
        return [feature.code(v) for feature, v in zip(self.features, row, strict=True)]

    def scores(self, row: Sequence[float]) -> list[float]:
        """Log odds, or log chances up to a constant, or the target's estimate."""
        codes = self.codes(row)
        scores = list(self.base)
        for t, tree in enumerate(self.trees):
            scores[t % len(scores)] += tree.route(codes).value
        if self.loss.kind == "squared":
            return [scores[0] * self.loss.scale + self.loss.centre]
        return scores


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
    l2_regularization: float = 0.0,
    subsample: float = 1.0,
    seed: int = 0,
) -> Model:
    """Train on raw rows; classes are numbered from 0, categories too (`features` says which)."""
    ids = list(range(len(X))) if row_ids is None else list(row_ids)
    if features is None:
        columns = zip(*X, strict=True)
        features = [fit_feature(list(c), f, seed=seed) for f, c in enumerate(columns)]
    the_loss = _make_loss(loss, 1 if loss == "squared" else n_classes, y, sample_weight)
    targets = [_target(the_loss, value) for value in y]
    weights = [1] * len(X)
    if sample_weight is not None:
        unit = the_loss.weight_unit
        weights = [0 if w == 0 else max(1, round(w / unit)) for w in sample_weight]
        mean = float(sum(weights)) / float(max(1, sum(w != 0 for w in weights))) * unit
        the_loss = replace(the_loss, least_hessian=the_loss.least_hessian * min(1.0, mean))
    settings = Settings(
        tuple(features),
        the_loss,
        max_leaf_nodes,
        min_samples_leaf,
        learning_rate,
        l2_regularization,
    )
    model = Model(tuple(features), the_loss, the_loss.base_scores(targets, weights), [])
    codes = [model.codes(row) for row in X]
    scores = [list(model.base) for _ in X]
    for _ in range(n_estimators):
        gradients = [the_loss.gradients(t, s) for t, s in zip(targets, scores, strict=True)]
        for k in range(the_loss.n_scores):
            t = len(model.trees)
            bag = [r for r in range(len(X)) if fraction(seed, t, ids[r]) < subsample]
            recorded = [
                the_loss.contribution(g[k], w) for g, w in zip(gradients, weights, strict=True)
            ]
            tree = grow(settings, codes, bag, recorded)
            model.trees.append(tree)
            for r, row in enumerate(codes):
                scores[r][k] += tree.route(row).value
    return model


def _make_loss(
    kind: str, n_classes: int, y: Sequence[float], sample_weight: Sequence[float] | None
) -> Loss:
    """Scales are powers of two, set once: they depend on the extremes, not on the order of rows."""
    centre, scale, unit = 0.0, 1.0, 1.0
    if kind == "squared":
        centre = min(y) / 2 + max(y) / 2
        extent = max(y) / 2 - min(y) / 2
        scale = _power_of_two_above((extent or abs(centre) or 1.0) / 4)
    if sample_weight is not None:
        room, most = (34, 20) if kind == "squared" else (40, 24)
        bits = min(max(room - math.ceil(math.log2(len(sample_weight) + 1)), 8), most)
        unit = math.ldexp(_power_of_two_above(max(sample_weight)), -bits)
    return Loss(kind, n_classes, centre, scale, unit)


def _target(loss: Loss, value: float) -> int:
    return (
        round((value - loss.centre) / loss.scale / 2.0**-24)
        if loss.kind == "squared"
        else int(value)
    )

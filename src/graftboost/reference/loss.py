"""Losses: the gradient that a row records, and the value of a leaf."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEAF_GRID = 2.0**-32
LARGEST_LEAF_VALUE = 2.0**15


class Sums(NamedTuple):
    """Integer sums of gradients, hessians and row counts over a set of rows."""

    g: int = 0
    h: int = 0
    n: int = 0

    def plus(self, other: Sums) -> Sums:
        """The sums over both sets of rows."""
        return Sums(self.g + other.g, self.h + other.h, self.n + other.n)

    def minus(self, other: Sums) -> Sums:
        """The sums over this set without the rows of another."""
        return Sums(self.g - other.g, self.h - other.h, self.n - other.n)


NO_SUMS = Sums()


@dataclass(frozen=True)
class Loss:
    """Logistic, softmax or squared error, on fixed grids."""

    kind: str
    n_classes: int
    centre: float = 0.0
    scale: float = 1.0
    weighted: bool = False
    weight_scale: float = 1.0  # weight = weight_scale * weight_unit * (integer weight)
    weight_unit: float = 1.0
    typical_weight: float = 1.0  # the median at fit, in units of weight_scale

    @property
    def n_scores(self) -> int:
        """The number of trees per iteration."""
        return self.n_classes if self.kind == "softmax" else 1

    @property
    def gradient_unit(self) -> float:
        """The value of one unit of g."""
        squared = 2.0**-20 if self.weighted else 2.0**-24
        return self.weight_unit * (squared if self.kind == "squared" else 2.0**-15)

    @property
    def hessian_unit(self) -> float:
        """The value of one unit of h."""
        return self.weight_unit * (2.0**-18 if self.kind == "squared" else 2.0**-20)

    @property
    def square_unit(self) -> float:
        """The value of one unit of a sum of squared gradients."""
        return self.weight_unit * (2.0**-48 if self.kind == "squared" else 2.0**-30)

    def least_hessian(self, min_hessian: float) -> float:
        """The hessian that each child of a split needs: at least one unit."""
        return max(min_hessian * self.typical_weight, self.hessian_unit)

    @property
    def least_gain(self) -> float:
        """The gain that a split must exceed; smaller ones are rounding errors."""
        return (1e-9 if self.kind == "squared" else 1e-6) * self.typical_weight

    @property
    def slope_grid(self) -> float:
        """The grid on which slopes are added up where integers are needed."""
        return 2.0**-24 if self.kind == "squared" else 2.0**-20

    def of_row(self, target: int, scores: Sequence[float]) -> float:
        """The loss of a row."""
        if self.kind == "squared":
            residual = scores[0] - target * 2.0**-24
            return residual * residual / 2
        if self.kind == "logistic":
            margin = scores[0] if target == 1 else -scores[0]
            if margin > 0:
                return math.log1p(math.exp(-margin))
            return math.log1p(math.exp(margin)) - margin
        top = max(scores)
        total = 0.0
        for score in scores:
            total += math.exp(score - top)
        return math.log(total) + top - scores[target]

    def gradients(
        self, target: int, scores: Sequence[float], dithers: Sequence[float]
    ) -> list[int]:
        """The gradients that a row records, one for each tree of an iteration.

        Those of classes are rounded to two bytes, with a dither for each tree.
        """
        if self.kind == "squared":
            return [_squared_gradient(target, scores[0])]
        return [
            _clamp(round(slope * 2.0**15 + dither), 2**15 - 1)
            for slope, dither in zip(self.slopes(target, scores), dithers, strict=True)
        ]

    def slopes(self, target: int, scores: Sequence[float]) -> list[float]:
        """The derivatives of a row's loss by its scores: what gradients are before rounding."""
        if self.kind == "squared":
            return [_squared_gradient(target, scores[0]) * 2.0**-24]
        if self.kind == "logistic":
            probabilities, hits = [1.0 / (1.0 + math.exp(-scores[0]))], [target == 1]
        else:
            top = max(scores)
            parts = [math.exp(s - top) for s in scores]
            total = 0.0
            for part in parts:
                total += part
            probabilities = [part / total for part in parts]
            hits = [target == k for k in range(self.n_classes)]
        return [p - (1.0 if hit else 0.0) for p, hit in zip(probabilities, hits, strict=True)]

    def row_sums(self, gradient: int, weight: int) -> Sums:
        """The sums of a single row with this recorded gradient."""
        weighted_gradient = gradient * weight
        if self.kind == "squared":
            hessian = 2**18
            if self.weighted:  # four bits fewer, so that the sums fit into 64 bits
                weighted_gradient = (weighted_gradient + 8) >> 4
        else:
            size = abs(gradient)
            hessian = (size * (2**15 - size)) >> 10  # |g| (1 - |g|) on a grid of 2^-20
        return Sums(weighted_gradient, hessian * weight, int(weight != 0))

    def leaf_value(self, sums: Sums, learning_rate: float, l2: float) -> float:
        """A capped Newton step times the learning rate; a function of the sums alone.

        `l2` is in units of the weight scale, like the sums.
        """
        g = float(sums.g) * self.gradient_unit
        h = float(sums.h) * self.hessian_unit + l2
        factor = (self.n_classes - 1.0) / self.n_classes if self.kind == "softmax" else 1.0
        limit = math.inf if self.kind == "squared" else 4.0
        step = max(-limit, min(limit, -(g / h))) if h > 0 else 0.0
        return on_leaf_grid(step * (learning_rate * factor))

    def weight_on_grid(self, weight: float) -> int:
        """The stored weight of a row: at least one unit, unless the weight is 0."""
        if weight == 0:
            return 0
        return max(1, round(weight / self.weight_scale / self.weight_unit))

    def base_scores(self, targets: Sequence[int], weights: Sequence[int]) -> list[float]:
        """The scores before the first tree."""
        if self.kind == "squared":
            total = sum(t * w for t, w in zip(targets, weights, strict=True))
            return [on_leaf_grid(float(total) / float(sum(weights)) * 2.0**-24)]
        counts = [0] * self.n_classes
        for target, weight in zip(targets, weights, strict=True):
            counts[target] += weight
        # A class without rows counts half a row, and one without weight a fraction of a typical
        # weight, less than any positive weight.
        least = 2.0**-25 * self.typical_weight / self.weight_unit if self.weighted else 0.5
        shares = [max(float(count), least) for count in counts]
        if self.kind == "logistic":
            return [on_leaf_grid(math.log(shares[1] / shares[0]))]
        return [on_leaf_grid(math.log(share / math.fsum(shares))) for share in shares]


def _squared_gradient(target: int, score: float) -> int:
    return _clamp(round(score / 2.0**-24) - target, 2**30)


def _clamp(value: int, limit: int) -> int:
    return max(-limit, min(limit, value))


def on_leaf_grid(value: float) -> float:
    """The nearest multiple of 2^-32, so that sums of leaf values are exact."""
    value = max(-LARGEST_LEAF_VALUE, min(LARGEST_LEAF_VALUE, value))
    return round(value / LEAF_GRID) * LEAF_GRID

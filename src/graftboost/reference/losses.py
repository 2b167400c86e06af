"""Losses: what a row records, what a leaf says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

LEAF_GRID = 2.0**-32
LARGEST_LEAF_VALUE = 2.0**15


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
    weighted: bool = False
    weight_scale: float = 1.0  # weight = weight_scale * weight_unit * (integer weight)
    weight_unit: float = 1.0
    least_hessian: float = 0.1

    @property
    def n_scores(self) -> int:
        """Trees an iteration."""
        return self.n_classes if self.kind == "softmax" else 1

    @property
    def gradient_unit(self) -> float:
        """What one unit of a sum of g is worth."""
        squared = 2.0**-20 if self.weighted else 2.0**-24
        return self.weight_unit * (squared if self.kind == "squared" else 2.0**-20)

    @property
    def hessian_unit(self) -> float:
        """What one unit of a sum of h is worth."""
        return self.weight_unit * (2.0**-18 if self.kind == "squared" else 2.0**-20)

    def gradients(self, target: int, scores: Sequence[float]) -> list[int]:
        """What a row records, one number per tree of an iteration."""
        if self.kind == "squared":
            return [_clamp(round(scores[0] / 2.0**-24) - target, 2**30)]
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
        weighted_gradient = gradient * weight
        if self.kind == "squared":
            hessian = 2**18
            if self.weighted:  # four bits less, so that sums of them fit into 64
                weighted_gradient = (weighted_gradient + 8) >> 4
        else:
            size = abs(gradient)
            hessian = (size * (2**20 - size) + 2**19) >> 20
        return Sums(weighted_gradient, hessian * weight, int(weight != 0))

    def leaf_value(self, sums: Sums, learning_rate: float, l2: float) -> float:
        """A Newton step, capped and shrunk; a function of the sums alone.

        `l2` is in units of the weight scale, as sums are.
        """
        g = float(sums.g) * self.gradient_unit
        h = float(sums.h) * self.hessian_unit + l2
        factor = (self.n_classes - 1.0) / self.n_classes if self.kind == "softmax" else 1.0
        limit = math.inf if self.kind == "squared" else 4.0
        step = max(-limit, min(limit, -(g / h))) if h > 0 else 0.0
        return on_leaf_grid(step * (learning_rate * factor))

    def weight_on_grid(self, weight: float) -> int:
        """What is stored of a row's weight: at least one unit, unless it is 0."""
        if weight == 0:
            return 0
        return max(1, round(weight / self.weight_scale / self.weight_unit))

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

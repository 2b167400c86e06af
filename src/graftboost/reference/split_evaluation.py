"""Split evaluation: the histogram of a node, and the gains of its candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graftboost.reference.bins import MISSING, Feature
from graftboost.reference.loss import Loss, Sums
from graftboost.reference.tree import NEVER, NO_SPLIT, Split


@dataclass(frozen=True)
class Settings:
    """Everything that tree growing depends on except the rows."""

    features: tuple[Feature, ...]
    loss: Loss
    max_leaf_nodes: int
    min_samples_leaf: int
    min_hessian: float
    learning_rate: float
    l2: float

    def may_split(self, sums: Sums) -> bool:
        """Whether a node has enough rows for two leaves."""
        return sums.n >= 2 * self.min_samples_leaf

    def score(self, node: Sums, left: Sums) -> float:
        """The score of a candidate, or NEVER if a child has too few rows or too small a hessian."""
        if min(left.n, node.n - left.n) < self.min_samples_leaf:
            return NEVER
        left_g = float(left.g) * self.loss.gradient_unit
        left_h = float(left.h) * self.loss.hessian_unit
        right_g = float(node.g) * self.loss.gradient_unit - left_g
        right_h = float(node.h) * self.loss.hessian_unit - left_h
        if min(left_h, right_h) < self.loss.least_hessian(self.min_hessian):
            return NEVER
        return left_g * left_g / (left_h + self.l2) + right_g * right_g / (right_h + self.l2)

    def gain(self, node: Sums, score: float) -> float:
        """The paper's Eq. 5: the score of a candidate minus the score of the unsplit node."""
        g = float(node.g) * self.loss.gradient_unit
        h = float(node.h) * self.loss.hessian_unit
        return score - g * g / (h + self.l2) if score > NEVER else NEVER

    def leaf_value(self, sums: Sums) -> float:
        """The value of a leaf with these sums."""
        return self.loss.leaf_value(sums, self.learning_rate, self.l2)


# By row id: the codes of a row, and the sums of its recorded gradient in one tree.
Codes = Mapping[int, Sequence[int]]
Recorded = Mapping[int, Sums]


def sums_over(rows: Iterable[int], recorded: Recorded) -> Sums:
    """The sums over some rows."""
    total = Sums()
    for row in rows:
        total = total.plus(recorded[row])
    return total


def histogram(
    index: int, feature: Feature, rows: Sequence[int], codes: Codes, recorded: Recorded
) -> list[Sums]:
    """The sums of a node's rows for each code of a feature."""
    sums = [Sums()] * feature.n_codes
    for row in rows:
        code = codes[row][index]
        sums[code] = sums[code].plus(recorded[row])
    return sums


def candidates(
    settings: Settings, rows: Sequence[int], codes: Codes, recorded: Recorded
) -> list[tuple[float, Split]]:
    """The score and split of every candidate of a node with these rows, feature by feature."""
    node = sums_over(rows, recorded)
    found = []
    for index, feature in enumerate(settings.features):
        sums = histogram(index, feature, rows, codes, recorded)
        for left, split in _left_sums(index, feature, sums, node):
            found.append((settings.score(node, left), split))
    return found


def _left_sums(
    index: int, feature: Feature, sums: list[Sums], node: Sums
) -> list[tuple[Sums, Split]]:
    """The sums of the left child for each candidate of a feature, and its split."""
    if feature.n_categories:
        return [(sums[code], Split(index, code, 0)) for code in range(feature.n_codes)]
    missing = sums[MISSING]
    last = feature.n_codes - 1
    found = []
    below = Sums()
    for code in range(1, last + 1):
        below = below.plus(sums[code])
        right, left = Split(index, 1, code - 1), Split(index, 0, code)  # where missing rows go
        if not missing.n and code < last:
            found.append((below, left if 2 * below.n >= node.n else right))
        elif missing.n:
            found.append((below, right))
            if code < last:
                found.append((below.plus(missing), left))
    return found


def best_split(
    settings: Settings, rows: Sequence[int], codes: Codes, recorded: Recorded
) -> tuple[float, Split]:
    """The gain and split of the best candidate; the first of several equal ones."""
    node = sums_over(rows, recorded)
    best_score, best = NEVER, NO_SPLIT
    if settings.may_split(node):
        for score, split in candidates(settings, rows, codes, recorded):
            if score > best_score:
                best_score, best = score, split
    return settings.gain(node, best_score), best

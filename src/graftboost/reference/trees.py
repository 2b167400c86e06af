"""Trees, and how one is grown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graftboost.reference.bins import MISSING, Feature
from graftboost.reference.losses import Loss, Sums

LEAST_GAIN = 1e-9
NEVER = -math.inf


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
    """Nodes, parents before children; as grown, split s made nodes 2s + 1 and 2s + 2."""

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

    def may_split(self, sums: Sums) -> bool:
        """Whether a node has rows enough for two leaves."""
        return sums.n >= 2 * self.min_samples_leaf

    def score(self, node: Sums, left: Sums) -> float:
        """What a candidate makes of a node, or NEVER if it leaves a side too little."""
        if min(left.n, node.n - left.n) < self.min_samples_leaf:
            return NEVER
        left_g = float(left.g) * self.loss.gradient_unit
        left_h = float(left.h) * self.loss.hessian_unit
        right_g = float(node.g) * self.loss.gradient_unit - left_g
        right_h = float(node.h) * self.loss.hessian_unit - left_h
        if min(left_h, right_h) < self.loss.least_hessian:
            return NEVER
        return left_g * left_g / (left_h + self.l2) + right_g * right_g / (right_h + self.l2)

    def gain(self, node: Sums, score: float) -> float:
        """The paper's Eq. 5: what a candidate makes of a node, less what the node is already."""
        g = float(node.g) * self.loss.gradient_unit
        h = float(node.h) * self.loss.hessian_unit
        return score - g * g / (h + self.l2) if score > NEVER else NEVER

    def leaf_value(self, sums: Sums) -> float:
        """What a leaf with these sums adds to a score."""
        return self.loss.leaf_value(sums, self.learning_rate, self.l2)


# Rows are known by their ids; these say what a tree needs of each.
Codes = Mapping[int, Sequence[int]]
Recorded = Mapping[int, Sums]


def sums_over(rows: Iterable[int], recorded: Recorded) -> Sums:
    """Sums of what rows recorded."""
    total = Sums()
    for row in rows:
        total = total.plus(recorded[row])
    return total


def candidates(
    settings: Settings, rows: Sequence[int], codes: Codes, recorded: Recorded
) -> list[tuple[float, Test]]:
    """Score and test of every candidate of a node with these rows, feature by feature."""
    node = sums_over(rows, recorded)
    found = []
    for index, feature in enumerate(settings.features):
        cells = [Sums()] * feature.n_codes
        for row in rows:
            code = codes[row][index]
            cells[code] = cells[code].plus(recorded[row])
        for left, test in _left_sums(index, feature, cells, node):
            found.append((settings.score(node, left), test))
    return found


def _left_sums(
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


def best_split(
    settings: Settings, rows: Sequence[int], codes: Codes, recorded: Recorded
) -> tuple[float, Test]:
    """Gain and test of the best candidate; among equals the first."""
    node = sums_over(rows, recorded)
    best_score, best = NEVER, NO_TEST
    if settings.may_split(node):
        for score, test in candidates(settings, rows, codes, recorded):
            if score > best_score:
                best_score, best = score, test
    return settings.gain(node, best_score), best


def grow(
    settings: Settings, rows: Sequence[int], codes: Codes, recorded: Recorded, max_leaf_nodes: int
) -> Tree:
    """Grow one tree best-first."""

    def new_node(rows: list[int], parent: int, leaf: int) -> Node:
        node = Node(rows, sums_over(rows, recorded), parent, leaf)
        node.gain, node.test = best_split(settings, rows, codes, recorded)
        node.value = settings.leaf_value(node.sums)
        return node

    tree = Tree([new_node(list(rows), -1, 0)])
    for n_leaves in range(1, max_leaf_nodes):
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

"""Trees: nodes, leaves and splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graftboost.reference.loss import Sums

NEVER = -math.inf


class Split(NamedTuple):
    """A row goes left if (code - low) modulo 2^16 is at most span, for its code of the feature."""

    feature: int
    low: int
    span: int

    def left(self, codes: Sequence[int]) -> bool:
        """Whether a row with these codes goes left."""
        return (codes[self.feature] - self.low) % 2**16 <= self.span


NO_SPLIT = Split(0, 0, 0)


@dataclass
class DeferredSums:
    """What rows leave at a node if an update changes them and defers regrowing."""

    n: int = 0
    recorded: int = 0  # sum of the absolute gradients that they recorded, times their weights
    last: int = 0  # sum of their absolute gradients by the scores of the whole model


@dataclass
class Node:
    """An inner node with its split, or a leaf with the best split that it could still have."""

    rows: list[int]
    sums: Sums
    parent: int = -1
    leaf: int = -1
    left: int = -1
    right: int = -1
    gain: float = NEVER
    split: Split = NO_SPLIT
    value: float = 0.0
    deferred: DeferredSums = field(default_factory=DeferredSums)


@dataclass
class Tree:
    """Nodes, parents before children. In a newly grown tree, split s created 2s + 1 and 2s + 2."""

    nodes: list[Node] = field(default_factory=list)

    def route(self, codes: Sequence[int]) -> Node:
        """The leaf that a row with these codes reaches."""
        node = self.nodes[0]
        while node.left >= 0:
            node = self.nodes[node.left if node.split.left(codes) else node.right]
        return node

    def path(self, node: int) -> list[int]:
        """The nodes from this one up to the root."""
        path = [node]
        while (node := self.nodes[node].parent) >= 0:
            path.append(node)
        return path

    def leaf_ids_under(self, index: int) -> list[int]:
        """The sorted ids of the leaves below a node."""
        node = self.nodes[index]
        if node.left < 0:
            return [node.leaf]
        return sorted(self.leaf_ids_under(node.left) + self.leaf_ids_under(node.right))

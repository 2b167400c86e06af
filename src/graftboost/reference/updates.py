"""Updates: rows into and out of a model, in place (the paper's Algorithms 2 and 3, and ours).

Tree by tree, the changed rows are booked along their paths. Then, tree by tree, the touched nodes
are checked from the root down; those whose split no longer passes are regrown from fresh gradients
of their rows; and the order of growth is replayed from the gains.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from graftboost.reference.boosting import Model
from graftboost.reference.trees import (
    LEAST_GAIN,
    NEVER,
    Node,
    Recorded,
    Tree,
    best_split,
    candidates,
    grow,
    sums_over,
)

ROWS_PER_MOVE = 5  # to move a row costs as much as to regrow so many
LARGEST_SHIFT = 4  # beyond one row in so many, regrowing is cheaper


@dataclass(frozen=True)
class ToleranceRule:
    """When a split still passes: by its regret, or by its rank among the candidates.

    With an infinite tolerance all do, and trees keep their structure.
    """

    kind: str = "regret"
    tolerance: float = 1.2
    places: int = 1

    @property
    def keeps_structure(self) -> bool:
        """Whether no node is ever retrained."""
        return math.isinf(self.tolerance)


@dataclass
class Graft:
    """A subtree for the place of a node; None makes the node a leaf."""

    node: int
    subtree: Tree | None
    leaf_ids: list[int]  # of the subtree's leaves 0, 1, ...


def update(
    model: Model,
    added: Mapping[int, tuple[Sequence[float], float, float | None]],
    removed: Iterable[int],
    rule: ToleranceRule,
) -> int:
    """Add rows (id: features, target, weight) and remove others; return the nodes retrained."""
    gone = {row_id: model.rows.pop(row_id) for row_id in removed}
    for row_id, (x, y, weight) in added.items():
        model.rows[row_id] = model.encode(x, y, weight)
    model.set_base()
    touched = [_book(model, t, set(gone), list(added)) for t in range(len(model.trees))]
    return sum(_check_and_mend(model, t, nodes, rule) for t, nodes in enumerate(touched))


def refresh(model: Model) -> None:
    """Bring leaf values to those that the present structure has on the rows held."""
    for t, tree in enumerate(model.trees):
        for row_id in model.gradients[t]:
            model.gradients[t][row_id] = _fresh_gradient(model, t, row_id)
        work = _TreeUpdate(model, t, ToleranceRule())
        work.count_again()
        for node in tree.nodes:
            node.value = model.settings.leaf_value(node.sums)
            if node.left >= 0:
                node.gain = work.present_gain(node)
            else:
                node.gain, node.test = best_split(
                    model.settings, node.rows, work.codes, work.recorded
                )


def _book(model: Model, t: int, gone: set[int], added: Sequence[int]) -> set[int]:
    """Take rows out of a tree and put others in; return the nodes on their paths.

    What an added row records follows from its leaves in the trees before, as they are with the
    changed rows and before any node is retrained.
    """
    tree, gradients = model.trees[t], model.gradients[t]
    touched = {i for i, node in enumerate(tree.nodes) if gone.intersection(node.rows)}
    for row_id in gone:
        gradients.pop(row_id, None)
    for node in tree.nodes:
        node.rows = [row_id for row_id in node.rows if row_id not in gone]
    for row_id in added:
        if not model.in_bag(t, row_id):
            continue
        gradients[row_id] = _fresh_gradient(model, t, row_id)
        leaf = tree.nodes.index(tree.route(model.rows[row_id].codes))
        for i in _path(tree, leaf):
            tree.nodes[i].rows.append(row_id)
            touched.add(i)
    recorded = model.recorded(t)
    for node in tree.nodes:
        node.sums = sums_over(node.rows, recorded)
        node.value = model.settings.leaf_value(node.sums)
    return touched


def _check_and_mend(model: Model, t: int, touched: set[int], rule: ToleranceRule) -> int:
    if not touched:
        return 0
    work = _TreeUpdate(model, t, rule)
    failed = work.check(0, touched)
    if failed:
        work.join([work.regrow(i, len(work.leaf_ids_under(i)), []) for i in failed])
    work.replay_growth()
    for node in work.tree.nodes:
        node.value = model.settings.leaf_value(node.sums)
    model.trees[t] = work.tree
    return work.n_retrained


def _fresh_gradient(model: Model, t: int, row_id: int) -> int:
    n_scores = model.settings.loss.n_scores
    row = model.rows[row_id]
    scores = model.scores_before(row.codes, t - t % n_scores)
    return model.settings.loss.gradients(row.target, scores)[t % n_scores]


def _path(tree: Tree, node: int) -> list[int]:
    path = [node]
    while (node := tree.nodes[node].parent) >= 0:
        path.append(node)
    return path


class _TreeUpdate:
    """One tree while it is updated; its rows are already those to come."""

    def __init__(self, model: Model, t: int, rule: ToleranceRule) -> None:
        self.model, self.t, self.rule = model, t, rule
        self.settings = model.settings
        self.tree = model.trees[t]
        self.codes = {row_id: row.codes for row_id, row in model.rows.items()}
        self.n_retrained = 0

    @property
    def recorded(self) -> Recorded:
        return self.model.recorded(self.t)

    def count_again(self) -> None:
        """Bring every node's sums to those of its rows."""
        recorded = self.recorded
        for node in self.tree.nodes:
            node.sums = sums_over(node.rows, recorded)

    def present_gain(self, node: Node) -> float:
        """The gain of a node's own split, which its children's sums tell."""
        left = self.tree.nodes[node.left].sums
        return self.settings.gain(node.sums, self.settings.score(node.sums, left))

    def check(self, index: int, touched: set[int]) -> list[int]:
        """Check a node and the touched ones under it; return the topmost that fail."""
        node = self.tree.nodes[index]
        gain, test = best_split(self.settings, node.rows, self.codes, self.recorded)
        if node.left < 0:
            node.gain, node.test = gain, test
            return []
        passes = self.rank_passes if self.rule.kind == "rank" else self.regret_passes
        if not self.rule.keeps_structure and not passes(index, gain, touched):
            return [index]
        node.gain = self.present_gain(node)
        failed = []
        for child in (node.left, node.right):
            if child in touched:
                failed += self.check(child, touched)
        return failed

    def rank_passes(self, index: int, best: float, touched: set[int]) -> bool:
        """Whether only few candidates of a node are better than its split."""
        node = self.tree.nodes[index]
        present = self.present_gain(node)
        scores = candidates(self.settings, node.rows, self.codes, self.recorded)
        ahead = sum(self.settings.gain(node.sums, score) > present for score, _ in scores)
        return present > NEVER and ahead < self.rule.places

    def regret_passes(self, index: int, best: float, touched: set[int]) -> bool:
        """Whether a node may keep its split, or one of the same feature that moves few rows."""
        node = self.tree.nodes[index]
        present = self.present_gain(node)
        is_void = present == NEVER
        if is_void and (self.rule.tolerance == 0 or best == NEVER):
            return False
        scores = candidates(self.settings, node.rows, self.codes, self.recorded)
        score, test = max(
            ((score, test) for score, test in scores if test.feature == node.test.feature),
            key=lambda candidate: candidate[0],
        )
        best_own = self.settings.gain(node.sums, score)
        standard = best_own if is_void else present
        if standard == NEVER or not self.tolerated(best, standard, node.sums.n):
            return False
        if not best_own > present:
            return True
        moving = [r for r in node.rows if test.left(self.codes[r]) != node.test.left(self.codes[r])]
        n_moving = sums_over(moving, self.recorded).n
        if is_void and LARGEST_SHIFT * n_moving > node.sums.n:
            return False
        cost = min(node.sums.n, ROWS_PER_MOVE * n_moving)
        if is_void or not self.tolerated(best_own, present, cost):
            node.test = test
            self.place_rows(index, touched)
            self.count_again()
        return True

    def tolerated(self, best: float, present: float, n: int) -> bool:
        """Whether what is lost by keeping the present is worth less than work on n rows."""
        regret = (best - present) / self.model.noise * (len(self.model.rows) / n)
        return regret <= self.rule.tolerance

    def place_rows(self, index: int, touched: set[int]) -> None:
        """Send a node's rows on to its children, whose nodes are touched if theirs change."""
        node = self.tree.nodes[index]
        if node.left < 0:
            return
        for child, is_left in ((node.left, True), (node.right, False)):
            rows = [r for r in node.rows if node.test.left(self.codes[r]) == is_left]
            if set(rows) != set(self.tree.nodes[child].rows):
                touched.add(child)
            self.tree.nodes[child].rows = rows
            self.place_rows(child, touched)

    def leaf_ids_under(self, index: int) -> list[int]:
        """Ids of the leaves under a node, sorted."""
        node = self.tree.nodes[index]
        if node.left < 0:
            return [node.leaf]
        return sorted(self.leaf_ids_under(node.left) + self.leaf_ids_under(node.right))

    def regrow(self, index: int, n_leaves: int, spare: list[int]) -> Graft:
        """Grow what is under a node again, from fresh gradients of its rows."""
        leaf_ids = self.leaf_ids_under(index) + spare
        rows = self.tree.nodes[index].rows
        fresh = {row_id: _fresh_gradient(self.model, self.t, row_id) for row_id in rows}
        self.model.gradients[self.t].update(fresh)
        self.n_retrained += 1
        subtree = grow(self.settings, rows, self.codes, self.recorded, n_leaves)
        return Graft(index, subtree, leaf_ids)

    def join(self, grafts: list[Graft]) -> None:
        """Put the grafts in; nodes are then numbered from the root, left before right."""
        by_node = {graft.node: graft for graft in grafts}
        old, joined = self.tree, Tree()

        def copy(source: Tree, index: int, parent: int, graft: Graft | None) -> int:
            node = replace(source.nodes[index], parent=parent)
            if graft is None and index in by_node:
                graft = by_node[index]
                if graft.subtree is not None:
                    return copy(graft.subtree, 0, parent, graft)
                node = replace(node, left=-1, right=-1, leaf=graft.leaf_ids[0])
            elif graft is not None and node.left < 0:
                node.leaf = graft.leaf_ids[node.leaf]
            to = len(joined.nodes)
            joined.nodes.append(node)
            if node.left >= 0:
                node.left = copy(source, node.left, to, graft)
                node.right = copy(source, node.right, to, graft)
            return to

        copy(old, 0, -1, None)
        self.tree = joined
        self.count_again()
        for node in joined.nodes:
            if node.left >= 0:
                node.gain = self.present_gain(node)

    def replay_growth(self) -> None:
        """Where a leaf now comes before a split that was made, the one is undone for the other."""
        for _ in range(self.settings.max_leaf_nodes):
            nodes = self.tree.nodes
            # Growth comes to a node when all on its path have come up: with the least gain there.
            key: list[float] = []
            for node in nodes:
                key.append(min(node.gain, key[node.parent]) if node.parent >= 0 else node.gain)
            leaves = [i for i, n in enumerate(nodes) if n.left < 0 and n.gain > LEAST_GAIN]
            if not leaves:
                return
            leaf = max(leaves, key=key.__getitem__)
            full = (len(nodes) + 1) // 2 >= self.settings.max_leaf_nodes
            present, n, split = 0.0, nodes[leaf].sums.n, -1
            if full:
                last = [
                    i
                    for i, node in enumerate(nodes)
                    if node.left >= 0
                    and nodes[node.left].left < 0
                    and nodes[node.right].left < 0
                    and leaf not in (node.left, node.right)
                ]
                if not last:
                    return
                split = min(last, key=key.__getitem__)
                present, n = key[split], n + nodes[split].sums.n
            if not key[leaf] > present or self.order_passes(key, leaf, present, n):
                return
            self.swap_growth(leaf, split)

    def order_passes(self, key: list[float], leaf: int, present: float, n: int) -> bool:
        """Whether the order of growth may stay although this leaf comes before that split."""
        if self.rule.keeps_structure:
            return True
        if self.rule.kind == "regret":
            return self.tolerated(key[leaf], present, n)
        ahead = sum(node.left < 0 and key[i] > present for i, node in enumerate(self.tree.nodes))
        return ahead <= math.ceil(self.rule.tolerance * self.settings.max_leaf_nodes)

    def swap_growth(self, leaf: int, split: int) -> None:
        """Undo a split (-1: none need be) and split a leaf."""
        nodes, grafts = self.tree.nodes, []
        if split >= 0:
            spare = nodes[nodes[split].right].leaf
            grafts.append(Graft(split, None, [nodes[nodes[split].left].leaf]))
        else:
            used = self.leaf_ids_under(0)
            spare = next(i for i in range(len(used) + 1) if i not in used)
        self.join([*grafts, self.regrow(leaf, 2, [spare])])

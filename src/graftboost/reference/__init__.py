"""The algorithm of the engine in plain Python: a readable specification and an oracle for tests.

The code is deliberately slow. Nothing is vectorised, threaded or cached, and every sum is computed
from the rows it covers. The C++ engine builds the same trees from the same rows, bit for bit,
because both add up integers and round floating-point numbers in the same places.

The modules are the stages of the algorithm. For training, read `bins`, `loss`, `tree`,
`split_evaluation`, `tree_grower` and `boosting`, in this order. For updates, read `update` and
the stages it consists of: `booking`, `flips`, `row_memory`, `selection`, `split_check`, `regrow`
and `growth_order`. `deferral` regrows nodes later, for many updates at once. `refresh` recomputes
leaf values.

Examples
--------
>>> from graftboost.reference import UpdateRule, fit, update
>>> rows = [[float(i), float(i % 3)] for i in range(60)]
>>> model = fit(rows, [i % 3 == 1 for i in range(60)], loss="logistic", n_estimators=3)
>>> model.trees[0].nodes[0].split
Split(feature=1, low=1, span=0)
>>> round(model.scores([7.0, 1.0])[0], 3)
0.071
>>> update(model, {}, removed=[8, 11], rule=UpdateRule("regret", 1.0)).nodes_regrown
3
>>> round(model.scores([7.0, 1.0])[0], 3)
-0.429
"""

from graftboost.reference.bins import Feature, edge_between, fit_feature
from graftboost.reference.boosting import Model, fit
from graftboost.reference.loss import Loss, Sums
from graftboost.reference.refresh import refresh
from graftboost.reference.tree import Node, Split, Tree
from graftboost.reference.tree_update import UpdateRule
from graftboost.reference.update import Updated, regrow_deferred, update

__all__ = [
    "Feature",
    "Loss",
    "Model",
    "Node",
    "Split",
    "Sums",
    "Tree",
    "UpdateRule",
    "Updated",
    "edge_between",
    "fit",
    "fit_feature",
    "refresh",
    "regrow_deferred",
    "update",
]

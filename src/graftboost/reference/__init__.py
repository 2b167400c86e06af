"""The algorithm of the engine in plain Python: to be read, stepped through, and tested against.

It is slow on purpose. Nothing here is vectorised, threaded or cached; every sum is taken over the
rows it is about. The C++ engine gives the same trees from the same rows, bit for bit, because both
add up integers and round floating-point numbers in the same places.

The order of reading is the order of training: `bins` cuts columns into intervals, `losses` say what
a row records in a tree, `trees` finds the best candidate of a node and grows a tree best-first,
`boosting` trains, and `updates` adds and removes rows, or
refreshes leaf values.

Examples
--------
>>> from graftboost.reference import ToleranceRule, fit, update
>>> rows = [[float(i), float(i % 3)] for i in range(60)]
>>> model = fit(rows, [i % 3 == 1 for i in range(60)], loss="logistic", n_estimators=3)
>>> model.trees[0].nodes[0].test
Test(feature=1, low=1, span=0)
>>> round(model.scores([7.0, 1.0])[0], 3)
0.071
>>> update(model, {}, removed=[8, 11], rule=ToleranceRule("regret", 1.0))
3
>>> round(model.scores([7.0, 1.0])[0], 3)
-0.429
"""

from graftboost.reference.bins import Feature, edge_between, fit_feature
from graftboost.reference.boosting import Model, fit
from graftboost.reference.losses import Loss, Sums
from graftboost.reference.trees import Node, Test, Tree
from graftboost.reference.updates import ToleranceRule, refresh, update

__all__ = [
    "Feature",
    "Loss",
    "Model",
    "Node",
    "Sums",
    "Test",
    "ToleranceRule",
    "Tree",
    "edge_between",
    "fit",
    "fit_feature",
    "refresh",
    "update",
]

"""Seconds of adding or removing few rows (Table 3), and how much is learned or forgotten."""

from experiments.harness.experiment import Experiment
from experiments.paper.updates.measuring import cases
from experiments.paper.updates.picture import draw
from experiments.paper.updates.tables import answer, remark, tables

EXPERIMENT = Experiment(
    name="updates",
    title="Update time and speed-up",
    question=(
        "How long does it take to add or remove D' = 1 row, 0.1%, 0.5% or 1% of the rows D, and "
        "how much faster is that than the alternatives? Rows are removed from a model trained on "
        "D, and added to a model trained on D without them. The other libraries are retrained, or "
        "updated by the method that they offer: LightGBM's `refit` and XGBoost's `refresh` keep "
        "the trees and recompute the leaf values; SISA retrains the shards that held the rows. For "
        "all methods that update, forgetting and learning show how much of the change in the loss "
        "of D' that a full training causes is achieved by the update."
    ),
    paper="Table 3",
    caption=(
        "Median seconds to remove rows, by data set. The dashed line is LightGBM's retrain. The "
        "other methods are in the tables. A star marks data that replaces the paper's."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

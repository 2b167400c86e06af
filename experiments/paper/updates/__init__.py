"""How long it takes to add or remove few rows, and whether they are learned or forgotten."""

from experiments.harness.experiment import Experiment
from experiments.paper.updates.measuring import cases
from experiments.paper.updates.picture import draw
from experiments.paper.updates.tables import remark, tables

EXPERIMENT = Experiment(
    name="updates",
    title="Update time and speed-up",
    question=(
        "How long does it take to add or remove D' = 1 row, 0.1%, 0.5% or 1% of the rows D, and "
        "how much faster is that than what people do today? To remove, a model is trained on D; "
        "to add, on D without the rows that are added later. Peers are trained again, or follow "
        "their rows in the way that they offer: LightGBM's `refit` and XGBoost's `refresh` keep "
        "the trees and give the leaves new values, SISA trains only the shards that held the rows. "
        "Beside the seconds stands what they buy: how much of what a full training of the same "
        "model changes in the loss of D' the update changes."
    ),
    paper="Table 3",
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)

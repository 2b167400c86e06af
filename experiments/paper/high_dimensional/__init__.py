"""Tables with tens of thousands of columns and more: training, memory and updates."""

from experiments.harness.experiment import Experiment
from experiments.paper.high_dimensional.measuring import cases
from experiments.paper.high_dimensional.picture import draw
from experiments.paper.high_dimensional.tables import remark, tables

EXPERIMENT = Experiment(
    name="high-dimensional",
    title="Extremely high-dimensional data",
    question=(
        "What do training and updates cost where there are more columns than rows, nearly all of "
        "them zero? The words of a text are such columns. All libraries train on the same sparse "
        "table, in turns, each fit in a process of its own; ours then has D' = 1 row, 0.1%, 0.5% "
        "or 1% of the rows D added or removed, where the others train again. Beside the time "
        "stands what it buys: how much of what a full training changes in the loss of D' the "
        "update changes."
    ),
    paper='appendix "Extremely High-dimensional Datasets"',
    cases=cases,
    tables=tables,
    draw=draw,
    remark=remark,
)

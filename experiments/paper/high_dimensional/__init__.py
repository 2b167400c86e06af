"""Training, memory and updates on sparse data with tens of thousands of columns and more."""

from experiments.harness.experiment import Experiment
from experiments.paper.high_dimensional.measuring import cases
from experiments.paper.high_dimensional.picture import draw
from experiments.paper.high_dimensional.tables import answer, remark, tables

EXPERIMENT = Experiment(
    name="high-dimensional",
    title="Extremely high-dimensional data",
    question=(
        "What do training and updates cost if there are more columns than rows and nearly all "
        "values are zero, as for the words of a text? All libraries train on the same sparse "
        "table, in turns, each fit in a separate process. In graftboost, D' = 1 row, 0.1%, 0.5% or "
        "1% of the rows D are then added or removed; the other libraries are retrained. Learning "
        "and forgetting show how much of the change in the loss of D' that a full training causes "
        "is achieved by the update."
    ),
    paper='appendix "Extremely High-dimensional Datasets"',
    caption=(
        "Above: seconds and memory of a fit, by library. Below: milliseconds per tree of an update "
        "of graftboost, by data set. All axes are logarithmic. A point is missing if the fit "
        "failed or did not finish. A star marks data that replaces the paper's."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
)

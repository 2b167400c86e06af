"""Whether updates reach the fidelity that they are asked for, and know it."""

from experiments.harness.experiment import Experiment
from experiments.ours.fidelity.measuring import cases
from experiments.ours.fidelity.picture import draw
from experiments.ours.fidelity.tables import answer, goals, remark, tables

EXPERIMENT = Experiment(
    name="fidelity",
    title="Fidelity, estimated and measured",
    question=(
        "How much of what a refit would change in the losses of added and removed rows does an "
        "update with default parameters achieve, and how well does it estimate that without a "
        "refit? Which rows does a model remember? Can the updated model be told from a refitted "
        "one by the losses of the removed rows?"
    ),
    paper=None,
    caption=(
        "Memory of removed rows (0.1% of the rows are removed). Rows are sorted by estimated "
        "memory, before the removal, and divided into ten groups. Points are means of the groups. "
        "On the dashed line the estimate equals the change in loss that a refit causes."
    ),
    cases=cases,
    answer=answer,
    tables=tables,
    draw=draw,
    remark=remark,
    goals=goals,
)

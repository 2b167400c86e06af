"""All experiments, in the order of the page."""

from __future__ import annotations

from experiments import (
    backdoor,
    frontier,
    leaf_error,
    membership,
    robustness,
    similarity,
    split_shift,
)
from experiments.experiment import Experiment

MODULES = (
    backdoor,
    similarity,
    membership,
    leaf_error,
    split_shift,
    robustness,
    frontier,
)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in MODULES
}

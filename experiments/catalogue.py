"""All experiments, in the order of the page."""

from __future__ import annotations

from experiments import (
    backdoor,
    batches,
    classes,
    complexity,
    data_sets,
    frontier,
    high_dimensional,
    leaf_error,
    membership,
    robustness,
    similarity,
    split_shift,
    streams,
    test_error,
    time_series,
    training,
    updates,
)
from experiments.ablations import alpha, bins, iterations, leaves, sigma, size
from experiments.experiment import Experiment

MODULES = (
    frontier,
    data_sets,
    training,
    updates,
    high_dimensional,
    test_error,
    batches,
    backdoor,
    similarity,
    membership,
    leaf_error,
    classes,
    time_series,
    streams,
    split_shift,
    robustness,
    size,
    alpha,
    sigma,
    bins,
    leaves,
    iterations,
    complexity,
)

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in MODULES
}

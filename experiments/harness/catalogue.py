"""All experiments, in the order of the index."""

from __future__ import annotations

from experiments.harness.experiment import Experiment
from experiments.ours import fidelity, frontier, stability, streams
from experiments.paper import (
    backdoor,
    batches,
    classes,
    complexity,
    data_sets,
    high_dimensional,
    leaf_error,
    membership,
    robustness,
    similarity,
    split_shift,
    test_error,
    time_series,
    training,
    updates,
)
from experiments.paper.ablations import alpha, bins, iterations, leaves, sigma, size

MODULES = (
    fidelity,
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
    stability,
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

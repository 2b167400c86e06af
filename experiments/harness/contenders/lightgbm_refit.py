"""LightGBM's `refit`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import LIBRARIES
from experiments.harness.contenders.contender import Predicted
from experiments.harness.contenders.new_leaves import NewLeaves


class LightGBMRefit(NewLeaves):
    """`Booster.refit` on the rows held, which replaces all leaf values."""

    name = "lightgbm-refit"
    title = "LightGBM, `refit`"
    library = LIBRARIES["lightgbm"]
    # Its refit starts from a score of 0. It would change a model that was trained from the average
    # even with the same rows; a model that was trained from 0 is unchanged.
    parameters: ClassVar[dict[str, Any]] = {"boost_from_average": False}

    def _fitted_booster(self) -> Any:
        return self.trained.model.booster_

    def _renewed(self, X: NDArray[np.float32], y: NDArray[Any]) -> Any:
        return self.booster.refit(X, y, decay_rate=0.0)

    def _scores(self, X: NDArray[np.float32]) -> Predicted:
        return np.asarray(self.booster.predict(X, num_threads=self.settings.threads))

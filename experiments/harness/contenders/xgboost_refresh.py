"""XGBoost's `refresh`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import LIBRARIES
from experiments.harness.contenders.contender import Predicted
from experiments.harness.contenders.new_leaves import NewLeaves


class XGBoostRefresh(NewLeaves):
    """The updater ``refresh`` on the rows held, which recomputes statistics and leaf values."""

    name = "xgboost-refresh"
    title = "XGBoost, `refresh`"
    library = LIBRARIES["xgboost"]

    def _fitted_booster(self) -> Any:
        return self.trained.model.get_booster()

    def _renewed(self, X: NDArray[np.float32], y: NDArray[Any]) -> Any:
        xgboost = self.library.load()
        parameters = self.trained.model.get_xgb_params() | {
            "process_type": "update",
            "updater": "refresh",
            "refresh_leaf": True,
        }
        return xgboost.train(
            parameters,
            xgboost.DMatrix(X, y, nthread=self.settings.threads),
            num_boost_round=self.settings.iterations,
            xgb_model=self.booster,
        )

    def _scores(self, X: NDArray[np.float32]) -> Predicted:
        return np.asarray(self.booster.inplace_predict(X))

"""Keep the trees and recompute their leaf values, as other boosting libraries offer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.harness.contenders.contender import Predicted, in_columns
from experiments.harness.contenders.peer import Peer


class NewLeaves(Peer):
    """The structure of the trees is kept; leaf values are recomputed from the rows held.

    ``booster`` is the library's own model with the current trees.
    """

    booster: Any

    def retrain(self) -> None:
        super().retrain()
        self.booster = self._fitted_booster() if self.trained.model is not None else None

    def _follow(self) -> None:
        X, y = self.held.rows()
        numbered = self.trained.numbered(y)
        if numbered is None or self.booster is None:
            self.retrain()  # there are no trees for a new class
            return
        with self._timed():
            self.booster = self._renewed(X, numbered)

    def predict(self, X: NDArray[np.float32]) -> Predicted:
        if self.booster is None:
            return super().predict(X)
        scores = self._scores(X)
        if self.task == "regression":
            return scores
        if scores.ndim == 1:
            scores = np.column_stack([1 - scores, scores])
        return in_columns(scores, self.trained.classes, self.n_classes)

    @abstractmethod
    def _fitted_booster(self) -> Any:
        """The library's own model inside the estimator."""

    @abstractmethod
    def _renewed(self, X: NDArray[np.float32], y: NDArray[Any]) -> Any:
        """A model with the same trees and leaf values computed from these rows."""

    @abstractmethod
    def _scores(self, X: NDArray[np.float32]) -> Predicted:
        """Probabilities (of the second class only if there are two), or the predicted target."""

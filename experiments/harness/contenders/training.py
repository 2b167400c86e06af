"""One training of another library, whatever classes the rows have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.libraries import Library
from benchmarks.settings import Settings
from datasets import Task
from experiments.harness.contenders.contender import Predicted, in_columns


class Trained:
    """An estimator of another library, trained on rows that may lack some classes.

    Some libraries reject classes other than 0 to K - 1, and some a single class. Classes are
    therefore renumbered, and a single class is predicted without a model.
    """

    def __init__(
        self,
        library: Library,
        task: Task,
        settings: Settings,
        X: NDArray[np.float32],
        y: NDArray[Any],
        **parameters: Any,
    ) -> None:
        self.library, self.task, self.settings = library, task, settings
        self.classes: NDArray[Any] = np.empty(0, dtype=np.int64)
        if task == "classification":
            self.classes, y = np.unique(y, return_inverse=True)
        self.model: Any = None
        if len(self.classes) != 1:
            self.model = library.model(task, settings).set_params(**parameters).fit(X, y)

    def predict(self, X: NDArray[np.float32], n_classes: int) -> Predicted:
        """Probabilities with `n_classes` columns, or the predicted target."""
        if self.model is None:
            predicted: Predicted = np.ones((len(X), 1))
        else:
            predicted = self.library.predict(self.model, X, self.task, self.settings)
        if self.task == "regression":
            return predicted
        return in_columns(predicted, self.classes, n_classes)

    def numbered(self, y: NDArray[Any]) -> NDArray[Any] | None:
        """Targets with the model's class numbers; None if it does not know one of the classes."""
        if self.task == "regression":
            return y
        if not np.isin(y, self.classes).all():
            return None
        return np.searchsorted(self.classes, y)

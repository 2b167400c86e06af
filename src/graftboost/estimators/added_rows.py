"""Reading and validating the rows that an update adds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from graftboost.estimators.held_rows import RowHolder
from graftboost.estimators.update_request import AddedRows
from graftboost.input.row_ids import LARGEST_ID, check_row_ids
from graftboost.input.rows import Rows
from graftboost.input.table import read_table
from graftboost.input.weights import check_weight
from graftboost.input.wiping import Copies


class AddedRowReader(RowHolder):
    """Reads added rows with the columns, classes and ids of the model to which they are added."""

    def _rows_to_add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        row_ids: ArrayLike | None,
        copies: Copies,
    ) -> tuple[AddedRows | None, list[int], NDArray[Any] | None]:
        """Return the rows, the new code of each known class, and the classes after the update."""
        classes = getattr(self, "classes_", None)
        same = [] if classes is None else list(range(len(classes)))
        if X is None:
            for argument, value in [
                ("y", y),
                ("sample_weight", sample_weight),
                ("row_ids", row_ids),
            ]:
                if value is not None:
                    raise ValueError(f"{argument} is given without X. Pass both, or neither.")
            return None, same, classes
        table = read_table(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        target, relabel, classes = self._read_added_target(y, table.n_rows)
        ids = check_row_ids(row_ids, table.n_rows)
        if ids is None:
            if self._next_id + table.n_rows - 1 > LARGEST_ID:
                raise ValueError(
                    "row_ids is required: default ids continue after the largest id ever used, "
                    f"{self._next_id - 1}, but ids cannot exceed {LARGEST_ID}. Pass unused ids."
                )
            ids = np.arange(self._next_id, self._next_id + table.n_rows, dtype=np.int64)
        weight = check_weight(sample_weight, table.n_rows, all_may_be_zero=True)
        rows = Rows(self._columns.encode(table, copies), target, weight, ids, copies)
        rows = rows.weighed_by_class(self._added_class_weights(classes))
        return AddedRows(rows.X, rows.y, rows.weight, ids), relabel, classes

    @abstractmethod
    def _read_added_target(
        self, y: Any, n_rows: int
    ) -> tuple[NDArray[np.float64], list[int], NDArray[Any] | None]:
        """Return the target of added rows, the new code of each known class, and all classes."""

    def _added_class_weights(self, classes: NDArray[Any] | None) -> NDArray[np.float64] | None:
        return None

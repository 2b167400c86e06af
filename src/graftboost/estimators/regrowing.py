"""Methods that change the trees of a fitted model and keep its rows."""

from __future__ import annotations

from typing import Self

from graftboost.estimators.held_rows import RowHolder
from graftboost.estimators.memory import stats_bytes
from graftboost.estimators.pending import Pending
from graftboost.estimators.report import UpdateReport
from graftboost.estimators.threads import thread_count
from graftboost.estimators.update_request import RegrowRequest


class Regrowable(RowHolder):
    """The methods that regrow nodes, refit and refresh, for the rows that a model holds."""

    def regrow(self, work: float | None = None, *, fidelity: float | None = None) -> UpdateReport:
        """Regrow nodes for all rows that were added or removed with ``regrow=False``.

        Regrowing a node takes the same time for one changed row as for fifty, so this is cheaper
        than regrowing after each update. Nodes are regrown in the order of what they are worth.

        Parameters
        ----------
        work : float, default=None
            The most work to do, as a fraction of a refit: the rows of the regrown nodes, relative
            to all rows in all trees. At least one node is regrown or shifted. Call again to
            continue. Default: no limit; the model is refitted if that is cheaper.
        fidelity : float, default=None
            The target for all these rows together. Default: the parameter of the model.

        Returns
        -------
        UpdateReport
            What was done. `rows_deferred` is 0 if the target is reached.

        Examples
        --------
        >>> from graftboost import GraftBoostClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> model = GraftBoostClassifier(n_estimators=20).fit(*load_breast_cancer(return_X_y=True))
        >>> for row_id in range(8):
        ...     report = model.remove(row_id, regrow=False)
        >>> report.rows_deferred, model.regrow().rows_deferred
        (8, 0)
        """
        self._check_updatable()
        with self._update_lock.lock:
            request = RegrowRequest.of(
                self._with_candidates(self._read_update_parameters()), work, fidelity
            )
            self._engine_model.histogram_memory = stats_bytes(self.stats_memory)
            report = request.apply(self._engine_model, thread_count(self.n_jobs))
            if report.strategy == "refit":
                self._forget_categories()
        return report

    @property
    def pending_(self) -> Pending:
        """What `regrow` has to do for rows that were added or removed with ``regrow=False``."""
        self._check_updatable()
        with self._update_lock.lock:
            self._read_update_parameters()
            return Pending.of(
                self._engine_model, self.fidelity, self.memory_floor, thread_count(self.n_jobs)
            )

    def refit(self) -> Self:
        """Train all trees again on the rows that the model holds.

        The result is, bit for bit, the model that `fit` trains on these rows with the same bins.

        Returns
        -------
        self
            The estimator.
        """
        self._check_updatable()
        with self._update_lock.lock:
            self._engine_model.histogram_memory = stats_bytes(self.stats_memory)
            self._engine_model.refit(thread_count(self.n_jobs))
            self._forget_categories()
        return self

    def refresh(self) -> Self:
        """Recompute leaf values on the current rows, keeping the structure.

        Rows outside regrown nodes keep their recorded gradients while earlier trees change, so the
        leaf values drift slightly. A refresh records fresh gradients for all rows, in about two to
        five times the time of a prediction for them. Splits do not change. The first update after a
        refresh recomputes all histograms and takes longer, but not longer than a refit. Updates
        that keep the structure (``fidelity=0``) do not need them.

        Returns
        -------
        self
            The estimator.

        Examples
        --------
        >>> from graftboost import GraftBoostClassifier
        >>> from sklearn.datasets import load_breast_cancer
        >>> model = GraftBoostClassifier(n_estimators=20).fit(*load_breast_cancer(return_X_y=True))
        >>> report = model.remove(slice(0, 10))
        >>> model.refresh().check_state()
        """
        self._check_updatable()
        with self._update_lock.lock:
            self._engine_model.refresh(thread_count(self.n_jobs))
        return self

"""Estimators whose rows are distributed over the processes of a Ray cluster."""

from __future__ import annotations

import copy
import functools
import os
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import ray
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from graftboost.distributed.exchange import Traffic
from graftboost.distributed.fitting import Estimator
from graftboost.distributed.folder import open_folder
from graftboost.distributed.model_files import (
    ModelFiles,
    Request,
    check_name,
    generation_of,
    has_model,
)
from graftboost.distributed.moving import gather
from graftboost.distributed.ray_client import RayClient, absolute
from graftboost.distributed.ray_shards import RayHost
from graftboost.distributed.ray_sources import divide_rows, is_dataset
from graftboost.estimators import GraftBoostClassifier, GraftBoostRegressor
from graftboost.estimators.loading import restored
from graftboost.estimators.progress import ProgressLine
from graftboost.estimators.report import UpdateReport
from graftboost.persistence import file_format, model_file

OWN_PARAMETERS = ("n_shards", "resources_per_shard", "storage", "name", "timeout")


class RayModel(BaseEstimator):
    """A model in the processes of a Ray cluster; not for direct use.

    The node half is a named actor, and so is each shard, so other drivers can use the model by its
    name. This object has a copy of the trees for predictions, which it renews when the model has
    changed.
    """

    _local: ClassVar[type[Estimator]]  # the estimator that has the other parameters
    _settings: tuple[str, str, dict[str, Any]]  # name, storage and resources of the model
    _client: RayClient
    _frozen: Estimator

    def __init__(
        self,
        *,
        n_shards: int = 2,
        resources_per_shard: Mapping[str, Any] | None = None,
        storage: str | os.PathLike[str] | None = None,
        name: str | None = None,
        timeout: float = 60.0,
        **parameters: Any,
    ) -> None:
        self.n_shards = n_shards
        self.resources_per_shard = resources_per_shard
        self.storage = storage
        self.name = name
        self.timeout = timeout
        for parameter, value in self._local(**parameters).get_params(deep=False).items():
            setattr(self, parameter, value)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted([*cls._local._get_param_names(), *OWN_PARAMETERS])

    # --- beginning ------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | str | None = None,
        *,
        row_ids: ArrayLike | str | None = None,
        drop: Sequence[str] = (),
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Train a model on rows that are distributed over shards.

        Parameters
        ----------
        X : table, Dataset of Ray, or list of paths or object references
            A local table, as for `GraftBoostClassifier.fit`; or a ``ray.data.Dataset``, paths of
            Parquet files, which shards read themselves, or references to data frames.
        y : array-like or str
            Targets; unless X is a local table, the name of their column.
        sample_weight, row_ids : array-like or str, default=None
            Weights and ids of rows, or the names of their columns.
        drop : sequence of str, default=()
            Columns to ignore, unless X is a local table.
        X_val, y_val, sample_weight_val : default=None
            Validation rows, which are local.

        Returns
        -------
        self
            The fitted estimator.
        """
        sources = divide_rows(X, y, sample_weight, row_ids, self.n_shards, drop)
        estimator = self._local(**self._local_parameters())
        line = None
        if self.verbose:
            line = ProgressLine(type(self).__name__, estimator.n_estimators)
        validation = (X_val, y_val, sample_weight_val)
        self._begin("fit", self.n_shards, estimator, sources, validation, line=line)
        if line is not None:
            line.close()
        return self

    def _begin(self, method: str, n_shards: int, *arguments: Any, **named: Any) -> None:
        """Let the cluster begin with a model; one that this object had before is replaced."""
        former = self.__dict__.get("_client")
        name = self.name or (uuid.uuid4().hex[:12] if former is None else former.name)
        check_name(name)
        settings = (name, self._storage_of(name), dict(self.resources_per_shard or {}))
        files = ModelFiles(open_folder(settings[1]))
        files.check_own()
        request = uuid.uuid4().hex
        named["request"] = request
        start_shards = functools.partial(
            RayHost(*settings, self.timeout).open, n_shards, generation_of(request)
        )
        if former is not None and settings == self._settings:
            start_shards()
            former.change(method, *arguments, **named)
            self._renew()
            return
        client = RayClient.start(*settings, self.timeout)
        try:
            start_shards()  # while the node half is starting
            client.change(method, *arguments, **named)
        except BaseException:
            client.shutdown()
            files.remove_beginning()
            raise
        self.name_, self._settings = name, settings
        self._follow(client)
        if former is not None:
            former.shutdown()

    def _storage_of(self, name: str) -> str:
        folder = self.storage
        if folder is None:
            folder = f"{tempfile.gettempdir()}/graftboost"
        return absolute(f"{os.fspath(folder)}/{name}")

    @classmethod
    def from_local(cls, model: Estimator, **options: Any) -> Self:
        """Distribute the rows of a local model. The model does not change.

        Parameters
        ----------
        model : GraftBoostClassifier or GraftBoostRegressor
            A fitted model, which holds its rows.
        **options
            `n_shards`, `resources_per_shard`, `storage`, `name` and `timeout`.

        Returns
        -------
        RayGraftBoostClassifier or RayGraftBoostRegressor
            The same model in a cluster.
        """
        made = cls(**model.get_params(deep=False), **options)
        made._begin("begin_with", made.n_shards, model, made.n_shards)
        return made

    @classmethod
    def connect(
        cls,
        name: str,
        *,
        storage: str | os.PathLike[str] | None = None,
        resources_per_shard: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
    ) -> Self:
        """Return a model that another driver has made.

        Parameters
        ----------
        name : str
            Its `name_`.
        storage : path or URL, default=None
            The storage of the model. If its processes are not running, they are started again and
            continue with its files.
        resources_per_shard : dict, default=None
            Options of the actors of shards, if they are started again.
        timeout : float, default=60
            Seconds after which a shard that does not answer counts as lost.

        Returns
        -------
        RayGraftBoostClassifier or RayGraftBoostRegressor
            The model, with the parameters that it was fitted with.
        """
        check_name(name)
        made = cls(
            storage=storage, resources_per_shard=resources_per_shard, timeout=timeout, name=name
        )
        given = None if storage is None else made._storage_of(name)
        try:
            client = RayClient.find(name, timeout)
        except ValueError:
            if given is None or not has_model(given):
                raise
            client = RayClient.start(name, given, dict(resources_per_shard or {}), timeout)
        made._settings = client.read("settings")[:3]
        if given is not None and made._settings[1] != given:
            raise ValueError(
                f"Model {name!r} of this cluster has another storage than {given}. Omit storage to "
                "use that model, or shut it down to use the one in this storage."
            )
        made.name_, made.storage = name, made._settings[1].rpartition("/")[0]
        made.resources_per_shard = made._settings[2] or None
        made._follow(client)
        if not isinstance(made._frozen, cls._local):
            raise TypeError(
                f"Model {name!r} is a {type(made._frozen).__name__}, and {cls.__name__} cannot use "
                "it. Call connect of the other class."
            )
        made.set_params(**made._frozen.get_params(deep=False))
        return made

    @classmethod
    def load(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Return a model that `save` has written, in this cluster.

        Parameters
        ----------
        path : path or URL
            The folder.
        **options
            `resources_per_shard`, `storage`, `name` and `timeout`. There are as many shards as when
            the model was saved; `rebalance` changes that.

        Returns
        -------
        RayGraftBoostClassifier or RayGraftBoostRegressor
            The model.
        """
        made = cls(**options)
        made._begin("load", 0, absolute(os.fspath(path)))
        made.set_params(**made._frozen.get_params(deep=False))
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and all rows to a folder; each shard writes its own.

        Parameters
        ----------
        path : path or URL
            The folder, which all machines can reach. What is in it is replaced.
        """
        self._client.read("save", absolute(os.fspath(path)))

    def _local_parameters(self) -> dict[str, Any]:
        known = self._local._get_param_names()
        return {name: getattr(self, name) for name in known}

    def _follow(self, client: RayClient) -> None:
        """Use a model of the cluster, and copy its trees for predictions."""
        self._client = client
        self._version: str | None = None
        self._renew()

    def _renew(self) -> None:
        if self._client.read("version") == self._version:
            return
        # While a change is under way, this is the model before it.
        found = self._client.read("frozen") or self._client.read("frozen_now")
        if found[0] != self._version:
            self._version, self._frozen = found[0], _unpacked(found[1])

    def _change(self, method: str, *arguments: Any, **named: Any) -> Any:
        check_is_fitted(self)
        result = self._client.change("call", self._local_parameters(), method, *arguments, **named)
        if isinstance(result, Request):
            return UpdateReport.lost(result.added_ids, result.removed_ids)
        return result

    # --- changes --------------------------------------------------------------------------------

    def update(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        remove: ArrayLike | slice | None = None,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Add and remove rows in one pass; see `GraftBoostClassifier.update`."""
        report: UpdateReport = self._change(
            "update",
            X,
            y,
            sample_weight,
            row_ids=row_ids,
            remove=remove,
            fidelity=fidelity,
            regrow=regrow,
        )
        return report

    def add(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        row_ids: ArrayLike | None = None,
        fidelity: float | None = None,
        regrow: bool = True,
    ) -> UpdateReport:
        """Add rows; see `GraftBoostClassifier.add`. Shards get them by a hash of their ids."""
        report: UpdateReport = self._change(
            "add", X, y, sample_weight, row_ids=row_ids, fidelity=fidelity, regrow=regrow
        )
        return report

    def remove(
        self, row_ids: ArrayLike | slice, *, fidelity: float | None = None, regrow: bool = True
    ) -> UpdateReport:
        """Remove rows; see `GraftBoostClassifier.remove`."""
        report: UpdateReport = self._change("remove", row_ids, fidelity=fidelity, regrow=regrow)
        return report

    def regrow(self, work: float | None = None, *, fidelity: float | None = None) -> UpdateReport:
        """Regrow nodes for rows that were only booked; see `GraftBoostClassifier.regrow`."""
        report: UpdateReport = self._change("regrow", work, fidelity=fidelity)
        return report

    def refresh(self) -> Self:
        """Recompute all leaf values; see `GraftBoostClassifier.refresh`."""
        self._change("refresh")
        return self

    def refit(self) -> Self:
        """Train all trees again on the rows held; see `GraftBoostClassifier.refit`."""
        self._change("refit")
        return self

    def rebalance(self, n_shards: int) -> Self:
        """Distribute the rows over another number of shards. The model does not change."""
        self._client.change("rebalance", n_shards)
        self.n_shards = n_shards
        return self

    def compact(self) -> Self:
        """Erase rows that were removed from the files of all shards."""
        self._client.read("compact")
        return self

    # --- reading --------------------------------------------------------------------------------

    def check_state(self) -> None:
        """Recompute every stored sum from the rows of all shards; raise if one differs."""
        self._read("check_state")

    def memory(self, row_ids: ArrayLike | slice, *, fidelity: float | None = None) -> Any:
        """Return what the model remembers of rows; see `GraftBoostClassifier.memory`."""
        return self._read("memory", row_ids, fidelity=fidelity)

    def _read(self, method: str, *arguments: Any, **named: Any) -> Any:
        check_is_fitted(self)
        return self._client.read("read", self._local_parameters(), method, *arguments, **named)

    @property
    def row_ids_(self) -> NDArray[np.int64]:
        """Ids of the rows that all shards hold."""
        ids: NDArray[np.int64] = self._read("row_ids_")
        return ids

    @property
    def n_rows_(self) -> int:
        """Number of rows that all shards hold."""
        return int(self._read("n_rows_"))

    @property
    def traffic_(self) -> Traffic:
        """Rounds and bytes exchanged with shards since the model began, or was restored."""
        check_is_fitted(self)
        traffic: Traffic = self._client.read("traffic")
        return traffic

    def _of_batches(self, X: Any, method: str) -> Any:
        """Predict for the rows of a Dataset, block by block, wherever they are."""
        frozen = ray.put(self._trees())

        def predict(batch: Any) -> dict[str, Any]:
            return {"prediction": getattr(ray.get(frozen), method)(batch)}

        return X.map_batches(predict, batch_format="pyarrow", zero_copy_batch=True)

    def to_local(self) -> Estimator:
        """Return the model with all its rows, as an estimator that needs no cluster."""
        check_is_fitted(self)
        local: Estimator = self._client.while_unchanged(self._gather)
        return local

    def _gather(self) -> Estimator:
        version, file, node_half = self._client.read("node_half")
        return gather(
            _unpacked(file), node_half, lambda message: self._client.read_rows(version, message)
        )

    def shutdown(self) -> None:
        """End the processes of the model. Its files stay."""
        check_is_fitted(self)
        self._client.shutdown()
        del self._client

    def frozen(self) -> Estimator:
        """Return the model without its rows, for predictions that need no cluster."""
        return copy.copy(self._trees())

    # --- predictions ----------------------------------------------------------------------------

    def _trees(self) -> Estimator:
        """Return the model for predictions, as of the last change by anyone."""
        check_is_fitted(self)
        self._renew()
        return self._frozen

    def predict(self, X: Any) -> Any:
        """Return the predictions for the rows of a table; of a Dataset of Ray, as a Dataset."""
        return self._of_batches(X, "predict") if is_dataset(X) else self._trees().predict(X)

    def apply(self, X: Any) -> NDArray[np.int32]:
        """Return the leaf that each row reaches in each tree."""
        leaves: NDArray[np.int32] = self._trees().apply(X)
        return leaves

    @property
    def n_features_in_(self) -> int:
        """Number of features of X in `fit`."""
        return int(self._trees().n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the features."""
        names: NDArray[np.object_] = self._trees().feature_names_in_
        return names

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each feature in the total gain of all splits."""
        shares: NDArray[np.float64] = self._trees().feature_importances_
        return shares

    @property
    def n_iter_(self) -> int:
        """The number of iterations of the model."""
        return int(self._trees().n_iter_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_client")


def _unpacked(file: bytes) -> Estimator:
    found = file_format.loads(file, "the model of the cluster")
    return restored(model_file.restore(found), found.source)


class RayGraftBoostClassifier(ClassifierMixin, RayModel):
    """`GraftBoostClassifier` with rows that are distributed over the processes of a Ray cluster.

    The model is the same, bit for bit, as that of `GraftBoostClassifier` on all rows.

    Parameters
    ----------
    n_shards : int, default=2
        The number of shards: processes that hold rows.
    resources_per_shard : dict, default=None
        Options of each shard's actor, such as ``{"num_cpus": 4}``. A shard uses as many threads as
        it has CPUs. Default: one CPU.
    storage : path or URL, default=None
        The folder in which shards and trees are kept, so that lost processes can be restored. It
        must be reachable from all machines: a shared folder, or a URL of fsspec. Default: a folder
        of this machine, which is enough for a cluster of one.
    name : str, default=None
        The name of the model, by which `connect` finds it. Default: a random one, `name_`.
    timeout : float, default=60
        Seconds after which a shard that does not answer counts as lost and is restored.
    **parameters
        The parameters of `GraftBoostClassifier`.
    """

    _local = GraftBoostClassifier

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class; of a Dataset of Ray, as a Dataset."""
        if is_dataset(X):
            return self._of_batches(X, "predict_proba")
        return self._trees().predict_proba(X)

    def decision_function(self, X: Any) -> Any:
        """Return the raw scores; of a Dataset of Ray, as a Dataset."""
        if is_dataset(X):
            return self._of_batches(X, "decision_function")
        return self._trees().decision_function(X)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        classes: NDArray[Any] = self._trees().classes_
        return classes


class RayGraftBoostRegressor(RegressorMixin, RayModel):
    """`GraftBoostRegressor` with rows that are distributed over the processes of a Ray cluster.

    The model is the same, bit for bit, as that of `GraftBoostRegressor` on all rows.

    Parameters
    ----------
    n_shards, resources_per_shard, storage, name, timeout
        As of `RayGraftBoostClassifier`.
    **parameters
        The parameters of `GraftBoostRegressor`.
    """

    _local = GraftBoostRegressor

"""The node half as an actor of Ray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graftboost.distributed.coordinator import Coordinator
from graftboost.distributed.fitting import Estimator
from graftboost.distributed.folder import open_folder
from graftboost.distributed.model_files import ModelFiles
from graftboost.distributed.ray_shards import RayShards
from graftboost.distributed.sources import Source
from graftboost.persistence import file_format
from graftboost.persistence.model_file import contents


class CoordinatorActor:
    """Owns the node half of one model. If its process ends, it continues from its files.

    Parameters
    ----------
    name : str
        The name of the model.
    storage : str
        The folder of the model's files.
    resources : dict
        Options of the actors of shards.
    timeout : float
        Seconds after which a shard that does not answer counts as lost.
    """

    def __init__(self, name: str, storage: str, resources: dict[str, Any], timeout: float) -> None:
        def make_shards(n_shards: int, folder: str) -> RayShards:
            return RayShards(
                f"{name}:{folder}", n_shards, f"{storage}/{folder}", resources, timeout
            )

        folder = open_folder(storage)
        self._coordinator = Coordinator(folder, make_shards)
        if ModelFiles(folder).exists():
            self._coordinator.recover()

    def fit(
        self, estimator: Estimator, sources: Sequence[Source], validation: tuple[Any, Any, Any]
    ) -> None:
        """Train a model on the rows of these sources."""
        self._coordinator.fit(estimator, sources, validation)

    def begin_with(self, estimator: Estimator, n_shards: int) -> None:
        """Take over a model that holds its rows itself."""
        self._coordinator.begin_with(estimator, n_shards)

    def call(self, request: str, method: str, *arguments: Any, **named: Any) -> Any:
        """Change the model; return what the method of the estimator returns, unless it is self."""
        result = self._coordinator.call(request, method, *arguments, **named)
        return None if result is self._coordinator.estimator else result

    def read(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the estimator that changes nothing, or read an attribute."""
        found = getattr(self._coordinator.fitted(), method)
        return found(*arguments, **named) if callable(found) else found

    def version(self) -> int:
        """Return a number that is another one after each change."""
        return self._coordinator.operation

    def frozen(self) -> tuple[int, bytes]:
        """Return the version, and the file of the model as it is now, for predictions."""
        header, arrays = contents(self._coordinator.fitted()._saved(), state=False)
        return self.version(), file_format.dumps(header, arrays)

    def gathered(self) -> Estimator:
        """Return the model with all rows."""
        return self._coordinator.gathered()

    def rebalance(self, n_shards: int) -> None:
        """Distribute the rows over so many shards."""
        self._coordinator.rebalance(n_shards)

    def compact(self) -> None:
        """Erase removed rows from the files."""
        self._coordinator.compact()

    def close(self) -> None:
        """End the shards."""
        self._coordinator.close()

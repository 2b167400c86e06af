"""The node half as an actor of Ray."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import ray

from graftboost.distributed.coordinator import Coordinator
from graftboost.distributed.exchange import Traffic
from graftboost.distributed.fitting import Estimator
from graftboost.distributed.folder import open_folder
from graftboost.distributed.ray_shards import RayHost
from graftboost.distributed.ray_waiting import PULSE, Alive
from graftboost.distributed.shards import Answers
from graftboost.distributed.sources import Source
from graftboost.persistence import file_format
from graftboost.persistence.model_file import contents

# The message and the category of each warning.
Warnings = list[tuple[str, type[Warning]]]


class CoordinatorActor(Alive):
    """Owns the node half of one model. If its process ends, another continues from its files.

    Parameters
    ----------
    name : str
        The name of the model.
    storage : str
        The folder of the model's files.
    resources : dict
        Options of the actors of shards.
    timeout : float
        Seconds after which a shard that makes no progress counts as lost.
    """

    def __init__(self, name: str, storage: str, resources: dict[str, Any], timeout: float) -> None:
        self._settings = (name, storage, resources, timeout)
        self._progress = (0, math.nan)
        self._frozen: tuple[str, bytes] | None = None
        host = RayHost(name, storage, resources, timeout)
        self._coordinator = Coordinator(open_folder(storage), host)

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def version(self) -> str:
        """Return a text that is another one after each change."""
        return self._coordinator.version

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def settings(self) -> tuple[str, str, dict[str, Any], float]:
        """Return what this actor was started with."""
        return self._settings

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def frozen(self) -> tuple[str, bytes] | None:
        """Return a version and the file of the model for predictions, as of the last change.

        None if this process has not used the model yet; call `frozen_now` then.
        """
        return self._frozen

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def progress(self) -> tuple[int, float]:
        """Return how many iterations of a fit are done, and the validation loss."""
        return self._progress

    @ray.method(concurrency_group=PULSE)  # type: ignore[untyped-decorator]
    def interrupt(self, request: str) -> None:
        """Undo what is being done for a request, unless it is decided by now."""
        self._coordinator.interrupt(request)

    def version_now(self) -> str:
        """Return the version when all calls before this one are done."""
        return self._coordinator.version

    # --- beginning --------------------------------------------------------------------------------

    def fit(
        self,
        request: str,
        estimator: Estimator,
        sources: Sequence[Source],
        validation: tuple[Any, Any, Any],
    ) -> tuple[None, Warnings]:
        """Train a model on the rows of these sources."""

        def on_iteration(n_done: int, loss: float) -> bool:
            self._progress = (n_done, loss)
            return False

        self._progress = (0, math.nan)
        return self._changed(
            lambda: self._coordinator.fit(request, estimator, sources, validation, on_iteration)
        )

    def begin_with(
        self, request: str, estimator: Estimator, n_shards: int
    ) -> tuple[None, Warnings]:
        """Take over a model that holds its rows itself."""
        return self._changed(lambda: self._coordinator.begin_with(request, estimator, n_shards))

    def load(self, request: str, path: str) -> tuple[None, Warnings]:
        """Begin with a model that `save` has written."""
        return self._changed(lambda: self._coordinator.load(request, open_folder(path)))

    def rebalance(self, request: str, n_shards: int) -> tuple[None, Warnings]:
        """Distribute the rows over so many shards."""
        return self._changed(lambda: self._coordinator.rebalance(request, n_shards))

    # --- operations -------------------------------------------------------------------------------

    def call(
        self,
        request: str,
        parameters: dict[str, Any],
        method: str,
        *arguments: Any,
        **named: Any,
    ) -> tuple[Any, Warnings]:
        """Change the model; return what the method of the estimator returns, unless it is self."""

        def change() -> Any:
            self._coordinator.fitted().set_params(**parameters)
            return self._coordinator.call(request, method, *arguments, **named)

        result, noted = self._changed(change)
        return None if isinstance(result, Estimator) else result, noted

    def _changed(self, change: Callable[[], Any]) -> tuple[Any, Warnings]:
        """Return the result of a change, and the warnings that the caller is to see."""
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            result = change()
        self.frozen_now()
        return result, [(str(warning.message), warning.category) for warning in noted]

    def compact(self) -> None:
        """Erase removed rows from the files."""
        self._coordinator.compact()

    def save(self, path: str) -> None:
        """Write the model and its rows to another folder."""
        self._coordinator.save(open_folder(path))

    def traffic(self) -> Traffic:
        """Return what was exchanged with shards."""
        return self._coordinator.traffic

    # --- reading ----------------------------------------------------------------------------------

    def read(self, parameters: dict[str, Any], method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the estimator that changes nothing, or read an attribute."""
        found = getattr(self._coordinator.fitted().set_params(**parameters), method)
        return found(*arguments, **named) if callable(found) else found

    def read_rows(self, version: str, message: bytes) -> Answers:
        """Answer a message that only reads."""
        return self._coordinator.read_rows(version, message)

    def frozen_now(self) -> tuple[str, bytes]:
        """Return the version, and the file of the model for predictions, after all calls before."""
        header, arrays = contents(self._coordinator.fitted()._saved(), state=False)
        self._frozen = self._coordinator.version, file_format.dumps(header, arrays)
        return self._frozen

    def node_half(self) -> tuple[str, bytes, bytes]:
        """Return what `frozen_now` returns, and the node half."""
        return (*self.frozen_now(), self._coordinator.fitted()._engine_model.node_half())

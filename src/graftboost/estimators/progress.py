"""What a fit tells while it runs: the line that `verbose` shows, and scikit-learn's callbacks."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""


__all__ = ["CallbackSupportMixin", "OnIteration", "Progress", "ProgressLine"]

# What the engine calls after each iteration, with the number of iterations done and the validation
# loss (NaN without validation rows). True stops the fit there.
OnIteration = Callable[[int, float], bool]


class ProgressLine:
    """One line about a fit that takes long, rewritten in place on a terminal.

    Nothing is shown in the first second. Where the line cannot be rewritten, in a log or a
    notebook, a new one comes every ten seconds. A fit ends with one line in any case.

    Parameters
    ----------
    title : str
        What is being fitted.
    n_iterations : int
        How many iterations there will be at most.
    stream : file
        Where to write; standard error if not given.
    clock : callable
        Returns the time in seconds.

    Examples
    --------
    >>> import sys
    >>> clock = iter([0.0, 0.5, 0.9, 0.9])
    >>> line = ProgressLine("Model", 2, stream=sys.stdout, clock=clock.__next__)
    >>> line.on_iteration(1, 0.5), line.on_iteration(2, 0.25)
    (False, False)
    >>> line.close()
    Model: 2 of 2 iterations, 0.9 s, validation loss 0.25
    """

    def __init__(
        self,
        title: str,
        n_iterations: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._title = title
        self._n_iterations = n_iterations
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._in_place = self._stream.isatty()
        self._start = clock()
        self._next = self._start + 1.0
        self._pause = 0.1 if self._in_place else 10.0
        self._width = 0
        self._state = (0, math.nan)

    def on_iteration(self, iteration: int, validation_loss: float) -> bool:
        """Take note of an iteration, and show it if it is time to."""
        self._state = (iteration, validation_loss)
        now = self._clock()
        if now >= self._next:
            self._next = now + self._pause
            self._write(now, last=False)
        return False

    def close(self) -> None:
        """Show how the fit ended."""
        self._write(self._clock(), last=True)

    def _write(self, now: float, last: bool) -> None:
        iteration, loss = self._state
        text = f"{self._title}: {iteration} of {self._n_iterations} iterations"
        text += f", {now - self._start:.1f} s"
        if not math.isnan(loss):
            text += f", validation loss {loss:.6g}"
        if self._in_place:
            # Blanks cover what a longer line left behind.
            self._width, padding = len(text), " " * (self._width - len(text))
            text = f"\r{text}{padding}"
        self._stream.write(text if self._in_place and not last else f"{text}\n")
        self._stream.flush()


class CallbackTasks:
    """A fit as scikit-learn's callbacks see it: one task, with a subtask for each iteration.

    The trees of an unfinished fit belong to the engine, so callbacks get a `fitted_estimator` only
    when the fit ends. A callback that returns True after an iteration ends the fit there.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted; its callbacks are set up here.
    n_iterations : int
        How many iterations there will be at most.
    data : mapping
        X, y and metadata as the caller of `fit` gave them.
    """

    def __init__(self, estimator: Any, n_iterations: int, data: Mapping[str, Any]) -> None:
        self._arguments = {"estimator": estimator, **data}
        self._n_iterations = n_iterations
        self._fit = estimator._init_callback_context(max_subtasks=n_iterations)
        self._fit.call_on_fit_task_begin(**self._arguments)
        # The fit takes part in a meta-estimator's tasks even if it has no callbacks of its own.
        self.is_watched = bool(getattr(estimator, "_skl_callbacks", None))
        self._iteration: Any = self._begin_iteration() if self.is_watched else None

    def on_iteration(self, iteration: int, validation_loss: float) -> bool:
        """End one iteration and begin the next; tell whether a callback wants to stop."""
        stop = bool(self._iteration.call_on_fit_task_end(**self._arguments))
        if not stop and iteration < self._n_iterations:
            self._iteration = self._begin_iteration()
        return stop

    def close(self) -> None:
        """End the task; the estimator is fitted."""
        self._fit.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})

    def _begin_iteration(self) -> Any:
        context = self._fit.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(**self._arguments)
        return context


class Progress:
    """All that listens to one fit of an estimator.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted, with its `verbose` and its callbacks.
    data : mapping
        X, y and metadata as the caller of `fit` gave them.
    """

    def __init__(self, estimator: Any, data: Mapping[str, Any]) -> None:
        self._listeners: list[ProgressLine | CallbackTasks] = []
        self._hooks: list[OnIteration] = []
        if hasattr(estimator, "_init_callback_context"):
            tasks = CallbackTasks(estimator, estimator.n_estimators, data)
            self._listeners.append(tasks)
            if tasks.is_watched:
                self._hooks.append(tasks.on_iteration)
        if estimator.verbose:
            line = ProgressLine(type(estimator).__name__, estimator.n_estimators)
            self._listeners.append(line)
            self._hooks.append(line.on_iteration)

    @property
    def on_iteration(self) -> OnIteration | None:
        """What the engine is to call, or None: then it need not leave its loop."""
        return self._tell_all if self._hooks else None

    def close(self) -> None:
        """Tell that the fit has succeeded."""
        for listener in self._listeners:
            listener.close()

    def _tell_all(self, iteration: int, validation_loss: float) -> bool:
        # Every listener is to hear of the iteration, even if one before it wants to stop.
        answers = [hook(iteration, validation_loss) for hook in self._hooks]
        return any(answers)

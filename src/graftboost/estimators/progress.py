"""Progress of a fit: the line shown with `verbose`, and scikit-learn's callbacks."""

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
        """A placeholder without any effect."""


__all__ = ["CallbackSupportMixin", "OnIteration", "Progress", "ProgressLine"]

# The engine calls this after each iteration, with the number of iterations done and the validation
# loss (NaN without validation rows). Returning True stops the fit.
OnIteration = Callable[[int, float], bool]


class ProgressLine:
    """A progress line for a long fit, rewritten in place on a terminal.

    Nothing is shown during the first second. In a log or a notebook, where the line cannot be
    rewritten, a new line is printed every ten seconds. Every fit ends with one line.

    Parameters
    ----------
    title : str
        The name of the estimator.
    n_iterations : int
        The maximal number of iterations.
    stream : file
        The output stream. Default: standard error.
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
        """Record an iteration, and show it if enough time has passed."""
        self._state = (iteration, validation_loss)
        now = self._clock()
        if now >= self._next:
            self._next = now + self._pause
            self._write(now, last=False)
        return False

    def close(self) -> None:
        """Show the final line."""
        self._write(self._clock(), last=True)

    def _write(self, now: float, last: bool) -> None:
        iteration, loss = self._state
        text = f"{self._title}: {iteration} of {self._n_iterations} iterations"
        text += f", {now - self._start:.1f} s"
        if not math.isnan(loss):
            text += f", validation loss {loss:.6g}"
        if self._in_place:
            # Spaces overwrite the rest of a longer line.
            self._width, padding = len(text), " " * (self._width - len(text))
            text = f"\r{text}{padding}"
        self._stream.write(text if self._in_place and not last else f"{text}\n")
        self._stream.flush()


class CallbackTasks:
    """A fit for scikit-learn's callbacks: one task, with a subtask for each iteration.

    The trees of an unfinished fit belong to the engine, so callbacks get a `fitted_estimator` only
    when the fit ends. A callback that returns True after an iteration stops the fit.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    n_iterations : int
        The maximal number of iterations.
    data : mapping
        X, y and metadata as passed to `fit`.
    """

    def __init__(self, estimator: Any, n_iterations: int, data: Mapping[str, Any]) -> None:
        self._arguments = {"estimator": estimator, **data}
        self._n_iterations = n_iterations
        self._fit = estimator._init_callback_context(max_subtasks=n_iterations)
        self._fit.call_on_fit_task_begin(**self._arguments)
        # The fit takes part in the tasks of a meta-estimator even without its own callbacks.
        self.is_watched = bool(getattr(estimator, "_skl_callbacks", None))
        self._iteration: Any = self._begin_iteration() if self.is_watched else None

    def on_iteration(self, iteration: int, validation_loss: float) -> bool:
        """End one iteration and begin the next; return whether a callback wants to stop."""
        stop = bool(self._iteration.call_on_fit_task_end(**self._arguments))
        if not stop and iteration < self._n_iterations:
            self._iteration = self._begin_iteration()
        return stop

    def close(self) -> None:
        """End the task of a fitted estimator."""
        self._fit.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})

    def _begin_iteration(self) -> Any:
        context = self._fit.subcontext(task_name="iteration")
        context.call_on_fit_task_begin(**self._arguments)
        return context


class Progress:
    """All listeners of one fit of an estimator.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted, with its `verbose` and its callbacks.
    data : mapping
        X, y and metadata as passed to `fit`.
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
        """The function that the engine calls, or None if there are no listeners."""
        return self._tell_all if self._hooks else None

    def close(self) -> None:
        """Notify the listeners that the fit has succeeded."""
        for listener in self._listeners:
            listener.close()

    def _tell_all(self, iteration: int, validation_loss: float) -> bool:
        # All listeners are called, even if one of them wants to stop.
        answers = [hook(iteration, validation_loss) for hook in self._hooks]
        return any(answers)

"""A call that raises an error leaves the estimator unchanged, whatever the cause."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from graftboost import GraftBoostClassifier, GraftBoostRegressor

N_ROWS = 200
X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
Y = np.where(X[:, 0] > 0, "up", "down")
ERRORS = [MemoryError, KeyboardInterrupt]


class Failing:
    """Looks like an array until its values are requested."""

    def __init__(self, error, shape):
        self.error = error
        self.shape = shape
        self.ndim = len(shape)

    def __len__(self):
        return self.shape[0]

    def __array__(self, dtype=None, copy=None):
        raise self.error


def fitted(Estimator=GraftBoostClassifier, **parameters):
    model = Estimator(n_estimators=4, min_samples_leaf=4, n_jobs=1, **parameters)
    model.fit(FRAME, X[:, 1] if Estimator is GraftBoostRegressor else Y)
    model.remove([3, 4])
    return model


def state_of(model):
    """Identities of all attributes, and the values that an update may change."""
    attributes = dict(vars(model))
    classes = {n: found.tolist() for n, found in attributes.get("_classes", {}).items()}
    seen = (model.n_features_in_, model.feature_names_in_.tolist(), model.row_ids_.tolist())
    return {name: id(value) for name, value in attributes.items()}, classes, seen


def assert_unchanged(model, call, error, match=None):
    """Check that a call raises an error and has no effect."""
    before, predicted = state_of(model), model.predict(FRAME)
    with pytest.raises(error, match=match):
        call(model)
    assert state_of(model) == before
    assert np.array_equal(model.predict(FRAME), predicted)
    model.check_state()
    y = X[:1, 1] if isinstance(model, GraftBoostRegressor) else Y[:1]
    assert model.add(FRAME[:1], y).added_ids.tolist() == [N_ROWS]
    model.remove([0, N_ROWS])
    model.check_state()


# --- fit ------------------------------------------------------------------------------------------

OTHER = {"X": X[:, :2], "y": np.arange(N_ROWS) % 4}
LATE = {
    "weights": ({"sample_weight": -np.ones(N_ROWS)}, "sample_weight is negative"),
    "ids": ({"row_ids": np.zeros(N_ROWS, dtype=int)}, "row_ids contains 0 more than once"),
    "validation": ({"X_val": X, "y_val": np.arange(N_ROWS)}, "X_val has 3 features"),
    "targets": ({"y": [*range(N_ROWS - 1), None]}, "y contains NaN"),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("argument", ["X", "y", "sample_weight", "row_ids", "X_val", "y_val"])
def test_second_fit_with_a_failing_argument(error, argument):
    arguments = {**OTHER, "X_val": X[:, :2], "y_val": OTHER["y"]}
    arguments[argument] = Failing(error, (N_ROWS, 2) if argument[0] == "X" else (N_ROWS,))
    assert_unchanged(fitted(), lambda model: model.fit(**arguments), error)


@pytest.mark.parametrize(("arguments", "message"), LATE.values(), ids=LATE)
def test_second_fit_with_an_invalid_argument(arguments, message):
    assert_unchanged(
        fitted(), lambda model: model.fit(**{**OTHER, **arguments}), ValueError, message
    )


class Stream:
    """A file that cannot be written to."""

    def __init__(self, error):
        self.error = error

    def isatty(self):
        return False

    def write(self, text):
        raise self.error

    def flush(self):
        pass


@pytest.mark.parametrize("error", [*ERRORS, BrokenPipeError])
@pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])
def test_second_fit_cannot_write_its_last_line(Estimator, error, monkeypatch):
    model = fitted(Estimator, verbose=1)
    monkeypatch.setattr(sys, "stderr", Stream(error))
    assert_unchanged(model, lambda model: model.fit(**OTHER), error)
    new = Estimator(n_estimators=2, verbose=1)
    with pytest.raises(error):
        new.fit(**OTHER)
    with pytest.raises(NotFittedError):
        new.predict(X)
    assert not hasattr(new, "n_features_in_")


class FailingCallback:
    """One of scikit-learn's callbacks; fails when a task of the given name ends."""

    def __init__(self, task, error):
        self.task = task
        self.error = error

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        if context.task_name == self.task:
            raise self.error


@pytest.mark.parametrize("error", [*ERRORS, RuntimeError])
@pytest.mark.parametrize("task", ["iteration", "fit"])
def test_second_fit_with_a_failing_callback(error, task):
    pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")
    model = fitted().set_callbacks(FailingCallback(task, error))
    assert_unchanged(model, lambda model: model.fit(**OTHER), error)


@pytest.mark.parametrize("milliseconds", [1, 5, 20, 50])
def test_second_fit_interrupted_by_ctrl_c(milliseconds):
    """A signal interrupts the engine between two iterations."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread receives signals")

    def press(number, frame):
        raise KeyboardInterrupt

    def fit(model):
        signal.setitimer(signal.ITIMER_REAL, milliseconds / 1e3)
        model.fit(**OTHER)

    model = fitted().set_params(n_estimators=100_000)
    outer = signal.signal(signal.SIGALRM, press)
    try:
        assert_unchanged(model, fit, KeyboardInterrupt)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, outer)


def test_second_fit_runs_out_of_memory():
    """In a process whose memory limit is just above its present use."""
    program = """
        import resource
        from pathlib import Path
        import numpy as np
        from graftboost import GraftBoostClassifier

        X = np.random.default_rng(0).normal(size=(300_000, 2))
        model = GraftBoostClassifier(n_estimators=60, max_leaf_nodes=2, n_jobs=1)
        model.fit(X[:500], X[:500, 0] > 0)
        before = model.predict_proba(X[:500])
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (50 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            model.fit(X, np.arange(len(X)) % 3)
        except MemoryError:
            print("memory ran out")
        assert np.array_equal(model.predict_proba(X[:500]), before)
        assert model.classes_.tolist() == [False, True]
        model.remove([5])
        model.check_state()
        assert model.add(X[:1], [True]).added_ids.tolist() == [500]
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "memory ran out\n", "")


# --- updates --------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("argument", ["X", "y", "sample_weight", "row_ids", "remove"])
def test_update_with_a_failing_argument(error, argument):
    arguments = {"X": FRAME[:6], "y": ["unseen"] * 6, "remove": [5]}
    arguments[argument] = Failing(error, (6, 3) if argument == "X" else (6,))
    assert_unchanged(fitted(), lambda model: model.update(**arguments), error)


REFUSED = {
    "an id that is held": {"row_ids": [900, 901, 902, 903, 904, 7]},
    "an id that is not held": {"remove": [3]},
    "an id too many": {"remove": [5, 5]},
}


@pytest.mark.parametrize("arguments", REFUSED.values(), ids=REFUSED)
def test_update_with_an_unseen_class_that_the_engine_refuses(arguments):
    rows = {"X": FRAME[:6], "y": ["unseen"] * 6}
    assert_unchanged(fitted(), lambda model: model.update(**rows, **arguments), ValueError)


def test_another_class_can_be_added_after_a_refused_one():
    model = fitted()
    with pytest.raises(ValueError, match="already holds"):
        model.add(FRAME[:20], ["first"] * 20, row_ids=range(20))
    model.add(FRAME[:20], ["second"] * 20)
    assert model.classes_.tolist() == ["down", "second", "up"]
    assert set(model.predict(FRAME)) <= {"down", "second", "up"}


@pytest.mark.parametrize(
    ("parameter", "value", "name"),
    [
        *[("n_jobs", 0, name) for name in ("add", "remove", "refit", "refresh", "regrow")],
        *[("n_jobs", "all", name) for name in ("add", "remove", "refit", "refresh", "regrow")],
        *[("stats_memory", -1, name) for name in ("add", "remove", "regrow")],
        *[("tolerance", "low", name) for name in ("add", "remove", "regrow")],
        *[("fidelity", "low", name) for name in ("add", "remove", "regrow")],
        *[("memory_floor", -1, name) for name in ("add", "remove", "regrow")],
        *[("update_rule", "low", name) for name in ("add", "remove", "regrow")],
    ],
)
def test_updates_with_a_parameter_out_of_range(parameter, value, name):
    arguments = {"add": (FRAME[:6], ["unseen"] * 6), "remove": ([5],)}.get(name, ())
    model = fitted()
    good = getattr(model, parameter)
    before, predicted = state_of(model), model.predict(FRAME)
    model.set_params(**{parameter: value})
    with pytest.raises((TypeError, ValueError), match=parameter):
        getattr(model, name)(*arguments)
    model.set_params(**{parameter: good})
    assert state_of(model) == before
    assert np.array_equal(model.predict(FRAME), predicted)
    assert model.add(FRAME[:1], Y[:1]).added_ids.tolist() == [N_ROWS]
    model.check_state()

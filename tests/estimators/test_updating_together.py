"""Concurrent calls and Ctrl-C: a model is in its state before an update, or after it."""

from __future__ import annotations

import dis
import itertools
import pickle
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import graftboost
from graftboost import GraftBoostClassifier, GraftBoostRegressor

X, Y = load_iris(return_X_y=True)
KNOWN = np.flatnonzero(Y < 2)
UNSEEN = np.flatnonzero(Y == 2)
NAMES = np.array(["lily", "rose", "aster"])[Y]  # the unseen class is the first in `classes_`


def fitted(Estimator=GraftBoostClassifier, **parameters):
    """A model of the first two species of iris; the id of a row is its index in X."""
    settings = {"n_estimators": 5, "min_samples_leaf": 3, "n_jobs": 1, **parameters}
    labels = Y if Estimator is GraftBoostRegressor else NAMES
    return Estimator(**settings).fit(X[KNOWN], labels[KNOWN], row_ids=KNOWN)


def copy_of(model):
    return pickle.loads(pickle.dumps(model))


def state_of(model):
    """Public attributes, the engine's bytes, and the state that the next update starts from."""
    return (
        pickle.dumps(model._engine_model),
        model.row_ids_.tolist(),
        model._next_id,
        {number: found.tolist() for number, found in getattr(model, "_classes", {}).items()},
        model.n_rows_,
        model.classes_.tolist() if hasattr(model, "classes_") else None,
        model.predict(X).tolist(),
    )


def add_unseen(model):
    return model.add(X[UNSEEN], NAMES[UNSEEN], row_ids=UNSEEN)


# --- predictions during updates -----------------------------------------------------------------

STEPS = [
    lambda model: model.remove([3, 70]),
    lambda model: model.set_params(update_rule="fidelity", tolerance=None),
    lambda model: model.remove([5, 60, 61, 80], regrow=False),
    lambda model: model.pending_,
    lambda model: model.regrow(),
    lambda model: model.remove([6, 62], regrow=False),
    lambda model: model.set_params(update_rule="regret", tolerance=0.0),
    lambda model: model.add(X[:2], NAMES[:2], row_ids=[900, 901]),
    add_unseen,
    lambda model: model.remove(slice(20, 30)),
    lambda model: model.update(X[20:30], NAMES[20:30], row_ids=range(20, 30), remove=[0, 120]),
    lambda model: model.remove(slice(0, 60)),
    lambda model: model.refit(),
]


@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict", "apply"])
def test_predictions_are_those_of_one_state(method):
    model = fitted(update_rule="regret", tolerance=0.0)
    predict = getattr(model, method)
    copy = copy_of(model)
    known = {getattr(copy, method)(X).tobytes()}
    for step in STEPS:
        step(copy)
        known.add(getattr(copy, method)(X).tobytes())
    seen = []
    done = threading.Event()

    def watch():
        while not done.is_set():
            seen.append(predict(X))

    watchers = [threading.Thread(target=watch) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    try:
        for step in STEPS:
            step(model)
    finally:
        done.set()
        for watcher in watchers:
            watcher.join()
    assert len(seen) >= len(watchers)
    assert {values.tobytes() for values in seen} <= known
    assert predict(X).tobytes() == getattr(copy, method)(X).tobytes()
    model.check_state()


# --- concurrent updates -------------------------------------------------------------------------


def call_concurrently(*calls):
    """Make each call in a thread of its own, all at the same time; return the results."""
    start = threading.Barrier(len(calls))

    def wait_and_call(call):
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(wait_and_call, c) for c in calls]]


@pytest.mark.parametrize(
    "parameters", [{}, {"update_rule": "regret", "tolerance": 0.0}, {"fidelity": 0.0}]
)
def test_two_concurrent_updates_equal_sequential_ones(parameters):
    model = fitted(**parameters)
    steps = [
        lambda model: model.remove([5, 60, 61]),
        lambda model: model.add(X[:4], NAMES[:4], row_ids=range(500, 504)),
    ]
    check_concurrently(model, steps)


def test_concurrent_deferral_and_regrowing_equal_sequential_ones():
    model = fitted()
    model.remove([7, 8, 90], regrow=False)
    steps = [
        lambda model: model.remove([5, 60, 61], regrow=False),
        lambda model: model.regrow(),
        lambda model: model.pending_,
    ]
    check_concurrently(model, steps)


def check_concurrently(model, steps):
    """Check that concurrent calls have the effect of sequential ones, in any order."""
    serial = []
    for order in itertools.permutations(steps):
        copy = copy_of(model)
        for step in order:
            step(copy)
        serial.append(state_of(copy))
    for _ in range(10):
        copy = copy_of(model)
        call_concurrently(*[partial(step, copy) for step in steps])
        assert state_of(copy) in serial
        copy.check_state()


def test_concurrent_updates_assign_different_ids():
    model = fitted()
    reports = call_concurrently(
        *[partial(model.add, X[row : row + 3], NAMES[:3]) for row in range(8)]
    )
    ids = np.concatenate([report.added_ids for report in reports])
    assert sorted(ids.tolist()) == list(range(100, 124))
    assert sorted(model.row_ids_.tolist()) == list(range(124))
    model.check_state()


def test_concurrent_updates_that_add_classes():
    kinds = {"aster": UNSEEN[:25], "zinnia": UNSEEN[25:]}
    serial = fitted()
    for name, rows in kinds.items():
        serial.add(X[rows], [name] * 25, row_ids=rows)
    for _ in range(10):
        model = fitted()
        call_concurrently(
            *[
                partial(model.add, X[rows], [name] * 25, row_ids=rows)
                for name, rows in kinds.items()
            ]
        )
        assert model.classes_.tolist() == ["aster", "lily", "rose", "zinnia"]
        assert np.array_equal(model.predict_proba(X), serial.predict_proba(X))
        model.check_state()


def test_copies_do_not_wait_for_each_other():
    model = fitted()
    with model._update_lock.lock:
        copy_of(model).remove([0])
    assert model.n_rows_ == 100


def test_a_model_can_be_pickled_during_updates():
    for _ in range(10):
        model = fitted()
        _, pickled = call_concurrently(partial(add_unseen, model), partial(pickle.dumps, model))
        copy = pickle.loads(pickled)
        assert copy.n_rows_ in (100, 150)
        assert len(copy.classes_) == (2 if copy.n_rows_ == 100 else 3)
        assert set(copy.predict(X)) <= set(copy.classes_)
        copy.check_state()


# --- Ctrl-C -------------------------------------------------------------------------------------


def labels_for(model):
    return Y if isinstance(model, GraftBoostRegressor) else NAMES


CALLS = {
    "add": lambda model: model.add(X[:3], labels_for(model)[:3]),
    "remove": lambda model: model.remove([1, 2, 99]),
    "update": lambda model: model.update(
        X[:3], labels_for(model)[:3], row_ids=[7, 700, 701], remove=[7, 8]
    ),
    "remove later": lambda model: model.remove([1, 2, 99], regrow=False),
    "regrow": lambda model: model.regrow(),
    "an unseen class": add_unseen,
    "refit": lambda model: model.refit(),
}

# Files that an update passes through.
INTERRUPTED = [
    "estimators/added_rows",
    "estimators/held_rows",
    "estimators/regrowing",
    "estimators/update_request",
    "estimators/updating",
    "input/row_ids",
]


def interrupted(call, moment):
    """Make a call with Ctrl-C at the given moment; return whether the call lasted until then.

    The moments are those at which Python checks for signals in our code: at the beginning of a
    function, after each call, and at the end of each iteration of a loop.
    """
    folder = Path(graftboost.__file__).parent
    ours = {str(folder / f"{name}.py") for name in INTERRUPTED}
    left = moment
    last = {}

    def trace(frame, event, argument):
        nonlocal left
        if frame.f_code.co_filename not in ours:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            if last.get(frame, "RESUME").startswith(("RESUME", "CALL", "JUMP_BACKWARD")):
                left -= 1
            if left < 0:
                raise KeyboardInterrupt
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    return False


def assert_one_of(model, before, after):
    """Check that a model is entirely in one of two states, and can be updated from there."""
    state = state_of(model)
    assert state in (before, after)
    model.check_state()
    assert not model._update_lock.lock.locked()
    largest = max(state[1])
    assert model.add(X[:1], labels_for(model)[:1]).added_ids[0] > largest
    model.check_state()
    return state == after


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_ctrl_c_at_every_moment(call):
    model = fitted(fidelity=0.0)
    model.remove([40, 41, 90], regrow=False)
    before = state_of(model)
    copy = copy_of(model)
    call(copy)
    after = state_of(copy)
    outcomes = []
    for moment in itertools.count():
        copy = copy_of(model)
        if not interrupted(lambda copy=copy: call(copy), moment):
            break
        outcomes.append(assert_one_of(copy, before, after))
    assert set(outcomes) == {False, True}  # before and after the update took effect
    assert outcomes == sorted(outcomes)


@pytest.fixture
def alarm():
    """Return a function that schedules Ctrl-C after some seconds; 0 cancels it."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread receives signals")

    def press(number, frame):
        raise KeyboardInterrupt

    outer = signal.signal(signal.SIGALRM, press)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, outer)


@pytest.mark.parametrize("Estimator", [GraftBoostClassifier, GraftBoostRegressor])
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_after_a_delay(Estimator, name, alarm):
    if Estimator is GraftBoostRegressor and name == "an unseen class":
        pytest.skip("a regressor has no classes")
    model = fitted(Estimator, n_estimators=20)
    model.remove([40, 41, 90], regrow=False)
    before = state_of(model)
    copy = copy_of(model)
    CALLS[name](copy)
    after = state_of(copy)
    for microseconds in np.geomspace(20, 20_000, 25):
        copy = copy_of(model)
        try:
            alarm(microseconds / 1e6)
            CALLS[name](copy)
            alarm(0)
        except KeyboardInterrupt:
            pass
        assert_one_of(copy, before, after)

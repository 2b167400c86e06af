"""Progress lines and callbacks of a fit."""

import io
import math

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.estimators.progress import ProgressLine


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def show(times, *, terminal, loss=math.nan):
    """Return what is written when iterations end at the given times, the last ending the fit."""
    stream, clock = Stream(terminal), iter([0.0, *times, times[-1]])
    line = ProgressLine("Model", len(times), stream, clock.__next__)
    for iteration in range(1, len(times) + 1):
        assert line.on_iteration(iteration, loss) is False
    line.close()
    return stream.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_short_fits_end_with_one_line(terminal):
    assert show([0.2, 0.4], terminal=terminal).lstrip("\r") == "Model: 2 of 2 iterations, 0.4 s\n"


def test_a_terminal_shows_one_line_in_place():
    text = show([0.5, 1.5, 1.55, 2.0], terminal=True, loss=0.25)
    assert text == (
        "\rModel: 2 of 4 iterations, 1.5 s, validation loss 0.25"
        "\rModel: 4 of 4 iterations, 2.0 s, validation loss 0.25"
        "\rModel: 4 of 4 iterations, 2.0 s, validation loss 0.25\n"
    )


def test_a_shorter_line_covers_a_longer_one():
    stream, clock = Stream(True), iter([0.0, 2.0, 3.0, 3.0])
    line = ProgressLine("Model", 2, stream, clock.__next__)
    line.on_iteration(1, 0.123456)
    line.on_iteration(2, 0.5)
    line.close()
    lines = stream.getvalue().split("\r")[1:]
    assert len(lines[1]) == len(lines[0])


def test_a_log_gets_a_line_at_intervals():
    text = show(list(range(1, 26)), terminal=False)
    assert [line.split()[1] for line in text.splitlines()] == ["1", "11", "21", "25"]


def test_verbose(two_classes, capsys):
    X, y = two_classes
    GraftBoostClassifier(n_estimators=3).fit(X, y)
    assert capsys.readouterr() == ("", "")
    GraftBoostClassifier(n_estimators=3, verbose=1).fit(X, y, X_val=X, y_val=y)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("GraftBoostClassifier: 3 of 3 iterations, ")
    assert "validation loss 0." in err


def test_verbose_reports_early_stopping(two_classes, capsys):
    X, y = two_classes
    model = GraftBoostRegressor(n_estimators=500, early_stopping=True, verbose=True).fit(X, y)
    n_trained = len(model.validation_losses_)
    assert f"{n_trained} of 500 iterations" in capsys.readouterr().err


# scikit-learn's callbacks.


class Recorder:
    """A callback that records its calls, and ends the fit after a given iteration."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        self.events.append(("end", context.task_name, context.task_id))
        self.last = (X, y, metadata, fitted_estimator)
        return context.task_name == "iteration" and context.task_id + 1 == self.stop_after


class PropagatedRecorder(Recorder):
    max_propagation_depth = None


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="callbacks need scikit-learn 1.9")


@pytest.mark.usefixtures("callbacks")
def test_callbacks_are_called_for_every_iteration(two_classes):
    X, y = two_classes
    recorder = Recorder()
    model = GraftBoostClassifier(n_estimators=2).set_callbacks(recorder)
    model.fit(X, y, sample_weight=y + 1)
    assert recorder.events == [
        "setup",
        ("begin", "fit", 0),
        ("begin", "iteration", 0),
        ("end", "iteration", 0),
        ("begin", "iteration", 1),
        ("end", "iteration", 1),
        ("end", "fit", 0),
        "teardown",
    ]
    last_X, last_y, metadata, fitted = recorder.last
    assert last_X is X
    assert last_y is y
    assert list(metadata) == ["sample_weight"]
    assert fitted.score(X, y) == model.score(X, y)


@pytest.mark.usefixtures("callbacks")
def test_a_callback_may_end_the_fit(two_classes):
    X, y = two_classes
    recorder = Recorder(stop_after=4)
    model = GraftBoostRegressor(n_estimators=50, verbose=1).set_callbacks(recorder).fit(X, y)
    assert model.n_iter_ == 4
    short = GraftBoostRegressor(n_estimators=4).fit(X, y)
    assert (model.predict(X) == short.predict(X)).all()
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]


@pytest.mark.usefixtures("callbacks")
def test_an_error_in_a_callback_leaves_the_model_unchanged(two_classes):
    X, y = two_classes

    class Failing(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("the callback failed")

    model = GraftBoostClassifier(n_estimators=3).fit(X, y)
    engine_model = model._engine_model
    failing = Failing()
    with pytest.raises(RuntimeError, match="the callback failed"):
        model.set_callbacks(failing).fit(X, 1 - y)
    assert model._engine_model is engine_model
    assert failing.events[-1] == "teardown"
    model.check_state()


@pytest.mark.usefixtures("callbacks")
def test_callbacks_of_a_pipeline(two_classes):
    X, y = two_classes
    recorder = PropagatedRecorder()
    model = GraftBoostClassifier(n_estimators=3)
    make_pipeline(StandardScaler(), model).set_callbacks(recorder).fit(X, y)
    assert [event for event in recorder.events if event[:2] == ("end", "iteration")] == [
        ("end", "iteration", iteration) for iteration in range(3)
    ]


def test_a_monitor_scores_the_fitted_model(two_classes, callbacks):
    X, y = two_classes
    monitor = callbacks.ScoringMonitor(scoring="accuracy")
    model = GraftBoostClassifier(n_estimators=3).set_callbacks(monitor).fit(X, y)
    assert monitor.get_logs().data[0]["accuracy"] == model.score(X, y)

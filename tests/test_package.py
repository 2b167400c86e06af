"""What `import graftboost` gives, and what it does not load."""

import importlib.metadata
import subprocess
import sys

import pytest

import graftboost


def test_version():
    assert graftboost.__version__ == importlib.metadata.version("graftboost")


def test_public_names():
    names = {"GraftBoostClassifier", "GraftBoostRegressor", "__version__", "load"}
    assert set(dir(graftboost)) == names
    assert all(getattr(graftboost, name) is not None for name in dir(graftboost))


def test_public_names_of_packages():
    from graftboost import estimators, persistence

    assert set(dir(estimators)) == {
        "GraftBoostClassifier",
        "GraftBoostRegressor",
        "UpdateReport",
        "load",
    }
    assert all(getattr(estimators, name).__name__ == name for name in dir(estimators))
    assert estimators.GraftBoostClassifier is graftboost.GraftBoostClassifier
    assert issubclass(persistence.NewerFileError, persistence.InvalidFileError)
    assert issubclass(persistence.InvalidFileError, ValueError)
    assert issubclass(persistence.UncertainError, OSError)
    with pytest.raises(AttributeError, match=r"'graftboost\.estimators' has no attribute 'Ranker'"):
        estimators.Ranker  # noqa: B018


def test_unknown_names():
    with pytest.raises(AttributeError, match="'graftboost' has no attribute 'GraftBoostRanker'"):
        graftboost.GraftBoostRanker  # noqa: B018


def test_importing_the_package_loads_nothing_heavy():
    program = "import sys, graftboost; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )
    assert not {"numpy", "scipy", "sklearn", "narwhals"} & set(loaded.stdout.split())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_no_data_frame_library_is_needed(library):
    program = f"""if True:
        import sys
        sys.modules["{library}"] = None
        import numpy as np
        from graftboost import GraftBoostRegressor
        X = np.arange(60.0).reshape(30, 2)
        GraftBoostRegressor(n_estimators=2).fit(X, X[:, 0]).predict(X)
    """
    subprocess.run([sys.executable, "-c", program], check=True)

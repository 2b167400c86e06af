"""Data sets are loaded from the folder or OpenML, with the paper's preparation and sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import URLError

import numpy as np
import pytest

import datasets
from datasets import DataNotFoundError, paper, reading, sources
from datasets.sources import OpenML

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder from which data sets are loaded."""
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


class _OpenMLSite:
    """Replaces `fetch_openml`: a frame whose last column is the target."""

    def __init__(self, frame: Any) -> None:
        self.frame, self.asked = frame, []

    def __call__(self, name: str, *, version: int, **options: Any) -> SimpleNamespace:
        assert options["as_frame"]
        self.asked.append((name, version))
        target = self.frame.columns[-1]
        return SimpleNamespace(data=self.frame.drop(columns=target), target=self.frame[target])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> _OpenMLSite:
    frame = pd.DataFrame(
        {
            "age": [30.0, 40.0, 50.0, 60.0],
            "level": pd.Categorical(["10", "9", "10", "2"]),
            "job": pd.Categorical(["clerk", "baker", None, "clerk"]),
            "class": pd.Categorical([">50K", "<=50K", "<=50K", ">50K"]),
        }
    )
    there = _OpenMLSite(frame)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", there)
    known = replace(sources.SOURCES["adult"], openml=OpenML("adult", 2, 4, complete=True))
    monkeypatch.setitem(sources.SOURCES, "adult", known)
    return there


def test_sets_missing_in_the_folder_are_loaded_from_openml(folder: Path, site: _OpenMLSite) -> None:
    X, y = datasets.load_in_order("adult")
    assert site.asked == [("adult", 2)]
    # The row with a missing value is dropped, numbers in text are numbers, classes are indices.
    np.testing.assert_array_equal(X, [[30, 10, 1], [40, 9, 0], [60, 2, 1]])
    np.testing.assert_array_equal(y, [1, 0, 1])
    assert (X.dtype, y.dtype) == (np.float32, np.int64)


def test_the_folder_comes_first(folder: Path, site: _OpenMLSite) -> None:
    pd.DataFrame({"age": [1.0, 2.0], "target": [0, 1]}).to_parquet(folder / "adult.parquet")
    assert datasets.load_in_order("adult")[0].shape == (2, 1)
    assert not site.asked


def test_without_a_folder_sets_are_loaded_from_openml(
    site: _OpenMLSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(datasets.FOLDER_VARIABLE, raising=False)
    monkeypatch.setattr(reading, "ROOT", tmp_path / "clone")
    assert len(datasets.load_in_order("adult")[1]) == 3


def test_targets_in_text_become_numbers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rings = pd.DataFrame({"length": [1.0, 2.0], "rings": pd.Categorical(["10", "9"])})
    monkeypatch.setattr("sklearn.datasets.fetch_openml", _OpenMLSite(rings))
    known = replace(sources.SOURCES["abalone"], openml=OpenML("abalone", 1, 2))
    monkeypatch.setitem(sources.SOURCES, "abalone", known)
    y = datasets.load_in_order("abalone")[1]
    np.testing.assert_array_equal(y, [10.0, 9.0])
    assert y.dtype == np.float64


def test_unexpected_version_is_refused(folder: Path, site: _OpenMLSite) -> None:
    site.frame = site.frame.head(3)
    with pytest.raises(DataNotFoundError, match=r"version 2, has 3 rows where 4 were expected"):
        datasets.load("adult")


@pytest.mark.parametrize("error", [URLError("no network"), ValueError("no such data set")])
def test_error_names_both_sources(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fetch(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(DataNotFoundError) as raised:
        datasets.load("letter")
    said = str(raised.value)
    assert "no letter.parquet in" in said
    assert "OpenML's 'letter', version 1" in said
    assert f"Set {datasets.FOLDER_VARIABLE}" in said


def test_set_that_is_not_on_openml(folder: Path) -> None:
    with pytest.raises(DataNotFoundError, match=r"no flights_3m\.parquet in .* OpenML does not"):
        datasets.load("flights_3m")


def test_a_wrong_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(datasets.FOLDER_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DataNotFoundError, match="nowhere is not a folder"):
        datasets.path_of("adult")


def test_unknown_names(folder: Path) -> None:
    with pytest.raises(ValueError, match="'iris' is not one of adult"):
        datasets.load("iris")
    with pytest.raises(ValueError, match="'iris' is not one of the paper's: adult"):
        paper.load("iris")


def test_a_time_becomes_four_features(folder: Path) -> None:
    when = pd.to_datetime(["2012-10-02 09:00", "2013-01-05 23:00"])
    frame = pd.DataFrame({"timestamp": when, "temp": [288.0, 260.0], "target": [5545, 1]})
    frame.to_parquet(folder / "metro_traffic.parquet")
    X, _ = datasets.load_in_order("metro_traffic")
    np.testing.assert_array_equal(X, [[288, 2012, 10, 1, 9], [260, 2013, 1, 5, 23]])


def _write_adult(folder: Path, n: int = 450) -> None:
    rng = np.random.default_rng(0)
    frame = {
        "age": np.arange(n, dtype=np.float64),
        "job": pd.Categorical(rng.choice(["baker", "clerk", "smith"], n)),
        "split": np.where(np.arange(n) < n // 2, "train", "test"),
        "target": rng.integers(0, 2, n),
    }
    pd.DataFrame(frame).to_parquet(folder / "adult.parquet")


def test_paper_sets_are_coded_and_split_in_its_proportion(folder: Path) -> None:
    _write_adult(folder)
    data = paper.load("adult")
    assert data.X_train.shape == (360, 4)  # one age and three jobs; 36,139 of 45,173
    assert data.X_test.shape == (90, 4)
    np.testing.assert_array_equal(data.X_train[:, 1:].sum(axis=1), 1)
    ages = np.concatenate([data.X_train[:, 0], data.X_test[:, 0]])
    np.testing.assert_array_equal(np.sort(ages), np.arange(450))


def test_paper_splits_follow_their_seed(folder: Path) -> None:
    _write_adult(folder)
    same, other = paper.load("adult", split=1), paper.load("adult", split=2)
    np.testing.assert_array_equal(same.X_train, paper.load("adult", split=1).X_train)
    assert not np.array_equal(same.X_train, other.X_train)
    small = paper.load("adult", split=1, max_rows=40)
    np.testing.assert_array_equal(small.X_train, same.X_train[:40])
    assert len(small.y_test) == 40


def test_paper_sizes_are_used_if_there_are_enough_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_adult(folder)
    monkeypatch.setitem(paper.SETS, "adult", replace(paper.SETS["adult"], n_train=100, n_test=50))
    data = paper.load("adult")
    assert (len(data.y_train), len(data.y_test)) == (100, 50)


def test_official_splits_are_kept_and_can_be_sampled(folder: Path) -> None:
    pixels = np.arange(60, dtype=np.float64)
    split = np.where(pixels < 40, "train", "test")
    frame = pd.DataFrame({"p0": pixels, "split": split, "target": np.arange(60) % 3})
    frame.to_parquet(folder / "optdigits.parquet")
    for seed in (0, 1):
        np.testing.assert_array_equal(paper.load("optdigits", seed).X_train[:, 0], np.arange(40))
    small = paper.load("optdigits", 1, max_rows=10)
    assert set(small.X_train[:, 0]) < set(range(40))
    assert set(small.X_test[:, 0]) < set(range(40, 60))


def test_regression_targets_are_scaled(folder: Path) -> None:
    frame = pd.DataFrame({"Length": np.arange(30.0), "target": np.arange(30) + 1})
    frame.to_parquet(folder / "abalone.parquet")
    data = paper.load("abalone")
    target = np.concatenate([data.y_train, data.y_test])
    assert (target.min(), target.max()) == (0.0, 1.0)


def test_series_are_lags_without_gaps(folder: Path) -> None:
    values = np.arange(60.0)
    values[5] = np.nan
    frame = pd.DataFrame({"year": 1750, "LandMaxTemperature": values, "target": values})
    frame.to_parquet(folder / "global_temperatures.parquet")
    X, y = paper.series("global_temperatures")
    assert X.shape == (60 - 15 - 6, 15)
    np.testing.assert_allclose(y, np.arange(21, 60) / 59)
    np.testing.assert_allclose(X[:, -1], np.arange(20, 59) / 59, rtol=1e-6)
    np.testing.assert_allclose(X[:, 0], np.arange(6, 45) / 59, rtol=1e-6)


def test_every_paper_set_has_a_source() -> None:
    assert list(paper.SETS)[:2] == ["adult", "credit_info"]
    for wanted in paper.SETS.values():
        assert sources.source_of(wanted.source).task == wanted.task
        assert (wanted.n_classes == 0) == (wanted.task == "regression")

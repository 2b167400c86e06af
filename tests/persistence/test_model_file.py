"""Models in files: what was saved comes back, and what is not a model is told from one."""

from __future__ import annotations

import datetime
import io
import json
import pickle
import stat
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

import graftboost
from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.persistence import file_format, model_file
from graftboost.persistence.file_format import InvalidFileError

N = 300


def _table(seed: int = 0, n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(4)})
    frame["x3"] = frame["x3"].where(rng.random(n) > 0.2)
    frame["colour"] = pd.Categorical(rng.choice(["red", "green", "blue"], n))
    return frame


def _models() -> dict[str, Any]:
    X, rng = _table(), np.random.default_rng(1)
    score = X["x0"] + (X["colour"] == "red") + rng.normal(scale=0.3, size=N)
    small = {"n_estimators": 8, "max_leaf_nodes": 6, "min_samples_leaf": 5}
    return {
        "binary": GraftBoostClassifier(**small).fit(X, score > 0),
        "several": GraftBoostClassifier(**small, subsample=0.7).fit(
            X, np.array(["low", "middle", "high"])[np.digitize(score, [-0.5, 0.8])]
        ),
        "regression": GraftBoostRegressor(**small).fit(X, score),
        "weighted": GraftBoostRegressor(**small, l2_regularization=0.5).fit(
            X.to_numpy(dtype=object, copy=True)[:, :3].astype(float), score, rng.random(N)
        ),
        "wide": GraftBoostRegressor(
            n_estimators=3, max_leaf_nodes=300, min_samples_leaf=1, split_sample=1.0
        ).fit(X[["x0", "x1"]], score),
    }


MODELS = _models()


@pytest.fixture(params=list(MODELS))
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]


def _features(model: Any, seed: int = 3, n: int = 40) -> Any:
    X = _table(seed, n)
    if not hasattr(model, "feature_names_in_"):
        return X.to_numpy(dtype=object)[:, :3].astype(float)
    return X[list(model.feature_names_in_)]


def _targets(model: Any, n: int) -> Any:
    rng = np.random.default_rng(9)
    if hasattr(model, "classes_"):
        return rng.choice(model.classes_, n)
    return rng.normal(size=n)


def _state(model: Any) -> bytes:
    return model_file.pack_engine_model(model._engine_model)


def test_a_model_comes_back(model: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.graft"
    model.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.graft"]
    again = graftboost.load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    X = _features(model)
    np.testing.assert_array_equal(again._raw_scores(X), model._raw_scores(X))
    np.testing.assert_array_equal(again.apply(X), model.apply(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    np.testing.assert_array_equal(again.row_ids_, model.row_ids_)
    assert _state(again) == _state(model)
    again.check_state()


def test_updates_go_on_where_they_were(model: Any, tmp_path: Path) -> None:
    """More rows come in than there is room for in the file, so the arrays move out of it."""
    path = tmp_path / "model.graft"
    other = pickle.loads(pickle.dumps(model))
    other.save(path)
    content = path.read_bytes()
    again = graftboost.load(path)
    X = _features(model, n=120)
    y = _targets(model, 120)
    for step in range(6):
        rows = slice(20 * step, 20 * step + 20)
        for updated in (other, again):
            updated.update(X[rows], y[rows], remove=[3 * step, 3 * step + 1])
        assert _state(again) == _state(other)
    again.check_state()
    again.refit()
    other.refit()
    assert _state(again) == _state(other)
    assert path.read_bytes() == content


def test_for_predicting_only(model: Any, tmp_path: Path) -> None:
    whole, small = tmp_path / "whole", tmp_path / "small"
    model.save(whole)
    model.save(small, updatable=False)
    assert small.stat().st_size < whole.stat().st_size / 2
    again = graftboost.load(small)
    X = _features(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.feature_importances_, model.feature_importances_)
    with pytest.raises(ValueError, match="holds no rows: it was fitted or saved with updatable"):
        again.remove([0])
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == small.read_bytes()
    with pytest.raises(ValueError, match="holds no rows"):
        again.save(tmp_path / "more", updatable=True)


def test_predicting_reads_no_state(tmp_path: Path) -> None:
    """So the state may be damaged for all it cares; an update finds out, and changes nothing."""
    path = tmp_path / "model.graft"
    model = MODELS["binary"]
    model.save(path)
    found = file_format.load(path)
    first = found.arrays["tree_recorded"].ctypes.data - found.arrays["bin_edges"].ctypes.data
    data = bytearray(path.read_bytes())
    at = int(_header(data)["arrays"]["bin_edges"][1]) + first
    data[at] ^= 1
    path.write_bytes(data)
    again = graftboost.load(path)
    X = _features(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for use in (
        lambda: again.remove([0]),
        again.refit,
        again.check_state,
        lambda: pickle.dumps(again),
    ):
        with pytest.raises(InvalidFileError, match="checksum of tree_recorded does not match"):
            use()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_pickle_and_joblib_go_through_the_same_bytes(model: Any, tmp_path: Path) -> None:
    data = pickle.dumps(model)
    assert file_format.MAGIC in data
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (pickle.loads(data), joblib.load(tmp_path / "model.joblib")):
        assert _state(again) == _state(model)
        again.remove([5])
        again.check_state()


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-3, 2**40]),
        np.array([1.0, 2.0]),
        np.array(["2020-01-01", "2020-02-01"], dtype="datetime64[D]"),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_every_kind(labels: Any, tmp_path: Path) -> None:
    X = _table()[["x0", "x1"]]
    model = GraftBoostClassifier(n_estimators=2).fit(
        X, labels[(X["x0"] > 0).to_numpy().astype(int)]
    )
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_categories_of_every_kind(tmp_path: Path) -> None:
    values = [3, 2.5, "three", datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 5), b"ab"]
    rng = np.random.default_rng(0)
    X = np.empty((N, 2), dtype=object)
    X[:, 0] = [values[i] for i in rng.integers(0, len(values), N)]
    X[:, 1] = rng.normal(size=N)
    model = GraftBoostRegressor(n_estimators=3, categorical_features=[0]).fit(X, rng.normal(size=N))
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    assert again._columns.categories[0].values == model._columns.categories[0].values
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_a_file_cannot_hold_is_named(tmp_path: Path) -> None:
    X = np.empty((60, 1), dtype=object)
    X[:, 0] = [complex(i % 3, 1) for i in range(60)]
    model = GraftBoostRegressor(n_estimators=2, categorical_features=[0]).fit(X, np.arange(60.0))
    with pytest.raises(TypeError, match=r"categories of feature 0: .*complex.*save the model"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_parameters_of_every_kind(tmp_path: Path) -> None:
    X, y = _table()[["x0", "x1"]], np.arange(N) % 2
    model = GraftBoostClassifier(
        n_estimators=np.int64(3),
        tolerance=np.inf,
        bin_edges={"x0": np.array([-1.0, 0.25]), "x1": [0.0]},
        class_weight={0: 1.0, 1: 2.5},
        random_state=np.random.RandomState(3),
        categorical_features=np.array([], dtype=int),
    ).fit(X, y)
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    assert again.tolerance == np.inf
    assert again.class_weight == model.class_weight
    assert np.array_equal(again.bin_edges["x0"], model.bin_edges["x0"])
    assert again.random_state is None
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    again.add(X[:2], [0, 1])


def test_new_classes_after_loading(tmp_path: Path) -> None:
    model = pickle.loads(pickle.dumps(MODELS["binary"]))
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    X = _features(model, n=30)
    model = GraftBoostClassifier(n_estimators=3).fit(X, ["a", "b"] * 15)
    model.save(tmp_path / "model")
    again = graftboost.load(tmp_path / "model")
    for updated in (model, again):
        updated.add(X[:10], ["c"] * 10)
    assert again.classes_.tolist() == ["a", "b", "c"]
    assert _state(again) == _state(model)
    again.save(tmp_path / "model")
    assert graftboost.load(tmp_path / "model").classes_.tolist() == ["a", "b", "c"]


# --- the file itself ------------------------------------------------------------------------------


def test_a_save_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"before")
    dump = file_format.dump

    def half(file: Any, *args: Any) -> None:
        dump(file, *args)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_format, "dump", half)
    with pytest.raises(OSError, match="No space left"):
        MODELS["binary"].save(path)
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"")
    path.chmod(0o640)
    link.symlink_to(path)
    MODELS["binary"].save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    graftboost.load(str(link))
    with pytest.raises(IsADirectoryError, match="Pass the path of a file"):
        MODELS["binary"].save(tmp_path)
    with pytest.raises(FileNotFoundError):
        MODELS["binary"].save(tmp_path / "nowhere" / "model")


def test_what_is_no_file_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(FileNotFoundError):
        graftboost.load(path)
    for content in (b"", b"a", b"PK\x03\x04" * 100, pickle.dumps(MODELS["binary"])):
        path.write_bytes(content)
        with pytest.raises(InvalidFileError, match=r"model is (not a graftboost file|damaged)"):
            graftboost.load(path)
    file_format.save(path, {"kind": "engine_model"}, {})
    with pytest.raises(InvalidFileError, match="contains 'engine_model', not a model"):
        graftboost.load(path)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("content") / "model"
    MODELS["binary"].save(path)
    return path.read_bytes()


def test_truncated(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for size in {*range(0, 200, 7), len(content) // 3, len(content) // 2, len(content) - 1}:
        path.write_bytes(content[:size])
        with pytest.raises(InvalidFileError, match=r"is (damaged|no file)"):
            graftboost.load(path)


def test_a_newer_version(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(content[:8] + struct.pack("<I", file_format.VERSION + 1) + content[12:])
    with pytest.raises(
        InvalidFileError, match="version 2 of the format, but this graftboost supports"
    ):
        graftboost.load(path)


def _header(content: bytes | bytearray) -> dict[str, Any]:
    size = struct.unpack_from("<Q", content, 16)[0]
    header: dict[str, Any] = json.loads(bytes(content[32 : 32 + size]))
    return header


def _with(content: bytes, change: Any) -> bytes:
    """Return the file with a header that was changed, and arrays that were, checksums set right."""
    header, data = _header(content), bytearray(content)
    change(header, data)
    for entry in header["arrays"].values():
        try:
            dtype, first, length = np.dtype(entry[0]), entry[1], entry[2]
            entry[3] = f"{zlib.crc32(data[first : first + length * dtype.itemsize]):08x}"
        except (TypeError, IndexError, OverflowError, MemoryError, ValueError):
            continue
    size = struct.unpack_from("<Q", content, 16)[0]
    text = json.dumps(header, separators=(",", ":")).encode().ljust(size)
    assert len(text) == size
    data[32 : 32 + size] = text
    struct.pack_into("<I", data, 12, zlib.crc32(text))
    return bytes(data)


def _set(name: str, place: int, value: Any) -> Any:
    """Change one number of an array."""

    def change(header: dict[str, Any], data: bytearray) -> None:
        dtype, first, *_ = header["arrays"][name]
        array = np.frombuffer(data, dtype=np.uint8)[first:]
        array[place * np.dtype(dtype).itemsize :][: np.dtype(dtype).itemsize].view(dtype)[0] = value

    return change


def _entry(name: str, place: int, value: Any) -> Any:
    def change(header: dict[str, Any], data: bytearray) -> None:
        header["arrays"][name][place] = value

    return change


def _engine_model(name: str, value: Any) -> Any:
    def change(header: dict[str, Any], data: bytearray) -> None:
        header["engine_model"][name] = value

    return change


def _top(name: str, value: Any) -> Any:
    def change(header: dict[str, Any], data: bytearray) -> None:
        header[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_entry("node_left", 2, 2**62), "node_left (exceeds the file|has an invalid position)"),
        (_entry("node_left", 2, -1), "node_left (exceeds the file|has an invalid position)"),
        (_entry("node_left", 1, -64), "node_left (exceeds the file|has an invalid position)"),
        (_entry("node_left", 1, 2**40), "node_left (exceeds the file|has an invalid position)"),
        (_entry("node_left", 1, 65), "node_left (exceeds the file|has an invalid position)"),
        (_entry("node_left", 0, "object"), "the unsupported type 'object'"),
        (
            _entry("node_left", 0, "float64"),
            "exceeds the file|has numbers of another kind|overlaps",
        ),
        (_entry("node_left", 2, 3), "node_left has 3 elements"),
        (_set("node_left", 0, 0), "child that is out of range or not its own"),
        (_set("node_left", 0, 2**30), "child that is out of range"),
        (_set("node_right", 0, -7), "child that is out of range"),
        (_set("node_right", 0, 1), "child that is out of range or not its own"),
        (_set("node_feature", 0, 99), "asks for a feature that does not exist"),
        (_set("node_low", 0, 60_000), "beyond the codes of its feature"),
        (_set("node_span", 0, 60_000), "beyond the codes of its feature"),
        (_set("node_value", 1, np.nan), "value out of range"),
        (_set("node_leaf", 0, 3), "is split and has a leaf id"),
        (_set("tree_sizes", 0, 2**31), "node_left has"),
        (_set("tree_sizes", 0, 0), "elements|nodes"),
        (_set("bin_edges", 1, -1e300), "do not ascend"),
        (_set("bin_edge_counts", 0, 2**32 - 1), "end before|too many"),
        (_set("bin_categories", 0, 70_000), "categorical|too many"),
        (_set("bin_common_codes", 0, 65_535), "no such code"),
        (_set("bin_bundles", 0, 2**31 - 1), "bin_bundles has"),
        (_set("base_scores", 0, np.inf), "not finite"),
        (_set("kept_nodes", 0, 7), "kept_nodes"),
        (_engine_model("n_rows", 2**60), "n_rows|elements"),
        (_engine_model("n_rows", -1), "n_rows has a value of the wrong kind"),
        (_engine_model("room", 2**61), "room is"),
        (_engine_model("n_classes", 2**31 - 1), "n_classes is"),
        (_engine_model("loss", "os.system"), "loss"),
        (_engine_model("max_leaf_nodes", 1), "max_leaf_nodes is 1"),
        (_engine_model("n_estimators", 10**9), "n_estimators is"),
        (_engine_model("learning_rate", "x"), "learning_rate has a value of the wrong kind"),
        (_engine_model("subsample", 0), "subsample"),
        (_top("estimator", "os.system"), "there is no estimator 'os.system'"),
        (_top("estimator", "GraftBoostRegressor"), "the classes or the loss do not match"),
        (_top("parameters", {"n_jobs": "many"}), "n_jobs"),
        (_top("parameters", {"verbosity": 1}), "no parameter 'verbosity'"),
        (_top("parameters", 3), "damaged"),
        (_top("categories", []), "categories do not match the categorical features"),
        (_top("feature_names", ["a"]), "feature_names does not contain"),
        (_top("classes", {"array": ["|b1", [True]]}), "the number of classes does not match"),
        (_top("classes", {"call": "os.system"}), "an encoded value is of an unknown kind"),
        (_top("next_id", 1e9), "next_id"),
    ],
)
def test_hostile_files(content: bytes, tmp_path: Path, change: Any, told: str) -> None:
    path = tmp_path / "model"
    try:
        path.write_bytes(_with(content, change))
    except AssertionError:
        pytest.skip("does not fit into the header")
    with pytest.raises(InvalidFileError, match=told):
        graftboost.load(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_set("tree_leaf_ids", 7, 200), "tree 0: a row is in a leaf that does not exist"),
        (_set("row_cells", 3, 255), "has a code that its feature does not have"),
        (_set("row_target", 5, 2), "is of a class that does not exist"),
        (_set("tree_recorded", 5, -(2**31)), "gradient out of range"),
        (_set("kept_sums", 0, 2**62), "sums out of range"),
    ],
)
def test_hostile_states(content: bytes, tmp_path: Path, change: Any, told: str) -> None:
    path = tmp_path / "model"
    path.write_bytes(_with(content, change))
    model = graftboost.load(path)
    model.predict(_features(model))
    for _ in range(2):
        with pytest.raises(ValueError, match=told):
            model.remove([0])


def test_other_changes_of_the_header(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    data = bytearray(content)
    data[40] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidFileError, match="checksum of the header"):
        graftboost.load(path)
    for text in (b"[" * 100_000, b"[]", b'{"arrays": 3}', b"\xff", b'{"arrays":{"a":[1]}}'):
        file = io.BytesIO()
        file.write(
            file_format.PREFIX.pack(
                file_format.MAGIC, 1, zlib.crc32(text), len(text), 32 + len(text)
            )
        )
        file.write(text)
        path.write_bytes(file.getvalue())
        with pytest.raises(InvalidFileError, match="damaged"):
            graftboost.load(path)


def test_arrays_that_share_bytes(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    first = _header(content)["arrays"]["tree_recorded"][1]
    path.write_bytes(_with(content, _entry("tree_leaf_ids", 1, first)))
    with pytest.raises(InvalidFileError, match="overlaps with what precedes it"):
        graftboost.load(path)


def test_rows_with_the_same_id(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(_with(content, _set("row_ids", 1, 0)))
    with pytest.raises(ValueError, match="two rows have the same id"):
        graftboost.load(path).remove([3])


def test_several_threads_use_a_loaded_model_first(tmp_path: Path) -> None:
    path = tmp_path / "model"
    MODELS["several"].save(path)
    for _ in range(10):
        model = graftboost.load(path)
        calls = [model.check_state, lambda model=model: pickle.dumps(model)] * 2
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(call) for call in calls]:
                done.result()


def test_classes_of_ones_own(tmp_path: Path) -> None:
    class Mine(GraftBoostRegressor):
        pass

    model = Mine(n_estimators=2).fit(_table()[["x0"]], np.arange(N))
    with pytest.raises(TypeError, match="Mine is a user-defined class"):
        model.save(tmp_path / "model")


@pytest.mark.parametrize("value", [("a", 1), pd.Timestamp(1)], ids=["tuple", "nanoseconds"])
def test_categories_that_would_not_be_told_again(value: Any, tmp_path: Path) -> None:
    X = np.empty((60, 1), dtype=object)
    X[:, 0] = [[value, "b", "c"][i % 3] for i in range(60)]
    model = GraftBoostRegressor(n_estimators=2, categorical_features=[0]).fit(X, np.arange(60.0))
    with pytest.raises(TypeError, match="cannot be stored in a file"):
        model.save(tmp_path / "model")


def test_devices_are_not_replaced() -> None:
    with pytest.raises(OSError, match="is a device"):
        MODELS["binary"].save("/dev/null")
    assert not Path("/dev/null").is_file()

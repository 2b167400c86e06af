"""Files that are not models, damaged models and manipulated ones."""

from __future__ import annotations

import copy
import io
import json
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graftboost
from graftboost.persistence import file_format
from graftboost.persistence.file_format import InvalidFileError

from .saved_models import MODELS, features


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("content") / "model"
    MODELS["binary"].save(path)
    return path.read_bytes()


def test_files_of_other_formats(tmp_path: Path) -> None:
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


def test_truncated_files(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    for size in {*range(0, 200, 7), len(content) // 3, len(content) // 2, len(content) - 1}:
        path.write_bytes(content[:size])
        with pytest.raises(InvalidFileError, match=r"is (damaged|no file)"):
            graftboost.load(path)


def test_a_newer_version(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(content[:8] + struct.pack("<I", file_format.VERSION + 1) + content[12:])
    newer = f"version {file_format.VERSION + 1} of the format, but this graftboost supports"
    with pytest.raises(InvalidFileError, match=newer):
        graftboost.load(path)


def _header(content: bytes | bytearray) -> dict[str, Any]:
    size = struct.unpack_from("<Q", content, 16)[0]
    header: dict[str, Any] = json.loads(bytes(content[32 : 32 + size]))
    return header


def _with(content: bytes, change: Any) -> bytes:
    """Return the file with changes to its header and arrays, and with valid checksums."""
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
    ("change", "message"),
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
        (_entry("tree_recorded", 0, "uint8"), "tree_recorded has numbers of another kind"),
        (_entry("tree_recorded", 0, "int32"), "exceeds the file|another kind|overlaps"),
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
def test_manipulated_files(content: bytes, tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "model"
    try:
        path.write_bytes(_with(content, change))
    except AssertionError:
        pytest.skip("does not fit into the header")
    with pytest.raises(InvalidFileError, match=message):
        graftboost.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("tree_leaf_ids", 7, 200), "tree 0: a row is in a leaf that does not exist"),
        (_set("row_cells", 3, 255), "has a code that its feature does not have"),
        (_set("row_target", 5, 2), "is of a class that does not exist"),
        (_set("tree_recorded", 5, -(2**15)), "gradient out of range"),
        (_set("kept_sums", 0, 2**62), "sums out of range"),
    ],
)
def test_manipulated_states(content: bytes, tmp_path: Path, change: Any, message: str) -> None:
    path = tmp_path / "model"
    path.write_bytes(_with(content, change))
    model = graftboost.load(path)
    model.predict(features(model))
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            model.remove([0])


@pytest.fixture(scope="module")
def deferred(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a model with rows for which nodes are yet to be regrown."""
    path = tmp_path_factory.mktemp("deferred") / "model"
    model = copy.deepcopy(MODELS["binary"])
    model.remove([3, 4, 5], regrow=False)
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("deferred_rows", 0, -1), "deferred_rows has no rows"),
        (_set("deferred_rows", 0, 0), "deferred_rows has no rows"),
        (_set("deferred_rows", 1, -3), "deferred_rows has no rows"),
        (_set("deferred_rows", 0, 2**63 - 1), "deferred_rows is out of range"),
        (_set("deferred_rows", 2, 2**63 - 1), "deferred_rows is out of range"),
        (_set("deferred_rows", 3, -(2**63)), "deferred_rows is out of range"),
        (_set("node_deferred", 0, -1), "node_deferred has a sum out of range"),
        (_set("node_deferred", 1, -1), "node_deferred has a sum out of range"),
        (_set("node_deferred", 2, 2**62), "node_deferred has a sum out of range"),
        (_set("node_deferred", 0, 0), "without the rows that its sums are of"),
        (_entry("node_deferred", 2, 3), "node_deferred has 3 elements"),
        (_entry("deferred_rows", 2, 3), "deferred_rows has 3 elements"),
        (_entry("deferred_rows", 0, "uint8"), "has numbers of another kind"),
    ],
)
def test_manipulated_deferred_rows(
    deferred: bytes, tmp_path: Path, change: Any, message: str
) -> None:
    path = tmp_path / "model"
    path.write_bytes(_with(deferred, lambda header, data: None))
    assert graftboost.load(path).pending_.rows_removed == 3  # it is valid before
    path.write_bytes(_with(deferred, change))
    with pytest.raises(InvalidFileError, match=message):
        graftboost.load(path)


def test_predicting_does_not_read_the_state(tmp_path: Path) -> None:
    """Damage of the state is found by an update, which then changes nothing."""
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
    X = features(model)
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
                file_format.MAGIC,
                file_format.VERSION,
                zlib.crc32(text),
                len(text),
                32 + len(text),
            )
        )
        file.write(text)
        path.write_bytes(file.getvalue())
        with pytest.raises(InvalidFileError, match="damaged"):
            graftboost.load(path)


def test_overlapping_arrays(content: bytes, tmp_path: Path) -> None:
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

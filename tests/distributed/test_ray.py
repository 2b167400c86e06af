"""Models over real actors of Ray, which are killed for real."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from typer.testing import CliRunner

from graftboost import GraftBoostClassifier, GraftBoostRegressor
from graftboost.cli.app import app
from graftboost.store.digest import digest

ray = pytest.importorskip("ray")

from graftboost.distributed import RayGraftBoostClassifier, RayGraftBoostRegressor  # noqa: E402
from graftboost.distributed.errors import ShardError  # noqa: E402
from graftboost.distributed.local_cluster import local_cluster  # noqa: E402

# One process starts Ray, so that the tests do not compete for memory.
pytestmark = pytest.mark.xdist_group("ray")

SMALL = {"n_estimators": 6, "max_leaf_nodes": 8}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with local_cluster(2, object_store_memory=100_000_000):
        yield


def data(load: Any = load_breast_cancer) -> tuple[Any, Any]:
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def same(remote: Any, local: Any) -> bool:
    return digest(remote.to_local()._engine_model) == digest(local._engine_model)


def shard_name(model: Any, index: int) -> str:
    names = [
        actor["name"]
        for actor in ray.util.list_named_actors(all_namespaces=True)
        if actor["name"].startswith(f"graftboost:{model.name_}:shards-")
    ]
    return next(name for name in names if name.endswith(f":shard-{index}"))


def kill(name: str) -> None:
    """End the process of an actor, as if its machine had failed."""
    ray.kill(ray.get_actor(name, namespace="graftboost"), no_restart=False)


def test_a_local_cluster_listens_on_loopback_only() -> None:
    me = psutil.Process()
    ports = [
        connection.laddr
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(ports) > 3
    assert {port.ip.removeprefix("::ffff:") for port in ports} == {"127.0.0.1"}


def test_a_model_lives_in_a_cluster(tmp_path: Path) -> None:
    X, y = data()
    local = GraftBoostClassifier(**SMALL).fit(X[:500], y[:500])
    remote = RayGraftBoostClassifier(**SMALL, n_shards=2, storage=tmp_path).fit(X[:500], y[:500])
    try:
        assert same(remote, local)
        np.testing.assert_array_equal(remote.predict_proba(X), local.predict_proba(X))
        assert remote.score(X, y) == local.score(X, y)
        assert remote.remove([3, 5]).removed_ids.tolist() == [3, 5]
        local.remove([3, 5])
        remote.add(X[500:505], y[500:505])
        local.add(X[500:505], y[500:505])
        assert same(remote, local)
        other = RayGraftBoostClassifier.connect(remote.name_)
        other.remove([7])
        local.remove([7])
        np.testing.assert_array_equal(remote.predict_proba(X), local.predict_proba(X))
        remote.rebalance(3)
        remote.refresh()
        local.refresh()
        assert same(remote, local)
        remote.check_state()
        assert sorted(remote.row_ids_.tolist()) == sorted(local.row_ids_.tolist())
        with pytest.raises(ValueError, match="holds no row with id 3"):
            remote.remove([3])
    finally:
        remote.shutdown()


def test_processes_are_killed(tmp_path: Path) -> None:
    X, y = data()
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    remote = RayGraftBoostClassifier(**SMALL, n_shards=2, storage=tmp_path).fit(X, y)
    try:
        for step, victim in enumerate(("shard", "node half", "shard", "both")):
            if victim in ("shard", "both"):
                kill(shard_name(remote, step % 2))
            if victim in ("node half", "both"):
                kill(f"graftboost:{remote.name_}")
                time.sleep(0.2)
            remote.remove([10 * step])
            local.remove([10 * step])
            assert same(remote, local)
        remote.check_state()
    finally:
        remote.shutdown()


def test_many_shards_add_up_their_answers(tmp_path: Path) -> None:
    X, y = data()
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    remote = RayGraftBoostClassifier(**SMALL, n_shards=2, storage=tmp_path).fit(X, y)
    try:
        remote.rebalance(6)
        for step, victim in enumerate((0, 5)):
            kill(shard_name(remote, victim))
            remote.remove([step])
            local.remove([step])
        assert same(remote, local)
        remote.check_state()
    finally:
        remote.shutdown()


def test_a_shard_that_does_not_answer_is_replaced(tmp_path: Path) -> None:
    """Its process is stopped, so it neither ends nor answers."""
    X, y = data()
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    remote = RayGraftBoostClassifier(**SMALL, storage=tmp_path, timeout=2).fit(X, y)
    try:
        shard_processes()[0].suspend()
        remote.remove([4])
        local.remove([4])
        assert same(remote, local)
    finally:
        remote.shutdown()


def test_connecting(tmp_path: Path) -> None:
    X, y = data()
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    made = RayGraftBoostClassifier(**SMALL, storage=tmp_path, name="shared").fit(X, y)
    with pytest.raises(ValueError, match="has another storage"):
        RayGraftBoostClassifier.connect("shared", storage=tmp_path / "other")
    with pytest.raises(TypeError, match="is a GraftBoostClassifier"):
        RayGraftBoostRegressor.connect("shared")
    model = RayGraftBoostClassifier.connect("shared")
    for one in (model, local):
        one.set_params(fidelity=0.0).remove(np.arange(60))
    assert same(model, local)
    model.set_params(n_estimators=3).fit(X, y)
    assert same(made, GraftBoostClassifier(**{**SMALL, "n_estimators": 3}).fit(X, y))
    assert list(tmp_path.iterdir()) == [tmp_path / "shared"]
    model.shutdown()
    with pytest.raises(ShardError, match="was shut down"):
        made.predict(X)
    # A fit that fails leaves the model that was there before.
    with pytest.raises(ValueError, match="contains 3 more than once"):
        RayGraftBoostClassifier(storage=tmp_path, name="shared").fit(
            X, y, row_ids=np.minimum(np.arange(len(y)), 3)
        )
    again = RayGraftBoostClassifier.connect("shared", storage=tmp_path)
    assert again.n_iter_ == 3
    again.check_state()
    again.shutdown()


def shard_processes() -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [p for p in found if "ray::ShardActor" in " ".join(p.info["cmdline"] or [])]


def test_predictions_go_on_while_an_update_runs(tmp_path: Path) -> None:
    X, y = data()
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    model = RayGraftBoostClassifier(**SMALL, storage=tmp_path).fit(X, y)
    other = RayGraftBoostClassifier.connect(model.name_)
    model.remove([4])
    local.remove([4])
    shards = shard_processes()
    for process in shards:
        process.suspend()
    update = threading.Thread(target=model.refit)
    update.start()
    try:
        time.sleep(0.5)
        np.testing.assert_array_equal(other.predict_proba(X), local.predict_proba(X))
        assert update.is_alive()
    finally:
        for process in shards:
            process.resume()
        update.join()
    local.refit()
    np.testing.assert_array_equal(other.predict_proba(X), local.predict_proba(X))
    model.shutdown()


def test_warnings_reach_the_driver(tmp_path: Path) -> None:
    X, y = data()
    weight = np.where(np.arange(len(y)) == 5, 1e12, 1.0)
    remote = RayGraftBoostClassifier(**SMALL, storage=tmp_path)
    with pytest.warns(UserWarning, match="The model has no splits") as caught:
        remote.fit(X, y, weight)
    remote.shutdown()
    assert caught[0].filename == __file__


def test_saved_models(tmp_path: Path) -> None:
    X, y = data()
    local = GraftBoostClassifier(**SMALL).fit(X, y)
    remote = RayGraftBoostClassifier(**SMALL, storage=tmp_path / "one", name="saved").fit(X, y)
    try:
        remote.save(tmp_path / "saved")
        remote.remove([3])
    finally:
        remote.shutdown()
    again = RayGraftBoostClassifier.load(tmp_path / "saved", storage=tmp_path / "two")
    try:
        assert again.n_estimators == SMALL["n_estimators"]
        assert same(again, local)
        again.remove([3])
        local.remove([3])
        assert same(again, local)
    finally:
        again.shutdown()


def test_a_name_that_is_taken_and_fits_that_fail(tmp_path: Path) -> None:
    X, y = data()
    options = {**SMALL, "storage": tmp_path, "name": "taken"}
    model = RayGraftBoostClassifier(**options)
    with pytest.raises(ValueError, match="contains 3 more than once"):
        model.fit(X, y, row_ids=np.minimum(np.arange(len(y)), 3))
    assert not [a for a in ray.util.list_named_actors(all_namespaces=True) if "taken" in a["name"]]
    assert not list(tmp_path.glob("taken/*"))
    model.fit(X, y)
    try:
        with pytest.raises(ValueError, match="There is a model 'taken' in this cluster already"):
            RayGraftBoostClassifier(**options).fit(X, y)
        before = model.predict_proba(X)
        with pytest.raises(ValueError, match="contains 3 more than once"):
            model.fit(X, y, row_ids=np.minimum(np.arange(len(y)), 3))
        np.testing.assert_array_equal(model.predict_proba(X), before)
        model.set_params(n_estimators=3, n_shards=1).fit(X, y)
        assert same(model, GraftBoostClassifier(**{**SMALL, "n_estimators": 3}).fit(X, y))
    finally:
        model.shutdown()


def test_a_regression_from_a_local_model(tmp_path: Path) -> None:
    X, y = data(load_diabetes)
    local = GraftBoostRegressor(**SMALL).fit(X, y)
    remote = RayGraftBoostRegressor.from_local(local, n_shards=2, storage=tmp_path)
    try:
        assert same(remote, local)
        remote.update(remove=[1])
        local.update(remove=[1])
        np.testing.assert_array_equal(remote.predict(X), local.predict(X))
    finally:
        remote.shutdown()


def test_rows_from_files_references_and_datasets(tmp_path: Path) -> None:
    X, y = data()
    frame = pd.DataFrame(X).rename(columns=lambda c: f"x{c}")
    local = GraftBoostClassifier(**SMALL).fit(frame, y, row_ids=np.arange(len(y)) + 7)
    table = frame.assign(y=y, id=np.arange(len(y)) + 7)
    halves = [table[:300], table[300:]]
    paths = []
    for k, half in enumerate(halves):
        half.to_parquet(tmp_path / f"{k}.parquet", index=False)
        paths.append(str(tmp_path / f"{k}.parquet"))
    given = {
        "paths": paths,
        "references": [ray.put(half) for half in halves],
        "dataset": ray.data.from_pandas(halves),
    }
    for kind, rows in given.items():
        model = RayGraftBoostClassifier(**SMALL, storage=tmp_path / kind)
        model.fit(rows, "y", row_ids="id")
        try:
            assert same(model, local), kind
            if kind == "dataset":
                found = model.predict_proba(ray.data.from_pandas(frame)).to_pandas()
                expected = local.predict_proba(frame)
                np.testing.assert_array_equal(np.stack(found["prediction"]), expected)
        finally:
            model.shutdown()


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_line(tmp_path: Path) -> None:
    X, y = data()
    frame = pd.DataFrame(X).rename(columns=lambda c: f"x{c}")
    frame["city"] = np.random.default_rng(0).choice(list("abc"), len(y))
    frame["y"], frame["customer"] = y, np.arange(len(y)) * 3
    (tmp_path / "parts").mkdir()
    for k, (begin, end) in enumerate(((0, 300), (300, 560))):
        frame[begin:end].to_parquet(tmp_path / "parts" / f"{k}.parquet", index=False)
    frame[:560].to_csv(tmp_path / "rows.csv", index=False)
    frame[560:].to_csv(tmp_path / "more.csv", index=False)
    roles = ["--target", "y", "--id", "customer", "--set", "n_estimators=6"]
    for given in ("parts", "rows.csv"):
        model = str(tmp_path / f"model of {given}")
        fitted = json.loads(
            run("fit", str(tmp_path / given), model, *roles, "--ray", "x", "--json")
        )
        assert fitted["rows"] == 560
        assert fitted["features"] == 31
        RayGraftBoostClassifier.connect(Path(model).name).shutdown()
    # Its processes are started again.
    assert "9 rows added" in run("add", model, str(tmp_path / "more.csv"), "--ray", "x")
    removed = run("remove", model, "3", "1680", "--compact", "--ray", "x")
    assert "567 rows in the model" in removed
    found = run("predict", model, str(tmp_path / "more.csv"), "-p", "--ray", "x")
    assert found.splitlines()[0] == '"customer","prediction","probability_0","probability_1"'
    assert len(found.splitlines()) == 10
    RayGraftBoostClassifier.connect(Path(model).name).shutdown()
    result = CliRunner().invoke(app, ["remove", model, "--where", "x == 1", "--ray", "x"])
    assert result.exit_code == 1


def test_parameters() -> None:
    model = RayGraftBoostClassifier(n_shards=3, n_estimators=7, class_weight="balanced")
    parameters = clone(model).get_params()
    assert parameters["n_shards"] == 3
    assert parameters["n_estimators"] == 7
    assert parameters["class_weight"] == "balanced"
    with pytest.raises(TypeError, match="n_trees"):
        RayGraftBoostClassifier(n_trees=3)
    with pytest.raises(ValueError, match="There is no model 'nobody'"):
        RayGraftBoostClassifier.connect("nobody")

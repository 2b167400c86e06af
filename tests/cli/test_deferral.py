"""The command line books rows now and regrows nodes later."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from graftboost.store import Store

from .test_cli import N, _frame, _modules_after, run, run_json


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store of rows of which some have wrong labels, so that there is something to forget."""
    frame = _frame()
    frame.loc[::20, "churned"] = np.where(frame.loc[::20, "churned"] == "yes", "no", "yes")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    path = tmp_path / "store"
    run("fit", tmp_path / "rows.csv", path, "--target", "churned", "--id", "row", "--keep",
        "customer", "--keep", "region", "--drop", "spent", "--set", "n_estimators=10", "--set",
        "min_samples_leaf=5")  # fmt: skip
    return path


def n_pending(store: Path) -> int:
    return int(run_json("info", store)["rows_not_yet_regrown"])


def test_rows_are_removed_later(store: Path) -> None:
    assert n_pending(store) == 0
    assert "rows not yet regrown" in run("info", store)
    printed = run("remove", store, 0, 20, "--later", "--request", "DSR-1")
    assert "in-place update: 0 rows added, 2 removed" in printed
    assert "2 rows are booked and not yet regrown" in printed
    found = run_json("remove", store, "--where", "customer == 20", "--later")
    assert (found["removed"], found["deferred"], found["rows_deferred"]) == ([[60, 63]], True, 5)
    assert (found["nodes_regrown"], found["regrown_by"]) == (0, None)
    assert n_pending(store) == 5
    assert "is valid" in run("verify", store)


def test_rows_are_added_later(store: Path, tmp_path: Path) -> None:
    _frame(1, 4).to_csv(tmp_path / "more.csv", index=False)
    found = run_json("add", store, tmp_path / "more.csv", "--later")
    assert (found["added"], found["deferred"], found["rows_deferred"]) == ([[1000, 1004]], True, 4)
    assert n_pending(store) == 4
    assert run_json("info", store)["rows"] == N + 4


def test_regrow(store: Path) -> None:
    run("remove", store, *range(0, N, 20), "--later", "--request", "DSR-1")
    printed = run("receipt", store, "DSR-1")
    assert "in-place, rows booked" in printed
    assert "not yet" in printed
    assert run_json("receipt", store, "DSR-1")["regrown_by"] is None
    printed = run("regrow", store, "--fidelity", "0.9", "--request", "tonight")
    assert "285 rows in the model; request tonight" in printed
    assert n_pending(store) == 0
    found = run_json("receipt", store, "tonight")
    assert (found["action"], found["rows_deferred"]) == ("regrow", 0)
    assert (found["deferred"], "regrown_by" in found) == (False, False)
    assert run_json("receipt", store, "DSR-1")["regrown_by"] == found["number"] == 2
    assert f"{found['time']}, by change 2" in run("receipt", store, "--row", 20)
    assert "is valid" in run("verify", store)
    lines = run("history", store).splitlines()
    assert "regrow" in lines[-1]
    assert "tonight" in lines[-1]


def test_regrow_with_limited_work(store: Path) -> None:
    run("remove", store, *range(0, N, 20), "--later")
    found = run_json("regrow", store, "--work", "0.1", "--fidelity", "0.99")
    assert (found["action"], found["strategy"]) == ("regrow", "in-place")
    assert found["rows_deferred"] == 15 == n_pending(store)
    assert found["seconds"]["total"] > 0
    assert set(found["forgetting"]) >= {"achieved", "memory_left"}
    assert run_json("receipt", store, 1)["regrown_by"] is None
    assert "15 rows" in run("receipt", store, 2)
    for _ in range(30):
        if not run_json("regrow", store, "--work", "0.2")["rows_deferred"]:
            break
    last = run_json("history", store, "--last", 1)[0]
    assert run_json("receipt", store, 1)["regrown_by"] == last["number"] > 2


def test_command_does_the_same_as_the_method(store: Path) -> None:
    run("remove", store, *range(0, N, 20), "--later")
    with Store.open(store) as opened:
        model = copy.deepcopy(opened.model)
    report = model.regrow(0.3, fidelity=0.6)
    found = run_json("regrow", store, "--work", "0.3", "--fidelity", "0.6")
    assert found["rows_regrown"] == report.rows_regrown
    assert found["rows_deferred"] == report.rows_deferred
    assert found["forgetting"]["achieved"] == report.forgetting.achieved


def test_refit_regrows_too(store: Path) -> None:
    run("remove", store, 0, 20, "--later")
    run("refit", store)
    assert n_pending(store) == 0
    found = run_json("receipt", store, 1)
    assert (found["regrown_by"], found["refitted_since"]) == (2, True)


def test_removal_later_and_compaction(store: Path) -> None:
    run("remove", store, 0, 20, "--later", "--compact")
    assert not list(store.glob("journal*"))
    assert n_pending(store) == 2
    run("regrow", store)
    assert n_pending(store) == 0


def test_nothing_to_regrow(store: Path) -> None:
    assert run("regrow", store).strip() == "There is nothing to regrow."
    assert run_json("regrow", store) == {"rows_not_yet_regrown": 0}
    assert run_json("info", store)["changes"] == 0


def test_errors_are_reported(store: Path, tmp_path: Path) -> None:
    run("remove", store, 0, 20, "--later")
    for work in ("0", "-1", "nan"):
        assert "a positive number is expected" in run("regrow", store, f"--work={work}", code=1)
    assert "a fraction is expected" in run("regrow", store, "--fidelity", "1.5", code=1)
    run("regrow", store, "--work", "half", code=2)
    assert "There is no store" in run("regrow", tmp_path / "nowhere", code=1)
    with Store.open(store):
        assert "is locked by process" in run("regrow", store, code=3)
    assert run_json("info", store)["changes"] == 1
    assert n_pending(store) == 2


@pytest.mark.parametrize("work", ["0", "-1", "nan"])
def test_invalid_work_with_nothing_to_regrow(store: Path, work: str) -> None:
    assert "a positive number is expected" in run("regrow", store, f"--work={work}", code=1)


def test_other_rules(tmp_path: Path) -> None:
    _frame().to_csv(tmp_path / "rows.csv", index=False)
    store = tmp_path / "store"
    run("fit", tmp_path / "rows.csv", store, "--target", "spent", "--drop", "churned", "--set",
        "n_estimators=2", "--set", "update_rule=regret")  # fmt: skip
    message = "regrow=False applies to update_rule='fidelity'"
    assert message in run("remove", store, 3, "--later", code=1)
    assert run_json("info", store)["rows"] == N


def test_commands_import_only_what_they_need(store: Path) -> None:
    slow = {"sklearn", "scipy", "pyarrow", "pandas"}
    assert not slow & _modules_after("remove", store, 3, "--later")
    assert not slow & _modules_after("regrow", store)

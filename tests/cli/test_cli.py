"""The command line, from a file of rows to a receipt."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from graftboost.cli.app import app
from graftboost.store import Store

N = 300


def _frame(seed: int = 0, n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "row": 1000 * seed + np.arange(n),
            "customer": np.arange(n) // 3,
            "region": rng.choice(["north", "south"], n),
            "income": rng.normal(50, 10, n).round(2),
            "visits": rng.integers(0, 9, n),
            "town": rng.choice(["A", "B", "C"], n),
        }
    )
    score = frame["income"] - 50 + 5 * (frame["town"] == "A") + rng.normal(size=n)
    frame["churned"] = np.where(score > 0, "yes", "no")
    frame["spent"] = score.round(3)
    return frame


def run(*arguments: Any, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output if code == 0 else result.output + result.stderr


def run_json(*arguments: Any) -> Any:
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    _frame().to_csv(path, index=False)
    return path


@pytest.fixture
def store(tmp_path: Path, data: Path) -> Path:
    path = tmp_path / "store"
    run("fit", data, path, "--target", "churned", "--id", "row", "--keep", "customer",
        "--keep", "region", "--drop", "spent", "--set", "n_estimators=5", "--set",
        "min_samples_leaf=5")  # fmt: skip
    return path


def test_fit_prints_a_summary(store: Path) -> None:
    found = run_json("info", store)
    assert found["rows"] == N
    assert found["classes"] == ["no", "yes"]
    assert found["features"] == 3
    assert found["attributes"] == ["customer", "region"]
    assert "GraftBoostClassifier" in run("info", store)
    with Store.open(store) as opened:
        assert opened.model.feature_names_in_.tolist() == ["income", "visits", "town"]
        assert opened.model.n_estimators == 5


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "feather"])
def test_files_of_every_kind(tmp_path: Path, ending: str) -> None:
    path, more = tmp_path / f"rows.{ending}", tmp_path / f"more.{ending}"
    for frame, to in ((_frame(), path), (_frame(1, 20), more)):
        match ending:
            case "csv" | "tsv":
                frame.to_csv(to, index=False, sep="\t" if ending == "tsv" else ",")
            case "parquet":
                frame.to_parquet(to)
            case _:
                frame.to_feather(to)
    store = tmp_path / "store"
    run("fit", path, store, "--target", "churned", "--id", "row", "--drop", "spent", "--drop",
        "customer", "--set", "n_estimators=3")  # fmt: skip
    run("add", store, more)
    assert run_json("info", store)["rows"] == N + 20
    out = tmp_path / f"out.{ending}"
    run("predict", store, more, "-o", out, "--probabilities")
    match ending:
        case "csv" | "tsv":
            predicted = pd.read_csv(out, sep="\t" if ending == "tsv" else ",")
        case "parquet":
            predicted = pd.read_parquet(out)
        case _:
            predicted = pd.read_feather(out)
    assert predicted.columns.tolist() == ["row", "prediction", "probability_no", "probability_yes"]
    with Store.open(store) as opened:
        frame = _frame(1, 20)[["region", "income", "visits", "town"]]
        frame = frame.astype({"region": "category", "town": "category"})
        np.testing.assert_array_equal(predicted["prediction"], opened.predict(frame))


def test_removing_by_ids_by_file_and_by_condition(store: Path, tmp_path: Path) -> None:
    assert "2 removed" in run("remove", store, 4, 5)
    (tmp_path / "ids").write_text("10\n11\n")
    assert run_json("remove", store, "--ids-file", tmp_path / "ids")["removed"] == [[10, 12]]
    found = run_json("remove", store, "--where", "customer == 17", "--request", "DSR-1")
    assert found["removed"] == [[51, 54]]
    assert found["request"] == "DSR-1"
    assert run_json("info", store)["rows"] == N - 7
    assert "No rows were found" in run("remove", store, "--where", "customer == 17")
    result = CliRunner().invoke(app, ["remove", str(store), "--ids-file", "-"], input="20\n21\n")
    assert "2 removed" in result.output
    run("remove", store, 30, "--compact")
    assert not list(store.glob("journal*"))


def test_history_receipt_verify_refit_compact(store: Path) -> None:
    run("remove", store, "--where", "customer == 17", "--request", "DSR-1")
    printed = run("receipt", store, "DSR-1")
    assert "3 rows: 51-53" in printed
    assert "no; some splits these rows influenced may remain" in printed
    assert "computed with these rows and unchanged" in printed
    run("refit", store)
    printed = run("receipt", store, "--row", 52)
    assert "yes; the trees are those of a model trained without these rows" in printed
    assert run_json("receipt", store, 1)["refitted_since"] is True
    lines = run("history", store).splitlines()
    assert len(lines) == 4
    assert "DSR-1" in lines[2]
    assert len(run_json("history", store, "--last", 1)) == 1
    assert "is valid: the chain of 3 receipts" in run("verify", store)
    assert "contain only the 297 rows" in run("compact", store)
    assert run_json("verify", store) == {"store": str(store), "verified": True, "receipts": 3}


def test_audit(store: Path, tmp_path: Path) -> None:
    printed = run("audit", store, "--where", "customer < 10", "--plot", tmp_path / "audit.png")
    assert "Removing 30 of 300 rows" in printed
    assert "Predicted robustness" in run("audit", store, 1, "--details")
    assert (tmp_path / "audit.png").stat().st_size > 1000
    assert run_json("info", store)["rows"] == N
    assert "forgetting" in run_json("audit", store, 1, 2)["parts"]


def test_regression_and_saved_models(tmp_path: Path, data: Path) -> None:
    store = tmp_path / "store"
    run("fit", data, store, "--target", "spent", "--drop", "churned", "--weight", "visits",
        "--set", "n_estimators=3", "--set", "update_rule=regret", "--set", "tolerance=inf",
        "--set", "binning=width")  # fmt: skip
    found = run_json("info", store)
    assert found["model"] == "GraftBoostRegressor"
    with Store.open(store) as opened:
        assert (opened.model.update_rule, opened.model.tolerance) == ("regret", np.inf)
        opened.model.save(tmp_path / "model.graft", updatable=False)
    one, other = (run("predict", model, data) for model in (store, tmp_path / "model.graft"))
    assert one == other
    assert len(one.splitlines()) == N + 1
    assert "the model is a regressor" in run("predict", store, data, "-p", code=1)


def test_task_of_a_target(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N), "few": np.arange(N) % 3, "many": np.arange(N)})
    frame.to_csv(path, index=False)
    for target, task, kind in [
        ("few", "auto", "GraftBoostClassifier"),
        ("many", "auto", "GraftBoostRegressor"),
        ("few", "regression", "GraftBoostRegressor"),
        ("x", "auto", "GraftBoostRegressor"),
    ]:
        found = run_json("fit", path, tmp_path / f"{target}-{task}", "--target", target, "--task",
                         task, "--set", "n_estimators=2")  # fmt: skip
        assert found["model"] == kind


def test_text_that_looks_like_numbers(tmp_path: Path) -> None:
    rows, more = tmp_path / "rows.csv", tmp_path / "more.csv"
    frame = _frame()
    frame["town"] = [["7", "8", "x"][i % 3] for i in range(N)]
    frame["churned"] = [["0", "1", "other"][i % 3] for i in range(N)]
    frame.to_csv(rows, index=False)
    frame[frame["town"] == "7"].assign(row=lambda f: f["row"] + 5000).to_csv(more, index=False)
    run("fit", rows, tmp_path / "store", "--target", "churned", "--id", "row", "--set",
        "n_estimators=2")  # fmt: skip
    run("add", tmp_path / "store", more)
    assert run_json("info", tmp_path / "store")["classes"] == ["0", "1", "other"]
    run("predict", tmp_path / "store", more)


# --- errors ---------------------------------------------------------------------------------------


def test_errors_are_reported(store: Path, data: Path, tmp_path: Path) -> None:
    assert "no row with id 9999" in run("remove", store, 9999, code=1)
    assert "None of IDS, --ids-file and --where was given" in run("remove", store, code=1)
    assert "2 of IDS, --ids-file and --where were given" in run(
        "remove", store, 1, "--where", "a == 1", code=1
    )
    assert "not an attribute" in run("remove", store, "--where", "age == 1", code=1)
    assert "There is no store" in run("info", tmp_path / "nowhere", code=1)
    assert "already exists" in run("fit", data, store, "--target", "churned", code=1)
    assert "no column named 'y'" in run("fit", data, tmp_path / "new", "--target", "y", code=1)
    assert "does not exist" in run("add", store, tmp_path / "none.csv", code=1)
    (tmp_path / "rows.xls").write_text("")
    assert "unknown extension" in run("add", store, tmp_path / "rows.xls", code=1)
    _frame(1)[["row", "churned", "customer", "region"]].to_csv(tmp_path / "few.csv", index=False)
    assert "lacks the columns income, visits, town" in run(
        "add", store, tmp_path / "few.csv", code=1
    )
    assert "NAME=VALUE" in run(
        "fit", data, tmp_path / "new", "--target", "spent", "--set", "x", code=1
    )
    assert "n_trees" in run("fit", data, tmp_path / "new", "--target", "spent", "--set",
                            "n_trees=3", code=1)  # fmt: skip
    assert "Pass either REQUEST" in run("receipt", store, code=1)
    assert "No change has removed the row" in run("receipt", store, "--row", 3, code=1)
    assert "no receipt for 'x'" in run("receipt", store, "x", code=1)
    (tmp_path / "ids").write_text("one")
    assert "Write one id per line" in run("remove", store, "--ids-file", tmp_path / "ids", code=1)
    run("remove", store, "one", code=2)
    assert run_json("info", store)["changes"] == 0


def test_exit_codes_of_locked_and_damaged_stores(store: Path) -> None:
    with Store.open(store):
        assert "is locked by process" in run("remove", store, 1, code=3)
        run("info", store)
    model = store / "model-000001.graft"
    model.write_bytes(model.read_bytes()[:-9])
    assert "damaged" in run("verify", store, code=4)


def test_store_created_in_python(tmp_path: Path, data: Path) -> None:
    from graftboost import GraftBoostClassifier

    X = _frame()[["income", "visits"]]
    model = GraftBoostClassifier(n_estimators=2).fit(X, _frame()["churned"])
    Store.create(tmp_path / "store", model).close()
    assert "was not created by `graftboost fit`" in run("add", tmp_path / "store", data, code=1)
    run("predict", tmp_path / "store", data)
    run("remove", tmp_path / "store", 3)


# --- the program ----------------------------------------------------------------------------------


def _modules_after(*arguments: Any) -> set[str]:
    code = (
        "import sys\n"
        "from graftboost.cli import main\n"
        f"sys.argv = ['graftboost', *{[str(a) for a in arguments]!r}]\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stderr.split()}


def test_commands_import_only_what_they_need(store: Path) -> None:
    assert not {"numpy", "sklearn", "pyarrow"} & _modules_after("--help")
    assert not {"sklearn", "scipy", "pyarrow", "pandas"} & _modules_after("remove", store, 3)
    assert not {"sklearn", "scipy", "pyarrow", "pandas"} & _modules_after("verify", store)


def test_version_and_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graftboost", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("graftboost 0.")


def test_without_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys\nsys.modules['typer'] = None\nfrom graftboost.cli import main\nmain()\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "requires typer, which is not installed" in done.stderr

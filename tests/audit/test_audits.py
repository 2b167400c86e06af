"""Properties that every audit must have, whatever the noise."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification

from graftboost import GraftBoostClassifier, GraftBoostRegressor, audit
from graftboost.audit.ratio import ratio_of_sums
from graftboost.estimators.inspection import held_rows, losses, split_ranks
from graftboost.input.columns import Columns
from graftboost.input.table import read_table


def noisy(n: int = 3000, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of which some have wrong labels, so that there is something to forget."""
    X, y = make_classification(n, 10, n_informative=5, flip_y=0.15, random_state=seed)
    return X, y


@pytest.fixture(scope="module")
def model() -> GraftBoostClassifier:
    return GraftBoostClassifier(n_estimators=30, n_jobs=1).fit(*noisy())


@pytest.fixture(scope="module")
def removed() -> NDArray[np.int64]:
    return np.random.default_rng(0).choice(3000, 60, replace=False)


def without(model: Any, ids: Any, **parameters: Any) -> Any:
    updated = copy.deepcopy(model).set_params(**parameters)
    updated.remove(ids)
    return updated


class TestForgetting:
    def test_untouched_model_has_forgotten_nothing(self, model: Any, removed: Any) -> None:
        found = audit.forgetting(model, model, removed)
        assert found.figures["forgetting"] == 0
        assert found.figures["low"] == found.figures["high"] == 0

    def test_refit_has_forgotten_all(self, model: Any, removed: Any) -> None:
        found = audit.forgetting(model, without(model, removed).refit())
        assert found.figures["forgetting"] == 1

    def test_retrain_with_another_seed_forgets_all_within_the_interval(self) -> None:
        X, y = noisy()
        parameters = {"n_estimators": 30, "subsample": 0.8, "n_jobs": 1}
        model = GraftBoostClassifier(**parameters, random_state=0).fit(X, y)
        removed = np.arange(300)
        other = GraftBoostClassifier(**parameters, random_state=1)
        edges = [model._engine_model.bins.edges(f) for f in range(X.shape[1])]
        other.set_params(bin_edges=edges).fit(X[300:], y[300:], row_ids=np.arange(300, 3000))
        figures = audit.forgetting(model, other, removed).figures
        assert figures["low"] <= 1 <= figures["high"]

    def test_in_place_update_lies_between(self, model: Any, removed: Any) -> None:
        figures = audit.forgetting(model, without(model, removed, fidelity=0.0)).figures
        assert figures["forgetting"] > 0
        assert figures["loss_before"] < figures["loss_after"]
        assert figures["loss_before"] < figures["loss_retrained"]

    def test_losses_tell_models_from_a_retrained_one(self, model: Any, removed: Any) -> None:
        """The untouched model most, a refit not at all."""
        updated = audit.forgetting(model, without(model, removed, fidelity=0.9)).figures
        refitted = audit.forgetting(model, without(model, removed).refit()).figures
        assert refitted["auc_after"] == 0.5
        assert abs(updated["auc_after"] - 0.5) < updated["auc_before"] - 0.5
        assert updated["auc_before"] == refitted["auc_before"]

    def test_verdict_follows_from_the_interval(self, model: Any) -> None:
        kept = without(model, np.arange(40), fidelity=0.0)
        found = audit.forgetting(model, kept)
        assert found.figures["low"] < 0.8
        assert "too few rows" in found.summary or "refit() removes it" in found.summary
        few = audit.forgetting(model, without(model, np.arange(8), fidelity=0.0))
        assert few.figures["low"] is None
        assert "too few rows" in few.summary or "too little to measure" in few.summary

    def test_other_bins(self, model: Any, removed: Any) -> None:
        X, y = noisy()
        other = clone(model).set_params(max_bins=100).fit(X, y)
        with pytest.raises(ValueError, match="other bins"):
            audit.forgetting(model, without(model, removed), retrained=other)

    def test_rows_must_differ(self, model: Any) -> None:
        with pytest.raises(ValueError, match="There are no rows to audit"):
            audit.forgetting(model, model)

    def test_unknown_row(self, model: Any) -> None:
        with pytest.raises(ValueError, match="row_ids: the model holds no row with id 5000"):
            audit.forgetting(model, model, [5000])

    def test_regression(self) -> None:
        X, y = load_diabetes(return_X_y=True)
        model = GraftBoostRegressor(n_estimators=20, n_jobs=1).fit(X, y)
        updated = without(model, range(15))
        assert audit.forgetting(model, updated.refit()).figures["forgetting"] == 1


class TestLearning:
    def test_untouched_model_has_learned_nothing(self, model: Any, removed: Any) -> None:
        before = without(model, removed)
        found = audit.learning(before, before, removed, retrained=model)
        assert found.figures["learning"] == 0

    def test_refit_has_learned_all(self, model: Any, removed: Any) -> None:
        X, y = noisy()
        before = without(model, removed)
        after = copy.deepcopy(before)
        after.add(X[removed], y[removed], row_ids=removed)
        assert audit.learning(before, after.refit()).figures["learning"] == 1

    def test_new_class(self) -> None:
        X, y = load_digits(return_X_y=True)
        known = y != 9
        before = GraftBoostClassifier(n_estimators=5, n_jobs=1).fit(X[known], y[known])
        after = copy.deepcopy(before)
        after.add(X[~known], y[~known])
        figures = audit.learning(before, after).figures
        assert figures["loss_before"] > 10 > figures["loss_after"]


class TestSimilarity:
    def test_model_agrees_with_itself(self, model: Any) -> None:
        X, y = noisy(seed=1)
        found = audit.similarity(model, model, X, y, retrained=model, reseeded=(model, model))
        assert found.figures["updated"] == {"C2W": 0, "W2C": 0, "W2W": 0, "phi": 1}
        assert found.figures["updated"] == found.figures["untouched"]
        assert found.figures["updated"] == found.figures["other seeds"]
        assert "no measurable difference" in found.summary

    def test_other_rows_change_a_retrain_too(self, model: Any, removed: Any) -> None:
        figures = audit.similarity(model, without(model, removed), *noisy(seed=1)).figures
        assert 0.9 < figures["other rows"]["phi"] < 1

    def test_shares_add_up(self) -> None:
        X, y = load_digits(return_X_y=True)
        small = GraftBoostClassifier(n_estimators=1, max_leaf_nodes=3, n_jobs=1)
        first, second = small.fit(X[:900], y[:900]), clone(small).fit(X[900:], y[900:])
        found = audit.similarity(first, first, X, y, retrained=second).figures["updated"]
        a, b = second.predict(X), first.predict(X)
        assert found["phi"] == pytest.approx(np.mean(a == b))
        assert found["C2W"] == pytest.approx(np.mean((a == y) & (b != y)))
        assert found["W2C"] == pytest.approx(np.mean((a != y) & (b == y)))
        assert found["W2W"] > 0

    def test_regressors_have_no_classes(self) -> None:
        X, y = load_diabetes(return_X_y=True)
        model = GraftBoostRegressor(n_estimators=2).fit(X, y)
        with pytest.raises(ValueError, match="after is a GraftBoostRegressor"):
            audit.similarity(model, model, X, y)


class TestLeafError:
    def test_fitted_and_refreshed_models_have_no_error(self, model: Any, removed: Any) -> None:
        assert audit.leaf_error(model).figures["updated"] == 0
        updated = without(model, removed, fidelity=0.0)
        assert audit.leaf_error(updated).figures["updated"] > 0
        assert audit.leaf_error(updated.refresh()).figures["updated"] == 0

    def test_untouched_model_is_included(self, model: Any, removed: Any) -> None:
        updated = without(model, removed, fidelity=0.0)
        assert audit.leaf_error(updated, before=model).figures["untouched"] > 0
        assert "untouched" not in audit.leaf_error(model, before=updated).figures

    def test_audit_changes_nothing(self, model: Any, removed: Any) -> None:
        X, _ = noisy()
        before = model.predict_proba(X)
        audit.audit_removal(model, removed)
        assert np.array_equal(model.predict_proba(X), before)
        assert model.n_rows_ == 3000
        assert (model.fidelity, model.update_rule, model.tolerance) == (0.85, "fidelity", None)
        model.check_state()


class TestSplits:
    def test_fitted_splits_are_the_best(self, model: Any) -> None:
        splits = split_ranks(model)
        assert not splits.n_better.any()
        assert (splits.next_gain < splits.gain).all()
        assert (splits.other_gain <= splits.gain).all()

    def test_shares_add_up(self, model: Any, removed: Any) -> None:
        figures = audit.split_shift(model, removed).figures
        assert 0 < figures["share_best"] < 1
        assert figures["share_best"] == figures["shares"]["0 (the best)"]
        assert sum(figures["shares"].values()) == pytest.approx(1)
        assert figures["shares"]["too few rows in a child"] > 0
        assert len(figures["mean_by_iteration"]) == 30

    def test_added_rows(self, model: Any, removed: Any) -> None:
        X, y = noisy(seed=1)
        found = audit.split_shift(model, X=X[:30], y=y[:30])
        assert "30 rows added" in found.title
        found = audit.robustness(model, removed, X=X[:30], y=y[:30])
        assert "60 rows removed and 30 rows added" in found.title

    @pytest.mark.parametrize("function", [audit.split_shift, audit.robustness])
    def test_rows_are_selected_as_in_remove(self, model: Any, function: Any) -> None:
        by_ids = function(model, range(12))
        for named in (slice(0, 12), model.row_ids_ < 12):
            assert function(model, named).rows == by_ids.rows
        assert "12 rows removed" in by_ids.title

    @pytest.mark.parametrize("function", [audit.split_shift, audit.robustness])
    def test_change_that_requires_a_refit(self, function: Any) -> None:
        X, y = noisy(300)
        model = GraftBoostClassifier(n_estimators=2).fit(X, y)
        with pytest.raises(ValueError, match="requires a refit"):
            function(model, X=X[:2], y=[7, 7])
        with pytest.raises(ValueError, match=r"300 rows added\) is at least as large as the model"):
            function(model, X=X, y=y)

    def test_nothing_to_audit(self, model: Any) -> None:
        for function in (audit.split_shift, audit.robustness):
            with pytest.raises(ValueError, match="There is no change to audit"):
                function(model)

    def test_robust_splits_are_kept_more_often(self, model: Any, removed: Any) -> None:
        figures = audit.robustness(model, removed).figures
        found = figures["Robustness Split"]
        assert 0 < found["robust"] < 1
        assert found["kept_if_robust"] > found["kept_if_not"]


class TestAttacks:
    @pytest.mark.parametrize(("share", "strategy"), [(0.3, "refit"), (0.01, "in-place")])
    def test_backdoor_is_added_and_removed_with_its_rows(self, share: float, strategy: str) -> None:
        X, y = load_digits(return_X_y=True)
        # At the default target, two thirds of what a retrain learns are learned.
        model = GraftBoostClassifier(n_estimators=20, max_leaf_nodes=10, fidelity=0.95, n_jobs=1)
        rows = (X[:1200], y[:1200], X[1200:], y[1200:])
        found = audit.backdoor(model, *rows, share=share, n_features=8)
        clean, removed = found.figures["trained clean"], found.figures["backdoor removed"]
        assert found.figures["strategies"][1] == strategy
        assert ("by definition" in found.summary) == (strategy == "refit")
        assert found.figures["backdoor added"]["attack"] > clean["attack"] + 0.4
        assert found.figures["untouched"] == found.figures["backdoor added"]
        assert abs(removed["attack"] - clean["attack"]) < 0.05
        assert abs(removed["clean"] - clean["clean"]) < 0.02

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"share": 0.0}, "share is 0.0"),
            ({"share": 1e-6}, "share is 1e-06, which selects none of 100 rows"),
            ({"n_features": 65}, "n_features is 65, but X has 64 features"),
            ({"target": 11}, "target is 11, which is not a class of y"),
        ],
    )
    def test_bad_backdoor(self, parameters: dict[str, Any], message: str) -> None:
        X, y = load_digits(return_X_y=True)
        with pytest.raises(ValueError, match=message):
            audit.backdoor(
                GraftBoostClassifier(), X[:100], y[:100], X[100:200], y[100:200], **parameters
            )

    def test_membership(self) -> None:
        X, y = noisy(2000)
        overfitted = GraftBoostClassifier(
            n_estimators=5, learning_rate=1.0, max_leaf_nodes=200, min_samples_leaf=1, n_jobs=1
        )
        # Gradients are rounded at random, so what an attack finds in three repeats depends on the
        # seed: a standard deviation of 0.02 around 0.116, in twelve repeats 0.005.
        found = audit.membership_attack(overfitted, X, y, share=0.05, n_repeats=12)
        before, gone = found.figures["before"], found.figures["trained without"]
        assert before["other training rows"] > before["unseen rows"] + 0.1
        assert before["removed rows"] > gone["removed rows"]
        assert "(1,200 removed)" in found.title
        assert found.figures["refits"] <= found.figures["repeats"] == 12

    def test_too_few_rows_for_a_conclusion(self) -> None:
        overfitted = GraftBoostClassifier(
            n_estimators=5, learning_rate=1.0, max_leaf_nodes=200, min_samples_leaf=1, n_jobs=1
        )
        found = audit.membership_attack(overfitted, *noisy(2000), share=0.001)
        assert "too few rows for a conclusion" in found.summary

    def test_bad_share(self) -> None:
        with pytest.raises(ValueError, match=r"share is 0\.7"):
            audit.membership_attack(GraftBoostClassifier(), *noisy(100), share=0.7)
        with pytest.raises(ValueError, match="n_repeats is 0"):
            audit.membership_attack(GraftBoostClassifier(), *noisy(100), n_repeats=0)


class TestAuditRemoval:
    def test_reports_what_was_done(self, model: Any) -> None:
        X, y = noisy(seed=1)
        found = audit.audit_removal(model, [3, 17], X, y)
        assert [p.name for p in found.parts][:3] == ["forgetting", "similarity", "leaf_error"]
        assert "Bin edges were computed with these rows and are unchanged" in found.summary
        assert "The 2 rows would be erased" in str(found)

    def test_states_the_estimate_beside_the_measurement(self, model: Any) -> None:
        found = audit.audit_removal(model, np.arange(10))
        assert found.figures["strategy"] == "in-place"
        assert 0 < found.figures["estimated_fidelity"] < 1.5
        assert "Estimated without the retrain: " in found.summary

    def test_refit_forgets_everything(self, model: Any) -> None:
        found = audit.audit_removal(model, slice(0, 1500))
        assert "exactly those of a model trained without the rows" in found.summary
        assert found.figures["forgetting"]["forgetting"] == 1
        assert found.figures["estimated_fidelity"] == 1

    def test_given_edges_depend_on_no_row(self) -> None:
        X, y = noisy(500)
        edges = [[-1.0, 0.0, 1.0]] * X.shape[1]
        model = GraftBoostClassifier(n_estimators=5, bin_edges=edges).fit(X, y)
        assert "depend on no row" in audit.audit_removal(model, [0]).summary

    def test_regression(self) -> None:
        X, y = load_diabetes(return_X_y=True)
        model = GraftBoostRegressor(n_estimators=5).fit(X, y)
        assert "Not audited: predictions" in audit.audit_removal(model, [0], X, y).summary

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([],), "row_ids selects no row"),
            (([1], [[0.0] * 10]), "X is given without y"),
            (([-5],), "row_ids: the model holds no row with id -5"),
        ],
    )
    def test_bad_arguments(self, model: Any, arguments: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            audit.audit_removal(model, *arguments)

    def test_not_updatable(self) -> None:
        X, y = load_breast_cancer(return_X_y=True)
        model = GraftBoostClassifier(n_estimators=2, updatable=False).fit(X, y)
        with pytest.raises(ValueError, match="updatable=False"):
            audit.audit_removal(model, [0])


class TestResult:
    def test_prints_a_table(self, model: Any, removed: Any) -> None:
        found = audit.forgetting(model, without(model, removed))
        lines = str(found).splitlines()
        assert lines[0] == "Forgetting of 60 rows removed"
        columns = [column.strip() for column in lines[1].split("  ") if column.strip()]
        assert columns == ["model", "loss of the rows", "forgetting", "AUC against retrained"]
        assert "| untouched |" in found.to_markdown()

    def test_plot(self, model: Any, removed: Any, tmp_path: Any) -> None:
        matplotlib = pytest.importorskip("matplotlib.figure")
        axis = audit.leaf_error(without(model, removed)).plot()
        axis.figure.savefig(tmp_path / "leaf_error.png")
        axes = audit.audit_removal(model, removed[:2]).plot()
        assert len(axes) == 4
        own = matplotlib.Figure().subplots()
        assert audit.split_shift(model, removed).plot(own) is own
        with pytest.raises(ValueError, match="has 4 plots"):
            audit.audit_removal(model, removed[:2]).plot(own)

    def test_ratio_with_a_denominator_near_zero_has_no_interval(self) -> None:
        rng = np.random.default_rng(0)
        assert ratio_of_sums(rng.normal(size=50), rng.normal(size=50)).low is None
        assert ratio_of_sums([1.0], [2.0]).value == 0.5
        assert ratio_of_sums([1.0], [0.0]).value is None


class TestHeldRows:
    @pytest.mark.parametrize("categorical", [False, True])
    def test_held_rows_are_predicted_like_the_original_rows(self, categorical: bool) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 6)).round(1)
        X[rng.random(X.shape) < 0.1] = np.nan
        X[:, 5] = rng.integers(5, size=400)
        y = np.where(rng.random(400) < 0.2, "b", np.where(np.nan_to_num(X[:, 0]) > 0, "a", "c"))
        chosen = [5] if categorical else None
        model = GraftBoostClassifier(
            n_estimators=5, max_bins=32, split_sample=1.0, categorical_features=chosen
        ).fit(X, y)
        rows = held_rows(model, [7, 3, 250])
        assert rows.y.tolist() == y[[7, 3, 250]].tolist()
        bins = model._engine_model.bins
        assert np.array_equal(
            bins.encode(rows.X.toarray()),
            bins.encode(Columns.learn(read_table(X), chosen).encode(read_table(X))[[7, 3, 250]]),
        )
        probabilities = model.predict_proba(X[[7, 3, 250]])
        codes = np.searchsorted(model.classes_, rows.y)
        expected = -np.log(probabilities[np.arange(3), codes])
        assert losses(model, rows) == pytest.approx(expected)

    def test_other_columns(self, model: Any) -> None:
        rows = held_rows(GraftBoostClassifier(n_estimators=1).fit(*load_digits(return_X_y=True)), 0)
        with pytest.raises(ValueError, match="rows have 64 features"):
            losses(model, rows)

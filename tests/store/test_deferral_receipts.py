"""Receipts of changes that are deferred and of those that regrow nodes for them."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from graftboost import GraftBoostClassifier
from graftboost.store import Store
from graftboost.store.receipts import find_break

from .deferred_changes import LABELS, OUT, X, defer
from .stores import N_ROWS, files, make_model, make_rows, state


def test_receipts(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([1, 2], request="ann", regrow=False)
        store.add(X, LABELS, regrow=False)
        store.remove([3])
        report = store.regrow(request="tonight")
        store.remove([4])
        _, ann, _, ordinary, tonight, after = store.history()
        assert [receipt.deferred for receipt in store.history()] == [
            *(False, True, True, False, False, False)
        ]
        assert [receipt.rows_deferred for receipt in store.history()] == [0, 2, 4, 4, 0, 0]
        assert (ann.strategy, ann.nodes_regrown, ann.forgetting) == ("in-place", 0, None)
        assert (ann.removed, ann.edges) == ([[1, 3]], "computed with")
        assert (tonight.action, tonight.request) == ("regrow", "tonight")
        assert (tonight.removed, tonight.added, tonight.edges) == ([], [], "")
        assert tonight.strategy == report.strategy
        assert tonight.nodes_regrown == report.nodes_regrown
        assert tonight.rows_regrown == report.rows_regrown
        assert tonight.before == ordinary.after
        assert tonight.previous == ordinary.hash
        assert after.before == tonight.after == store.receipt("tonight").after
        assert find_break(store.receipts()) is None
        before = store.history()
    with Store.open(path) as store:
        assert store.history() == before
        store.compact()
        assert store.history() == before
        store.verify()


def test_receipt_of_regrowing_has_the_estimate(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        defer(store)
        report = store.regrow(0.05)
        assert report.forgetting is not None
        assert store.last_receipt.forgetting == asdict(report.forgetting)
        assert store.last_receipt.rows_deferred == report.rows_deferred == len(OUT)
    with Store.open(path) as store:
        assert store.last_receipt.forgetting == asdict(report.forgetting)


def test_nothing_to_regrow_has_no_receipt(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        before = files(path)
        report = store.regrow(request="tonight")
        assert (report.strategy, report.nodes_regrown, report.rows_deferred) == ("in-place", 0, 0)
        assert len(store.history()) == 1
        assert files(path) == before
        assert str(store.pending) == "nothing to regrow"


def test_empty_deferred_changes_have_no_receipt(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        store.remove([], regrow=False)
        store.update(regrow=False)
        assert len(store.history()) == 1


def test_new_class_is_not_deferred(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        defer(store)
        report = store.add(X, ["maybe", "maybe"], regrow=False)
        assert (report.strategy, report.rows_deferred) == ("refit", 0)
        receipt = store.last_receipt
        assert (receipt.strategy, receipt.deferred, receipt.rows_deferred) == ("refit", False, 0)
        assert store.regrown_by(store.receipt(1)) == receipt
        found = state(store)
    with Store.open(path) as store:
        assert state(store) == found
        store.verify()


def test_regrown_by_one_change(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        defer(store, [1, 2])
        first, second = store.history()[1:]
        assert store.regrown_by(first) is None
        store.refresh()
        store.remove([3])
        assert store.regrown_by(first) is None
        store.regrow(request="tonight")
        store.remove([5], regrow=False)
        assert store.regrown_by(first) == store.regrown_by(second) == store.receipt("tonight")
        assert store.regrown_by(store.last_receipt) is None
        store.refit(request="all again")
        assert store.regrown_by(first) == store.receipt("tonight")
        assert store.regrown_by(store.receipt(6)) == store.receipt("all again")
        assert store.refitted_since(first)


def test_regrown_by_several_changes_with_limited_work(path: Path) -> None:
    """The last of them is the one that regrew the rest."""
    features, score = make_rows(0, N_ROWS)
    labels = score > 0
    labels[OUT] = ~labels[OUT]  # so that there is much to forget
    model = GraftBoostClassifier(n_estimators=10, min_samples_leaf=5, n_jobs=1)
    with Store.create(path, model.fit(features, labels)) as store:
        defer(store)
        first = store.receipt(1)
        for _ in range(100):
            report = store.regrow(0.1)
            if not report.rows_deferred:
                break
            assert store.regrown_by(first) is None
        parts = [receipt for receipt in store.receipts() if receipt.action == "regrow"]
        assert len(parts) > 1
        assert [receipt.rows_deferred for receipt in parts] == [
            *[len(OUT)] * (len(parts) - 1),
            0,
        ]
        assert store.regrown_by(first) == parts[-1] == store.last_receipt
        assert store.regrown_by(store.receipt(len(OUT))) == parts[-1]


def test_receipts_in_words(path: Path) -> None:
    with Store.create(path, make_model()) as store:
        defer(store)
        booked = store.receipt(1)
        text = booked.in_words(store.refitted_since(booked), store.regrown_by(booked))
        assert re.search(r"^  done +in-place, rows booked$", text, re.MULTILINE)
        assert re.search(r"^  regrown +not yet$", text, re.MULTILINE)
        assert "forgetting" not in text
        assert "nodes regrown" not in text
        store.regrow(0.05)
        part = store.last_receipt
        assert re.search(r"^  action +regrow$", str(part), re.MULTILINE)
        assert re.search(r"^  not yet regrown +15 rows$", str(part), re.MULTILINE)
        store.remove([3])
        assert re.search(r"^  not yet regrown +15 rows$", str(store.last_receipt), re.MULTILINE)
        store.regrow()
        last = store.last_receipt
        assert "not yet" not in str(last)
        assert f"in-place, {last.nodes_regrown:,} nodes regrown" in str(last)
        text = booked.in_words(False, store.regrown_by(booked))
        assert f"{last.time}, by change {last.number}" in text
        assert "not yet" not in text


def test_estimate_in_words(path: Path) -> None:
    with Store.create(path, make_model("regressor")) as store:
        defer(store)
        report = store.regrow(0.1)
        assert report.forgetting is not None
        line = rf"^  forgetting +{re.escape(report.forgetting.in_words())}$"
        assert re.search(line, str(store.last_receipt), re.MULTILINE)
        assert "None" not in str(store.last_receipt)

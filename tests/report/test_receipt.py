"""Receipts: what one person is told."""

import math

import pytest

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Policy
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost
from collegium.report.receipt import dots, receipt_of

POLICY = Policy({"high": 1.0, "low": 3.0, "open": math.inf})


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "people.ledger")
    people = POLICY.assign(["high", "low", "open"], owners=["ann", "bob", "eve"])
    costs = {"high": Cost(0.02), "low": Cost(0.1), "open": Cost(0.2)}
    first = made.reserve("a", "Study of 2025", people, costs, neighbours=Neighbours.ANY_CHANGE)
    first.settle([Cost(0.0135), Cost(0.08), Cost(0.2)])
    made.reserve("b", "Counts of 2026", people, costs, neighbours=Neighbours.ANY_CHANGE)
    return made


def text_about(ledger, name):
    return receipt_of(name, ledger.account_of(name)).as_text()


def test_a_receipt_says_what_was_chosen_used_and_left(ledger):
    ledger.change(POLICY.assign(["low"], owners=["ann"]))
    text = text_about(ledger, "ann")
    assert text.startswith(
        "The privacy account of ann\n\n2 releases used your records: together ε = "
    )
    assert "of 3 that you grant" in text
    assert text.index("level “high”, that is ε = 1.") < text.index("level “low”, that is ε = 3.")
    assert "Study of 2025 " in text and "  2.7 %" in text  # 0.0135 of 0.5166
    assert "up to 3.9 %" in text  # 0.02 of 0.5166: reserved only
    assert "Left of your budget: 93.5 %." in text
    # Φ(√0.5166 / 2) = 0.6404, rounded up: of the largest budget granted, not of what is booked.
    assert "hold your records, or blanks in their place" in text
    assert "nobody can be right more than 65 times in 100" in text


def test_nobody_is_told_more_than_is_known(ledger):
    assert text_about(ledger, "zoe") == (
        "The privacy account of zoe\n\nThere is no account under this name: nothing was learnt from "
        "records under it.\n\n\nWhat it means\nNothing has been learnt from your records. So nobody can do "
        "better than guessing.\n"
    )


def test_who_left_who_lowered_and_who_set_no_limit(ledger):
    ledger.forget("ann")
    text = text_about(ledger, "ann")
    assert ": you left." in text and "You have left: nothing more will be learnt" in text
    ledger.change(POLICY.assign(["high"], owners=["bob"]))
    text = text_about(ledger, "bob")
    assert "More was used than you grant now: nothing more will be learnt" in text
    assert "more than 65 times in 100" in text  # the promise under which it was released
    text = text_about(ledger, "eve")
    assert "You set no limit: nothing that was learnt from your records is private." in text
    assert "no limit (no privacy)" in text and "more than 100 times in 100" in text


def test_before_anything_was_released(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger")
    ledger.change(POLICY.assign(["high"], owners=["ann"]))
    receipt = receipt_of("ann", ledger.account_of("ann"))
    assert receipt.heading == "Nothing has used your records yet."
    assert "Left of your budget: 100.0 %" in receipt.as_text()
    # Pure mechanisms may use ε = 1 in full: e/(1 + e) = 0.7311.
    assert "nobody can be right more than 74 times in 100" in receipt.as_text()
    replaced = receipt_of("ann", ledger.account_of("ann"), Neighbours.REPLACE)
    assert "or others in their place" in replaced.as_text()


def test_a_pure_mechanism_takes_its_share_of_epsilon(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger")
    people = POLICY.assign(["high"], owners=["ann"])
    costs = {"high": Cost(1.2, 0.9), "low": Cost(0.0), "open": Cost(0.0)}
    ledger.reserve("a", "Laplace", people, costs, neighbours=Neighbours.ANY_CHANGE)
    text = text_about(ledger, "ann")
    assert "up to 90.0 %" in text and "Left of your budget: 10.0 %" in text


def test_the_page_is_one_file_and_shows_names_as_they_are(ledger):
    name = "<script>alert(1)</script>"
    ledger.change(POLICY.assign(["high"], owners=[name]))
    page = receipt_of(name, ledger.account_of(name)).as_html()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert "http" not in page and "src=" not in page
    page = receipt_of("ann", ledger.account_of("ann")).as_html()
    assert page.count('class="guess"') == 50 and page.count('class="gain"') == 6


def test_a_hundred_dots():
    kinds = [dot["kind"] for dot in dots(57)]
    assert [kinds.count(kind) for kind in ("guess", "gain", "rest")] == [50, 7, 43]


def test_the_command(collegium, ledger, tmp_path):
    code, printed, _ = collegium("receipt", "ann", "--ledger", str(ledger))
    assert code == 0 and "Left of your budget" in printed
    page = tmp_path / "ann.html"
    code, printed, _ = collegium("receipt", "ann", "--ledger", str(ledger), "--html", page)
    assert code == 0 and page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_mode & 0o077 == 0

"""Receipts: what one person is told."""

import math
import re

import pytest
from html_checks import check

from collegium import Ledger, Policy
from collegium.accounting import Neighbours
from collegium.ledger import Cost
from collegium.report.receipt import receipt_of

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
    """A receipt's text, in one line: it is broken into lines that fit on a page."""
    return in_one_line(receipt_of(name, ledger.account_of(name)))


def in_one_line(receipt):
    return " ".join(receipt.as_text().split())


def test_a_receipt_says_what_was_chosen_used_and_left(ledger):
    ledger.change(POLICY.assign(["low"], owners=["ann"]))
    text = text_about(ledger, "ann")
    # 0.0135 and 0.02 (reserved only) of 0.5166
    assert text.startswith(
        "The privacy account of ann 2 releases have used your records. So far, up to 6.5 % of your budget "
        "was used; at least 93.5 % remains. What you chose"
    )
    assert text.index("level “high” (ε = 1)") < text.index("level “low” (ε = 3)")
    assert re.search(
        r"Study of 2025 [\w ]+ 2.7 % Counts of 2026 [\w ]+ up to 3.9 % “Up to” means that a release has",
        text,
    )
    # Φ(√0.5166 / 2) = 0.6404, rounded up: of the largest budget granted, not of what is booked.
    assert "were your records used, or was your place left empty?" in text
    assert "is right at most 65 times in 100; by guessing alone, 50 times" in text
    assert "largest budget" not in text
    assert "your budget is ε = 3 at δ = 1e-5. So far, at most ε = 0.659 was used." in text


def test_nobody_is_told_more_than_is_known(ledger):
    text = text_about(ledger, "zoe")
    assert text.startswith(
        "The privacy account of zoe There is no account under this name, so no release"
    )
    assert (
        "No release has used your records so far, so nobody can do better than guess. o o o" in text
    )
    assert "+ +" not in text and "level “" not in text and "In numbers" not in text


def test_who_left_who_lowered_and_who_set_no_limit(ledger):
    ledger.forget("ann")
    text = text_about(ledger, "ann")
    assert (
        ": you left " in text and "You have left. No further release will use your records." in text
    )
    ledger.change(POLICY.assign(["high"], owners=["bob"]))
    text = text_about(ledger, "bob")
    assert "More was used than you allow now. No further release will use your records." in text
    assert "right at most 65 times in 100" in text  # the promise under which it was released
    assert "This number belongs to the largest budget that you have ever granted" in text
    text = text_about(ledger, "eve")
    assert "You have set no limit." in text and "level “open” (no limit: no privacy)" in text
    assert "There is no limit, so nothing is promised" in text and "In numbers" not in text
    ledger.change(POLICY.assign(["high"], owners=["eve"]))
    assert "For a time you had set no limit. Nothing is promised about what was" in text_about(
        ledger, "eve"
    )


def test_before_anything_was_released(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger")
    ledger.change(POLICY.assign(["high"], owners=["ann"]))
    receipt = receipt_of("ann", ledger.account_of("ann"))
    assert receipt.heading == "No release has used your records yet. All of your budget remains."
    assert "is right at most 56 times in 100; by guessing alone" in in_one_line(receipt)
    replaced = receipt_of("ann", ledger.account_of("ann"), Neighbours.REPLACE)
    assert "or were there other records in their place?" in in_one_line(replaced)


def test_a_pure_mechanism_takes_its_share_of_epsilon_where_that_is_promised(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", promise="pure")
    people = POLICY.assign(["high"], owners=["ann"])
    costs = {"high": Cost(1.2, 0.9), "low": Cost(0.0), "open": Cost(0.0)}
    ledger.reserve("a", "Laplace", people, costs, neighbours=Neighbours.ANY_CHANGE)
    text = text_about(ledger, "ann")
    assert "up to 90.0 % of your budget was used; at least 10.0 % remains" in text
    assert "at most 74 times in 100" in text and " at δ" not in text


def test_the_page_is_one_file_and_shows_names_as_they_are(ledger):
    name = "<script>alert(1)</script>"
    ledger.change(POLICY.assign(["high"], owners=[name]))
    page = receipt_of(name, ledger.account_of(name)).as_html()
    assert "<script" not in page and "&lt;script&gt;" in page
    assert f"The privacy account of {name}" in check(page).text
    page = receipt_of("ann", ledger.account_of("ann")).as_html()
    assert "“Up to” means that a release has not ended yet" in check(page).text
    assert [page.count(f'class="{kind}"') for kind in ("guess", "gain")] == [50, 6]


def test_the_command(collegium, ledger, tmp_path):
    code, printed, _ = collegium("receipt", "ann", "--ledger", str(ledger))
    assert code == 0 and "So far, up to" in printed
    page = tmp_path / "ann.html"
    code, printed, _ = collegium("receipt", "ann", "--ledger", str(ledger), "--html", page)
    assert code == 0 and page.read_text().startswith("<!DOCTYPE html>")
    assert page.stat().st_mode & 0o077 == 0

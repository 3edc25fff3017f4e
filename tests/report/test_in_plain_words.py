"""What a budget means, in words: never more than is proved."""

import math

import pytest
from html_checks import check

from collegium import Budget, Ledger, Policy
from collegium.accounting import Neighbours, pure_to_gdp
from collegium.accounting.promises import Promise as Promised
from collegium.accounting.statement import RISK_MEANS
from collegium.ledger import Cost, Lifetime
from collegium.ledger.limits import PROMISES
from collegium.report import in_plain_words as words
from collegium.report.chances import Chances
from collegium.report.in_plain_words import Promise, promise
from collegium.report.policy_page import explain
from collegium.report.receipt import receipt_of
from examples import make, render_report

GAUSSIAN, PURE = Cost(0.01), Cost(pure_to_gdp(0.1) ** 2, 0.1)
IN_MU, IN_PURE = Lifetime(), Lifetime(Promised.PURE)


@pytest.mark.parametrize(
    ("budgets", "lifetime", "right", "also"),
    [
        ([Budget(1.0)], IN_MU, 56, ""),
        ([Budget(1.0)], IN_PURE, 74, ""),
        ([Budget(3.0)], IN_MU, 65, ""),
        ([Budget(3.0)], IN_PURE, 96, ""),
        ([Budget(1.0), Budget(3.0)], IN_MU, 65, ""),
        ([Budget(3.0), Budget(1.0)], IN_MU, 65, words.LARGEST),
        ([Budget(3.0), Budget(1.0)], IN_PURE, 96, words.LARGEST),
        # μ of one and δ₀ of the other: more than either alone, which are 80 and 77.
        ([Budget(8.1), Budget(0.1, 0.5)], IN_MU, 81, words.LARGEST),
        ([Budget(0.1, 0.5), Budget(8.1)], IN_MU, 81, words.LARGEST),
        ([Budget(25.0)], IN_MU, 98, ""),
        ([Budget(100.0)], IN_MU, 100, words.NEXT_TO_NOTHING),
        ([Budget(math.inf)], IN_MU, 100, words.NO_LIMIT),
        ([Budget(1.0), Budget(math.inf)], IN_MU, 100, words.NO_LIMIT),
        ([Budget(math.inf), Budget(1.0)], IN_PURE, 100, words.ONCE_NO_LIMIT),
    ],
)
def test_what_is_promised(budgets, lifetime, right, also):
    said = promise(budgets, lifetime)
    number = words.AT_MOST.format(right=right) if right < 100 else ""
    assert (said.right, said.words) == (right, f"{number} {also}".strip())


@pytest.fixture
def pay(tmp_path):
    """Enter releases that cost one person something, and give the receipt."""
    people = Policy({"high": 1.0}).assign(["high"], owners=["ann"])

    def receipt(*costs, settled=True, kept_in="gaussian"):
        ledger = Ledger.create(tmp_path / f"{kept_in}.ledger", promise=kept_in)
        for number, cost in enumerate(costs):
            made = ledger.reserve(
                str(number),
                "x",
                people,
                [cost],
                [0],
                neighbours=Neighbours.ANY_CHANGE,
            )
            if settled:
                made.settle([cost])
        return receipt_of("ann", ledger.account_of("ann"))

    return receipt


@pytest.mark.parametrize(
    ("costs", "settled", "kept_in", "right"),
    [
        ([Cost(0.0)], True, "gaussian", 56),
        ([GAUSSIAN], True, "gaussian", 56),
        ([GAUSSIAN], False, "gaussian", 56),
        ([PURE, GAUSSIAN], True, "gaussian", 56),
        ([Cost(0.0), PURE], True, "gaussian", 56),
        ([Cost(0.0)], False, "pure", 74),
        ([PURE], False, "pure", 74),
        ([PURE, PURE], True, "pure", 74),
    ],
)
def test_a_receipt_promises_one_number_whatever_was_released(pay, costs, settled, kept_in, right):
    assert pay(*costs, settled=settled, kept_in=kept_in).promise.right == right


@pytest.mark.parametrize("kept_in", PROMISES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 100.0, math.inf])
@pytest.mark.parametrize("share", [0.01, 0.5])
def test_the_consent_page_says_the_number_of_a_receipt(tmp_path, kept_in, epsilon, share):
    policy = Policy({"level": epsilon})
    ledger = Ledger.create(tmp_path / "people.ledger", delta_0_share=share, promise=kept_in)
    ledger.change(policy.assign(["level"], owners=["ann"]))
    ((_, asked, _),) = explain(policy, promise=kept_in).levels
    assert receipt_of("ann", ledger.account_of("ann")).promise == asked


def test_shares_are_all_in_what_was_promised(pay):
    receipt = pay(PURE, GAUSSIAN)
    assert [share for _, _, share in receipt.used] == ["21.9 %", "14.0 %"]
    assert "So far, 35.9 % of your budget was used; 64.1 % remains." in receipt.heading


def test_a_receipt_in_pure_epsilon_speaks_of_no_delta(pay):
    receipt = pay(PURE, kept_in="pure")
    assert (
        "does not add up" not in receipt.as_text() and "does not add up" in pay(GAUSSIAN).as_text()
    )
    assert [share for _, _, share in receipt.used] == ["10.0 %"]
    assert "your budget is ε = 1. So far, at most ε = 0.1 was used." in receipt.numbers


def test_a_budget_means_the_same_sentence_and_picture_everywhere():
    """Consent page and receipt speak to a person, statements and reports about one."""
    of_a_person = RISK_MEANS.format(records_are="a person's records were used", right=56)
    to_a_person = words.AT_MOST.format(right=56)
    assert to_a_person.lower() == of_a_person.replace("a person's", "your") + "."
    privacy = make({"a": Budget(1.0)}).privacy
    page = check(render_report(make({"a": Budget(1.0)})))
    said = privacy.risk_in_words(privacy.groups[0])
    assert any(said in line for line in privacy.sentences())
    pictured = [one for one in page.all("desc") if one.text.lower() == f"{said}."]
    assert len(pictured) == 1 and f"{said[0].upper()}{said[1:]}." in page.text
    marks = [one.attributes.get("class") for one in page.elements if one.tag in ("circle", "rect")]
    assert [mark for mark in marks if mark] == Chances(
        privacy.right_of_100(privacy.groups[0])
    ).kinds


def test_a_hundred_decisions_in_marks_and_in_letters():
    pictured = Promise("", 57).chances
    marks = [dot["kind"] for dot in pictured.dots()]
    letters = "".join(pictured.letters()).split()
    assert [marks.count(kind) for kind in ("guess", "gain", "rest")] == [50, 7, 43]
    assert [letters.count(letter) for letter in "o+."] == [50, 7, 43]

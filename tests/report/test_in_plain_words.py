"""What a budget means, in words: never more than is proved."""

import math

import pytest

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budget, Policy
from collegium.ledger.ledger import Ledger
from collegium.ledger.limits import Cost, Limit
from collegium.report import in_plain_words as words
from collegium.report.in_plain_words import Promise, promise
from collegium.report.receipt import receipt_of

GAUSSIAN, PURE, NOTHING = Cost(0.01), Cost(0.01, 0.1), None
LABELS, LAPLACE = Cost(0.1, alone=Budget(1.0)), Cost(math.inf, alone=Budget(1.0))


@pytest.mark.parametrize(
    ("budgets", "first", "right", "also"),
    [
        ([Budget(1.0)], NOTHING, 74, words.IF_GAUSSIAN.format(right=56)),
        ([Budget(1.0)], GAUSSIAN, 56, ""),
        (
            [Budget(1.0)],
            PURE,
            74,
            "",
        ),  # what follows may be pure, too, in the light of what came out
        ([Budget(3.0)], NOTHING, 96, words.IF_GAUSSIAN.format(right=65)),
        ([Budget(1.0), Budget(3.0)], GAUSSIAN, 65, ""),
        ([Budget(3.0), Budget(1.0)], GAUSSIAN, 65, words.LARGEST),
        # μ of one and δ₀ of the other: more than either alone, which are 80 and 77.
        ([Budget(8.1), Budget(0.1, 0.5)], GAUSSIAN, 81, words.LARGEST),
        ([Budget(0.1, 0.5), Budget(8.1)], GAUSSIAN, 81, words.LARGEST),
        # One release that takes the whole, whatever its μ: nothing follows, unless more is granted.
        ([Budget(1.0)], LABELS, 57, ""),
        ([Budget(1.0)], LAPLACE, 74, ""),
        ([Budget(1.0), Budget(3.0)], LABELS, 65, ""),
        ([Budget(1.0), Budget(3.0)], LAPLACE, 74, ""),
        ([Budget(25.0)], GAUSSIAN, 98, ""),
        ([Budget(100.0)], GAUSSIAN, 100, words.NEXT_TO_NOTHING),
        ([Budget(math.inf)], NOTHING, 100, words.NO_LIMIT),
        ([Budget(1.0), Budget(math.inf)], GAUSSIAN, 100, words.NO_LIMIT),
        ([Budget(math.inf), Budget(1.0)], GAUSSIAN, 100, words.ONCE_NO_LIMIT),
    ],
)
def test_what_is_promised(budgets, first, right, also):
    said = promise([Limit.of(budget) for budget in budgets], first)
    number = words.AT_MOST.format(right=right) if right < 100 else ""
    assert (said.right, said.words) == (right, f"{number} {also}".strip())


@pytest.fixture
def pay(tmp_path):
    """Enter releases that cost one person something, and give the receipt."""
    people = Policy({"high": 1.0}).assign(["high"], owners=["ann"])

    def receipt(*costs, settled=True):
        ledger = Ledger.create(tmp_path / "people.ledger")
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
    ("costs", "settled", "right"),
    [
        ([GAUSSIAN], True, 56),
        ([GAUSSIAN], False, 74),  # it may come to nothing, and then all of ε may be used
        ([GAUSSIAN, PURE], True, 56),
        (
            [PURE, GAUSSIAN],
            True,
            74,
        ),  # whether it came to that may depend on what the first one told
        ([Cost(0.0), PURE], True, 74),
    ],
)
def test_the_number_does_not_depend_on_what_came_out(pay, costs, settled, right):
    assert pay(*costs, settled=settled).promise.right == right


def test_shares_are_all_in_one_currency(pay):
    """Alone, the pure release would take 10 % of ε; beside another in μ², it takes 14 %, as in the total."""
    receipt = pay(PURE, GAUSSIAN)
    assert [share for _, _, share in receipt.used] == ["14.0 %", "14.0 %"]
    assert "that took 27.9 % of your budget; 72.1 % remains." in receipt.heading


def test_what_takes_the_whole_takes_all_of_it(pay):
    receipt = pay(LAPLACE)
    assert [share for _, _, share in receipt.used] == ["100.0 %"]
    assert "that took 100.0 % of your budget; 0.0 % remains." in receipt.heading
    assert receipt.promise.right == 74


def test_a_hundred_decisions_in_marks_and_in_letters():
    promised = Promise("", 57)
    marks = [dot["kind"] for dot in promised.dots()]
    letters = "".join(promised.letters()).split()
    assert [marks.count(kind) for kind in ("guess", "gain", "rest")] == [50, 7, 43]
    assert [letters.count(letter) for letter in "o+."] == [50, 7, 43]

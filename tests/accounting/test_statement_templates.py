"""What a statement says follows from values, never from the wording of another sentence."""

import itertools
import re

import pytest

from collegium import Budget, PrivacyStatement
from collegium.accounting import Neighbours
from collegium.accounting import statement as module
from collegium.accounting.neighbours import OWNER, TEACHER, Arrangement
from collegium.accounting.statement import Answers, GroupSpending
from collegium.dpsgd.account import STEPS_RELEASED

STEPS = STEPS_RELEASED.format("8")
TEMPLATES = {
    name: value
    for name, value in vars(module).items()
    if isinstance(value, str) and re.search(r"{\w+}", value)
}
KINDS = [
    (released, relation, unit, guarantee, price)
    for released, relation, unit, guarantee, price in itertools.product(
        (*Answers, STEPS, "the noisy answers to 3 questions"),
        Neighbours,
        (OWNER, TEACHER),
        ("worst-case", "data-dependent"),
        ("histogram", "labels"),
    )
    # Only votes may be charged as labels, be of unknown people, or have a data-dependent account.
    if isinstance(released, Answers)
    or (unit, guarantee, price) == (OWNER, "worst-case", "histogram")
]


def made(
    released,
    relation,
    unit=OWNER,
    guarantee="worst-case",
    price="histogram",
    adjacency="as is said",
):
    groups = (GroupSpending("a", 20, Budget(1.0, 1e-5), 0.5),)
    return PrivacyStatement(
        guarantee, adjacency, True, groups, released, relation, unit, price=price
    )


def said(privacy):
    """Everything that a statement says about a release, but what was released."""
    lines = [line for line in privacy.sentences() if not line.startswith("Released")]
    return " ".join([*lines, privacy.meaning])


def has(text, *some):
    return [word for word in some if re.search(rf"\b{word}\b", text, re.IGNORECASE)]


@pytest.mark.parametrize(("released", "relation", "unit", "guarantee", "price"), KINDS)
def test_no_statement_claims_what_is_not_so(released, relation, unit, guarantee, price):
    privacy = made(released, relation, unit, guarantee, price)
    text = said(privacy)
    assert "{" not in text and "}" not in text
    if not isinstance(released, Answers):
        assert not has(text, "labels?", "students?", "votes?", "voting", "teachers?")
    if unit == TEACHER:
        own = " ".join(privacy.sentences())
        assert not has(own, "students?", "person's", "people") and "what it has learnt from" in own
    if relation is Neighbours.ADD_OR_REMOVE:
        assert not has(text, "others in", "or others", "records are these", "certain data", "own")
        assert has(text, "records were used", "has learnt from something")
    elif relation is Neighbours.ANY_CHANGE:  # blanked is one of the changes
        assert has(text, "records were used", "has learnt from something")
        assert not has(text, "records are there", "records are these")
    else:
        assert not has(text, "blanks?", "records are there", "records were used")


@pytest.mark.parametrize(("released", "relation", "unit", "guarantee", "price"), KINDS)
def test_rewording_every_template_changes_no_claim(
    monkeypatch, released, relation, unit, guarantee, price
):
    """Around the slots stands something else, and in them the same."""
    slots = made(released, relation, unit, guarantee, price)._slots

    def reworded(template):
        return " … ".join(re.findall(r"{\w+}", template)) or "…"

    for name, template in TEMPLATES.items():
        monkeypatch.setattr(module, name, reworded(template))
    monkeypatch.setattr(module, "MEANING", {k: reworded(v) for k, v in module.MEANING.items()})
    monkeypatch.setattr(module, "RELEASED", dict.fromkeys(module.RELEASED, "…"))
    privacy = made(released, relation, unit, guarantee, price, "replaced, blank, label, student")
    assert privacy._slots == slots
    text = " ".join(privacy.sentences())
    for name in ("records_are", "about_the_same", "budget_tells"):
        assert slots[name] in text
    assert (slots["published"] in text) == (guarantee == "worst-case")


def test_every_slot_is_of_a_template_and_every_template_is_filled():
    used = {
        slot
        for template in (*TEMPLATES.values(), *module.MEANING.values())
        for slot in re.findall(r"{(\w+)}", template)
    }
    slots = made(Answers.LABELS, Neighbours.REPLACE)._slots
    assert used == {*slots, "right"}
    with pytest.raises(KeyError):
        made(Answers.LABELS, Neighbours.REPLACE).filled("{nothing}")


@pytest.mark.parametrize("blanked", [False, True])
def test_neighbours_in_words_and_as_a_value_are_one(blanked):
    """The sentence, and the value from which all others are filled, come from one arrangement."""
    arrangement = Arrangement(blanked_only=blanked)
    assert (arrangement.neighbours is Neighbours.ADD_OR_REMOVE) == blanked
    assert ("there or blanked" in arrangement.sentence) == blanked
    was_used = "were used" in made(STEPS, arrangement.neighbours)._slots["records_are"]
    assert was_used == (arrangement.neighbours is not Neighbours.REPLACE)

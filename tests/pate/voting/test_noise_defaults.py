"""Noise that is not given follows the number of teachers, in one place; and nobody asks what class it is."""

import re
from pathlib import Path

import numpy as np
import pytest

import collegium
from collegium import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
from collegium.errors import InputError
from collegium.pate.voting.aggregators import AGGREGATORS
from collegium.pate.voting.least_noise import least_sigma
from collegium.pate.voting.pricing import DataDependentPricing, WorstCasePricing

each_aggregator = pytest.mark.parametrize("name", list(AGGREGATORS))


@pytest.mark.parametrize("k", [1, 7, 10, 250, 333])
def test_noise_is_in_proportion_to_the_teachers_to_the_last_bit(k):
    assert LNMax().resolved(k) == LNMax(12.5 / k)
    assert GNMax().resolved(k) == GNMax(0.16 * k)
    assert ConfidentGNMax().resolved(k) == ConfidentGNMax(0.8 * k, 0.6 * k, 0.16 * k)
    assert InteractiveGNMax().resolved(k) == InteractiveGNMax(0.4 * k, 0.6 * k, 0.16 * k)


def test_what_is_given_stays():
    assert ConfidentGNMax(sigma=3).resolved(10) == ConfidentGNMax(8.0, 6.0, 3)
    given = InteractiveGNMax(1.0, 2.0, 3.0, confidence=0.5, refit_every=2)
    assert given.resolved(1000) == given


def test_published_settings_are_those_of_250_teachers():
    assert ConfidentGNMax().resolved(250) == ConfidentGNMax(200.0, 150.0, 40.0)
    assert LNMax().resolved(250) == LNMax(0.05)


def test_a_number_of_answers_finds_the_least_noise(house):
    electorate = house.plan("weighting", 100).electorate(3)
    resolved = GNMax(answers=500).resolved(100, electorate)
    assert resolved == GNMax(least_sigma(electorate, 500))
    account = WorstCasePricing(resolved, electorate).accountant
    assert account.how_many(resolved.answer_event(electorate.ballot(0))) == 500
    assert GNMax(answers=500).resolved(100).sigma is None


@each_aggregator
def test_noise_that_is_not_known_yet_cannot_be_drawn_or_priced(name, house):
    electorate = house.unlimited(10)
    aggregator, ballot = AGGREGATORS[name](), electorate.ballot(0)
    uses = [
        lambda: aggregator.noise_scale,
        lambda: aggregator.answer_event(ballot),
        lambda: WorstCasePricing(aggregator, electorate).price(ballot),
        lambda: DataDependentPricing(aggregator, electorate).prices(
            [ballot], np.array([[6.0, 4.0]])
        ),
        lambda: house.job(house.predictions(3, 10), electorate, aggregator),
    ]
    if aggregator.has_check:
        uses += [lambda: aggregator.check_event(ballot), lambda: aggregator.check_threshold]
    for use in uses:
        with pytest.raises(
            InputError, match=rf"{name}: \w+ follows the number of teachers"
        ) as said:
            use()
        assert "\n" not in str(said.value)


@each_aggregator
def test_settings_name_what_has_a_value(name):
    aggregator = AGGREGATORS[name]()
    resolved = aggregator.resolved(20)
    assert resolved.settings()["name"] == name
    assert None not in resolved.settings().values()
    assert set(aggregator.given()) <= set(resolved.given()) <= set(aggregator.get_params())
    assert repr(resolved).startswith(type(resolved).__name__) and "None" not in repr(resolved)


def test_nobody_asks_an_aggregator_for_its_class():
    """What a mechanism is stands in its own files: everybody else asks what it does."""
    own = {"aggregators.py", "noisy_maxima.py"}
    classes = {cls.__name__ for kind in AGGREGATORS.values() for cls in kind.__mro__[:-1]}
    classes -= {"Aggregator", "Searchable", "ABC"}
    assert {"GNMax", "CheckedAggregator", "PureAggregator"} <= classes
    asks = re.compile(rf"(isinstance|issubclass|type)\([^()]*\b({'|'.join(classes)})\b")
    package = Path(collegium.__file__).parent
    found = [
        f"{path.name}: {match[0]}"
        for path in package.rglob("*.py")
        if path.name not in own
        for match in asks.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []

"""Exported compositions: other accountants come to our numbers."""

import json
import math
import sys

import numpy as np
import pytest

from collegium import ConfidentGNMax, ExponentialMax, GNMax, LNMax, PermuteAndFlip
from collegium.accounting import Composition, Gaussian, Neighbours, gdp_epsilon, to_dp_event
from collegium.accounting.events import Nothing
from collegium.accounting.export import Use, from_json, to_json
from collegium.errors import InputError
from collegium.pate.voting.composition import replay
from collegium.pate.voting.history import spending_history
from collegium.pate.voting.labelling import ANSWERED, LOST, NO_LABEL, REJECTED, Outcome

dp_accounting = pytest.importorskip("dp_accounting")
from dp_accounting import pld, rdp  # noqa: E402
from dp_accounting.privacy_accountant import NeighboringRelation  # noqa: E402

DELTA = 1e-5
CONFIDENT = ConfidentGNMax().resolved(250)


def outcomes(n_asked, n_answered, n_lost=0):
    verdicts = [ANSWERED] * n_answered + [LOST] * n_lost
    verdicts += [REJECTED] * (n_asked - len(verdicts))
    return [
        Outcome(position, position, verdict, 0 if verdict == ANSWERED else NO_LABEL)
        for position, verdict in enumerate(verdicts)
    ]


def event_of(uses):
    return to_dp_event(Composition([use.event for use in uses], [use.count for use in uses]))


def by_pld(event, interval=1e-4, relation=NeighboringRelation.ADD_OR_REMOVE_ONE):
    return pld.PLDAccountant(relation, interval).compose(event).get_epsilon(DELTA)


@pytest.mark.parametrize("personalisation", ["uniform", "upsampling", "weighting"])
def test_privacy_loss_distributions_confirm_the_epsilon_of_every_group(house, personalisation):
    plan = house.plan(personalisation, 250)
    electorate = plan.electorate(0)
    replayed = replay(CONFIDENT, electorate, outcomes(90, 40))
    ours = dict(zip(replayed.account.names, replayed.account.epsilon_spent(), strict=True))
    assert min(ours.values()) > 0.3
    for group, mechanisms in replayed.composition.items():
        event = event_of(mechanisms)
        assert by_pld(event) == pytest.approx(ours[group], abs=1e-3)
        moments = rdp.RdpAccountant(np.linspace(1.1, 400, 800)).compose(event).get_epsilon(DELTA)
        assert ours[group] <= moments <= 1.2 * ours[group]


def test_the_published_job(house):
    replayed = replay(CONFIDENT, house.unlimited(250), outcomes(640, 283))
    check, answer = replayed.composition["everybody"]
    assert (check.count, answer.count) == (640, 283)
    assert check.noise_multiplier == pytest.approx(150.0, rel=1e-12)
    assert answer.noise_multiplier == pytest.approx(40 / math.sqrt(2), rel=1e-12)
    epsilon = gdp_epsilon(math.sqrt(640 / 150**2 + 2 * 283 / 40**2), DELTA)
    assert by_pld(event_of([check, answer])) == pytest.approx(epsilon, abs=1e-3)


def test_vanishing_exports_the_most_burdened_owners_of_each_group(house):
    electorate = house.plan("vanishing", 100).electorate(3)
    aggregator = house.aggregator("confident", 100)
    asked = outcomes(60, 12)
    replayed = replay(aggregator, electorate, asked)
    history = spending_history(aggregator, electorate, asked)[-1].epsilon_spent
    for group, mechanisms in replayed.composition.items():
        mu_squared = math.fsum(mechanism.mu_squared for mechanism in mechanisms)
        assert gdp_epsilon(math.sqrt(mu_squared), DELTA) == pytest.approx(history[group], rel=1e-9)
        assert by_pld(event_of(mechanisms)) == pytest.approx(history[group], abs=1e-3)


def test_lost_queries_are_exported_as_charged(house):
    electorate = house.unlimited(100)
    replayed = replay(GNMax(20.0), electorate, outcomes(10, 4, n_lost=3))
    (answer,) = replayed.composition["everybody"]
    assert answer.count == 7


def test_laplace_answers_are_two_noised_counts_each(house):
    replayed = replay(LNMax(gamma=0.02), house.unlimited(100), outcomes(20, 20))
    (answer,) = replayed.composition["everybody"]
    assert (answer.kind, answer.count) == ("laplace", 20)
    assert answer.noise_multiplier == pytest.approx(50.0, rel=1e-9)
    event = event_of([answer])
    assert event.events[0].count == 40
    theirs = by_pld(event)
    pure, ours = 20 * 0.04, float(replayed.account.epsilon_spent()[0])
    assert ours == pytest.approx(pure, rel=1e-9)
    assert theirs <= ours + 1e-3  # ours covers every pure mechanism, theirs this one


@pytest.mark.parametrize("kind", [PermuteAndFlip, ExponentialMax])
def test_other_pure_answers_become_the_gaussian_that_dominates_them(house, kind):
    replayed = replay(kind(gamma=0.02), house.unlimited(100), outcomes(20, 20))
    (answer,) = replayed.composition["everybody"]
    mu = math.sqrt(float(replayed.account.mu_squared[0]))
    assert (answer.kind, answer.count) == ("pure", 20)
    assert answer.mu_squared == pytest.approx(mu**2, rel=1e-12)
    assert by_pld(event_of([answer])) == pytest.approx(gdp_epsilon(mu, DELTA), abs=1e-3)


def test_nothing_asked_is_an_event_that_costs_nothing(house):
    replayed = replay(CONFIDENT, house.plan("weighting", 250).electorate(0), [])
    for mechanisms in replayed.composition.values():
        assert mechanisms == []
    assert isinstance(to_dp_event(Nothing(1)), dp_accounting.NoOpDpEvent)


def test_json_says_the_same_to_the_last_bit(house):
    replayed = replay(CONFIDENT, house.plan("weighting", 250).electorate(0), outcomes(70, 30))
    content = to_json(
        replayed.composition, replayed.account.neighbours, "in words", queries_asked=70
    )
    text = json.dumps(content, allow_nan=False)
    assert from_json(json.loads(text)) == replayed.composition
    assert (content["guarantee"], content["queries_asked"]) == ("worst-case", 70)
    assert content["neighbours"] == replayed.account.neighbours.value
    assert content["adjacency"] == "in words"


@pytest.mark.parametrize(
    "content", [{}, [], None, {"format": 2}, {"format": 1, "groups": {"a": 3}}]
)
def test_what_is_no_composition_is_refused(content):
    with pytest.raises(InputError):
        from_json(content)


@pytest.mark.parametrize(
    "arguments", [(Gaussian([1.0, 2.0], 1.0), 1), (Nothing(1), 1), (Gaussian([1.0], 1.0), -1)]
)
def test_uses_that_make_no_sense_are_refused(arguments):
    with pytest.raises(InputError):
        Use("answer", *arguments)


def test_without_dp_accounting_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(InputError, match="extra 'dp-accounting'"):
        to_dp_event(Gaussian([1.0], 1.0))
    assert to_json({}, Neighbours.ANY_CHANGE, "any")["groups"] == {}

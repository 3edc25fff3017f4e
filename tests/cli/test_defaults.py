"""What the command line takes where nothing is said is what the settings say: each default has one meaning.

Commands name their defaults themselves, so that help needs no library; here both are compared.
"""

import inspect

import pytest

from collegium import Account, Queries
from collegium.attacks.one_run import OneRunSettings
from collegium.cli.account import account
from collegium.cli.audit import audit
from collegium.study.methods.votes.settings import Aggregation, PersonalisationSection, Teachers
from collegium.study.sections import Run

MEANING = {
    "guarantee": Account().guarantee,
    "conversion": Account().conversion,
    "orders": Account().orders,
    "delta": Account().delta,
    "release": Queries().release,
    "max_labels": Queries().max_labels,
    "max_queries": Queries().max_queries,
    "personalisation": PersonalisationSection().method,
    "rule": PersonalisationSection().rule,
    "aggregator": Aggregation().aggregator,
    "teachers": Teachers().n_teachers,
    "copies": OneRunSettings().copies,
    "guess_share": OneRunSettings().guess_share,
    "confidence": OneRunSettings().confidence,
    "engine": None,
    "address": Run().address,
}


@pytest.mark.parametrize("command", [account, audit])
def test_defaults_are_those_of_the_settings(command):
    options = inspect.signature(command, eval_str=False).parameters
    known = [name for name in options if name in MEANING]
    assert len(known) > 3
    for name in known:
        assert options[name].default == MEANING[name], name

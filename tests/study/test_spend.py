"""A release on a ledger takes a share of what people have left: as is said, or the least that will do."""

import numpy as np
import pandas as pd
import pytest

from collegium import Budget, Ledger
from collegium.accounting.gaussian import gdp_mu
from collegium.errors import BudgetExceededError, InputError
from collegium.ledger.limits import Lifetime
from collegium.runs.observer import Observer
from collegium.study import planned_settings
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.planned_settings import settled_method
from collegium.study.runner import plan_study, run_study

LEVELS = {"high": 1.0, "low": 3.0}
N = 400


class Heard(Observer):
    def __init__(self):
        self.notes = []

    def note(self, line):
        self.notes.append(line)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    random = np.random.default_rng(4)
    x = random.normal(size=(N + 150, 2))
    answer = np.where(x @ [1.0, 0.4] + 0.3 * random.normal(size=len(x)) > 0, "yes", "no")
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": answer})
    owners = {"who": [f"p{i}" for i in range(N)], "level": np.resize(["high", "low"], N)}
    table[:N].assign(**owners).to_csv(tmp_path / "private.csv", index=False)
    table[N:].to_csv(tmp_path / "labelled.csv", index=False)
    table[N:].drop(columns="y").to_csv(tmp_path / "public.csv", index=False)
    return tmp_path


def study(folder, spend=None, public="public.csv", **sections):
    settings = {
        "data": {"private": "private.csv", "public": public, "target": "y", "owner": "who",
                 "classes": ["no", "yes"]},
        "privacy": {"column": "level", "levels": LEVELS, **({} if spend is None else {"spend": spend})},
        "method": {"kind": "dpsgd"},
        "dpsgd": {"steps": 5},
        **sections,
    }  # fmt: skip
    return config_from({name: keys for name, keys in settings.items() if keys}, folder)


def shares_left(folder):
    return {one.level: one.share_left for one in Ledger(folder / "private.ledger").standings()}


def test_two_releases_each_take_what_is_said_of_what_is_left(folder):
    run_study(study(folder, 0.3), folder / "one")
    assert shares_left(folder) == pytest.approx(dict.fromkeys(LEVELS, 0.7), abs=1e-6)
    planned = plan_study(study(folder, 0.5, study={"seed": 2}))
    assert "at least 35 % left" in planned.ledger.in_words
    run_study(study(folder, 0.5, study={"seed": 2}), folder / "two")
    assert shares_left(folder) == pytest.approx(dict.fromkeys(LEVELS, 0.35), abs=1e-6)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({}, "half, since no public label is known"),
        ({"method": {"kind": "pate"}, "dpsgd": {}, "aggregation": {"sigma": 40}}, "fewer answers"),
    ],
)
def test_where_nothing_can_be_rehearsed_half_is_taken_and_told(folder, how, reason):
    heard = Heard()
    planned = plan_study(study(folder, **how), observer=heard)
    assert any(
        "takes 50 % of what people have left" in line and reason in line for line in heard.notes
    )
    assert "at least 50 % left" in planned.ledger.in_words


def test_with_public_labels_the_least_is_taken_that_is_expected_to_do(folder):
    heard = Heard()
    planned = plan_study(study(folder, public="labelled.csv"), observer=heard)
    (told,) = (line for line in heard.notes if "of what people have left" in line)
    assert "as far as a rehearsal can tell" in told or "the last tenth" in told
    assert "at least 0 % left" not in planned.ledger.in_words


def test_what_was_decided_when_it_began_stays_whatever_is_said_afterwards(folder):
    run_study(study(folder, 0.3), folder / "out")
    before = shares_left(folder)
    for spend in (None, 0.9):
        again = run_study(study(folder, spend), folder / "out")
        assert shares_left(folder) == before and again.privacy.groups


def test_an_open_study_writes_down_what_it_takes(folder):
    config = study(folder, public="labelled.csv", method={}, dpsgd={})
    assert config.is_open
    chosen = settled_method(config, StudyFolder(folder / "out"), Observer(), keep=True)
    assert 0 < chosen.privacy.spend < 1
    assert f"spend = {chosen.privacy.spend}" in (folder / "out/chosen.toml").read_text()
    said = study(folder, 0.25, "labelled.csv", method={}, dpsgd={})
    assert settled_method(said, StudyFolder(folder / "other"), Observer()).privacy.spend == 0.25


def test_without_a_ledger_there_is_nothing_to_share_out(folder):
    with pytest.raises(InputError, match=r"privacy\.spend = 0\.3 .* none remembers this study"):
        plan_study(study(folder, 0.3, ledger={"url": "none"}))
    open_one = study(folder, None, "labelled.csv", method={}, dpsgd={}, ledger={"url": "none"})
    assert settled_method(open_one, StudyFolder(folder / "out"), Observer()).privacy.spend is None


def test_what_if_a_level_meant_more_counts_what_is_used_already(folder, monkeypatch):
    run_study(study(folder, 0.3), folder / "out")
    heard = []
    monkeypatch.setattr(planned_settings, "recommend_from", lambda facts, *_: heard.append(facts))
    config = study(folder, None, "labelled.csv", method={}, dpsgd={})
    with pytest.raises(AttributeError):  # nothing is recommended here
        planned_settings.recommended(config, Observer(), levels={"high": 2.0})
    facts = heard[0].groups
    raised, kept = facts["high, 7/10 left"], facts["low, 7/10 left"]
    limit = Lifetime().limit
    used = 0.3 * limit(Budget(1.0)).mu_squared
    left = gdp_mu(raised.epsilon, raised.delta) ** 2
    assert left == pytest.approx(limit(Budget(2.0)).mu_squared - used, rel=1e-6)
    assert gdp_mu(kept.epsilon, kept.delta) ** 2 == pytest.approx(
        0.7 * limit(Budget(3.0)).mu_squared, rel=1e-6
    )
    with pytest.raises(BudgetExceededError, match=r"would have nothing left with ε = 0\.2"):
        planned_settings.recommended(config, Observer(), levels={"high": 0.2})

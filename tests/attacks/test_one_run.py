"""A study that leaks is caught by one run; one that does not is believed.

Coins and canaries are seeded, the noise of the private study is cryptographic: its bounds all hold with
probability 1 − 1e-7.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from collegium.attacks.bounds import Guesses
from collegium.attacks.canaries import (
    Canaries,
    draw_canaries,
    expected_changes,
    guess,
    insert_canaries,
    membership_scores,
)
from collegium.attacks.one_run import OneRunSettings, audit_run
from collegium.errors import InputError
from collegium.noise.sources import SeededNoise
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.methods.votes.checkpoint import FolderMemory
from collegium.study.runner import plan_study

AGGREGATION = {
    "confident": {"aggregator": "confident", "sigma": 60.0},
    "interactive": {"aggregator": "interactive", "sigma": 60.0},
    "lnmax": {"aggregator": "lnmax", "gamma": 0.02},
    "pfmax": {"aggregator": "pfmax", "gamma": 0.02},
}
SURE = OneRunSettings(confidence=1 - 1e-7)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")

    def make(sigma=60.0, **sections):
        settings = {
            "study": {"seed": 1},
            "data": {"dataset": "digits", "private_records": 1200, "public_records": 597},
            "privacy": {"levels": {"high": 1.0, "low": 1.2}, "shares": {"high": 0.5, "low": 0.5}},
            "teachers": {
                "model": "nearest-neighbours",
                "params": {"n_neighbors": 1},
                "n_teachers": 60,
            },
            "personalisation": {"method": "weighting"},
            "aggregation": {"aggregator": "gnmax", "sigma": sigma, "max_queries": 300},
            "run": {"n_jobs": 1},
        }
        for name, keys in sections.items():
            settings[name] = keys if name == "aggregation" else {**settings[name], **keys}
        return config_from(settings, folder)

    return make


def run(config, settings=SURE, **options):
    return audit_run(
        plan_study(config, on_ledger=False).plan.run,
        settings,
        generator=np.random.default_rng(5),
        **options,
    )


class TestStudies:
    def test_a_study_that_leaks_is_caught(self, study, house):
        """No noise, everything charged as if there were."""
        findings = run(study(sigma=90.0), OneRunSettings(), noise=house.NoNoise())
        assert [finding.group for finding in findings] == ["high", "low"]
        for finding in findings:
            assert finding.guesses.correct >= 0.97 * finding.guesses.guessed
            assert finding.lower_epsilon > finding.claim_epsilon + 0.2
            assert not finding.holds
            assert finding.lower_epsilon <= finding.ceiling_epsilon

    @pytest.mark.parametrize("method", ["upsampling", "weighting", "vanishing"])
    def test_a_private_study_is_believed(self, study, method):
        tiny = {"delta": 1e-12}  # no p-value is below 2δ, so a surer audit needs a smaller δ
        for finding in run(study(120.0, privacy=tiny, personalisation={"method": method})):
            assert finding.holds
            assert finding.claim_epsilon <= finding.budget.epsilon
            assert finding.ceiling_epsilon > 0

    def test_noise_far_too_small_for_what_is_claimed_is_seen_as_a_positive_bound(self, study):
        rich = {"levels": {"high": 2000.0, "low": 2600.0}}
        # With free noise, ε of 1.4 ± 0.3 is found in the stricter group: below 0.2 once in some 10,000 runs.
        findings = run(
            study(sigma=0.5, privacy=rich), OneRunSettings(canaries=120), noise=SeededNoise(1)
        )
        assert all(0.2 < finding.lower_epsilon < finding.claim_epsilon for finding in findings)

    @pytest.mark.parametrize("aggregator", ["confident", "interactive", "lnmax", "pfmax"])
    def test_every_aggregator_can_be_audited(self, study, aggregator):
        config = study(aggregation=AGGREGATION[aggregator])
        assert all(
            finding.holds for finding in run(config, OneRunSettings(20, confidence=1 - 1e-7))
        )

    def test_an_audit_leaves_a_studys_folder_alone(self, study, tmp_path):
        """Neither are its own votes kept for the study, nor the study's taken for its own."""
        planned = plan_study(study(), on_ledger=False).plan.run
        folder = StudyFolder(tmp_path / "study")
        folder.open()
        planned.memory = kept = FolderMemory(folder)
        before = sorted(folder.path.rglob("*"))
        findings = audit_run(planned, OneRunSettings(20), generator=np.random.default_rng(5))
        assert sorted(folder.path.rglob("*")) == before
        assert planned.memory is kept and len(findings) == 2

    def test_released_labels_alone_can_be_audited(self, study):
        settings = OneRunSettings(40, observe="released", confidence=1 - 1e-7)
        assert all(finding.holds for finding in run(study(), settings))


class TestCanaries:
    def test_inserting_changes_nothing_but_adds_the_included_owners(self, study):
        planned = plan_study(study(), on_ledger=False).plan.run
        plan, data = planned.plan, planned.records
        canaries = draw_canaries(data, plan, 30, np.random.default_rng(1))
        more = insert_canaries(data, canaries, canaries.included, 3)
        n = len(data.codes)
        assert len(more.codes) == n + 3 * canaries.included.sum()
        np.testing.assert_array_equal(more.X[:n], data.X)
        np.testing.assert_array_equal(more.codes[:n], data.codes)
        before = plan.assign(data.budgets, b"key").owner_teachers
        after = plan.assign(more.budgets, b"key").owner_teachers
        np.testing.assert_array_equal(after[: len(before)], before)
        assert more.budgets.n_owners == data.budgets.n_owners + canaries.included.sum()

    def test_tables_get_canaries_too(self, study):
        planned = plan_study(study(), on_ledger=False).plan.run
        plan, data = planned.plan, planned.records
        canaries = draw_canaries(data, plan, 6, np.random.default_rng(1))
        table = pd.DataFrame(data.X)
        framed = replace(data, X=table, X_public=pd.DataFrame(data.X_public))
        drawn = draw_canaries(framed, plan, 6, np.random.default_rng(1))
        more = insert_canaries(framed, drawn, np.ones(6, dtype=bool), 2)
        assert len(more.X) == len(table) + 12 and canaries.number == 6

    def test_scores_tell_members_from_strangers_without_noise(self):
        canaries = Canaries(None, np.array([1, 2]), np.zeros(2, int), np.array([True, False]))
        teachers = np.array([[0, -1], [1, 2]], dtype=np.int32)
        votes = np.array([[0, 0, 0], [0, 2, -1]], dtype=np.int32)
        weights = np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
        changes = expected_changes(canaries, teachers, votes, weights, 3)
        np.testing.assert_array_equal(changes, [[-2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
        scores = membership_scores(changes, changes)
        assert scores[0] == 1.0 and np.isnan(scores[1])

    def test_guesses_are_as_many_as_was_fixed_whatever_was_seen(self):
        included = np.array([True, True, False, False, True])
        canaries = Canaries(None, np.zeros(5, int), np.zeros(5, int), included)
        everybody = np.ones(5, dtype=bool)
        scores = np.array([0.9, 0.8, 0.1, np.nan, np.nan])
        assert guess(scores, canaries, everybody, 1.0, 0.5) == Guesses(5, 5, 4)
        assert guess(scores, canaries, everybody, 0.6, 0.5) == Guesses(5, 3, 3)
        assert guess(np.full(5, np.nan), canaries, everybody, 0.6, 0.5).guessed == 3


@pytest.mark.parametrize(
    ("sections", "settings", "message"),
    [
        ({"privacy": {"guarantee": "data-dependent"}}, {}, "worst-case"),
        ({"teachers": {"assignment": "balanced"}}, {}, "balanced"),
        ({}, {"canaries": 5000}, "fewer canaries"),
        ({}, {"canaries": 1}, "at least as many canaries"),
    ],
)
def test_what_cannot_be_audited_is_refused(study, sections, settings, message):
    with pytest.raises(InputError, match=message):
        run(study(**sections), OneRunSettings(**settings))


@pytest.mark.parametrize(
    "wrong",
    [{"canaries": 0}, {"copies": 0}, {"confidence": 1.0}, {"guess_share": 0.0}, {"observe": "all"}],
)
def test_bad_settings_are_one_clear_line(wrong):
    with pytest.raises(InputError) as error:
        OneRunSettings(**wrong)
    assert "\n" not in str(error.value)

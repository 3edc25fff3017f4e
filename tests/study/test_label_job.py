"""A label job is run like every study: what the runner refuses of these, it refuses of a job."""

import os

import numpy as np
import pandas as pd
import pytest

from collegium.errors import ConfigError, InputError, LedgerError, StudyMismatchError
from collegium.study.folder import StudyFolder
from collegium.study.methods.votes import label_job as module
from collegium.study.methods.votes.label_job import LabelFiles, LabelPlan, label_job
from collegium.study.methods.votes.label_settings import label_config, read_label_config
from collegium.study.runner import run_job
from collegium.study.terms import read_terms
from collegium.study.withdrawals import Leavers, Leaving

GIVEN = {"aggregation": {"aggregator": "interactive", "sigma": 12.0}, "ledger": {"url": "none"}}


@pytest.fixture
def files(tmp_path):
    votes = np.random.default_rng(1).integers(0, 2, (40, 20)) | (np.arange(40)[:, None] % 2)
    np.save(tmp_path / "votes.npy", votes)
    np.save(tmp_path / "features.npy", np.arange(80.0).reshape(40, 2))
    groups = ["a"] * 10 + ["b"] * 10
    budgets = pd.DataFrame({"epsilon": [1.0] * 10 + [3.0] * 10, "group": groups})
    budgets.to_csv(tmp_path / "budgets.csv", index=False)
    people = pd.DataFrame({"owner": [f"p{n}" for n in range(120)], "group": ["a", "b"] * 60})
    people.to_csv(tmp_path / "people.csv", index=False)
    names = ("votes.npy", "budgets.csv", "features.npy", "people.csv")
    return LabelFiles(*(tmp_path / name for name in names))


def job_of(files, **sections):
    return label_job(files, label_config({**GIVEN, **sections}, files.votes.parent), classes=2)


def touch(path):
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("name", ["votes", "budgets", "features", "people"])
def test_a_file_that_is_changed_while_it_is_read_is_not_asked_about(
    files, tmp_path, monkeypatch, name
):
    digest = module.sha256_of

    def changed(path):
        touch(getattr(files, name))
        return digest(path)

    monkeypatch.setattr(module, "sha256_of", changed)
    with pytest.raises(InputError, match="changed while it was read: nothing was asked"):
        run_job(job_of(files), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_votes_that_are_changed_between_reading_and_drawing_are_not_asked(
    files, tmp_path, monkeypatch
):
    job = job_of(files)
    with monkeypatch.context() as patch:
        patch.setattr(LabelPlan, "keep_in", lambda plan, folder: touch(files.votes))
        with pytest.raises(InputError, match="changed while it was read: nothing was asked"):
            run_job(job, tmp_path / "out")
    assert not StudyFolder(tmp_path / "out").open_journal().asked
    assert not list((tmp_path / "out/release").iterdir())
    assert run_job(job_of(files), tmp_path / "out").released.labels.n_asked > 0


def test_a_job_goes_on_with_the_terms_that_it_was_begun_with_or_not_at_all(
    files, tmp_path, monkeypatch
):
    first = run_job(job_of(files), tmp_path / "out")
    agreed = read_terms(tmp_path / "out")[0]
    assert (agreed.n_queries, agreed.price) == (40, first.released.privacy.price)
    before = (tmp_path / "out/vault/journal.jsonl").read_bytes()
    real = module.electorate_of

    def of_another_version(*given):
        plan, electorate = real(*given)
        electorate.sensitivity[:] *= 1.5
        return plan, electorate

    monkeypatch.setattr(module, "electorate_of", of_another_version)
    with pytest.raises(StudyMismatchError, match="was begun with other terms"):
        run_job(job_of(files), tmp_path / "out")
    assert (tmp_path / "out/vault/journal.jsonl").read_bytes() == before


def test_a_folder_in_which_somebody_is_being_forgotten_is_left_alone(files, tmp_path):
    job, folder = job_of(files), StudyFolder(tmp_path / "out")
    folder.open()
    with folder.locked():
        job.identity.claim(folder)
        now = Leaving("p1", [], None, 120, "before", "after", 1)
        Leavers({}, now=now).keep(folder)
    with pytest.raises(InputError, match="forget` was cut off"):
        run_job(job, folder.path)


def test_one_file_for_two_things_and_features_for_nothing_are_refused(files):
    with pytest.raises(InputError, match="one file was given twice among vote, budget, feature"):
        job_of(LabelFiles(files.votes, files.budgets, features=files.votes))
    with pytest.raises(InputError, match="--features means nothing to aggregator 'gnmax'"):
        job_of(files, aggregation={"aggregator": "gnmax"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"aggregatoin": {"sigma": 1.0}}, "unknown section"),
        ({"aggregation": 3}, "must be a section with keys"),
        ({"aggregation": {"sigmo": 1.0}}, "unknown key aggregation.sigmo: .*sigma"),
        ({"teachers": {"n_teachers": 9}}, "teachers.n_teachers means nothing to votes"),
        ({"privacy": {"delta": 1e-6}}, "privacy.delta means nothing to votes"),
        ({"study": {"name": "x"}}, "study.name means nothing to votes"),
        ({"personalisation": {"max_duplicates": 3}}, "max_duplicates means nothing to votes"),
        ({"aggregation": {"query_order": "active"}}, "query_order means nothing to votes"),
        ({"aggregation": {"gamma": 0.1}}, "aggregation.gamma means nothing to aggregator 'conf"),
        ({"aggregation": {"noise_seed": 1}}, "aggregation.noise_seed would have no effect"),
        ({"personalisation": {"shuffle_every": 9}}, "shuffle_every means nothing to method"),
        ({"personalisation": {"rule": "algorithm1"}}, "has no weight rule"),
        ({"privacy": {"price": "nonsense"}}, "privacy.price must be one of"),
        ({"study": {"seed": -1}}, "study.seed must be at least 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(tmp_path, given, message):
    with pytest.raises(InputError, match=message):
        label_config(given, tmp_path)


@pytest.mark.parametrize("given", [{"rule": "sqrt"}, {}])
def test_a_rule_of_upsampling_has_no_effect_where_duplicates_are_given(files, tmp_path, given):
    copies = "group,epsilon,owners,teachers_per_owner\na,1,60,1\nb,3,60,2\n"
    (tmp_path / "copies.csv").write_text(copies, encoding="utf-8")
    files = LabelFiles(files.votes, tmp_path / "copies.csv", files.features)
    how = {"method": "upsampling", **given}
    if not given:
        assert job_of(files, personalisation=how)
        return
    with pytest.raises(InputError, match="'sqrt' out"):
        job_of(files, personalisation=how)


def test_an_option_and_a_key_of_the_file_are_not_given_both(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text("[aggregation]\nsigma = 3\n", encoding="utf-8")
    option = ("--sigma", "aggregation.sigma", 4.0)
    with pytest.raises(ConfigError, match=r"--sigma and aggregation.sigma in .* are one setting"):
        read_label_config(path, [option])
    assert read_label_config(None, [option])["aggregation.sigma"] == 4.0
    absent = ("--sigma", "aggregation.sigma", None)
    assert read_label_config(path, [absent])["aggregation.sigma"] == 3
    with pytest.raises(ConfigError, match="there is no file"):
        read_label_config(tmp_path / "none.toml", [])


def test_a_ledger_of_the_file_lies_beside_the_file(files, tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    given = {"aggregation": {"aggregator": "gnmax", "sigma": 12.0}, "ledger": {"url": "my.ledger"}}
    files = LabelFiles(files.votes, files.budgets, people=files.people)
    job = label_job(files, label_config(given, tmp_path / "far"), classes=2)
    with pytest.raises(LedgerError, match=r"there is no ledger at .*far/my\.ledger"):
        run_job(job, tmp_path / "out")

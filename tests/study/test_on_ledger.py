"""A study on a ledger: the second release about the same people sees what the first one left."""

import json
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pytest

from collegium import Ledger, Policy, PrivacyWarning
from collegium.errors import BudgetExceededError, InputError, LedgerError, StudyMismatchError
from collegium.ledger import known_ledgers
from collegium.pate.voting.labelling import LabellingJob
from collegium.runs.observer import Observer
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.methods.votes import label_job
from collegium.study.on_ledger import StudyLedger
from collegium.study.planned_settings import settled_method
from collegium.study.runner import plan_study, run_study
from tests.settings_file import settings

LEVELS = {"high": 1.0, "low": 3.0}
N, PUBLIC = 300, 60
MU = {"aggregation": {"sigma": 6, "max_labels": 2}}  # leaves something
LABELS = {"aggregation": {"sigma": 8}}  # by themselves, labels would pay for more answers


def table(n, seed):
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 2, n)
    X = generator.normal(size=(n, 2)) + 2.5 * y[:, None]
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.array(["no", "yes"])[y]})


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    private = table(N, 1).assign(
        who=[f"p{number // 2}" for number in range(N)],
        level=np.where(np.arange(N) // 2 % 4 == 0, "high", "low"),
    )
    private.to_csv(folder / "private.csv", index=False)
    private.to_parquet(folder / "private.parquet", index=False)
    table(PUBLIC, 2).drop(columns="y").to_csv(folder / "public.csv", index=False)
    return folder


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for path in tables.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def study(folder, spend=1.0, **sections):
    settings = {
        "data": {"private": "private.csv", "public": "public.csv", "target": "y", "owner": "who",
                 "classes": ["no", "yes"], "public_may_overlap": True},
        "privacy": {"column": "level", "levels": LEVELS},
        "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 15},
        "aggregation": {"aggregator": "gnmax", "sigma": 6},
        "run": {"n_jobs": 1},
    }  # fmt: skip
    for section, keys in sections.items():
        settings[section] = {**settings.get(section, {}), **(keys or {})}
    settings = {name: keys for name, keys in settings.items() if sections.get(name, "") is not None}
    if settings.get("ledger", {}).get("url") != "none":
        settings["privacy"].setdefault("spend", spend)
    return config_from(settings, folder)


class Heard(Observer):
    def __init__(self):
        self.notes = []

    def note(self, line):
        self.notes.append(line)


def run(config, out, observer=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return run_study(config, out, observer)


def ledger_of(folder):
    (place,) = (
        folder / name for name in ("private.ledger", "people.ledger") if (folder / name).exists()
    )
    return Ledger(place)


def spent(folder):
    return {one.level: one.epsilon_spent for one in ledger_of(folder).standings()}


@pytest.mark.parametrize("source", ["private.csv", "private.parquet"])
def test_a_second_study_gets_what_the_first_one_left(folder, source):
    streamed = {"data": {"private": source}, "run": {"n_jobs": 1, "streaming": source[-1] == "t"}}
    first = run(study(folder, **MU, **streamed), folder / "first")
    assert {row.group: row.budget.epsilon for row in first.privacy.groups} == pytest.approx(
        LEVELS, rel=1e-3
    )
    after_one = spent(folder)
    assert all(0 < after_one[level] < epsilon for level, epsilon in LEVELS.items())
    second = run(study(folder, **streamed), folder / "second")
    assert "A ledger keeps one account per person" in " ".join(second.privacy.sentences())
    assert all(
        row.budget.epsilon < LEVELS[row.group.split(",")[0]] for row in second.privacy.groups
    )
    together = spent(folder)
    assert all(after_one[level] < together[level] <= epsilon for level, epsilon in LEVELS.items())


def test_a_price_that_does_not_add_up_is_refused_before_anything_is_trained(folder):
    labels = {**LABELS, "privacy": {"price": "labels"}}
    config = study(folder, **labels)
    with pytest.raises(InputError, match="a label costs as much as all noisy counts"):
        run(config, folder / "first")
    assert not (folder / "first").exists() and not (folder / "private.ledger").exists()
    alone = run(study(folder, **labels, ledger={"url": "none"}), folder / "alone")
    assert alone.privacy.price == "labels"


def test_it_is_made_beside_the_data_and_again_costs_nothing(folder):
    config = study(folder, **MU)
    first = run(config, folder / "out")
    entries, before = len(ledger_of(folder).history()), spent(folder)
    again = run(config, folder / "out")
    assert again.labels.labels.tolist() == first.labels.labels.tolist()
    assert len(ledger_of(folder).history()) == entries and spent(folder) == before


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"data": {"owner": None, "exclude": ["who"]}}, "do not say whose they are"),
        ({"aggregation": {"sigma": 6, "noise": "seeded", "noise_seed": 1}}, "its noise is seeded"),
        ({"data": {"classes": None}}, "read off the private labels"),
        ({"privacy": {"guarantee": "data-dependent"}}, "a statement about one data set"),
    ],
)
def test_what_no_ledger_can_remember_is_said_or_refused_where_one_was_named(
    folder, sections, reason
):
    heard = Heard()
    plan_study(study(folder, None, **sections), observer=heard)
    assert any("no ledger remembers" in line and reason in line for line in heard.notes)
    Ledger.create(folder / "mine.ledger")
    with pytest.raises(InputError, match=reason):
        plan_study(study(folder, **sections, ledger={"url": "mine.ledger"}))
    plan_study(study(folder, **sections, ledger={"url": "none"}), observer=(quiet := Heard()))
    assert not quiet.notes and not (folder / "private.ledger").exists()


def test_a_plan_shows_what_is_left_and_makes_nothing(folder):
    plan_study(study(folder, **MU))
    assert not (folder / "private.ledger").exists()
    run(study(folder, **MU), folder / "first")
    planned = plan_study(study(folder))
    assert "left of what they granted" in planned.ledger.in_words
    assert all("/10 left" in name for name in planned.plan.run.plan.groups)


def test_other_people_in_the_same_table_are_asked_about(folder):
    run(study(folder, **MU), folder / "first")
    others = pd.read_csv(folder / "private.csv")
    others["who"] = "q" + others["who"]
    others.to_csv(folder / "private.csv", index=False)
    with pytest.raises(
        LedgerError,
        match=r"knows 150 people, but only 0 of these 150.*ledger.allow_new_people = true",
    ):
        run(study(folder), folder / "second")
    run(study(folder, **MU, ledger={"allow_new_people": True}), folder / "second")
    assert ledger_of(folder).contents().n_owners == 300


@pytest.mark.filterwarnings("ignore:.*is a ledger, too:collegium.errors.LedgerWarning")
def test_two_tables_in_one_folder_have_ledgers_of_their_own_unless_their_people_are_the_same(
    folder,
):
    run(study(folder, **MU), folder / "first")
    rows = pd.read_csv(folder / "private.csv")
    rows.assign(who="q" + rows["who"]).to_csv(folder / "others.csv", index=False)
    others = study(folder, **MU, data={"private": "others.csv"})
    run(others, folder / "others")
    assert ledger_of(folder).contents().n_owners == 150
    its = Ledger(folder / "others.ledger")
    assert its.contents().n_owners == 150 and len(its.contents().releases) == 1
    run(others, folder / "others")  # it knows its own again
    run(others, folder / "second")
    assert len(its.contents().releases) == 2 and len(ledger_of(folder).contents().releases) == 1
    # The same people in a third table go on with the ledger that knows them.
    rows.to_csv(folder / "visits.csv", index=False)
    run(study(folder, **MU, data={"private": "visits.csv"}), folder / "third")
    assert len(ledger_of(folder).contents().releases) == 2
    assert not (folder / "visits.ledger").exists()
    # Where some of them are known, the user is asked.
    some = rows.copy()
    some.loc[some.index[20:], "who"] = "r" + some["who"]
    some.to_csv(folder / "some.csv", index=False)
    with pytest.raises(LedgerError, match=r"but only .* of these 150: if they are the same"):
        plan_study(study(folder, **MU, data={"private": "some.csv"}))


def test_a_ledger_that_is_called_people_is_for_all_tables_beside_it(folder):
    Ledger.create(folder / "people.ledger")
    run(study(folder, **MU), folder / "first")
    assert not (folder / "private.ledger").exists()
    assert len(Ledger(folder / "people.ledger").contents().releases) == 1
    for path in folder.glob("people.ledger*"):
        path.unlink()
    with pytest.raises(LedgerError, match=r"people\.ledger is gone"):
        plan_study(study(folder, **MU))


def test_the_same_people_in_another_file_are_known(folder):
    run(study(folder, **LABELS), folder / "first")
    rows = pd.read_csv(folder / "private.csv").iloc[::-1].assign(a=lambda one: one["a"] + 1)
    rows.to_csv(folder / "new.csv", index=False)
    with pytest.raises(BudgetExceededError):
        run(study(folder, data={"private": "new.csv"}), folder / "second")


def test_the_same_people_in_another_folder_are_found_and_asked_about(folder):
    run(study(folder, **MU), folder / "first")
    moved = folder / "moved"
    moved.mkdir()
    rows = pd.read_csv(folder / "private.csv")
    rows[rows["who"] != "p0"].to_csv(moved / "private.csv", index=False)
    shutil.copy(folder / "public.csv", moved)
    with pytest.raises(
        LedgerError, match=r"another ledger, .*private\.ledger, knows 149 of these 149"
    ):
        run(study(moved, **MU), moved / "out")
    assert not (moved / "private.ledger").exists()
    run(study(moved, **MU, ledger={"url": str(folder / "private.ledger")}), moved / "out")
    assert len(ledger_of(folder).contents().releases) == 2
    run(study(moved, **MU, ledger={"allow_new_people": True}), moved / "others")
    assert len(ledger_of(moved).contents().releases) == 1
    run(study(moved, **MU), moved / "again")  # asked once


def test_a_ledger_that_was_there_and_is_gone_is_missed(folder):
    run(study(folder, **MU), folder / "first")
    for path in folder.glob("private.ledger*"):
        path.unlink()
    with pytest.raises(LedgerError, match=r"the ledger at .* is gone"):
        plan_study(study(folder, **MU))


def test_newcomers_are_counted(folder):
    run(study(folder, **MU), folder / "first")
    rows = pd.read_csv(folder / "private.csv")
    rows.loc[:9, "who"] = " " + rows.loc[:9, "who"].str.upper()
    rows.to_csv(folder / "private.csv", index=False)
    heard = Heard()
    plan_study(study(folder, **MU), observer=heard)
    assert any("5 of 150 people are new to the ledger" in line for line in heard.notes)


def test_what_was_given_back_by_hand_although_it_was_drawn_is_charged_again(folder, monkeypatch):
    config = study(folder, **MU)
    real = FileJournal.settle
    monkeypatch.setattr(FileJournal, "settle", cut_off_after(real))
    with pytest.raises(CutOff):
        run(config, folder / "out")
    monkeypatch.setattr(FileJournal, "settle", real)
    (release,) = ledger_of(folder).reservations()
    ledger_of(folder).end(release.id, "the machine is gone", nothing_was_drawn=True)
    assert set(spent(folder).values()) == {0.0}
    for _ in range(2):
        with pytest.raises((LedgerError, StudyMismatchError), match=r"given back by hand|as ended"):
            run(config, folder / "out")
    assert spent(folder) == pytest.approx(LEVELS, rel=1e-3)
    assert not list((folder / "out/release").iterdir())


def test_a_list_of_ledgers_that_cannot_be_kept_or_read_stops_nothing(folder, monkeypatch):
    (folder / "state").mkdir()
    (folder / "state/collegium").write_text("no folder")
    run(study(folder, **MU), folder / "out")
    (folder / "state/collegium").unlink()
    (folder / "state/collegium").mkdir()
    (folder / "state/collegium/ledgers.json").write_text("[1, 2")
    run(study(folder, **MU), folder / "second")
    (folder / "state/collegium/ledgers.json").write_text('[["/nowhere/x.ledger", null]]')
    run(study(folder, data={"private": "private.parquet"}, **MU), folder / "third")


class CutOff(Exception):  # noqa: N818
    pass


def cut_off(monkeypatch, where):
    """Stop a run at a point, as a crash does."""
    from collegium.pate.pipeline import PateRun

    owner, name = {
        "after keeping": (PateRun, "votes"),
        "after reserving": (PateRun, "release"),
        "before settling": (StudyLedger, "settle"),
    }[where]
    real = getattr(owner, name)

    def stop(*_):
        raise CutOff

    monkeypatch.setattr(owner, name, stop)
    return lambda: monkeypatch.setattr(owner, name, real)


def cut_off_after(method):
    def stop(*given):
        method(*given)
        raise CutOff

    return stop


@pytest.mark.parametrize("where", ["after keeping", "after reserving", "before settling"])
def test_cut_off_anywhere_it_goes_on_with_the_same_entry(folder, monkeypatch, where):
    config = study(folder, **MU)
    restore = cut_off(monkeypatch, where)
    with pytest.raises(CutOff):
        run(config, folder / "out")
    restore()
    kept = json.loads((folder / "out/vault/ledger.json").read_text())
    run(config, folder / "out")
    kinds = [entry.kind for entry in ledger_of(folder).history()]
    assert kinds.count("reserve") == kinds.count("settle") == 1
    assert list(ledger_of(folder).contents().releases) == [kept["release"]]


def test_between_plan_and_first_question_somebody_else_was_faster(folder, monkeypatch):
    config = study(folder, **MU)
    restore = cut_off(monkeypatch, "after keeping")
    with pytest.raises(CutOff):
        run(config, folder / "slow")
    restore()
    run(study(folder, **LABELS), folder / "fast")
    with pytest.raises(BudgetExceededError, match="refused"):
        run(config, folder / "slow")
    assert not list((folder / "slow/release").iterdir())


def test_a_ledger_of_yesterday_is_noticed_by_the_release_that_it_does_not_know(folder, monkeypatch):
    run(study(folder, **MU), folder / "first")
    for path in folder.glob("private.ledger*"):
        shutil.copy(path, folder / f"old-{path.name}")
    config = study(folder, aggregation={"sigma": 6, "max_labels": 1})
    restore = cut_off(monkeypatch, "after reserving")
    with pytest.raises(CutOff):
        run(config, folder / "second")
    restore()
    for path in folder.glob("private.ledger*"):
        path.unlink()
    for path in folder.glob("old-*"):
        path.rename(folder / path.name.removeprefix("old-"))
    with pytest.raises(LedgerError, match="does not know this release"):
        run(config, folder / "second")
    shutil.rmtree(folder / "first")


def test_a_folder_of_yesterday_is_noticed_by_the_ledger(folder, monkeypatch):
    config = study(folder, **MU)
    restore = cut_off(monkeypatch, "after reserving")
    with pytest.raises(CutOff):
        run(config, folder / "out")
    restore()
    shutil.copytree(folder / "out", folder / "old")
    run(config, folder / "out")
    with pytest.raises(StudyMismatchError, match="knows this release as ended"):
        run(config, folder / "old")


def test_another_ledger_or_none_is_refused_half_way(folder, monkeypatch):
    config = study(folder, **MU)
    restore = cut_off(monkeypatch, "after reserving")
    with pytest.raises(CutOff):
        run(config, folder / "out")
    restore()
    Ledger.create(folder / "other.ledger")
    with pytest.raises(LedgerError, match="begun on another ledger"):
        run(study(folder, **MU, ledger={"url": "other.ledger"}), folder / "out")
    with pytest.raises(InputError, match="goes on with it only"):
        run(study(folder, **MU, ledger={"url": "none"}), folder / "out")


def test_what_was_begun_without_goes_on_without(folder, monkeypatch):
    config = study(folder, None, **MU)
    run(study(folder, **MU, ledger={"url": "none"}), folder / "out")
    heard = Heard()
    run(config, folder / "out", heard)
    assert any("begun without a ledger" in line for line in heard.notes)
    assert not (folder / "private.ledger").exists()


@pytest.mark.parametrize("name", ["ledger.json", "left.npy"])
def test_what_the_folder_remembers_of_the_ledger_cannot_be_taken_away(folder, monkeypatch, name):
    config = study(folder, None, **MU)
    restore = cut_off(monkeypatch, "after reserving")
    with pytest.raises(CutOff):
        run(config, folder / "out")
    restore()
    (folder / "out/vault" / name).unlink()
    with pytest.raises(StudyMismatchError, match=rf"{name} is (gone|not what)"):
        run(config, folder / "out")


def test_nothing_is_published_where_the_ledger_cannot_be_settled_and_nothing_is_lost(
    folder, monkeypatch
):
    def broken(*_):
        raise LedgerError("out of reach")

    config = study(folder, **MU)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_settle", broken)
        with pytest.raises(LedgerError, match="out of reach"):
            run(config, folder / "out")
    assert not list((folder / "out/release").iterdir())
    assert spent(folder) == pytest.approx(LEVELS, rel=1e-3)
    drawn = StudyFolder(folder / "out").open_journal().settled()
    run(config, folder / "out")
    assert StudyFolder(folder / "out").open_journal().settled() == drawn
    assert all(spent(folder)[level] < 0.9 * epsilon for level, epsilon in LEVELS.items())


@pytest.mark.parametrize("where", ["after keeping", "after reserving", "before settling"])
@pytest.mark.parametrize("how", [MU, LABELS])
def test_of_two_copies_of_a_folder_one_publishes(folder, monkeypatch, where, how):
    config = study(folder, **how)
    restore = cut_off(monkeypatch, where)
    with pytest.raises(CutOff):
        run(config, folder / "out")
    restore()
    shutil.copytree(folder / "out", folder / "copy")
    run(config, folder / "copy")
    with pytest.raises((LedgerError, StudyMismatchError), match=r"another copy|as ended"):
        run(config, folder / "out")
    assert not list((folder / "out/release").iterdir())


def test_a_copy_that_was_made_while_it_ran_keeps_it_from_publishing(folder, monkeypatch):
    """Both have drawn by then: the one that came last may settle, and so publish."""
    config = study(folder, **MU)
    real = StudyLedger.settle

    def overtaken(*given):
        monkeypatch.setattr(StudyLedger, "settle", real)
        shutil.copytree(folder / "out", folder / "copy")
        run(config, folder / "copy")
        return real(*given)

    monkeypatch.setattr(StudyLedger, "settle", overtaken)
    with pytest.raises(LedgerError, match="another copy"):
        run(config, folder / "out")
    assert not list((folder / "out/release").iterdir())


def test_cut_off_between_token_and_ledger_it_still_goes_on(folder, monkeypatch):
    config = study(folder, **MU)
    real, calls = Ledger.reservation, []

    def after(*given, **more):
        calls.append(real(*given, **more))
        raise CutOff

    restore = cut_off(monkeypatch, "after reserving")
    with pytest.raises(CutOff):
        run(config, folder / "out")
    restore()
    for _ in range(2):
        monkeypatch.setattr(Ledger, "reservation", after)
        with pytest.raises(CutOff):
            run(config, folder / "out")
    monkeypatch.setattr(Ledger, "reservation", real)
    run(config, folder / "out")
    assert len(calls) == 2


def test_who_lowers_the_budget_before_the_first_question_is_not_asked_about(folder, monkeypatch):
    config = study(folder, **LABELS)
    restore = cut_off(monkeypatch, "after reserving")
    with pytest.raises(CutOff):
        run(config, folder / "out")
    restore()
    table = pd.read_csv(folder / "private.csv").drop_duplicates("who")
    lower = Policy({"high": 0.1, "low": 0.1}).assign(table["level"], owners=table["who"])
    ledger_of(folder).change(lower)
    with pytest.raises(BudgetExceededError, match=r"now grants ε = .* less than"):
        run(config, folder / "out")


def test_records_of_people_who_grant_a_budget_are_not_made_public(folder):
    run(study(folder, **MU), folder / "first")
    gifts = pd.read_csv(folder / "private.csv")
    gifts.loc[gifts["who"].isin(["p3", "p5"]), "level"] = "gift"
    gifts.to_csv(folder / "gifts.csv", index=False)
    levels = {"levels": {**LEVELS, "gift": "inf"}, "public": ["gift"]}
    levels["levels"]["gift"] = float("inf")
    config = study(folder, data={"private": "gifts.csv"}, privacy=levels)
    with pytest.raises(LedgerError, match="the records of 2 people are to be published"):
        run(config, folder / "second")


def test_the_environment_names_a_ledger_for_all_studies(folder, monkeypatch):
    place = folder / "elsewhere" / "all.ledger"
    place.parent.mkdir()
    Ledger.create(place)
    monkeypatch.setenv("COLLEGIUM_LEDGER", str(place))
    run(study(folder, **MU), folder / "out")
    assert not (folder / "private.ledger").exists()
    assert len(Ledger(place).contents().releases) == 1
    monkeypatch.setenv("COLLEGIUM_LEDGER", str(folder / "typo.ledger"))
    with pytest.raises(LedgerError, match="there is no ledger at"):
        run(study(folder, **MU), folder / "other")


# Votes from elsewhere


@pytest.fixture
def ballots(folder):
    votes = np.random.default_rng(1).integers(0, 2, (40, 20)) | (np.arange(40)[:, None] % 2)
    np.save(folder / "votes.npy", votes)
    pd.DataFrame({"epsilon": [1.0] * 10 + [3.0] * 10, "group": ["a"] * 10 + ["b"] * 10}).to_csv(
        folder / "budgets.csv", index=False
    )
    people = [f"p{number}" for number in range(120)]
    pd.DataFrame({"owner": people, "group": ["a"] * 60 + ["b"] * 60}).to_csv(
        folder / "people.csv", index=False
    )
    return folder


def label(main, folder, out, *more):
    command = ["label", "--votes", folder / "votes.npy", "--budgets", folder / "budgets.csv",
               "--classes", 2, "--out", folder / out, *more]  # fmt: skip
    if "--aggregator" not in more:
        command += ["--aggregator", "gnmax"]
    return main(*command)


@pytest.mark.parametrize("named", [("--people", "people.csv"), ("--ledger", "none")])
def test_a_journal_cut_back_by_whole_lines_before_the_release_is_refused_and_nothing_is_drawn(
    ballots, collegium, monkeypatch, named
):
    """Nothing was released yet that a journal could be older than: questions were drawn once more."""
    monkeypatch.chdir(ballots)
    drawn, noised = [], LabellingJob._noised

    def counted(self, votes, scale, query, purpose):
        drawn.append(query)
        return noised(self, votes, scale, query, purpose)

    def stop(*_):
        raise InputError("cut off")

    monkeypatch.setattr(LabellingJob, "_noised", counted)
    again = partial(label, collegium, ballots, "one", *named, "--sigma", 60)
    with monkeypatch.context() as patch:
        patch.setattr(label_job, "write_release", stop)
        assert again()[0] == 2
    journal, n_drawn = ballots / "one/vault/journal.jsonl", len(drawn)
    every = journal.read_bytes().splitlines(keepends=True)
    assert n_drawn == len(set(drawn)) == 40
    assert sum(b'"settle"' in line for line in every) >= 3
    for lines in range(len(every)):
        journal.write_bytes(b"".join(every[:lines]))
        code, _, wrong = again()
        assert code == 2 and "from one backup" in wrong and len(drawn) == n_drawn
        assert journal.read_bytes() == b"".join(every[:lines])
    journal.write_bytes(b"".join(every))
    assert again()[0] == 0 and len(drawn) == n_drawn


def test_a_label_job_sees_what_others_left_and_leaves_something(ballots, collegium):
    named = ("--people", ballots / "people.csv")
    few = settings(ballots, "aggregation.max_labels = 2")
    code, _, _ = label(collegium, ballots, "one", *named, "--sigma", 12, *few)
    assert code == 0
    first = {one.level: one.epsilon_spent for one in ledger_of(ballots).standings()}
    assert 0 < first["a"] < 1 and 0 < first["b"] < 3
    code, said, noted = label(collegium, ballots, "two", *named, "--sigma", 12)
    assert code == 0 and "left of what they granted" in noted
    assert f"Ledger:    {ballots / 'people.ledger'}" in said
    both = {one.level: one.epsilon_spent for one in ledger_of(ballots).standings()}
    assert first["a"] < both["a"] <= 1 and first["b"] < both["b"] <= 3
    labels = settings(ballots, "privacy.price = 'labels'")
    code, _, wrong = label(collegium, ballots, "three", *named, "--sigma", 12, *labels)
    assert code == 2 and "leave price out" in wrong


@pytest.mark.parametrize("promise", ["gaussian", "pure"])
def test_a_label_job_with_laplace_noise_is_finished_only_once(ballots, collegium, promise):
    Ledger.create(ballots / "people.ledger", promise=promise)
    named = ("--people", ballots / "people.csv", "--aggregator", "lnmax")
    for is_first in (True, False):
        gamma = settings(ballots, "aggregation.gamma = 0.05", "privacy.spend = 1.0")
        code, _, noted = label(collegium, ballots, "one", *named, *gamma)
        assert code == 0, noted
        assert ("left of what they granted" in noted) == is_first
    assert len(ledger_of(ballots).contents().releases) == 1
    assert min(spent(ballots).values()) > 0
    code, said, _ = collegium("account", "--remaining", ballots / "one", "--json")
    left = json.loads(said)
    assert code == 0 and left["price"] == ("pure" if promise == "pure" else "mu")
    told = {name: row["epsilon_spent"] for name, row in left["groups"].items()}
    assert told == pytest.approx(spent(ballots), rel=1e-9)
    code, _, wrong = label(
        collegium, ballots, "two", "--people", ballots / "people.csv", "--sigma", 9
    )
    refused = {"pure": "the aggregator is 'gnmax'", "gaussian": "have no budget left in the ledger"}
    assert code == 2 and refused[promise] in wrong


@pytest.mark.parametrize(
    ("people", "message"),
    [
        ("owner,group\np1,c\n", "which has no budget"),
        ("owner\np1\n", "needs the columns"),
        ("owner,group\np1,a\np1,b\n", "two"),
        ("owner,group\np1,a\np2,b\n", "10 teachers, and 1 people are named"),
    ],
)
def test_a_table_of_people_that_cannot_be_used(ballots, collegium, people, message):
    (ballots / "people.csv").write_text(people)
    code, _, wrong = label(
        collegium, ballots, "one", "--people", ballots / "people.csv", "--sigma", 9
    )
    assert code == 2 and message in wrong and len(wrong.strip().splitlines()) == 1
    assert not (ballots / "people.ledger").exists()


def test_other_people_than_those_of_the_ledger_may_join_where_the_settings_say_so(
    ballots, collegium
):
    few = settings(ballots, "aggregation.max_labels = 2", "aggregation.sigma = 12")
    assert label(collegium, ballots, "one", "--people", ballots / "people.csv", *few)[0] == 0
    others = (ballots / "people.csv").read_text().replace("p", "q").replace("grouq", "group")
    (ballots / "others.csv").write_text(others)
    named = ("--people", ballots / "others.csv")
    code, _, wrong = label(collegium, ballots, "two", *named, *few)
    assert code == 2 and "(--ledger)" in wrong
    assert "ledger.allow_new_people = true in the file of --settings" in wrong
    joining = settings(ballots, "ledger.allow_new_people = true", "aggregation.max_labels = 2")
    code, _, wrong = label(collegium, ballots, "two", *named, "--sigma", 12, *joining)
    assert code == 0, wrong


def test_a_label_job_without_names_says_that_nobody_remembers(ballots, collegium):
    code, _, said = label(collegium, ballots, "one", "--sigma", 9)
    assert code == 0 and "no ledger remembers" in said and "--people" in said
    code, _, said = label(collegium, ballots, "two", "--sigma", 9, "--ledger", ballots / "x.ledger")
    assert code == 2 and "no ledger can remember this" in said


@pytest.mark.parametrize(
    "own", [{"method": {"kind": "dpsgd"}, "dpsgd": {"steps": 3}}, {"method": {}}]
)
def test_a_pure_ledger_names_the_keys_that_go_with_it_and_shows_no_delta(folder, collegium, own):
    Ledger.create(folder / "private.ledger", promise="pure")
    config = study(folder, **own, aggregation=None, teachers=None)
    with pytest.raises(InputError, match=r"promises pure ε.*aggregator = .lnmax") as refusal:
        settled_method(config, StudyFolder(folder / "out"), Observer(), keep=True)
        plan_study(config)
    assert "\n" not in str(refusal.value)
    named = {"method": {"kind": "pate"}, "aggregation": {"aggregator": "lnmax", "gamma": 0.05},
             "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 15}}  # fmt: skip
    given = study(folder, aggregation=None, teachers=None).given
    result = run(config_from({**given, **named}, folder), folder / "out")
    assert not any("of each δ" in line for line in result.privacy.sentences())
    code, said, _ = collegium("ledger", "show", folder / "private.ledger")
    assert code == 0 and "δ" not in said and "share of the granted ε" in said.replace("\n", " ")


def test_what_a_release_takes_and_leaves_is_said_in_one_unit(folder, collegium):
    """It was 10 % of what is left, 28.4 % of ε and 5.0 % of μ² in one plan; tenths were rounded unsaid."""
    direct = {
        "method": {"kind": "dpsgd"},
        "dpsgd": {"steps": 3},
        "aggregation": None,
        "teachers": None,
    }
    run(study(folder, **direct, privacy={"spend": 0.25}), folder / "first")
    planned = plan_study(study(folder, **direct, privacy={"spend": 0.1}))
    assert "takes at most 7 % of what people granted" in planned.ledger.in_words
    assert "at least 68 % left" in planned.ledger.in_words
    assert planned.ledger.in_words.endswith("rounded down to tenths)")
    assert "of what this release may use" in planned.plan.in_short()
    run(study(folder, **direct, privacy={"spend": 0.1}), folder / "second")
    assert "takes 7.0 % of a budget" in collegium("ledger", "show", folder / "private.ledger")[1]


def test_two_programs_do_not_lose_each_others_ledger_in_the_list(folder):
    names = [str(folder / f"{number}.ledger") for number in range(12)]
    with ThreadPoolExecutor(6) as programs:
        list(programs.map(lambda name: known_ledgers.note(name, None), names))
    assert set(names) <= set(known_ledgers.known_ledgers())

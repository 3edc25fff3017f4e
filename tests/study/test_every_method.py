"""What every method of a study keeps, said once: a method that is registered is tested here.

Whatever cuts a study off, and wherever: what is drawn was charged before, nothing is drawn twice, and
account, ledger, statement and what is published agree. What one method alone does is tested in its own files.
"""

import errno
import json
import os

import numpy as np
import pandas as pd
import pytest

from collegium import CollegiumError, Ledger, Policy
from collegium.data.engines import sources
from collegium.errors import InputError, LedgerError, StudyMismatchError
from collegium.ledger import Balance, Cost
from collegium.ledger.allowance import Allowance, Spending
from collegium.mechanisms import SecureNoise
from collegium.study import folder as folders
from collegium.study import query_table
from collegium.study.config import config_from
from collegium.study.folder import StudyFolder
from collegium.study.journal import FileJournal
from collegium.study.methods.kinds import KINDS
from collegium.study.runner import plan_study, run_study
from collegium.study.terms import read_terms
from collegium.study.verifying import examine

pytestmark = [
    pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore:δ is large"),
]
each_method = pytest.mark.parametrize("kind", KINDS)
LEVELS = {"high": 1.0, "low": 3.0}
SCHEMA = """
rows_per_owner = 1
[columns.age]
kind = "whole"
bounds = [0, 99]
[columns.y]
kind = "category"
categories = ["a", "b"]
"""
OWN = {
    "pate": {
        "teachers": {"model": "sklearn.naive_bayes.GaussianNB", "n_teachers": 10},
        "aggregation": {"aggregator": "gnmax", "sigma": 40.0, "max_queries": 40},
        "student": {"model": "sklearn.naive_bayes.GaussianNB"},
        "run": {"n_jobs": 1},
    },
    "dpsgd": {"dpsgd": {"steps": 4}},
    "statistics": {
        "statistics": {"schema": "schema.toml", "questions": ["mean age", "median age"]}
    },
    "synthesis": {"synthesis": {"schema": "schema.toml"}},
}
OF_DATA = {  # keys beside the private table and its owners
    "statistics": {},
    "synthesis": {"public": "public.csv"},
}
LEARNT = {"public": "public.csv", "target": "y", "classes": ["a", "b"]}


def write(folder, seed=0):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, n in (("private", 400), ("public", 120)):
        age = rng.integers(18, 90, n)
        rows = {
            "who": [f"{name}{i}" for i in range(n)],
            "age": age,
            "y": np.where(age > 50, "a", "b"),
        }
        rows["level"] = rng.choice(list(LEVELS), n)
        table = pd.DataFrame(rows)
        (table if name == "private" else table[["age", "y"]]).to_csv(
            folder / f"{name}.csv", index=False
        )
    (folder / "schema.toml").write_text(SCHEMA)


def study(folder, kind, seed=0, on_ledger=False, **changed):
    """Write the tables, and return the settings; a ledger is made beside them, if it is to remember."""
    write(folder, seed)
    data = {"private": "private.csv", "owner": "who", **OF_DATA.get(kind, LEARNT)}
    given = {
        "data": data,
        "privacy": {"column": "level", "levels": LEVELS},
        "method": {"kind": kind},
        **({} if on_ledger else {"ledger": {"url": "none"}}),
        **OWN[kind],
    }
    for section, keys in changed.items():
        given[section] = {**given.get(section, {}), **keys}
    return config_from(given, folder)


def test_every_method_is_tested_here():
    assert OWN.keys() == KINDS.keys()


@each_method
def test_a_table_that_is_changed_while_it_is_read_is_not_asked(tmp_path, monkeypatch, kind):
    """The digest would be of the new rows, and after an interruption these would be asked."""
    config = study(tmp_path, kind)
    assert config.kind.name == kind
    plan_study(config)  # as the files are, nothing is wrong
    where = query_table if kind in ("statistics", "synthesis") else sources
    digest = where.fingerprint_of

    def changed(path, *more):
        write(tmp_path, seed=1)
        return digest(path, *more)

    monkeypatch.setattr(where, "fingerprint_of", changed)
    with pytest.raises(InputError, match="changed while it was read: nothing was asked"):
        run_study(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@each_method
@pytest.mark.parametrize("seeded", [False, True])
def test_terms_are_kept_before_the_first_charge_and_say_what_is_asked(
    tmp_path, monkeypatch, kind, seeded
):
    section = {"pate": "aggregation"}.get(kind, kind)
    by_seed = {"statistics": {"noise_seed": 1}, "synthesis": {"noise_seed": 1}}
    noise = by_seed.get(kind, {"noise": "seeded"}) if seeded else {}
    known = []

    def watched(method):
        charge = getattr(FileJournal, method)

        def charged(journal, *given):
            known.append(read_terms(tmp_path / "out")[0])
            return charge(journal, *given)

        monkeypatch.setattr(FileJournal, method, charged)

    watched("reserve"), watched("charge_steps")
    config = study(tmp_path, kind, **{section: noise})
    result = run_study(config, tmp_path / "out")
    assert known and {terms.private_noise for terms in known} == {not seeded}
    assert result.privacy.noise_is_private is not seeded
    if kind == "pate":
        assert {(terms.n_queries, terms.guarantee) for terms in known} == {(40, "worst-case")}


# ------------------------------------------------------------------------------------ cut off anywhere


class Killed(BaseException):
    """A power failure: nothing after it is run, nothing before it is undone."""


class Faults:
    """Counts what is made durable, and draws; something happens at one of them, or from there on.

    At every draw it looks at what is durable: a new process would find it charged, and reserved.
    """

    def __init__(self, patch, out, ledger):
        self.out, self.ledger = out, ledger
        self.done, self.at, self.drawn, self.draws_at = 0, None, [], []
        self.happens = self.meanwhile = self.durable = None
        for place, name in (
            (FileJournal, "_append"),
            (folders, "write_durably"),
            (Ledger, "reserve"),
            (Ledger, "reservation"),
            (Ledger, "_settle"),
        ):
            patch.setattr(place, name, self._before_and_after(getattr(place, name)))
        words = SecureNoise._words

        def draw(noise, stream, query, purpose):
            self._require_charged(query)
            self.drawn.append((query, purpose))
            self.draws_at.append(self.done + 1)
            if self.meanwhile is not None:
                self.meanwhile()
            self.tick()
            return words(noise, stream, query, purpose)

        patch.setattr(SecureNoise, "_words", draw)

    def tick(self):
        self.done += 1
        if self.at is not None and self.done >= self.at and self.happens is not None:
            self.happens(self)

    def _before_and_after(self, way):
        def listened(*given, **named):
            self.durable = None
            self.tick()
            found = way(*given, **named)
            self.tick()
            return found

        return listened

    def _require_charged(self, query):
        if self.durable is None:  # something was written since it looked
            _, journal = read_terms(self.out)
            self.durable = {outcome.query for outcome in journal.settled()}, journal.steps
            assert Ledger(self.ledger).reservations()
        asked, steps = self.durable
        assert query in asked or len({query for query, _ in self.drawn} | {query}) <= steps


def kill(faults):
    if faults.done == faults.at:
        raise Killed


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Begin a study in a new folder, on a ledger: its settings, what listens to it, and its folder."""
    monkeypatch.delenv("COLLEGIUM_LEDGER")

    def begin(kind, name):
        folder = tmp_path / name
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        config = study(folder, kind, on_ledger=True)
        end()  # who listened to the last one
        patch = pytest.MonkeyPatch()
        begun.append(patch)
        return config, Faults(patch, folder / "out", folder / "private.ledger"), folder / "out"

    def end():
        while begun:
            begun.pop().undo()

    begun = []
    yield begin
    end()


def require_one_account(out, result):
    """What is charged is what the statement says, what the ledger knows, and what is published."""
    terms, journal = read_terms(out)
    spent = terms.spent(journal).epsilon
    said = {row.group: row.epsilon_spent for row in result.privacy.groups}
    assert said == pytest.approx(dict(spent), rel=1e-9)
    published = json.loads((out / "release" / "privacy.json").read_text("utf-8"))
    assert {row["group"]: row["epsilon_spent"] for row in published["groups"]} == said
    ledger = Ledger(out.parent / "private.ledger")
    (release,) = ledger.contents().releases.values()
    assert release.is_settled and not ledger.reservations()
    for one in ledger.standings():
        assert said[one.level] * (1 - 1e-9) <= one.epsilon_spent <= said[one.level] * (1 + 1e-3)
        assert one.epsilon_spent <= LEVELS[one.level]
    assert not [one for one in examine(StudyFolder(out)) if one.trouble]


def places(whole, how_many):
    """Places in an undisturbed run: between its first write and its last one, and among its draws."""
    draws = whole.draws_at
    between = np.linspace(2, whole.done, how_many).astype(int).tolist()
    return sorted({*between, draws[0], draws[len(draws) // 2], draws[-1]})


@each_method
def test_wherever_it_is_cut_off_nothing_is_drawn_twice_and_all_is_paid_for(world, kind):
    config, undisturbed, out = world(kind, "whole")
    require_one_account(out, run_study(config, out))
    whole = undisturbed.drawn
    assert len(whole) == len(set(whole)) > 1
    seen = set()
    for at in places(undisturbed, 3):
        config, faults, out = world(kind, f"at {at}")
        faults.at, faults.happens = at, kill
        with pytest.raises(Killed):
            run_study(config, out)
        before = len(faults.drawn)
        seen.add(0 if not before else 1 if before < len(whole) else 2)
        faults.at = None
        require_one_account(out, run_study(config, out))
        assert len(faults.drawn) == len(set(faults.drawn)), f"drawn twice when cut off at {at}"
        assert set(faults.drawn) <= set(whole)
        assert len(faults.drawn) > len(whole) / 3, "more is lost than was under way"
    assert seen == {0, 1, 2}, "before, among and after the draws"


@each_method
def test_a_disk_that_is_full_is_told_or_borne_and_nothing_is_drawn_twice(world, kind):
    """From one write on, no file can be written any more; later there is room again."""

    def full(faults):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    config, undisturbed, out = world(kind, "whole")
    run_study(config, out)
    for at in places(undisturbed, 2)[::2]:
        config, faults, out = world(kind, f"at {at}")
        faults.at, faults.happens = at, full
        with pytest.raises((CollegiumError, OSError)) as told:
            run_study(config, out)
        assert "\n" not in str(told.value)
        faults.at = None
        require_one_account(out, run_study(config, out))
        assert len(faults.drawn) == len(set(faults.drawn)), f"drawn twice when full at {at}"


@each_method
def test_two_programs_do_not_draw_in_one_folder_at_once(world, kind):
    config, faults, out = world(kind, "one")
    refused = []

    def meanwhile():
        if len(faults.drawn) > 2:
            return
        with pytest.raises(InputError, match="another process"):
            run_study(config, out)
        refused.append(len(faults.drawn))

    faults.meanwhile = meanwhile
    require_one_account(out, run_study(config, out))
    assert refused == [1, 2]


# ------------------------------------------------------------------------------- begun, and finished


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study of each method, on a ledger, which no test may change."""
    known = {}

    def of(kind):
        if kind not in known:
            folder = tmp_path_factory.mktemp(kind)
            with pytest.MonkeyPatch.context() as patch:
                patch.delenv("COLLEGIUM_LEDGER")
                patch.setenv("XDG_STATE_HOME", str(folder / "state"))
                config = study(folder, kind, on_ledger=True)
                known[kind] = (config, folder / "out", run_study(config, folder / "out"))
        return known[kind]

    return of


@pytest.fixture
def on_ledger(finished, monkeypatch):
    """Let a study find its ledger as it did when it was begun."""

    def of(kind):
        config, out, result = finished(kind)
        monkeypatch.delenv("COLLEGIUM_LEDGER")
        monkeypatch.setenv("XDG_STATE_HOME", str(out.parent / "state"))
        return config, out, result

    return of


def everything(folder):
    """Content of all files, ledger and lists of ledgers among them."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".lock")
    }


@each_method
def test_a_finished_study_says_the_same_again_and_changes_nothing(on_ledger, monkeypatch, kind):
    config, out, first = on_ledger(kind)
    before = everything(out.parent)
    monkeypatch.setattr(SecureNoise, "_words", None)
    again = run_study(config, out)
    assert again.privacy == first.privacy
    assert everything(out.parent) == before


CHANGES = {
    "a row": {"seed": 1},
    "a level": {"privacy": {"levels": {**LEVELS, "low": 4.0}}},
    "delta": {"privacy": {"delta": 1e-6}},
    "a ledger": {"ledger": {"url": "none"}},
}


@each_method
@pytest.mark.parametrize("what", CHANGES)
def test_what_is_changed_makes_it_another_study_and_nothing_happens(tmp_path, world, kind, what):
    """Cut off after the first draw: with another table or other terms nothing is asked any more."""
    config, faults, out = world(kind, "begun")

    def first(_):
        if faults.drawn:
            raise Killed

    faults.at, faults.happens = 1, first
    with pytest.raises(Killed):
        run_study(config, out)
    drawn = list(faults.drawn)
    before = everything(out)
    other = study(out.parent, kind, **{"on_ledger": what != "a ledger", **CHANGES[what]})
    faults.at = None
    with pytest.raises((StudyMismatchError, InputError)) as refusal:
        run_study(other, out)
    assert "\n" not in str(refusal.value)
    assert everything(out) == before and faults.drawn == drawn
    assert not list((out / "release").iterdir())


@each_method
def test_card_page_statement_and_what_is_left_say_what_was_spent(on_ledger, collegium, kind):
    _, out, result = on_ledger(kind)
    said = {row.group: row.epsilon_spent for row in result.privacy.groups}
    before = everything(out)
    card, page = (
        (out / "release" / name).read_text("utf-8") for name in ("README.md", "report.html")
    )
    for sentence in result.privacy.sentences():
        assert sentence[:40].split("(")[0] in card.replace("\\", "")
    assert all(group in text for group in LEVELS for text in (card, page))
    for command, words in (
        (["verify", out], "are as the study wrote them"),
        (["statement", out], "spent"),
        (["account", "--remaining", out], "Nothing was changed"),
    ):
        code, output, errors = collegium(*command)
        assert code == 0 and words in output, (output, errors)
    code, output, _ = collegium("statement", out, "--json")
    stated = {row["group"]: row["spent"]["epsilon"] for row in json.loads(output)["groups"]}
    assert code == 0 and stated == pytest.approx(said, rel=1e-9)
    code, output, _ = collegium("account", "--remaining", out, "--json")
    left = json.loads(output)["groups"]
    assert code == 0 and {name: left[name]["epsilon_spent"] for name in said} == pytest.approx(said)
    assert everything(out) == before


@each_method
def test_a_plan_of_it_spends_nothing_and_writes_nothing(tmp_path, monkeypatch, kind):
    monkeypatch.delenv("COLLEGIUM_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    config = study(tmp_path, kind, on_ledger=True)
    monkeypatch.setattr(SecureNoise, "_words", None)
    before = everything(tmp_path)
    plan_study(config, StudyFolder(tmp_path / "out"))
    assert everything(tmp_path) == before


def test_a_group_that_an_account_does_not_know_is_no_group_that_costs_nothing():
    people = Policy({**LEVELS, "nobody": 2.0}).assign(["high", "low", "low"])
    spending = Spending(people, Allowance.by_level(people, Balance.of_newcomers(people)))
    paid = {"high": Cost(0.1), "low": Cost(0.2)}
    assert spending.of_each_group(paid, Cost(0.0)) == [Cost(0.1), Cost(0.2), Cost(0.0)]
    del paid["low"]
    with pytest.raises(LedgerError, match="2 people of 'low'"):
        spending.of_each_group(paid, Cost(0.0))

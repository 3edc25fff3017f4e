"""Stages of studies that ask, attacked: cut off anywhere, changed, copied, replayed on neighbours."""

import errno
import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from collegium import CollegiumError, Ledger, Policy
from collegium.accounting import Neighbours
from collegium.errors import InputError, StudyMismatchError
from collegium.ledger import Lifetime
from collegium.runs.observer import Observer
from collegium.statistics import quantile_intervals, quantiles
from collegium.study import query_table
from collegium.study.config import read_config
from collegium.study.folder import StudyFolder
from collegium.study.kept_draws import NumberedDraws
from collegium.study.methods.statistics.method import StatisticsDraws
from collegium.study.methods.statistics.session import KeptSession
from collegium.study.runner import plan_study, run_study
from collegium.study.terms import read_terms
from collegium.study.verifying import examine
from collegium.weighted_sums.sums import Sums

SCHEMA = """
rows_per_owner = 2
[columns.age]
kind = "whole"
bounds = [18, 90]
mean = 50.0
[columns.income]
kind = "number"
bounds = [0, 1000]
step = 10
sd = 300.0
[columns.sex]
kind = "category"
categories = ["F", "M"]
shares = { F = 0.5 }
[columns.smokes]
kind = "flag"
missing = true
"""
QUESTIONS = ("mean income by sex where age >= 40", "median income where smokes", "count by sex")
LEVELS = {"high": 1.0, "low": 3.0}
pytestmark = [
    pytest.mark.filterwarnings("ignore:δ is large"),
    pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning"),
]


class Killed(BaseException):
    """A power failure: nothing after it is run, nothing before it is undone."""


def table(n=60, levels=tuple(LEVELS)):
    generator = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "person": [f"p{number}" for number in range(n)],
            "age": generator.integers(18, 90, n),
            "income": generator.integers(0, 1000, n),
            "sex": generator.choice(["F", "M"], n),
            "smokes": generator.choice(["yes", "no"], n),
            "level": generator.choice(list(levels), n),
        }
    )


def study(
    folder,
    people=None,
    more="",
    questions=QUESTIONS,
    schema=SCHEMA,
    ledger="none",
    file="data/people.csv",
    owner="person",
    levels="{ high = 1.0, low = 3.0 }",
    delta="1e-5",
):
    """Write a study, and its table where one is given; returns its settings."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if people is not None and file.endswith(".csv"):
        people.to_csv(path, index=False)
    elif people is not None:
        people.to_parquet(path)
    (folder / "schema.toml").write_text(schema)
    whose = f'owner = "{owner}"' if owner else ""
    (folder / "study.toml").write_text(
        f'[data]\nprivate = "{file}"\n{whose}\n[privacy]\nlevels = {levels}\ncolumn = "level"\n'
        f'delta = {delta}\n[method]\nkind = "statistics"\n[statistics]\nschema = "schema.toml"\n'
        f'questions = {json.dumps(list(questions))}\n{more}\n[ledger]\nurl = "{ledger}"\n',
        encoding="utf-8",
    )
    return read_config(folder / "study.toml")


def new_ledger(folder, neighbours=Neighbours.ADD_OR_REMOVE):
    Ledger.create(folder / "private.ledger", neighbours=neighbours)
    return folder / "private.ledger"


@pytest.fixture
def cut_off(monkeypatch):
    """Run a study until so many of its questions were charged, whose last one's answer is lost."""

    def run(config, out, at=2):
        keep = NumberedDraws.keep

        def kill(memory, number, answer):
            if number == at:
                raise Killed
            return keep(memory, number, answer)

        with monkeypatch.context() as patched:
            patched.setattr(NumberedDraws, "keep", kill)
            with pytest.raises(Killed):
                run_study(config, out)

    return run


@pytest.fixture
def nothing_is_drawn(monkeypatch):
    """Let no noise be drawn from now on."""

    def begin():
        def draw(*given, **named):
            raise AssertionError("noise was drawn")

        monkeypatch.setattr(Sums, "noisy", draw)
        monkeypatch.setattr(quantiles, "choose", draw)

    return begin


# ------------------------------------------------- cut off (anywhere: in what every method keeps)


def test_nothing_is_published_before_the_ledger_knows_what_it_cost(tmp_path, monkeypatch):
    """And what was all drawn is settled and published, whoever has changed their mind meanwhile."""
    place = new_ledger(tmp_path)
    config, out = study(tmp_path, table(), ledger=place), tmp_path / "out"

    def kill(*given):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "_settle", kill)
        with pytest.raises(Killed):
            run_study(config, out)
    assert not list((out / "release").iterdir())
    people = table().iloc[:1]
    strict = Policy(dict.fromkeys(LEVELS, 0.1)).assign(people["level"], people["person"])
    assert Ledger(place).change(strict)["overdrawn"] == 1
    result = run_study(config, out)
    assert len(result.answers) == len(QUESTIONS) and not result.lost


@pytest.mark.parametrize("what", ["lower", "leave", "give back"])
def test_who_changes_their_mind_between_two_questions_stops_it(
    tmp_path, cut_off, nothing_is_drawn, what
):
    place = new_ledger(tmp_path)
    config, out = study(tmp_path, table(), ledger=place), tmp_path / "out"
    cut_off(config, out)
    ledger = Ledger(place)
    (release,) = ledger.reservations()
    people = table().iloc[:1]
    if what == "lower":
        ledger.change(Policy(dict.fromkeys(LEVELS, 0.1)).assign(people["level"], people["person"]))
    elif what == "leave":
        ledger.forget("p0")
    else:
        ledger.end(release.id, "somebody said so", nothing_was_drawn=True)
    nothing_is_drawn()
    with pytest.raises(CollegiumError):
        run_study(config, out)
    (known,) = Ledger(place).contents().releases.values()
    # Not given back: two questions were charged.
    assert all(cost.mu_squared > 0 for cost in known.costs)
    assert not (out / "release" / "answers.json").exists()


def test_who_leaves_after_the_last_charge_changes_nothing_any_more(tmp_path, cut_off):
    """All is drawn, though the last answer was lost: what it cost is settled, and the rest given back."""
    place = new_ledger(tmp_path)
    config, out = study(tmp_path, table(), ledger=place), tmp_path / "out"
    cut_off(config, out, at=len(QUESTIONS))
    Ledger(place).forget("p0")
    result = run_study(config, out)
    assert result.lost == QUESTIONS[-1:] and len(result.answers) == len(QUESTIONS) - 1
    assert not Ledger(place).reservations()


def test_parquet_that_is_changed_while_it_is_read_is_not_asked(tmp_path, monkeypatch):
    """The digest would be of the new rows, and after an interruption these would be asked."""
    file = "people.parquet"
    config, digest = study(tmp_path, table(), file=file), query_table.fingerprint_of

    def changed(path, *frame, **columns):
        study(tmp_path, table()[::-1].assign(income=7), file=file)
        return digest(path, *frame, **columns)

    monkeypatch.setattr(query_table, "fingerprint_of", changed)
    with pytest.raises(InputError, match="changed while it was read"):
        run_study(config, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_full_disk_costs_no_answer(tmp_path, monkeypatch):
    config, out, write = study(tmp_path, table()), tmp_path / "out", StudyFolder.write_bytes
    rooms = []

    def full(folder, path, content):
        room = folder.vault / ".journal.jsonl.room"
        if path.name == "answers.json" and room.exists():
            rooms.append(room.stat().st_size)
            raise OSError(errno.ENOSPC, "full")
        write(folder, path, content)

    monkeypatch.setattr(StudyFolder, "write_bytes", full)
    assert not run_study(config, out).lost
    assert len(rooms) == 3 and min(rooms) > 2**20


# ---------------------------------------------------------------------------------- changed meanwhile

CHANGES = {
    "a cell": {"people": table().assign(age=[31, *table()["age"][1:]])},
    "the levels": {"people": table().assign(level=table()["level"].to_numpy()[::-1])},
    "the order of rows": {"people": table()[::-1]},
    "a row": {"people": table()[1:]},
    "questions' order": {"questions": QUESTIONS[::-1]},
    "one question fewer": {"questions": QUESTIONS[:2]},
    "bounds": {"schema": SCHEMA.replace("[0, 1000]", "[0, 2000]")},
    "what is known": {"schema": SCHEMA.replace("sd = 300.0", "sd = 200.0")},
    "rows that count": {"schema": SCHEMA.replace("rows_per_owner = 2", "rows_per_owner = 3")},
    "a level": {"levels": "{ high = 1.0, low = 4.0 }"},
    "delta": {"delta": "1e-6"},
    "a seed": {"more": "noise_seed = 1"},
    "how much": {"more": "spend = 0.9"},
    "weights": {"more": 'weights = "uniform"'},
    "the unit": {"owner": None},
}


@pytest.mark.parametrize("file", ["data/people.csv", "data/people.parquet"])
def test_what_is_changed_between_two_questions_makes_it_another_study(
    tmp_path, cut_off, nothing_is_drawn, file
):
    out = tmp_path / "out"
    cut_off(study(tmp_path, table(), file=file), out)
    before = (tmp_path / file).read_bytes()
    nothing_is_drawn()
    for what, changed in CHANGES.items():
        config = study(tmp_path, file=file, **changed)
        with pytest.raises(StudyMismatchError):
            run_study(config, out)
            pytest.fail(what)
        (tmp_path / file).write_bytes(before)
    assert read_terms(out)[1].steps == 2


def test_other_prices_than_it_was_begun_with_are_refused(
    tmp_path, cut_off, nothing_is_drawn, monkeypatch
):
    """Another version of the software may find others: an account of both would be of neither."""
    config, out, events = study(tmp_path, table()), tmp_path / "out", KeptSession.events_of
    cut_off(config, out)
    nothing_is_drawn()
    monkeypatch.setattr(KeptSession, "events_of", lambda *given: [*events(*given), *events(*given)])
    with pytest.raises(StudyMismatchError, match="begun with other prices"):
        run_study(config, out)


@pytest.mark.parametrize("name", ["answers.json", "terms.json", "manifest.json", "journal.jsonl"])
@pytest.mark.parametrize("how", ["edited", "gone", "another's"])
def test_a_vault_that_was_edited_is_refused_and_told_of(
    tmp_path, cut_off, nothing_is_drawn, name, how
):
    out, other = tmp_path / "out", tmp_path / "other"
    cut_off(study(tmp_path, table()), out)
    cut_off(study(tmp_path, more="spend = 0.9"), other)
    config = study(tmp_path)
    path = out / "vault" / name
    content = path.read_bytes()
    nothing_is_drawn()
    if how == "edited":
        path.write_bytes(content.replace(b"1", b"2", 1))
    elif how == "gone":
        path.unlink()
    else:
        path.write_bytes((other / "vault" / name).read_bytes())
    assert [one for one in examine(StudyFolder(out)) if one.trouble]
    with pytest.raises(CollegiumError):
        run_study(config, out)
    assert path.exists() == (how != "gone")


def test_of_copies_that_went_on_one_publishes(tmp_path, cut_off):
    place = new_ledger(tmp_path)
    config = study(tmp_path, table(), ledger=place, more="spend = 1.0")
    out, copy = tmp_path / "out", tmp_path / "copy"
    cut_off(config, out)
    shutil.copytree(out, copy)
    run_study(config, copy)
    with pytest.raises(StudyMismatchError, match="older copy"):
        run_study(config, out)
    shutil.rmtree(out)
    config = study(tmp_path, ledger=place, more="spend = 0.5")
    with pytest.raises(CollegiumError, match="left"):
        run_study(config, out)


def test_what_is_left_pays_for_half_unless_the_setting_that_is_named_says_more(tmp_path):
    class Notes(Observer):
        def note(self, message):
            told.append(message)

    told = []
    place = new_ledger(tmp_path)
    run_study(study(tmp_path, table(), ledger=place), tmp_path / "out", Notes())
    (chosen,) = [note for note in told if note.startswith("this release takes 50 % of what")]
    assert (
        "statistics.spend" in chosen and "privacy.spend" not in chosen
    )  # which means nothing here
    told.clear()
    config = study(tmp_path, ledger=place, questions=QUESTIONS[:1], more="spend = 1.0")
    run_study(config, tmp_path / "all", Notes())
    assert not [note for note in told if note.startswith("this release takes")]
    with pytest.raises(CollegiumError, match="left"):
        run_study(study(tmp_path, ledger=place), tmp_path / "third")


# --------------------------------------------------------------------------------- what is published


def released(folder):
    """All files of a release; without what names a point of a journal, whose key is drawn."""
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    digests = json.loads(found["digests.json"])
    digests["made_of"]["head"] = ""
    return {**found, "digests.json": digests}


class Tape:
    """What was drawn, with noise; forced again when it is replayed on a neighbour."""

    def __init__(self, forced=None):
        self.drawn, self.forced = [], None if forced is None else iter(forced)

    def install(self, patch):
        for place, name in (
            (Sums, "noisy"),
            (quantiles, "choose"),
            (quantiles, "choose_by_coins"),
            (quantile_intervals, "noised"),
        ):
            patch.setattr(place, name, self._way(getattr(place, name)))

    def _way(self, way):
        def taped(*given, **named):
            self.drawn.append(way(*given, **named) if self.forced is None else next(self.forced))
            return self.drawn[-1]

        return taped


NEIGHBOURS = {
    "blank": {"age": "", "income": "", "sex": "", "smokes": ""},
    "out of bounds": {"age": "900", "income": "-1e400", "sex": "X", "smokes": "maybe"},
    "no values": {"age": "9" * 500, "income": "abc", "sex": '"', "smokes": "=1+1"},
}
ALL = (
    *QUESTIONS,
    "count",
    "mean income",
    "sum income",
    "var age",
    "histogram age",
    "cov age, income",
    "share where smokes by sex",
    "share of sex",
    "top 1 of sex",
    "difference of median income by sex",
    "count people by sex",
    "quantiles(0.1, 0.9) of age",
)


@pytest.mark.parametrize(("on_ledger", "more"), [(True, ""), (False, 'neighbours = "replace-one"')])
def test_a_neighbours_release_is_the_same_byte_by_byte_but_for_what_is_drawn(
    tmp_path, monkeypatch, collegium, on_ledger, more
):
    """Record and replay, through files: nothing else depends on a row, on paper or on the screen."""

    def run(name, people, tape):
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()
        place = new_ledger(folder) if on_ledger else "none"
        study(folder, people, more=more, questions=ALL, ledger=place)
        with monkeypatch.context() as patched:
            tape.install(patched)
            code, said, errors = collegium("run", folder / "study.toml")
        assert code == 0, errors
        text = re.sub(r"\s+", "", (said + errors)).replace(str(folder), "")
        return text, released(folder / "study" / "release")

    people = table().astype(object)
    people = pd.concat([people, people.iloc[[7]]], ignore_index=True)  # p7 has two rows
    first = Tape()
    said, files = run("first", people, first)
    assert set(files["digests.json"]["files"]) == set(files) - {"digests.json"}
    others = {}
    for what, cells in NEIGHBOURS.items():
        others[what] = people.copy()
        others[what].loc[people["person"] == "p7", list(cells)] = list(cells.values())
    if more:
        kept, level = people[people["person"] != "p7"], people["level"][7]
        row = {"person": "p7", "age": 18, "income": 0, "sex": "M", "smokes": "no", "level": level}
        others["many rows, at the front"] = pd.concat([pd.DataFrame([row] * 9), kept])
    for what, neighbour in others.items():
        again = Tape(first.drawn)
        assert (said, files) == run(what, neighbour, again), what
        assert len(again.drawn) == len(first.drawn)


@pytest.mark.parametrize("file", ["people.csv", "people.parquet"])
def test_who_granted_nothing_is_in_nothing(tmp_path, file):
    people = table(levels=(*LEVELS, "none"))
    levels, found = "{ high = 1.0, low = 3.0, none = 0 }", []
    for name, rows in (("all", people), ("some", people[people["level"] != "none"])):
        (tmp_path / name).mkdir()
        config = study(tmp_path / name, rows, "noise_seed = 1", file=file, levels=levels)
        run_study(config, tmp_path / name / "out")
        found.append(released(tmp_path / name / "out" / "release"))
    assert found[0] == found[1]
    place = new_ledger(tmp_path)
    run_study(study(tmp_path, people, file=file, levels=levels, ledger=place), tmp_path / "out")
    assert Ledger(place).contents().n_owners == (people["level"] != "none").sum()


def test_a_release_says_where_nothing_lies_and_that_seeded_noise_protects_nobody(
    tmp_path, collegium
):
    out = tmp_path / "out"
    run_study(study(tmp_path, table(), "noise_seed = 1"), out)
    told = released(out / "release")
    assert '"private": "people.csv"' in told["privacy.json"]
    assert not any("data/people.csv" in str(one) for one in told.values())
    code, said, _ = collegium("account", "--remaining", out)
    assert code == 0 and "NOT PRIVATE" in said


def test_all_that_may_be_spent_is_shared_out(tmp_path):
    """Whoever is heard most pays, over all questions, what the session may use, and no more."""
    result = run_study(study(tmp_path, table(), 'noise = "gaussian"'), tmp_path / "out")
    strictest = min(result.privacy.groups, key=lambda row: row.budget.epsilon)
    assert 0.999 < strictest.epsilon_spent / strictest.budget.epsilon <= 1


# -------------------------------------------------------------------------------------- on a ledger


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_OR_REMOVE, Neighbours.ANY_CHANGE])
def test_a_ledger_decides_what_is_promised(tmp_path, neighbours):
    place, out = new_ledger(tmp_path, neighbours), tmp_path / "out"
    result = run_study(study(tmp_path, table(), ledger=place), out)
    terms, _ = read_terms(out)
    assert terms.neighbours is neighbours and terms.noise == "gaussian"
    assert "what a ledger has left of their budgets" in terms.adjacency
    assert any("had left there" in line for line in result.privacy.provisos)


def test_a_named_ledger_that_cannot_remember_it_is_refused(tmp_path):
    place = new_ledger(tmp_path)
    for more in (
        {"owner": None, "file": "people.parquet"},
        {"owner": None},
        {"more": "noise_seed = 1"},
    ):
        config = study(tmp_path, table(), ledger=place, **more)
        with pytest.raises(InputError, match="no ledger can remember this"):
            run_study(config, tmp_path / "out")
    assert not (tmp_path / "out").exists() and not Ledger(place).contents().releases


def test_nothing_is_asked_before_it_is_reserved(tmp_path, monkeypatch):
    place = new_ledger(tmp_path)
    ask, seen = StatisticsDraws.draw, []

    def asked(*given):
        (release,) = Ledger(place).reservations()
        seen.append(release.costs)
        return ask(*given)

    monkeypatch.setattr(StatisticsDraws, "draw", asked)
    run_study(study(tmp_path, table(), ledger=place, more="spend = 0.5"), tmp_path / "out")
    ((*reserved,),) = seen
    (release,) = Ledger(place).contents().releases.values()
    levels = Policy(LEVELS).levels.values()
    for at_most, paid, budget in zip(reserved, release.costs, levels, strict=True):
        assert 0 < paid.mu_squared <= at_most.mu_squared
        assert at_most.mu_squared == pytest.approx(
            Lifetime().limit(budget).mu_squared / 2, rel=1e-6
        )


# ------------------------------------------------------------------------------- several Parquet files


def in_files(folder, *parts):
    (folder / "people").mkdir(exist_ok=True)
    for number, part in enumerate(parts):
        part.to_parquet(folder / "people" / f"{number}.parquet")


@pytest.mark.parametrize("on_ledger", [False, True])
def test_rows_in_several_files_are_rows_of_one_table(tmp_path, on_ledger):
    people = pd.concat([table(), table()[:30].assign(income=10)], ignore_index=True)
    people["income"] += np.where(people.index < 45, 0.0, 0.5)
    whole = people[:45].astype({"income": "int64"})
    found = []
    for name, parts in (
        ("one", (people,)),
        ("cut", (people[:50], people[50:])),
        ("whole numbers first", (whole, people[45:])),
    ):
        (tmp_path / name).mkdir()
        in_files(tmp_path / name, *parts)
        config = study(tmp_path / name, file="people", more="noise_seed = 1")
        if on_ledger:  # read by name, and drawn by chance
            place = new_ledger(tmp_path / name)
            config = study(tmp_path / name, file="people", ledger=place)
        result = run_study(config, tmp_path / name / "out")
        assert not result.lost
        found.append([one["cells"] for one in result.answers])
    assert on_ledger or found[0] == found[1] == found[2]


@pytest.mark.parametrize("on_ledger", [False, True])
def test_files_of_other_types_or_columns_are_refused_and_no_cell_is_told_of(tmp_path, on_ledger):
    people, text = table(), [str(income) for income in table()["income"][30:]]
    place = new_ledger(tmp_path) if on_ledger else "none"
    rest = people[30:]
    large = people["income"].astype(object)
    large[3] = 2**60 + 1  # no float
    for first, second, message in (
        (people[:30], rest.assign(income=[*text[:-1], "secret"]), "is not readable Parquet"),
        (people[:30], rest.drop(columns="income"), "has other or repeated columns"),
        (
            people[:30].assign(income=large[:30].astype("int64")),
            rest.assign(income=rest["income"] + 0.5),
            "is not readable Parquet",
        ),
    ):
        in_files(tmp_path, first, second)
        with pytest.raises(InputError, match=message) as told:
            run_study(study(tmp_path, file="people", ledger=place), tmp_path / "out")
        assert "secret" not in str(told.value) and str(2**60 + 1) not in str(told.value)
    assert not (tmp_path / "out").exists() or not read_terms(tmp_path / "out")[1].steps


def test_answers_say_who_has_nothing_left_and_cost_what_the_ledger_counts(tmp_path):
    place, people = new_ledger(tmp_path), table()
    high = people["level"] == "high"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    one = study(
        tmp_path / "first", people[high], more="spend = 1.0", questions=QUESTIONS[:1], ledger=place
    )
    run_study(one, tmp_path / "first" / "out")
    study(tmp_path / "second", people, more="spend = 0.25", questions=QUESTIONS[2:], ledger=place)
    with (tmp_path / "second" / "study.toml").open("a") as file:  # the others join it now
        file.write("allow_new_people = true\n")
    run_study(read_config(tmp_path / "second" / "study.toml"), tmp_path / "second" / "out")
    release = tmp_path / "second" / "out" / "release"
    (answer,) = json.loads((release / "answers.json").read_text())["answers"]
    assert answer["silent"] == {"high": int(high.sum())} and answer["people"] == int((~high).sum())
    said = f"{high.sum()} have nothing left (high: {high.sum()})"
    assert said in answer["text"] and said in (release / "report.html").read_text()
    assert answer["paid"][0]["share"] == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize("spend", [0.2, 0.5, 1.0])
def test_what_answers_take_and_leave_is_said_as_their_own_setting_has_it(tmp_path, spend):
    config = study(tmp_path, table(), ledger=new_ledger(tmp_path), more=f"spend = {spend}")
    said = plan_study(config).ledger.in_words
    assert f"takes at most {100 * spend:.0f} % of what people granted" in said
    assert f"have at least {100 * (1 - spend):.0f} % left" in said

"""Methods over the tables of several parties: all get the same, as from one table, and pay as for one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from collegium import (
    DPSGDClassifier,
    Ledger,
    Policy,
    Sampling,
    Schema,
    Statistics,
    Synthesizer,
)
from collegium.accounting.neighbours import Neighbours
from collegium.budgets import as_budgets
from collegium.data.cells import Cells
from collegium.dpsgd.between_parties import for_parties
from collegium.dpsgd.run import DPSGDRecipe
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import CollegiumError, InputError, PrivacyWarning
from collegium.noise.sources import SeededNoise
from collegium.noise.sums import Integers, Noise
from collegium.parties.collective import _written, _written_of, with_everybody
from collegium.parties.waiting import Patience
from collegium.synthesis.run import Synthesis
from collegium.synthesis.settings import SynthesisSettings
from collegium.weighted_sums.tables import InMemory
from tests.parties.parties_in_threads import Hospitals

N = 1200
SCHEMA = Schema(
    {
        "age": {
            "kind": "whole",
            "bounds": [0, 99],
            "bins": [0, 20, 40, 60, 80, 99],
            "missing": False,
        },
        "sex": {"kind": "category", "categories": ["F", "M"], "missing": False},
        "sick": {"kind": "flag", "missing": False},
    }
)


def people() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, what everybody grants, and at which of three parties each is: the third has only the generous."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, N)
    frame = pd.DataFrame(
        {"age": age, "sex": rng.choice(["F", "M"], N), "sick": age + rng.normal(0, 15, N) > 60}
    )
    epsilon = rng.choice([1.0, 2.0, 4.0], N)
    place = np.where(epsilon == 4.0, 2, rng.integers(0, 2, N))
    return frame, epsilon, place


@pytest.fixture
def company(tmp_path: Path) -> Hospitals:
    return Hospitals(tmp_path)


def at(place: np.ndarray, number: int) -> tuple[pd.DataFrame, np.ndarray]:
    frame, epsilon, _ = people()
    return frame[place == number].reset_index(drop=True), epsilon[place == number]


def test_all_get_the_same_answers_and_pay_as_for_one_table(company: Hospitals) -> None:
    frame, epsilon, place = people()

    def ask(number: int) -> tuple[list[Any], Any]:
        rows, granted = at(place, number)
        its = company.party(number)
        with Statistics(rows, granted, schema=SCHEMA, questions=3, parties=its) as session:
            answers = [
                session.count("age >= 50", weights="uniform"),
                session.mean("age"),
                session.mean("age", by="sex"),
            ]
            return answers, session.privacy_

    found = company.each(ask)
    with Statistics(frame, epsilon, schema=SCHEMA, questions=3, noise="gaussian") as pooled:
        one = [
            pooled.count("age >= 50", weights="uniform"),
            pooled.mean("age"),
            pooled.mean("age", by="sex"),
        ]
    for answers, privacy in found:
        assert [str(each) for each in answers] == [str(each) for each in found[0][0]]
        # The third question's second round follows the first one's noise: its price is not always the same.
        its, whole = privacy.groups, pooled.privacy_.groups
        assert [(one.group, one.owners) for one in its] == [
            (one.group, one.owners) for one in whole
        ]
        assert "3 parties" in str(privacy)
    count, reference = found[0][0][0], one[0]
    # 6 standard errors of each: a false alarm of about 1e-9.
    assert abs(count.value - float((frame.age >= 50).sum())) < 6 * count.standard_error
    # One noise for all, larger by sqrt(3/2) for the colluder: three separate ones have sqrt(3).
    assert count.standard_error == pytest.approx(reference.standard_error * np.sqrt(1.5), rel=1e-6)
    assert abs(found[0][0][1].value - frame.age.mean()) < 6 * found[0][0][1].standard_error


def test_all_fit_the_same_distribution_as_of_one_table(company: Hospitals, tmp_path: Path) -> None:
    frame, _, place = people()

    def fit(number: int) -> bytes:
        rows, granted = at(place, number)
        table = Synthesizer(SCHEMA, target="sick", goal="both", random_state=0)
        table.fit(rows, granted, parties=company.party(number))
        table.save(tmp_path / f"{number}.json")
        assert table.n_rows_ == N and "3 parties" in str(table.privacy_)
        return (tmp_path / f"{number}.json").read_bytes()

    first, second, third = company.each(fit)
    assert first == second == third
    made = Synthesizer.load(tmp_path / "0.json").sample(N, random_state=0)
    # At ε = 1 to 4 and 1,200 people, shares are off by a few percent; 0.1 is more than six standard errors.
    assert abs(made.sick.mean() - frame.sick.mean()) < 0.1
    assert made[made.age >= 80].sick.mean() - made[made.age < 40].sick.mean() > 0.6


def test_all_take_the_same_steps(company: Hospitals) -> None:
    frame, epsilon, place = people()
    X = np.column_stack([frame.age / 50 - 1, frame.sex == "F"]).astype(float)

    def train(number: int) -> DPSGDClassifier:
        its = place == number
        model = DPSGDClassifier(classes=[False, True], steps=10, random_state=0)
        y = frame.sick.to_numpy()
        return model.fit(X[its], y[its], budgets=epsilon[its], parties=company.party(number))

    models = company.each(train)
    shown = [model.predict_proba(X) for model in models]
    assert np.array_equal(shown[0], shown[1]) and np.array_equal(shown[0], shown[2])
    assert models[0].score(X, frame.sick) > 0.75  # 50 % by chance, 89 % at best
    assert sum(row.owners for row in models[0].privacy_.groups) == N


def test_a_party_charges_its_own_ledger(company: Hospitals, tmp_path: Path) -> None:
    frame, _, place = people()
    policy = Policy({"strict": 1.0, "open": 3.0})
    ledgers = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        place_of_it = tmp_path / str(number) / "people.ledger"
        ledgers.append(Ledger.create(place_of_it, neighbours=Neighbours.ADD_OR_REMOVE))

    def ask(number: int) -> float:
        rows = frame[place == number].reset_index(drop=True)
        rows["who"] = [f"{number}-{row}" for row in range(len(rows))]
        rows["level"] = np.where(np.arange(len(rows)) % 3 == 0, "open", "strict")
        its = company.party(number)
        options: dict[str, Any] = {"privacy": "level", "owner": "who", "ledger": ledgers[number]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)
            with Statistics(
                rows, policy, schema=SCHEMA, parties=its, questions=2, **options
            ) as session:
                value = session.mean("age").value
        return value

    values = company.each(ask)
    assert values[0] == values[1] == values[2]
    for number, ledger in enumerate(ledgers):
        account = ledger.account_of(f"{number}-0")
        assert account is not None and account.has_ended and len(account.charges) == 1
        assert ledger.account_of(f"{(number + 1) % 3}-0") is None


OTHER: Mapping[str, tuple[dict[str, Any], str]] = {
    "weights": ({"weights": "uniform"}, "weights must be the same"),
    "schema": (
        {"schema": Schema({**SCHEMA.columns, "age": {"kind": "whole", "bounds": [0, 120]}})},
        "schema must be the same",
    ),
    "neighbours": ({"neighbours": "replace-one"}, "neighbours must be the same"),
}


@pytest.mark.parametrize("other", OTHER)
def test_another_plan_is_refused_before_anything_is_drawn(company: Hospitals, other: str) -> None:
    _, _, place = people()
    changed, why = OTHER[other]

    def ask(number: int) -> str:
        rows, granted = at(place, number)
        its: dict[str, Any] = {"schema": SCHEMA, **(changed if number == 1 else {})}
        try:
            Statistics(rows, granted, parties=company.party(number), **its)
        except InputError as error:
            return str(error)
        return ""

    said = company.each(ask)
    assert all(why in one and "nothing was drawn" in one for one in said)
    assert "Hospital B" in said[0] and not list(company.folder.glob("shared/*/*/masked*"))


def test_a_release_is_begun_once(company: Hospitals) -> None:
    _, _, place = people()

    def ask(number: int) -> None:
        rows, granted = at(place, number)
        with Statistics(
            rows, granted, schema=SCHEMA, parties=company.party(number), name="Ages 2026"
        ) as session:
            session.mean("age")

    company.each(ask)
    with pytest.raises(InputError, match="Hospital B has begun 'Ages 2026' before"):
        ask(1)


def test_what_cannot_be_added_up_is_refused(company: Hospitals) -> None:
    frame, epsilon, place = people()
    rows, granted = at(place, 0)
    its = company.party(0)
    with pytest.raises(InputError, match="laplace noise has no shares"):
        Statistics(rows, granted, schema=SCHEMA, parties=its, noise="laplace")
    X, y = frame[["age"]].to_numpy(float), frame.sick.to_numpy()
    sampled = DPSGDClassifier(classes=[False, True], sampling=Sampling("sample", rate=0.1))
    with pytest.raises(InputError, match="parties take steps over all their records"):
        sampled.fit(X, y, budgets=epsilon, parties=its)
    filtered = DPSGDRecipe(DPSGDSettings(individual_filter=2.0))
    with pytest.raises(InputError, match="a filter follows one party's records"):
        for_parties(filtered, None)
    with pytest.raises(InputError, match="may round differently at each party"):
        for_parties(DPSGDRecipe(DPSGDSettings(solver="public")), None)
    assert for_parties(DPSGDRecipe(), None).dpsgd.solver == "momentum"
    with pytest.raises(InputError, match="all parties need the same public list"):
        DPSGDClassifier().fit(X, y, budgets=epsilon, parties=its)
    assert not list((company.folder / "shared").iterdir())


def test_a_quantile_is_refused_before_it_is_charged(company: Hospitals) -> None:
    _, _, place = people()

    def ask(number: int) -> None:
        rows, granted = at(place, number)
        with Statistics(rows, granted, schema=SCHEMA, parties=company.party(number)) as session:
            with pytest.raises(InputError, match="ask for a histogram"):
                session.median("age")
            assert session.left()["share_left"].min() == 1

    company.each(ask)


def test_levels_of_one_name_and_two_budgets_stay_apart() -> None:
    mine = Policy({"high": 1.0, "low": 3.0}).assign(["high", "low", "low"])
    theirs = Policy({"high": 2.0, "low": 3.0}).assign(["high", "high", "low"])
    census = [({}, _written(one)) for one in (mine, theirs)]
    here, there = with_everybody(mine, census), with_everybody(theirs, census)
    assert [*here.groups.values()] == [*there.groups.values()]
    assert len(_written_of(census)) == len(here.groups)
    assert here.public_sizes() == {"high": 1, "high (ε = 2.0, δ = 1e-05)": 2, "low": 3}
    assert there.public_sizes() == {"high (ε = 1.0, δ = 1e-05)": 1, "high": 2, "low": 3}
    assert here.group_sizes()["low"] == 2 and there.group_sizes()["low"] == 1


def test_no_level_of_another_party_writes_to_a_terminal() -> None:
    mine = as_budgets(np.ones(20))
    for name in ("high\x1b[2J", "high\u202e"):
        with pytest.raises(InputError, match="a party's numbers of people cannot be read"):
            with_everybody(mine, [({}, {name: ["2.0", "1e-05", "7"]})])


def test_no_group_is_lost_whatever_levels_are_called() -> None:
    """Budgets that print alike, and a level that is called as another one would be."""
    each = [
        Policy({"high": epsilon, f"high (ε = {epsilon!r}, δ = 1e-05)": 2.0}).assign(
            ["high", f"high (ε = {epsilon!r}, δ = 1e-05)"]
        )
        for epsilon in (1 / 3, 0.3333333, 0.33333333)
    ]
    census = [({}, _written(one)) for one in each]
    for mine in each:
        merged = with_everybody(mine, census)
        assert sum(merged.public_sizes().values()) == 6
        assert sorted(one.epsilon for one in merged.groups.values())[:3] == sorted(
            (1 / 3, 0.3333333, 0.33333333)
        )


def test_seeded_shares_of_the_parties_differ(company: Hospitals) -> None:
    _, _, place = people()

    def ask(number: int) -> list[float]:
        rows, granted = at(place, number)
        options: dict[str, Any] = {
            "parties": company.party(number),
            "noise_seed": 5,
            "questions": 40,
        }
        with Statistics(rows, granted, schema=SCHEMA, **options) as session:
            found = [session.count(f"age >= {age}", weights="uniform") for age in range(20, 60)]
        return [
            (one.value - float((people()[0].age >= age).sum())) / one.standard_error
            for age, one in zip(range(20, 60), found, strict=True)
        ]

    standard = np.array(company.each(ask)[0])
    # Mean square of 40 standard normal numbers: beyond 1.8 once in 700 times; equal shares make it 3.
    assert np.mean(standard**2) < 1.8


def test_seeded_and_private_noise_do_not_mix(company: Hospitals) -> None:
    _, _, place = people()

    def ask(number: int) -> str:
        rows, granted = at(place, number)
        seed = 5 if number == 2 else None
        try:
            Statistics(rows, granted, schema=SCHEMA, parties=company.party(number), noise_seed=seed)
        except InputError as error:
            return str(error)
        return ""

    assert all(
        "whether noise is drawn from a seed must be the same" in said for said in company.each(ask)
    )


def test_who_lacks_a_level_answers_on_a_ledger_too(company: Hospitals, tmp_path: Path) -> None:
    """The third party's people are all of one level; the ledger of each knows its own."""
    policy = Policy({"high": 1.0, "low": 3.0})
    ledgers = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        ledgers.append(Ledger.create(tmp_path / str(number) / "l.ledger"))

    def ask(number: int) -> float:
        rows = pd.DataFrame({"age": [30, 60] * 60, "sex": "F", "sick": True})
        rows["who"] = [f"{number}-{row}" for row in range(120)]
        rows["level"] = ["high", "high", "low", "low"] * 30 if number < 2 else "low"
        its: dict[str, Any] = {"privacy": "level", "owner": "who", "ledger": ledgers[number]}
        with Statistics(rows, policy, schema=SCHEMA, parties=company.party(number), **its) as ask:
            return ask.count("age >= 50").value

    values = company.each(ask)
    assert values[0] == values[1] == values[2]


def test_a_question_that_was_cut_off_ends_the_session(company: Hospitals) -> None:
    """It was charged, and others may have its answer: asked again, it would be another sum."""
    _, _, place = people()

    def ask(number: int) -> list[str]:
        rows, granted = at(place, number)
        said: list[str] = []
        with Statistics(rows, granted, schema=SCHEMA, parties=company.party(number)) as session:
            session._release.noise._patience = Patience(poll_s=0.005, give_up_s=0.5)
            for _ in range(2 if number < 2 else 0):  # the third hospital asks nothing
                try:
                    session.mean("age")
                except CollegiumError as error:
                    said.append(str(error))
            if number < 2:
                assert session.left()["share_left"].min() == pytest.approx(0.9)  # charged once
        return said

    for said in company.each(ask)[:2]:
        assert "in time: what was posted stands" in said[0]
        assert "was charged and cut off" in said[1]


def test_who_asks_with_other_options_is_named_at_once(company: Hospitals) -> None:
    _, _, place = people()
    ways = [{}, {}, {"expected": 0.5}]

    def ask(number: int) -> str:
        rows, granted = at(place, number)
        with Statistics(rows, granted, schema=SCHEMA, parties=company.party(number)) as session:
            with pytest.raises(InputError) as refused:
                session.mean("age", **ways[number])
            return str(refused.value)

    said = company.each(ask)
    for one in said[:2]:
        assert "Hospital C sums" in one and "expected = 0.5”, and not" in one
    assert "sums" in said[2] and "all parties ask the same, with the same options" in said[2]


def test_a_release_named_in_other_letters_has_a_folder_of_its_own(company: Hospitals) -> None:
    party = company.party(0)
    for name in ("Größe", "年齢", "性別", "Ages 2026"):
        party.release(name).close()
    names = sorted(one.name for one in (company.folder / "shared").iterdir())
    assert len(names) == 4 and "ages-2026" in names and "release" not in names


def test_waiting_for_the_others_numbers_can_be_taken_up(company: Hospitals) -> None:
    _, _, place = people()
    rows, granted = at(place, 0)
    party = replace(company.party(0), patience=Patience(poll_s=0.005, give_up_s=0.05))
    with pytest.raises(CollegiumError, match="Hospital B, Hospital C posted no numbers of people"):
        Statistics(rows, granted, schema=SCHEMA, parties=party)

    def ask(number: int) -> float:
        rows, granted = at(place, number)
        with Statistics(rows, granted, schema=SCHEMA, parties=company.party(number)) as session:
            return session.mean("age").value

    values = company.each(ask)
    assert values[0] == values[1] == values[2]


class Ear(SeededNoise):
    """Seeded noise that remembers the sums."""

    def __init__(self, forced: list[Integers]) -> None:
        super().__init__(7)
        self.sums: list[NDArray[np.float64]] = []  # in standard deviations of their noise
        self.forced = forced

    def noised(
        self, sensitive_sum: Integers, noise: Noise, *, query: int, purpose: str
    ) -> Integers:
        self.sums.append(sensitive_sum / noise.scale)
        drawn = super().noised(sensitive_sum, noise, query=query, purpose=purpose)
        if len(self.forced) >= len(self.sums):
            return self.forced[len(self.sums) - 1]
        self.forced.append(drawn)
        return drawn


def test_nobody_moves_a_partys_sums_further_than_they_pay_for() -> None:
    """Record and replay, of one party among others: also of scores, which compare its own rows alone."""
    _, _, place = people()
    rows, granted = at(place, 0)
    census = [({}, _written(as_budgets(at(place, one)[1]))) for one in range(3)]
    budgets = with_everybody(as_budgets(granted), census)
    assert sum(budgets.public_sizes().values()) == N > len(rows)
    settings = SynthesisSettings(goal="both", noise_seed=1)
    forced: list[Integers] = []

    def sums_of(table: pd.DataFrame) -> tuple[list[NDArray[np.float64]], Synthesis]:
        run = Synthesis(
            InMemory(table, budgets, SCHEMA),
            Cells(SCHEMA),
            "sick",
            settings,
            Neighbours.ADD_OR_REMOVE,
        )
        ear, drawn = Ear(forced), {}
        for number in range(1, len(run.events) + 1):
            drawn[number] = run.draw(number, drawn, ear)
        return ear.sums, run

    before, run = sums_of(rows)
    assert [stage.name for stage in run.stages.drawn][1] == "scores"
    reached = 0.0
    for who in range(0, 60, 3):
        blank = rows.astype(object).copy()
        blank.iloc[who] = None
        after, _ = sums_of(blank)
        group = list(run.table.groups).index(budgets.group_names[budgets.owner_group[who]])
        for stage, mine, other in zip(run.stages.drawn, before, after, strict=True):
            moved = float(np.linalg.norm(mine - other))
            mu = float(np.sqrt(stage.event.mu_squared[group]))
            assert moved <= mu * (1 + 1e-6), stage.name
            reached = max(reached, moved / mu)
    assert reached > 0.9

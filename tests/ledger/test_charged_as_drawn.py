"""Whoever is drawn for is charged: in every way to learn with a ledger, of very many different budgets.

Groups that a ledger reserved for must be those that are charged: of budgets with several δ, it keeps a few
more than are otherwise worked with.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import collegium as cg
from collegium.cli.query_session import SessionProgress, session_of
from collegium.dpsgd.run import DPSGDRun
from collegium.ledger.places import Place
from collegium.noise.grid import GRID
from collegium.pate.pipeline import PateRun
from collegium.personalisation.bins import MOST_BUDGETS
from collegium.runs.observer import Observer
from collegium.study.query_table import Rows
from collegium.weighted_sums.weighing import Weighing

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
N = 2000
NAMES = [f"p{number}" for number in range(N)]
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(N + 100, 2))
Y = np.where(X[:, 0] > 0, "yes", "no")
DELTAS = np.full(500, 1e-5)
DELTAS[[499, 480, 470]] = 1e-6, 1e-7, 1e-8
LEVELS = {
    f"l{number}": cg.Budget(epsilon, delta)
    for number, (epsilon, delta) in enumerate(zip(np.linspace(0.5, 3, 500), DELTAS, strict=True))
}
BUDGETS = cg.Budgets(LEVELS, np.arange(N) % len(LEVELS), NAMES)


def statistics(ledger, monkeypatch):
    """Ask two questions. Returns what was drawn for each person, in μ², by weights and noise alone."""
    drawn, real = np.zeros(N), Weighing.caps

    def caps(weighing, batch, width):
        found = real(weighing, batch, width)
        drawn[:] += (found * GRID / weighing.scale) ** 2
        return found

    monkeypatch.setattr(Weighing, "caps", caps)
    schema = cg.Schema({"a": {"kind": "number", "bounds": [-4, 4]}})
    with cg.Statistics(pd.DataFrame({"a": X[:N, 0]}), BUDGETS, schema=schema, ledger=ledger) as ask:
        ask.count("a > 0")
        ask.count("a < 1")
    return drawn


def votes(ledger, monkeypatch):
    """Release labels; as :func:`statistics`, by the weights of everybody's teachers."""
    kept, real = [], PateRun.release

    def release(run, votes):
        kept[:] = [run, real(run, votes)]
        return kept[1]

    monkeypatch.setattr(PateRun, "release", release)
    model = cg.PATEClassifier(
        GaussianNB(), student=GaussianNB(), n_teachers=20, aggregator=cg.GNMax(sigma=12.0),
        personalisation="hybrid", queries=cg.Queries(max_labels=3), classes=["no", "yes"], random_state=0,
    )  # fmt: skip
    model.fit(X[:N], Y[:N], budgets=BUDGETS, X_public=X[N:], ledger=ledger)
    run, released = kept
    teachers = run.plan.assign(run.records.budgets, str(run.recipe.seed).encode()).owner_teachers
    drawn = np.zeros(N)
    for outcome in released.labels.outcomes:
        ballot = run.electorate.ballot(outcome.position)
        weights = np.append(ballot.weights, 0.0)  # of no teacher, which is -1
        drawn += 2 * (weights[teachers].sum(axis=1) / ballot.scale / run.aggregator.sigma) ** 2
    return drawn


def direct(ledger, monkeypatch):
    """Take three steps; as :func:`statistics`, by everybody's clip and the noise."""
    kept, real = [], DPSGDRun.summands

    def summands(run):
        kept.append(run)
        return real(run)

    monkeypatch.setattr(DPSGDRun, "summands", summands)
    model = cg.DPSGDClassifier(steps=3, classes=["no", "yes"])
    model.fit(X[:N], Y[:N], budgets=BUDGETS, ledger=ledger)
    (run,) = kept
    return 3 * (run.terms.clips[run._group_of_owner()] / run.plan.noise) ** 2


@pytest.mark.parametrize("release", [statistics, votes, direct])
def test_everybody_is_charged_what_was_drawn_for_them(release, tmp_path, monkeypatch):
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    drawn = release(ledger, monkeypatch)
    (settled,) = (one for one in ledger.history() if one.kind == "settle")
    assert len(settled.body["costs"]) > MOST_BUDGETS  # otherwise nobody would put groups together
    accounts = ledger.accounts_of(NAMES)
    charged = np.array([one.standing.spent.mu_squared for one in accounts])
    assert drawn.min() > 0
    assert (drawn <= charged * (1 + 1e-9)).all()
    assert (charged <= 1.01 * drawn).mean() > 0.5  # it is this release's, and not much more


def test_a_plan_of_questions_has_the_groups_that_are_charged(tmp_path):
    cg.Ledger.create(tmp_path / "people.ledger")
    settings = {
        "schema": cg.Schema({"a": {"kind": "number", "bounds": [-4, 4]}}), "spend": 0.1, "questions": 1,
        "noise": "auto", "neighbours": None, "noise_seed": None, "name": "questions",
    }  # fmt: skip
    rows = Rows(pd.DataFrame({"a": X[:N, 0]}), BUDGETS)
    place = Place(str(tmp_path / "people.ledger"), is_asked_for=True)
    planned, asked = (
        session_of(
            rows,
            SessionProgress(None, place),
            settings,
            Observer(),
            allow_new_people=False,
            only_plans=only,
        )
        for only in (True, False)
    )
    assert list(planned.left().index) == list(asked.left().index)
    assert len(asked.left()) > MOST_BUDGETS
    assert planned.noise == asked.noise == "gaussian"

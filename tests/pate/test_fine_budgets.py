"""Nearly everybody with a budget of their own, from fit to the ledger, the screen and the report."""

import io
import warnings

import numpy as np
import pytest
from rich.console import Console
from sklearn.linear_model import LogisticRegression

import collegium as cg
from collegium import GNMax, Hybrid
from collegium.accounting import gdp_mu
from collegium.accounting.neighbours import Arrangement
from collegium.accounting.promises import Promise
from collegium.cli.blocks import rich_table
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.ledger import Lifetime
from collegium.personalisation.bins import MOST_BUDGETS, few_budgets
from collegium.report.plans import plan_table
from collegium.runs.records import Records
from collegium.study.methods.votes.vote_budgets import electorate_of

N = 230


@pytest.fixture(scope="module")
def people():
    """Features, classes, public features; owners and an ε for each, all different."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(N + 60, 3))
    y = (X[:, 0] > 0).astype(int)
    epsilon = np.round(np.exp(draw.normal(0.5, 0.6, N)), 5)
    assert len(np.unique(epsilon)) > MOST_BUDGETS
    return X[:N], y[:N], X[N:], [f"p{i}" for i in range(N)], epsilon


def models():
    student = LogisticRegression()
    return [
        cg.PATEClassifier(
            teacher=LogisticRegression(), student=student, n_teachers=12, classes=[0, 1],
            personalisation="hybrid", aggregator=GNMax(sigma=12.0),
        ),
        cg.DPSGDClassifier(steps=5, classes=[0, 1]),
    ]  # fmt: skip


def fitted(model, people, **more):
    X, y, X_public, owners, epsilon = people
    budgets = cg.Budgets.from_epsilons(epsilon, owners=owners)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X, y, budgets=budgets, X_public=X_public, **more)
    return model, budgets, [str(one.message) for one in told]


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_an_estimator_keeps_everybodys_own_budget_in_few_groups(model, people):
    model, budgets, told = fitted(model, people)
    assert any(f"{budgets.n_owners} different budgets were put into" in line for line in told)
    table = model.privacy_.by_group()
    assert len(table) <= MOST_BUDGETS
    assert table["owners"].sum() == N
    assert (table["epsilon_spent"] <= table["epsilon"]).all()
    assert table["epsilon_spent"].min() > 0
    # Which groups there are follows from all budgets, so groups' sizes are not all that neighbours share.
    made_of = (
        "how many owners granted each budget (from which groups are made) is public and the same"
    )
    assert made_of in model.privacy_.adjacency
    # Groups are of neighbours in ε: so many people have at least so much.
    own = np.sort(people[4])
    given = np.sort(np.repeat(table["epsilon"], table["owners"]))
    assert (given <= own).all()
    assert (given > 0.2 * own).all()
    assert len(model.privacy_.sentences()) < 30
    assert len(str(model.privacy_).splitlines()) < 20
    if isinstance(model, cg.DPSGDClassifier):
        assert dict(model.plan_.groups) == dict(model.plan(budgets).groups)


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_a_ledger_charges_everybody_and_nobody_beyond_their_own_budget(model, people, tmp_path):
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    model, budgets, _ = fitted(model, people, ledger=ledger)
    left = ledger.left(budgets)
    assert (left.share < 1).all()
    assert (left.share >= 0).all()
    paid = dict(model.privacy_.by_group()["epsilon_spent"])
    assert min(paid.values()) > 0
    assert len(paid) <= MOST_BUDGETS
    standings = {standing.budget: standing for standing in ledger.standings()}
    assert len(standings) == N
    for budget in budgets.groups.values():
        standing = standings[budget]
        assert standing.limit == Lifetime().limit(budget)
        assert standing.limit.allows(standing.spent)
        assert 0 < standing.spent.mu_squared <= gdp_mu(budget.epsilon, budget.delta) ** 2


@pytest.mark.parametrize("on_ledger", [False, True])
def test_a_dpsgd_has_the_groups_that_its_ledger_has(people, on_ledger):
    X, y, X_public, owners, epsilon = people
    budgets = cg.Budgets.from_epsilons(epsilon, owners=owners)
    about = Arrangement(promise=Promise.GAUSSIAN if on_ledger else Promise.EITHER)
    records = Records(X, y, budgets, np.array([0, 1]), X_public, arrangement=about)
    plan = DPSGDRun(DPSGDRecipe(DPSGDSettings(steps=5)), records).plan
    assert len(plan.groups) == (N if on_ledger else MOST_BUDGETS)


def test_a_plan_of_many_groups_is_a_table_of_ten(people):
    budgets = few_budgets(cg.Budgets.from_epsilons(people[4]))
    plan = Hybrid().plan_for(budgets, 12)
    assert len(plan.groups) == len(budgets.groups) > 100
    assert plan.efficiency <= budgets.kept < 1
    table = plan_table(plan)
    assert len(table.rows) == 10
    screen = Console(file=io.StringIO(), width=200)
    screen.print(rich_table(table))
    assert f"10 of {len(plan.groups)} groups" in " ".join(screen.file.getvalue().split())


def test_teachers_of_somebody_else_are_not_pooled():
    with pytest.raises(InputError, match="hybrid decides who learns from whom"):
        electorate_of(None, None, Hybrid(), 0)

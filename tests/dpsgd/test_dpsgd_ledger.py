"""Direct training with a ledger: whatever else was released, nobody pays more than was granted."""

import math
import warnings

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import collegium as cg
from collegium import CollegiumError, Ledger
from collegium.accounting import Neighbours, gdp_epsilon
from collegium.accounting.export import Use
from collegium.dpsgd.ledgered import DPSGDSpending
from collegium.dpsgd.run import DPSGDRun
from collegium.errors import BudgetExceededError, InputError, LedgerError, LedgerWarning
from collegium.ledger import Cost, Lifetime

POLICY = cg.Policy({"high": 1.0, "low": 3.0})
N = 240
GENERATOR = np.random.default_rng(3)
Y = np.array(["no", "yes"])[GENERATOR.integers(0, 2, N + 80)]
X = GENERATOR.normal(size=(N + 80, 3)) + 2.0 * (Y == "yes")[:, None]
X_PUBLIC, X, Y = X[N:], X[:N], Y[:N]
NAMES = np.array([f"p{number}" for number in range(N)])
LEVELS = np.where(np.arange(N) % 4 == 0, "high", "low")


def classifier(**settings):
    return cg.DPSGDClassifier(**{"steps": 10, "classes": ["no", "yes"], **settings})


def fit(ledger, model=None, chosen=slice(None), policy=POLICY, **given):
    model = classifier() if model is None else model
    budgets = policy.assign(LEVELS[chosen], owners=NAMES[chosen])
    if isinstance(model, cg.PATEClassifier):
        given["X_public"] = X_PUBLIC
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X[chosen], Y[chosen], budgets=budgets, ledger=ledger, spend=1.0, **given)


def pate(**settings):
    return cg.PATEClassifier(
        GaussianNB(),
        n_teachers=20,
        aggregator=cg.GNMax(sigma=8),
        classes=["no", "yes"],
        random_state=0,
        **settings,
    )


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "people.ledger")


def spent(ledger):
    return {one.level: one.epsilon_spent for one in ledger.standings()}


def recounted(ledger):
    """Add what events cost each level in μ², as they are entered: ε at 1e-5, by nothing of the ledger."""
    totals = {"high": 0.0, "low": 0.0}
    for entry in ledger.history():
        if entry.kind != "settle":
            continue
        opened = next(
            one
            for one in ledger.history()
            if one.kind == "reserve" and one.body["release"] == entry.body["release"]
        )
        sizes = [part[0] for part in opened.body["parts"]]
        for uses, size in zip(entry.body["events"], sizes, strict=True):
            mu_squared = 0.0
            for use in uses:
                event = Use.from_json(use, Neighbours.ADD_OR_REMOVE)
                mu_squared += event.count * event.noise_multiplier**-2
            level = "high" if size == N // 4 else "low"
            totals[level] += mu_squared
    delta = (1e-5 - 1e-7) / (1 - 1e-7)  # beside what is set aside, used or not
    return {level: float(gdp_epsilon(math.sqrt(total), delta)) for level, total in totals.items()}


@pytest.mark.parametrize("first", ["PATE", "direct"])
def test_two_releases_together_cost_nobody_more_than_was_granted(ledger, first):
    if first == "PATE":
        fit(ledger, pate(queries=cg.Queries(max_labels=5)))
    else:
        fit(ledger, on_step=lambda progress: progress.step == 4)
    after_one = spent(ledger)
    second = fit(ledger)
    together = spent(ledger)
    for level, epsilon in (("high", 1.0), ("low", 3.0)):
        assert 0 < after_one[level] < together[level] <= epsilon
        assert together[level] > 0.9 * epsilon
        assert recounted(ledger)[level] == pytest.approx(together[level], rel=1e-6)
    assert all("/10 left" in group for group in second.privacy_.by_group().index)
    assert "What a group grants here is at most" in str(second.privacy_)
    with pytest.raises(BudgetExceededError, match="no budget is left in the ledger"):
        fit(ledger)
    methods = [
        entry.body["about"]["method"] for entry in ledger.history() if entry.kind == "reserve"
    ]
    assert methods == (["PATE"] if first == "PATE" else ["direct training"]) + ["direct training"]


def test_direct_training_leaves_what_it_does_not_use_to_votes(ledger):
    fit(ledger, on_step=lambda progress: progress.step == 2)
    later = fit(ledger, pate())
    assert len(later.labels_) > 0
    assert all(spent(ledger)[level] <= epsilon for level, epsilon in (("high", 1), ("low", 3)))


def test_what_is_entered_is_what_was_drawn(ledger):
    model = fit(ledger, on_step=lambda progress: progress.step == 7)
    event = model.plan_.event(7)
    entered = {one.level: one.spent.mu_squared for one in ledger.standings()}
    assert list(entered.values()) == pytest.approx(event.mu_squared.tolist(), rel=1e-12)
    granted = {name: Lifetime().limit(budget).mu_squared for name, budget in POLICY.levels.items()}
    assert entered["low"] == pytest.approx(0.7 * granted["low"], rel=1e-6)


def test_everything_is_reserved_before_the_first_step_and_a_lost_program_keeps_it(
    ledger, monkeypatch
):
    class CrashError(BaseException):
        pass

    def crash(progress):
        assert all(one.epsilon_spent > 0.99 * one.budget.epsilon for one in ledger.standings())
        raise CrashError

    def lost(self, account):
        raise LedgerError("nobody is there to settle it")

    monkeypatch.setattr(DPSGDSpending, "settle", lost)
    with pytest.raises(CrashError):
        fit(ledger, on_step=crash)
    assert not any(entry.kind == "settle" for entry in ledger.history())
    with pytest.raises(BudgetExceededError):
        fit(ledger)
    assert min(one.epsilon_spent / one.budget.epsilon for one in ledger.standings()) > 0.99


def test_what_was_not_drawn_is_given_back(ledger, monkeypatch):
    def crash(self):
        assert all(one.epsilon_spent > 0.99 * one.budget.epsilon for one in ledger.standings())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DPSGDRun, "summands", crash)
        with pytest.raises(KeyboardInterrupt):
            fit(ledger)
    assert spent(ledger) == {"high": 0.0, "low": 0.0}
    fit(ledger)
    assert spent(ledger)["low"] > 2.9


def test_a_ledger_that_cannot_be_written_keeps_what_was_reserved(ledger, monkeypatch):
    def refuse(self, *given):
        raise LedgerError("out of reach")

    model = classifier()
    with monkeypatch.context() as patch:
        patch.setattr("collegium.ledger.ledger.Reservation.settle", refuse)
        budgets = POLICY.assign(LEVELS, owners=NAMES)
        with pytest.warns(LedgerWarning, match="keeps all that was reserved"):
            model.fit(
                X, Y, budgets=budgets, ledger=ledger, spend=1.0, on_step=lambda p: p.step == 2
            )
    assert model.steps_taken_ == 2 and hasattr(model, "model_")
    assert spent(ledger)["low"] > 2.9


def test_who_has_little_left_has_little_say_and_who_has_nothing_takes_no_part(ledger):
    some = np.arange(140)
    fit(ledger, chosen=some, on_step=lambda progress: progress.step == 5)
    plan = classifier().plan(POLICY.assign(LEVELS, owners=NAMES), ledger=ledger, spend=1.0)
    assert plan.groups["low"].clip > plan.groups["low, 5/10 left"].clip
    assert plan.groups["low, 5/10 left"].owners == 105
    model = fit(ledger)
    assert model.plan_ == plan
    with pytest.raises(BudgetExceededError):
        fit(ledger, chosen=some)


def test_who_lowered_a_budget_or_left_is_held_to_that(ledger):
    fit(ledger, on_step=lambda progress: progress.step == 2)
    lowered = cg.Policy({"high": 0.6, "low": 2.0})
    ledger.change(lowered.assign(LEVELS, owners=NAMES))
    with pytest.raises(CollegiumError):  # the ledger knows other budgets
        fit(ledger)
    fit(ledger, policy=lowered)
    assert all(one.epsilon_spent <= one.budget.epsilon for one in ledger.standings())
    assert {one.budget.epsilon for one in ledger.standings()} == {0.6, 2.0}


def test_a_ledger_that_promises_any_change_gets_twice_the_noise(tmp_path):
    ledger = Ledger.create(tmp_path / "any.ledger", neighbours=Neighbours.ANY_CHANGE)
    model = fit(ledger)
    usual = classifier().plan(POLICY.assign(LEVELS, owners=NAMES))
    assert model.plan_.neighbours is Neighbours.ANY_CHANGE
    assert model.plan_.noise == pytest.approx(2 * usual.noise, rel=0.01)
    assert "replaced or blanked" in model.privacy_.adjacency
    with pytest.raises(InputError, match="leave neighbours out, or give 'replace-one'"):
        fit(ledger, classifier(neighbours="zero-out"))


def test_samples_cost_a_mu_and_a_delta_0_that_add_up(ledger):
    pytest.importorskip("dp_accounting")
    fit(ledger, on_step=lambda progress: progress.step == 3)
    before = spent(ledger)
    model = fit(ledger, classifier(sampling=cg.Sampling("scale", 0.9, accountant="rdp"), steps=20))
    plan = model.plan_
    assert {name.split(",")[1] for name in plan.groups} == {" 7/10 left"}
    for one in ledger.standings():
        (group,) = (name for name in plan.groups if name.startswith(one.level))
        cohort = list(plan.groups).index(group)
        delta_0 = 0.7 * one.limit.delta_0
        assert 0.99 * delta_0 < one.spent.delta_0 <= delta_0
        bound = plan.event().bound(cohort, one.spent.delta_0)
        steps = one.spent.mu_squared - 0.3 * one.limit.mu_squared
        assert steps == pytest.approx(bound.mu**2, rel=1e-3)
        assert 0 < plan.groups[group].utilisation <= 1
        assert before[one.level] < one.epsilon_spent <= one.budget.epsilon
        assert one.limit.allows(one.spent)


def test_a_ledger_of_pure_epsilon_refuses_it_before_anything_is_planned(tmp_path, monkeypatch):
    monkeypatch.setattr(DPSGDRun, "__init__", None)
    pure = Ledger.create(tmp_path / "pure.ledger", promise="pure")
    with pytest.raises(InputError, match=r"promises pure ε .*; direct training has Gaussian noise"):
        fit(pure)
    assert len(pure.history()) == 1


def test_what_no_ledger_can_count_is_refused_before_anything_is_reserved(ledger):
    for model, said in (
        (classifier(noise_seed=1), "leave noise_seed out"),
        (classifier(classes=None), "classes are missing"),
    ):
        with pytest.raises(InputError, match=said):
            fit(ledger, model)
    with pytest.raises(CollegiumError, match=r"named|owners"):
        classifier().fit(X, Y, budgets=POLICY.assign(LEVELS), ledger=ledger, spend=1.0)
    assert not ledger.standings()


def test_a_regressor_pays_in_the_same_way(ledger):
    y = X[:, 0]
    budgets = POLICY.assign(LEVELS, owners=NAMES)
    cg.DPSGDRegressor(bounds=(-2, 4), steps=5).fit(X, y, budgets=budgets, ledger=ledger, spend=1.0)
    assert 2.9 < spent(ledger)["low"] <= 3.0


def test_costs_are_those_of_the_event(ledger):
    plan = classifier().plan(POLICY.assign(LEVELS, owners=NAMES), ledger=ledger, spend=1.0)
    costs = Cost.of_event(plan.event())
    for cost, (name, group) in zip(costs, plan.groups.items(), strict=True):
        mu = 10**0.5 * group.clip / plan.noise
        assert cost.mu_squared == pytest.approx(mu**2, rel=1e-9)
        assert cost.mu_squared <= Lifetime().limit(POLICY.levels[name]).mu_squared


@pytest.mark.parametrize("at", [1, 3])
def test_a_callback_that_fails_costs_what_was_drawn_and_not_the_rest(tmp_path, at):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    budgets = cg.Policy({"all": 1.0}).assign(["all"] * 40, owners=[f"p{i}" for i in range(40)])
    ledger = cg.Ledger.create(f"sqlite:///{tmp_path}/people.ledger", tmp_path / "key")
    model = cg.DPSGDClassifier(classes=[0, 1], steps=6)

    def fails(progress):
        if progress.step == at:
            raise ZeroDivisionError

    with pytest.raises(InputError, match="on_step must be a function"):
        model.fit(X, y, budgets=budgets, ledger=ledger, spend=1.0, on_step=5)
    with pytest.raises(InputError, match="ledger must be a collegium"):
        model.fit(X, y, budgets=budgets, ledger="people.ledger")
    with pytest.raises(ZeroDivisionError):
        model.fit(X, y, budgets=budgets, ledger=ledger, spend=1.0, on_step=fails)
    left = ledger.left(budgets).share
    assert left == pytest.approx(1 - at / 6, abs=1e-6)


@pytest.mark.parametrize("name", ["clip_norm", "learning_rate"])
@pytest.mark.parametrize("size", [np.inf, 1e9])
def test_sizes_that_are_slips_of_the_pen_are_refused(name, size):
    with pytest.raises(InputError, match=name):
        cg.DPSGDClassifier(**{name: size}).plan(1.0, n_records=100)


@pytest.mark.parametrize("bounds", [(-1e308, 1e308), (0, 1e200), (0, 1e-320)])
def test_bounds_of_targets_are_of_a_size_that_can_be_computed_with(bounds):
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40.0)
    with pytest.raises(InputError, match="apart"):
        cg.DPSGDRegressor(bounds=bounds).fit(X, y, budgets=1.0)
    for other in (y.astype("datetime64[s]"), y + 1j):
        with pytest.raises(InputError, match="one column of numbers"):
            cg.DPSGDRegressor(bounds=(0, 40)).fit(X, other, budgets=1.0)


@pytest.mark.parametrize("make", [classifier, pate], ids=["direct", "PATE"])
def test_a_fit_takes_half_of_what_is_left_unless_it_is_told_another_share(tmp_path, make):
    """One fit took everything that people grant for all their life."""
    budgets = POLICY.assign(LEVELS, owners=NAMES)
    given = {"X_public": X_PUBLIC} if make is pate else {}
    left = []
    ledger = cg.Ledger.create(tmp_path / "people.ledger")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for spend in ({}, {}, {"spend": 0.1})[: 1 if make is pate else 3]:
            make().fit(X, Y, budgets=budgets, ledger=ledger, **spend, **given)
            left.append(float(ledger.left(budgets).share.min()))
    if make is classifier:  # what is left counts in whole tenths: of .25, that is .2
        assert left == pytest.approx([0.5, 0.25, 0.23], abs=1e-6)
    assert 0.5 <= left[0] < 0.7
    before = ledger.left(budgets).share.tolist()
    for wrong in (0, 1.5, "half"):
        with pytest.raises(InputError, match="spend"):
            make().fit(X, Y, budgets=budgets, ledger=ledger, spend=wrong, **given)
    with pytest.raises(InputError, match="spend is a share of what people have left"):
        make().fit(X, Y, budgets=budgets, spend=0.5, **given)
    assert ledger.left(budgets).share.tolist() == before

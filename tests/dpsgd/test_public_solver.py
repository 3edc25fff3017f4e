"""Models that are solved for by way of public records: what is found, and what is refused."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

import collegium as cg
from collegium.budgets import Budgets
from collegium.dpsgd.grid import noisy
from collegium.dpsgd.linear_sums import CONSTANT
from collegium.dpsgd.memory import DPSGDMemory
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.public_solver import (
    FEWEST,
    Columns,
    Look,
    PublicSolver,
    _penalties,
    can_solve,
    expected_errors,
)
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.parties.waiting import SumNotOpenedError
from collegium.runs.records import Records

WIDTH, CLIP = 20, 0.5
NO_COLUMNS = Columns()
TRUTH = np.random.default_rng(1).normal(size=WIDTH) * 3


def rows_of(n, seed, shift=0.0):
    rows = np.random.default_rng(seed).normal(size=(n, WIDTH)) + shift
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def labels_of(rows, seed, truth=TRUTH):
    return (np.random.default_rng([seed, 1]).random(len(rows)) < expit(rows @ truth - 0.5)).astype(
        int
    )


def drawn(rows, labels, at, clip=CLIP):
    units = np.hstack([rows, np.full((len(rows), 1), CONSTANT)])
    errors = expit(units @ at) - labels
    bounds = clip / np.linalg.norm(units, axis=1)
    return units.T @ np.clip(errors, -bounds, bounds) / len(rows)


def solved(
    public,
    rows,
    labels,
    noise,
    *,
    looks=10,
    times=1.0,
    seed=0,
    clip=CLIP,
    one_each=True,
    columns=NO_COLUMNS,
):
    """The model after some looks at the private records, and what made it."""
    random = np.random.default_rng(seed)
    solver, seen = PublicSolver(public, columns, clip, one_each), []
    width = rows.shape[1] + 1
    at = np.zeros(width)
    for _ in range(looks):
        gradient = times * drawn(rows, labels, at, clip) + random.normal(0, noise, width)
        seen.append(Look(at, gradient, noise))
        at = solver.after(seen)
    return at, solver


def taught_by(rows, said, share=0.1):
    """Rows with a last column of what trees of public labels would say, between -1 and 1."""
    return np.hstack([np.sqrt(1 - share) * rows, np.sqrt(share) * said[:, None]])


def scores(at, rows):
    return rows @ at[:-1] + CONSTANT * at[-1]


# What a clipped error is on average


@pytest.mark.parametrize("clip", [0.1, 0.5, 0.9, 2.0])
def test_expected_errors_are_those_of_both_classes(clip):
    beliefs, truth = np.meshgrid(np.linspace(0.01, 0.99, 31), np.linspace(0.0, 1.0, 11))
    clips = np.full(beliefs.shape, clip)
    least, weights = expected_errors(beliefs, clips)
    of_one = np.clip(beliefs - 1, -clip, clip)
    of_none = np.clip(beliefs, -clip, clip)
    assert np.allclose(least - weights * truth, truth * of_one + (1 - truth) * of_none)


@pytest.mark.parametrize("clip", [0.25, 0.5, 5.0])
def test_whatever_the_clip_the_model_is_that_of_the_records(clip):
    rows, public = rows_of(40_000, 2), rows_of(4_000, 3)
    labels = labels_of(rows, 2)
    at, _ = solved(public, rows, labels, 1e-7, clip=clip)
    wanted = LogisticRegression(C=1e5, max_iter=500).fit(rows, labels)
    test = rows_of(2_000, 4)
    off = scores(at, test) - wanted.decision_function(test)
    assert np.sqrt(np.mean(off**2)) < 0.15  # of scores whose deviation is 0.7
    assert np.std(wanted.decision_function(test)) > 0.6


def test_public_records_of_others_shape_no_more_than_the_way_there():
    rows, public = rows_of(40_000, 2), rows_of(4_000, 3, shift=0.3)
    labels = labels_of(rows, 2)
    at, _ = solved(public, rows, labels, 1e-7)
    test = rows_of(2_000, 4)
    wanted = LogisticRegression(C=1e5, max_iter=500).fit(rows, labels).decision_function(test)
    off = scores(at, test) - wanted
    assert np.sqrt(np.mean(off**2)) < 0.3


# Several kinds of models


def test_what_trees_say_is_believed_as_far_as_gradients_bear_it_out():
    """A column that tells what no other does is used; one of chance costs next to nothing."""
    rows, public, test = rows_of(20_000, 2), rows_of(2_000, 3), rows_of(5_000, 4)
    random = np.random.default_rng(6)
    hidden = [np.sign(random.normal(size=len(part))) for part in (rows, public, test)]

    def named(part, sign, seed):
        scores = part @ TRUTH - 0.5 + 2 * sign
        return (np.random.default_rng(seed).random(len(part)) < expit(scores)).astype(int)

    labels, truth = named(rows, hidden[0], 7), named(test, hidden[2], 8)
    columns = Columns(0, 1)
    for noise in (1e-4, 1e-3):
        without, _ = solved(public, rows, labels, noise)
        alone = log_loss(truth, expit(scores(without, test)))
        for told, low, high in ((1.0, -1.0, -0.1), (0.0, -0.01, 0.01)):
            said = [sign if told else np.sign(random.normal(size=len(sign))) for sign in hidden]
            parts = [taught_by(*one) for one in zip((rows, public, test), said, strict=True)]
            at, _ = solved(parts[1], parts[0], labels, noise, columns=columns)
            more = log_loss(truth, expit(scores(at, parts[2]))) - alone
            assert low < more < high, (noise, told)


def test_columns_of_0_and_1_that_only_drown_the_others_are_left_out():
    """Many cells say nothing: with noise, models without them are right more often."""
    random = np.random.default_rng(9)
    n_cells = 300

    def with_cells(part):
        cells = random.normal(size=(len(part), n_cells))
        cells /= np.linalg.norm(cells, axis=1, keepdims=True)
        return np.hstack([cells, part]) * np.sqrt(0.5)

    rows, public, test = rows_of(20_000, 2), rows_of(2_000, 3), rows_of(5_000, 4)
    labels, truth = labels_of(rows, 2), labels_of(test, 4)
    parts = [with_cells(part) for part in (rows, public, test)]
    found = []
    for columns in (Columns(n_cells), Columns()):
        at, _ = solved(parts[1], parts[0], labels, 2e-3, columns=columns)
        found.append(log_loss(truth, expit(scores(at, parts[2]))))
    assert found[0] < found[1] - 0.005


def test_what_is_left_out_has_no_weight():
    columns = Columns(cells=3, taught=2)
    squares, absolute = _penalties(9, columns)
    assert squares.shape == absolute.shape == (9, 18)
    free = [6, 7, 8]  # taught, and the constant
    assert (squares[free] == 0).all() and (squares[:6] > 0).all()
    left_out = np.isinf(absolute)
    assert not left_out[:, :6].any() and not left_out[-1].any()
    assert (left_out[:, 6:12].any(axis=1) == (np.arange(9) < 3)).all()
    assert (left_out[:, 12:].any(axis=1) == np.isin(np.arange(9), [6, 7])).all()
    assert _penalties(9, Columns())[0].shape == (9, 6)
    assert _penalties(9, Columns(cells=8))[0].shape == (9, 6)  # nothing would be left


# Noise


def test_noise_alone_makes_no_scores():
    rows, public = rows_of(2_000, 2), rows_of(1_000, 3)
    labels = np.random.default_rng(5).integers(0, 2, len(rows))
    for seed in range(5):
        at, _ = solved(public, rows, labels, 0.05, seed=seed)
        assert np.std(scores(at, public)) < 0.5


def test_no_worse_than_no_model_however_loud_the_noise():
    rows, public = rows_of(5_000, 2), rows_of(1_000, 3)
    labels, test = labels_of(rows, 2), rows_of(5_000, 4)
    truth = labels_of(test, 4)
    nothing = log_loss(truth, np.full(len(truth), truth.mean()))
    for noise, most in ((1e-4, 0.98), (1e-3, 0.99), (1e-2, 1.02), (1e-1, 1.1)):
        found = [
            log_loss(truth, expit(scores(solved(public, rows, labels, noise, seed=seed)[0], test)))
            for seed in range(4)
        ]
        assert np.mean(found) < most * nothing, noise


def test_the_noise_that_is_left_is_told():
    rows, public = rows_of(20_000, 2), rows_of(2_000, 3)
    labels = labels_of(rows, 2)
    models = [solved(public, rows, labels, 2e-4, seed=seed) for seed in range(8)]
    found = np.array([scores(at, public) for at, _ in models])
    spread = np.sqrt(np.mean(found.var(axis=0, ddof=1)))
    told = np.mean([solver.noise_left for _, solver in models])
    assert 0.5 < told / spread < 2


def test_whatever_ends_a_run_what_it_returns_is_the_model(monkeypatch):
    def model_of(run, learnt):
        return run.solver.ended(learnt.state, run._noise_of_gradient).parameters.tobytes()

    run = run_of()
    early = run.descend(run.summands(), WIDTH + 1, stop=lambda state: state.step >= 6)
    assert len(early.state.looks) == 1 and early.state.parameters.any()
    assert early.state.parameters.tobytes() == model_of(run, early)

    def lost(total, noise, source, *, step):
        if step >= 57:
            raise SumNotOpenedError("a sum was not opened")
        return noisy(total, noise, source, step=step)

    monkeypatch.setattr("collegium.dpsgd.run.noisy", lost)
    memory = TakesUp()
    run = run_of(memory=memory)
    learnt = run.learn()
    assert learnt.state.step == 60 and learnt.state.counts.sum() == 57
    assert learnt.state.parameters.tobytes() == model_of(run, learnt)
    assert memory.states[-1].parameters.tobytes() != learnt.state.parameters.tobytes()
    again = run_of(memory=memory)
    assert again.learn().state.parameters.tobytes() == learnt.state.parameters.tobytes()


# Scale


@pytest.mark.parametrize("times", [0.7, 1.0, 2.0, 4.0])
def test_how_large_gradients_are_is_found(times):
    rows, public = rows_of(20_000, 2), rows_of(2_000, 3)
    labels = labels_of(rows, 2)
    at, solver = solved(public, rows, labels, 1e-5 * times, times=times, one_each=False)
    assert solver.scale == pytest.approx(times, rel=0.15)
    plain, _ = solved(public, rows, labels, 1e-5)
    assert np.corrcoef(scores(at, public), scores(plain, public))[0, 1] > 0.99
    assert np.std(scores(at, public)) == pytest.approx(np.std(scores(plain, public)), rel=0.15)


@pytest.mark.parametrize("noise", [1e-3, 1e-2, 1e-1])
def test_where_noise_hides_the_scale_it_is_one(noise):
    rows, public = rows_of(3_000, 2), rows_of(1_000, 3)
    labels = labels_of(rows, 2)
    for seed in range(4):
        _, solver = solved(public, rows, labels, noise, seed=seed, one_each=False)
        assert 0.5 <= solver.scale <= 1.7


# Hard records


def test_rare_classes_are_found():
    rows, test = rows_of(20_000, 2), rows_of(20_000, 4)
    of_some = [np.random.default_rng([s, 1]).random(20_000) for s in (2, 4)]
    labels, truth = (
        (draws < expit(some @ TRUTH - 6.2)).astype(int)
        for draws, some in zip(of_some, (rows, test), strict=True)
    )
    assert labels.mean() < 0.01
    at, _ = solved(rows_of(4_000, 3), rows, labels, 1e-6)
    best = roc_auc_score(truth, test @ TRUTH)
    assert roc_auc_score(truth, scores(at, test)) > best - 0.03


def test_public_records_that_are_all_alike_tell_nothing():
    alike = np.repeat(rows_of(50, 3), 20, axis=0)
    assert not can_solve(2, alike) and can_solve(2, rows_of(1_000, 3))
    assert not can_solve(None, rows_of(1_000, 3)) and not can_solve(2, None)


def test_no_warning_of_numpy_reaches_a_caller():
    rows, public = rows_of(2_000, 2), rows_of(600, 3)
    with np.errstate(all="raise"):
        solved(public, rows, labels_of(rows, 2), 0.05)


# In a run


def run_of(n=3_000, n_public=FEWEST, epsilon=1.0, classes=2, memory=None, recipe=None, **settings):
    rows = rows_of(n, 2)
    labels = labels_of(rows, 2)
    records = Records(
        X=rows,
        codes=labels.astype(np.intp),
        budgets=Budgets.from_epsilons(np.full(n, epsilon)),
        classes=np.arange(classes),
        X_public=rows_of(n_public, 3),
    )
    given = DPSGDRecipe(DPSGDSettings(**settings), None, noise_seed=1)
    return DPSGDRun(replace(given, **(recipe or {})), records, memory)


def test_it_is_the_default_where_it_can_be_used():
    assert run_of().solver is not None
    assert run_of(epsilon=0.03, solver="public").solver is not None
    for other in (
        {"n_public": FEWEST - 1},
        {"epsilon": 0.03},
        {"classes": 3},
        {"learning_rate": 1.0},
        {"individual_filter": 1.5},
        {"solver": "momentum"},
        {"recipe": {"start": np.zeros((WIDTH + 1, 1))}},
    ):
        assert run_of(**other).solver is None, other


def test_where_it_cannot_be_used_it_is_refused_by_name():
    for other in ({"n_public": FEWEST - 1}, {"classes": 3}):
        with pytest.raises(InputError, match=r"at least 500 public records.*leave solver out"):
            run_of(solver="public", **other)  # while nothing is spent
    with pytest.raises(InputError, match=r"learning_rate = 2 .*solver 'momentum'"):
        DPSGDSettings(solver="public", learning_rate=2.0)
    with pytest.raises(InputError, match=r"individual_filter = 1\.5 .*solver 'momentum'"):
        DPSGDSettings(solver="public", individual_filter=1.5)
    with pytest.raises(InputError, match="solver"):
        DPSGDSettings(solver="newton")


def test_the_account_is_that_of_the_steps_whatever_comes_of_them():
    by_solver, by_steps = run_of(), run_of(solver="momentum")
    one, other = by_solver.learn(), by_steps.learn()
    assert one.privacy == other.privacy
    assert one.account.steps == other.account.steps == 60


def test_gradients_are_drawn_at_ten_models():
    run = run_of()
    seen = []
    run.descend(
        run.summands(),
        WIDTH + 1,
        stop=lambda state: seen.append(state.parameters.tobytes()) or False,
    )
    assert len(set(seen)) == 11  # and the start
    few = run_of(steps=4).learn().state
    assert few.step == 4 and few.looks.shape == (4, 2, WIDTH + 1)
    whole = run_of(steps=25).learn().state
    assert whole.counts.sum() == 25 and len(whole.counts) == 10


class Kept(DPSGDMemory):
    """Keeps states as a study does, and forgets all else."""

    stride = 1

    def __init__(self):
        self.states, self.last = [], 0

    @contextlib.contextmanager
    def descending(self):
        yield lambda: self.charged() >= self.last

    def charged(self):
        return self.states[-1].step if self.states else 0

    def state(self):
        return self.states[-1] if self.states else None

    def keep(self, state):
        self.states.append(state)


class TakesUp(Kept):
    """Goes on after a sum that was not opened, as between parties."""

    takes_up = True

    @contextlib.contextmanager
    def descending(self):
        yield lambda: False


@pytest.mark.parametrize("steps", [7, 23])
def test_what_is_cut_off_goes_on_with_the_same_bits(steps):
    whole = run_of(steps=steps).learn().state
    memory = Kept()
    for memory.last in (1, 3, 4, steps):
        run_of(steps=steps, memory=memory).learn()
        assert memory.states[-1].step == memory.last
    assert memory.states[-1].parameters.tobytes() == whole.parameters.tobytes()
    again = run_of(steps=steps, memory=memory)
    again.learn()
    assert again.noise_left == run_of_noise(steps)


def test_another_run_makes_the_same_model_of_what_was_learnt():
    targets = labels_of(rows_of(FEWEST, 3), 3).astype(float)
    given = {"public_targets": targets}
    one, other = (run_of(recipe=given) for _ in range(2))
    learnt, public = one.learn(), rows_of(50, 9)

    def made_by(run):
        return run.model(learnt).predict_proba(public).tobytes()

    assert made_by(other) == made_by(one)
    assert other.noise_left == one.noise_left != run_of().noise_left
    # What a run saw before is not taken for what led to this.
    fresh, used = (run_of(epsilon=2.0, recipe=given) for _ in range(2))
    used.learn()
    assert made_by(used) == made_by(fresh)


def run_of_noise(steps):
    run = run_of(steps=steps)
    run.learn()
    return run.noise_left


def test_whoever_stops_between_two_models_has_all_that_was_drawn():
    run = run_of()
    learnt = run.descend(run.summands(), WIDTH + 1, stop=lambda state: state.step >= 4)
    assert learnt.state.step == 4 and np.abs(learnt.state.parameters).max() > 0


def test_parameters_that_are_not_its_own_stay_as_they_are():
    solver = PublicSolver(rows_of(600, 3), Columns(), CLIP)
    state = State.at(np.zeros((WIDTH + 4, 1)))
    gradient = np.random.default_rng(0).normal(size=(WIDTH + 4, 1))
    for _ in range(3):
        state = solver.stepped(state, gradient, 3, 0.01)
    assert (state.parameters[WIDTH + 1 :] == 0).all() and (state.parameters[:WIDTH] != 0).any()


def test_better_than_steps_along_gradients():
    rows, public, test = rows_of(6_000, 2), rows_of(2_000, 3), rows_of(4_000, 4)
    labels, truth = labels_of(rows, 2), labels_of(test, 4)
    found = {}
    for solver in ("public", "momentum"):
        losses = []
        for seed in (1, 2, 3):
            records = Records(
                X=rows,
                codes=labels.astype(np.intp),
                budgets=Budgets.from_epsilons(np.ones(len(rows))),
                classes=np.arange(2),
                X_public=public,
            )
            run = DPSGDRun(
                DPSGDRecipe(DPSGDSettings(solver=solver), None, noise_seed=seed), records
            )
            losses.append(log_loss(truth, run.model(run.learn()).predict_proba(test)[:, 1]))
        found[solver] = np.mean(losses)
    assert found["public"] < found["momentum"]


def test_people_of_several_records():
    rows = rows_of(9_000, 2)
    labels, test = labels_of(rows, 2), rows_of(3_000, 4)
    budgets = Budgets.from_epsilons(np.full(len(rows), 2.0), owners=np.arange(len(rows)) // 3)
    model = cg.DPSGDClassifier(classes=[0, 1], preprocessing=None, noise_seed=3)
    model.fit(rows, labels, budgets=budgets, X_public=rows_of(1_000, 3))
    truth = labels_of(test, 4)
    best = log_loss(truth, expit(test @ TRUTH - 0.5))
    assert log_loss(truth, model.predict_proba(test)[:, 1]) < best + 0.03

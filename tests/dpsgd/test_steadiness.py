"""A learning rate that is too large is told from public and released numbers, and nothing else is."""

import warnings

import numpy as np
import pytest

import collegium as cg
from collegium.dpsgd.losses import CrossEntropy
from collegium.dpsgd.optimiser import State
from collegium.dpsgd.settings import DPSGDSettings
from collegium.dpsgd.steadiness import Steadiness
from collegium.errors import StudentWarning

GENERATOR = np.random.default_rng(1)
N = 1500
TWO = CrossEntropy(2)
Y = GENERATOR.integers(0, 2, N)
X = GENERATOR.normal(size=(N, 6)) + 0.7 * Y[:, None]


def told(budgets=1.0, **settings):
    """What was said of the learning rate, by the estimator."""
    model = cg.DPSGDClassifier(classes=[0, 1], noise_seed=1, **settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y, budgets=budgets)
    said = [str(one.message) for one in caught if issubclass(one.category, StudentWarning)]
    assert all("\n" not in line for line in said)
    return [line for line in said if "learning_rate" in line]


@pytest.mark.parametrize("budgets", [0.03, 30.0])
def test_the_rule_and_small_steps_are_never_complained_of(budgets):
    assert told(budgets) == []
    assert told(budgets, momentum=0.0, learning_rate=0.1) == []


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_that_jump_from_side_to_side_are_told(momentum):
    (line,) = told(100.0, momentum=momentum, learning_rate=300.0)
    assert line.startswith("learning_rate = 300 is too large: to the last, steps jumped")


@pytest.mark.parametrize("sampled", [True, False])
def test_samples_that_differ_are_no_jumps(sampled):
    """Gradients that are new in each step turn by twice their square: as those of fresh samples do."""
    more = {"sampling": cg.Sampling("sample", 0.02, accountant="rdp")} if sampled else {}
    plan = cg.DPSGDClassifier(steps=40, **more).plan(5.0, n_records=N)
    steadiness, parameters = (
        Steadiness(DPSGDSettings(steps=40, momentum=0.0), plan, TWO),
        np.zeros((3, 1)),
    )
    generator = np.random.default_rng(3)
    for step in range(40):
        gradient = generator.normal(size=(3, 1))
        parameters = parameters - 10 * gradient
        steadiness.look(State(step + 1, parameters, gradient))
    assert bool(steadiness.complaint(10.0)) is not sampled


def test_more_noise_than_signal_is_told_before_anything_is_drawn():
    (line,) = told(0.03, learning_rate=30.0)
    assert "times as large as the noise allows" in line


def test_numbers_that_run_away_are_noticed():
    steadiness = Steadiness(
        DPSGDSettings(steps=20), cg.DPSGDClassifier().plan(5.0, n_records=N), TWO
    )
    gone = np.full((3, 1), np.inf)
    assert steadiness.look(State(1, gone, gone)) and steadiness.is_lost
    assert "no number any more" in steadiness.complaint(1e6)


def test_private_records_say_nothing_where_nothing_is_released():
    """Two data sets, and what was released forced to be the same: the same is said of both."""
    settings = DPSGDSettings(steps=20, momentum=0.5)
    plan = cg.DPSGDClassifier(steps=20).plan(5.0, n_records=N)
    said = []
    for _ in range(2):
        steadiness, velocity = Steadiness(settings, plan, TWO), np.zeros((3, 1))
        for step in range(20):
            velocity = 0.5 * velocity + (-1) ** step * np.ones((3, 1))
            steadiness.look(State(step + 1, velocity, velocity))
        said.append(steadiness.complaint(1.0))
    assert said[0] == said[1] and "jumped" in said[0]


def test_false_alarms_of_noise_alone_are_rare():
    """Where nothing is released but noise, 1,000 runs are not complained of once.

    ``signal`` is then normal around 0 with a standard deviation of √(2/(K·d)) ≤ 0.24 of the noise, for K = 10
    steps and d = 3: 4 times the noise is beyond 16 of them.
    """
    settings = DPSGDSettings(steps=20, momentum=0.9)
    plan = cg.DPSGDClassifier(steps=20).plan(5.0, n_records=N)
    deviation = plan.noise * settings.clip_norm / plan.divisor
    generator = np.random.default_rng(2)
    for _ in range(1000):
        steadiness, velocity = Steadiness(settings, plan, TWO), np.zeros((3, 1))
        for step in range(20):
            velocity = 0.9 * velocity + deviation * generator.normal(size=(3, 1))
            steadiness.look(State(step + 1, velocity, velocity))
        assert not steadiness.complaint(1.0)

"""Step sizes by rule: so much noise in a score, and less where there are more features than signal."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import collegium as cg
from collegium.dpsgd import run
from collegium.dpsgd.by_rule import by_noise, learning_rate, n_components, noise_of, signal
from collegium.dpsgd.losses import CrossEntropy, SquaredError
from collegium.dpsgd.settings import DPSGDSettings

SETTINGS = DPSGDSettings(steps=30)
N = 2000


@pytest.fixture(scope="module")
def fitted():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(N, 6))).rename(columns="c{}".format)
    public = pd.DataFrame(random.normal(size=(300, 6))).rename(columns="c{}".format)
    model = cg.DPSGDClassifier(steps=30, classes=[0, 1], noise_seed=1)
    y = (X["c0"] > 0).astype(int)
    return model.fit(X, y, budgets=0.3, X_public=public)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_as_many_features_as_there_is_signal_for_leave_the_noise_that_is_allowed(fitted, n_classes):
    loss, plan = CrossEntropy(n_classes), fitted.plan_
    enough = n_components(signal(plan), n_classes, of_kernel=True)
    usual = by_noise(SETTINGS, plan, loss)
    assert noise_of(SETTINGS, plan, usual) == pytest.approx(0.75 * loss.unit)
    for few in (1, enough // 2, enough):
        assert by_noise(SETTINGS, plan, loss, few) == usual
    power = math.sqrt(min(1.0, signal(plan) / (1000 * n_classes))) / 2
    for times in (4, 25):
        found = by_noise(SETTINGS, plan, loss, times * enough)
        assert found == pytest.approx(usual / times**power)
        assert noise_of(SETTINGS, plan, found) == pytest.approx(0.75 * loss.unit / times**power)


def test_much_signal_stops_at_the_root_of_how_many_more_features_there_are(fitted):
    plan = replace(fitted.plan_, noise=fitted.plan_.noise / 1e4)
    enough = n_components(signal(plan), 2, of_kernel=True)
    usual = by_noise(SETTINGS, plan, CrossEntropy(2))
    assert by_noise(SETTINGS, plan, CrossEntropy(2), 9 * enough) == pytest.approx(usual / 3)


def test_steps_of_numbers_do_not_depend_on_how_many_features_there_are(fitted):
    loss, plan = SquaredError(), fitted.plan_
    assert by_noise(SETTINGS, plan, loss, 10**6) == by_noise(SETTINGS, plan, loss)
    assert noise_of(SETTINGS, plan, by_noise(SETTINGS, plan, loss)) == pytest.approx(0.75 / 9)


def test_a_step_is_never_larger_than_is_stable_nor_other_than_asked_for(fitted):
    loss, plan = CrossEntropy(2), fitted.plan_
    enough = n_components(signal(plan), 2, of_kernel=True)
    steep = 1e3
    stable = (1 + SETTINGS.momentum) / (loss.bend * steep)
    assert learning_rate(SETTINGS, plan, loss, steep, enough) == pytest.approx(stable)
    small = learning_rate(SETTINGS, plan, loss, 1e-3, 10**60)
    assert small == by_noise(SETTINGS, plan, loss, 10**60) < stable
    asked = DPSGDSettings(steps=30, learning_rate=3.0)
    assert learning_rate(asked, plan, loss, steep, 10**60) == 3.0


def test_components_of_a_kernel_grow_faster_beyond_200_for_each_class():
    assert [n_components(s, 2) for s in (2, 50, 400, 3200)] == [2, 10, 28, 80]
    assert [n_components(s, 2, of_kernel=True) for s in (2, 50, 400, 3200)] == [2, 10, 28, 160]


def test_a_fit_counts_the_features_that_its_model_has(fitted, monkeypatch):
    taken = []
    monkeypatch.setattr(run, "learning_rate", lambda *told: taken.append(told) or 1.0)
    X, y = (pd.DataFrame({"a": np.arange(N) % 7, "b": np.arange(N) % 11}), np.arange(N) % 2)
    again = clone(fitted).fit(X, y, budgets=0.3, X_public=X.iloc[:300])
    (_, plan, loss, _, width) = taken[0]
    assert width == len(again.preprocessing_.get_feature_names_out())
    assert by_noise(SETTINGS, plan, loss, width) < by_noise(SETTINGS, plan, loss)

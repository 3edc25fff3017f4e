"""How many components a model looks at, from public numbers: more of a kernel, where there is much signal."""

import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from collegium import Budgets
from collegium.dpsgd.by_rule import n_components, signal, with_components
from collegium.dpsgd.run import planned
from collegium.dpsgd.settings import DPSGDSettings
from collegium.features import ImagePoints, KernelComponents, PublicComponents


@pytest.mark.parametrize("of_kernel", [False, True])
def test_small_signals_make_the_root_of_what_there_is(of_kernel):
    for found in (5.0, 300.0, 2000.0):
        assert n_components(found, 10, of_kernel=of_kernel) == round(math.sqrt(10 * found))


def test_a_kernel_gets_more_where_there_is_much_and_nothing_else_does():
    found = [n_components(one, 10, of_kernel=True) for one in (2000, 5380, 16083, 43147)]
    assert found == sorted(found)
    assert found[2] == 803
    assert n_components(16083, 10) == 401


def test_a_view_gets_as_many_as_the_rule_says_and_no_more_than_it_makes():
    settings = DPSGDSettings()
    plan = planned(settings, Budgets.from_epsilons(np.full(20_000, 1.0)), None, None)
    wanted = n_components(signal(plan), 10, of_kernel=True)
    view = make_pipeline(ImagePoints(), KernelComponents(800))
    assert with_components(view, settings, plan, 9_000, 10)[-1].n_components == wanted
    plain = with_components(PublicComponents(800), settings, plan, 9_000, 10)
    assert plain.n_components == n_components(signal(plan), 10) < wanted
    few = with_components(KernelComponents(50), settings, plan, 9_000, 10)
    assert few.n_components == 50

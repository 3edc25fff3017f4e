"""Public functions with nonsense in place of each argument: a refusal in one line, or an answer, and soon."""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import collegium as cg
from collegium import CollegiumError
from collegium import accounting as ac
from collegium import mechanisms as me

SECONDS = 60  # a call that takes longer hangs, on a busy machine, too

NOISE = me.SeededNoise(1)
EVENT = ac.Gaussian([1.0], scale=40.0)
FRAME = pd.DataFrame({"a": [0.1, 0.2, 0.9]})
SCHEMA = cg.Schema({"a": {"kind": "number", "bounds": [0, 1]}})
with warnings.catch_warnings():
    warnings.simplefilter("ignore", cg.PrivacyWarning)
    ASK = cg.Statistics(FRAME, cg.Budget(1e6), schema=SCHEMA, noise_seed=1)

#: No number, no array of numbers, no name, and nothing else that any argument below may be.
NONSENSE: dict[str, Any] = {
    "text": "x",
    "nothing": object(),
    "nan": math.nan,
    "imaginary": 1j,
    "huge": 10**400,
    "dictionary": {"a": 1},
    "sparse": sp.csr_matrix((2, 2)),
    "objects": np.array([object(), "a"], dtype=object),
    "cube": np.zeros((2, 2, 2)),
    "letters": np.array(["a", "b"]),
    "function": len,
    "nans": np.array([math.nan, 1.0]),
    "ragged": [[1], [1, 2]],
}
#: May be something somewhere, or else is refused.
EDGES: dict[str, Any] = {
    "none": None,
    "empty": [],
    "empty text": "",
    "true": True,
    "zero": 0,
    "negative": -1,
    "infinite": math.inf,
    "minus infinite": -math.inf,
    "tiny": 5e-324,
    "large": 1e308,
    "many": 10**9,
    "half": 0.5,
    "no array": np.zeros(0),
    "table": np.zeros((2, 2)),
    "bytes": b"x",
    "long": "x" * 5000,
    "zero letter": "a\0b",
    "set": {1, 2},
}

#: What is called, and what it takes. A frame, budgets and a policy are made where they are needed.
BUDGETS = cg.Budgets.from_epsilons([1.0, 2.0, 2.0])
SCORES = {"scores": [1.0, 2.0], "sensitivity": [1.0, 0.5], "scale": 1.0, "noise": None}
COMPOSED: dict[str, Any] = {"epsilons": [0.1], "deltas": 0.0, "counts": [2]}
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Budget": (cg.Budget, {"epsilon": 1.0, "delta": 1e-5}),
    "Policy": (cg.Policy, {"levels": {"a": 1.0}, "delta": 1e-5, "public": []}),
    "assign": (
        cg.Policy({"a": 1.0}).assign,
        {"levels": ["a", "a"], "owners": [1, 2], "sizes": {"a": 2}},
    ),
    "Budgets": (
        cg.Budgets,
        {"groups": {"a": cg.Budget(1.0)}, "record_groups": [0, 0], "owners": [1, 2]},
    ),
    "from_epsilons": (cg.Budgets.from_epsilons, {"epsilons": [1.0], "delta": 1e-5, "owners": [1]}),
    "GNMax": (cg.GNMax, {"sigma": 10.0, "answers": None}),
    "LNMax": (cg.LNMax, {"gamma": 0.1}),
    "ConfidentGNMax": (cg.ConfidentGNMax, {"threshold": 2, "sigma_threshold": 3, "sigma": 4}),
    "predictions": (
        cg.VoteTable.from_predictions,
        {"predictions": [[0, 1], [1, 1]], "n_classes": 2},
    ),
    "counts": (cg.VoteTable.from_counts, {"counts": [[3, 1], [1, 4]]}),
    "Gaussian": (ac.Gaussian, {"sensitivity": [1.0], "scale": 40.0, "coordinates": 1}),
    "GaussianArgMax": (ac.GaussianArgMax, {"sensitivity": [1.0], "scale": 40.0, "coordinates": 2}),
    "Laplace": (ac.Laplace, {"sensitivity": [1.0], "inverse_scale": 0.1, "coordinates": 1}),
    "PureNoise": (ac.PureNoise, {"epsilon": [1.0]}),
    "BoundedRange": (ac.BoundedRange, {"eta": [1.0]}),
    "PoissonGaussian": (ac.PoissonGaussian, {"rate": [0.1], "noise_multiplier": [1.0], "steps": 3}),
    "Composition": (ac.Composition, {"events": [EVENT], "counts": [2]}),
    "GaussianAccountant": (
        ac.GaussianAccountant,
        {"epsilon": [1.0], "delta": 1e-5, "names": ["a"]},
    ),
    "PureAccountant": (ac.PureAccountant, {"epsilon": [1.0], "names": ["a"]}),
    "RenyiAccountant": (ac.RenyiAccountant, {"epsilon": [1.0], "delta": 1e-5, "orders": [2.0]}),
    "charge": (ac.GaussianAccountant([1.0], 1e-5).charge, {"cost": EVENT}),
    "basic": (ac.basic_composition, COMPOSED),
    "advanced": (ac.advanced_composition, {**COMPOSED, "slack": 1e-5, "form": "kairouz"}),
    "optimal": (ac.optimal_composition, {**COMPOSED, "slack": 1e-5}),
    "bounded_range": (ac.bounded_range_composition, {"eta": 0.1, "count": 3, "delta": 1e-5}),
    "zcdp": (ac.zcdp_epsilon, {"rho": 0.5, "delta": 1e-5, "conversion": "canonne"}),
    "group_privacy": (ac.group_privacy, {"size": 2, "epsilon": 0.1, "delta": 1e-5}),
    "group of mu": (ac.group_privacy, {"size": 2, "mu": 0.1}),
    "compare": (ac.compare, {"events": EVENT, "delta": 1e-5, "cohort": 0, "group": 1}),
    "gaussian_rdp": (ac.gaussian_rdp, {"sensitivity": 1.0, "sigma": 2.0, "orders": [2.0, 3.0]}),
    "gdp_delta": (ac.gdp_delta, {"mu": 1.0, "epsilon": 1.0}),
    "gdp_log_delta": (ac.gdp_log_delta, {"mu": 1.0, "epsilon": 1.0}),
    "gdp_epsilon": (ac.gdp_epsilon, {"mu": 1.0, "delta": 1e-5}),
    "gdp_mu": (ac.gdp_mu, {"epsilon": 1.0, "delta": 1e-5}),
    "pure_to_gdp": (ac.pure_to_gdp, {"epsilon0": 1.0}),
    "rdp_to_epsilon": (ac.rdp_to_epsilon, {"rdp": [1.0, 2.0], "orders": [2.0, 3.0], "delta": 1e-5}),
    "GaussianBound": (ac.GaussianBound, {"mu": 1.0, "delta_0": 0.0}),
    "gaussian_bound": (ac.gaussian_bound, {"noise_multiplier": 1.0, "steps": 2}),
    "laplace_bound": (ac.laplace_bound, {"noise_multiplier": 0.5}),
    "pure_bound": (ac.pure_bound, {"epsilon": 0.5}),
    "poisson_bound": (
        ac.poisson_gaussian_bound,
        {"rate": 0.1, "noise_multiplier": 20.0, "steps": 3, "delta_0": 1e-7},
    ),
    "event_of_words": (ac.event_of_words, {"words": "gaussian(40)"}),
    "gaussian": (me.gaussian, {"value": 1.0, "sensitivity": 1.0, "sigma": 2.0, "noise": None}),
    "laplace": (me.laplace, {"value": 1.0, "sensitivity": 1.0, "scale": 2.0, "noise": None}),
    "gaussian_sigma": (me.gaussian_sigma, {"epsilon": 1.0, "delta": 1e-5, "sensitivity": 1.0}),
    "above_threshold": (
        me.above_threshold,
        {
            "values": [1.0, 5.0],
            "threshold": 2.0,
            "sensitivity": [1.0],
            "threshold_scale": 1.0,
            "value_scale": 2.0,
            "most": 1,
            "noise": None,
        },
    ),
    "exponential": (me.exponential, SCORES),
    "permute_and_flip": (me.permute_and_flip, SCORES),
    "report_noisy_max": (me.report_noisy_max, SCORES),
    "choose": (me.choose, {"scores": [1, 2], "unit": 0.5, "draws": 2}),
    "count_distances": (me.count_distances, {"has_it": [True, False], "epsilons": [1.0, 2.0]}),
    "median_distances": (
        me.median_distances,
        {"values": [1.0, 2.0], "epsilons": [1.0, 2.0], "candidates": [1.0]},
    ),
    "personalised": (
        me.personalised_exponential,
        {"distances": [0.0, 1.0], "epsilons": [1.0, 2.0]},
    ),
    "privacy_aware": (me.privacy_aware, {"epsilons": [1.0, 2.0], "n_parts": 2, "least": 1}),
    "randomised_response": (
        me.randomised_response,
        {"answers": [0, 1], "epsilons": [1.0, 2.0], "n_answers": 2},
    ),
    "response_shares": (
        me.response_shares,
        {"reports": [0, 1], "epsilons": [1.0, 2.0], "n_answers": 2},
    ),
    "sample": (me.sample, {"budgets": BUDGETS, "threshold": 1.5}),
    "sampled_count": (
        me.sampled_count,
        {"has_it": [True, False], "epsilons": [1.0, 2.0], "threshold": 1.5},
    ),
    "stretching": (
        me.stretching,
        {"values": [1.0, 2.0], "epsilons": [1.0, 2.0], "lower": 0.0, "upper": 3.0},
    ),
    "wasted": (me.wasted, {"epsilons": [1.0, 2.0], "part": [0, 1]}),
    "weighted_quantile": (
        me.weighted_quantile,
        {"values": [1.0, 2.0], "weights": [0.1, 0.2], "candidates": [1.0, 2.0], "q": 0.5},
    ),
    "Account": (cg.Account, {"guarantee": "worst-case", "delta": 1e-5, "orders": "wide"}),
    "Queries": (cg.Queries, {"max_queries": 3, "max_labels": 2, "release": "labels"}),
    "Sampling": (cg.Sampling, {"kind": "poisson", "rate": 0.1}),
    "Upsampling": (cg.Upsampling, {"max_duplicates": 6, "tolerance": 0.02, "precision": 2}),
    "Schema": (
        cg.Schema,
        {"columns": {"a": {"kind": "number", "bounds": [0, 1]}}, "rows_per_owner": 1},
    ),
    "Statistics": (
        cg.Statistics,
        {
            "frame": FRAME,
            "budgets": cg.Budget(1.0),
            "schema": SCHEMA,
            "spend": 0.5,
            "questions": 2,
            "confidence": 0.95,
            "delta": 1e-5,
            "noise_seed": 1,
        },
    ),
    "Ledger": (cg.Ledger, {"place": "people.ledger", "key": None}),
    "count": (ASK.count, {"where": "a > 0.5"}),
    "mean": (ASK.mean, {"column": "a", "where": None}),
    "quantile": (ASK.quantile, {"column": "a", "level": 0.5}),
    "ask": (ASK.ask, {"question": "mean a"}),
    "recommend": (
        cg.recommend,
        {
            "budgets": 1.0,
            "X_public": np.zeros((0, 0)),
            "classes": [0, 1],
            "delta": 1e-5,
            "n_records": 100,
            "goal": "accuracy",
            "neighbours": "zero-out",
        },
    ),
    "DPSGDClassifier": (
        cg.DPSGDClassifier(steps=1, noise_seed=1).fit,
        {"X": np.eye(4), "y": [0, 1, 0, 1], "budgets": 1.0},
    ),
    "PATEClassifier": (
        cg.PATEClassifier(n_teachers=2, noise_seed=1).fit,
        {"X": np.zeros((0, 1)), "y": [0, 1, 0, 1], "budgets": 1.0, "X_public": np.eye(4)},
    ),
    "plan_dpsgd": (
        cg.plan_dpsgd,
        {"groups": {"a": cg.Budget(1.0)}, "sizes": {"a": 50}, "steps": 2},
    ),
}


class Hang(BaseException):
    pass


def outcome(call: Callable[..., Any], given: dict[str, Any]) -> str:
    """What becomes of a call: refused, answered, or the name of what it raises."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        call(**given)
    except CollegiumError as error:
        return "refused" if "\n" not in str(error) else "refused in several lines"
    except (Exception, Hang) as error:
        return f"{type(error).__name__}: {error}"[:100]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return "answered"


#: Names, or arrays in any shape, may be such things; a level, or a size, may be called "a".
SENSIBLE = {
    ("assign", "owners"): {"objects", "letters", "ragged"},
    ("Budgets", "owners"): {"objects", "letters", "ragged"},
    ("Policy", "levels"): {"dictionary"},
    ("assign", "sizes"): {"dictionary"},
    ("plan_dpsgd", "sizes"): {"dictionary"},
    ("gaussian_rdp", "sensitivity"): {"cube"},
    ("gdp_epsilon", "mu"): {"cube"},
    ("gdp_mu", "epsilon"): {"cube"},
    ("rdp_to_epsilon", "rdp"): {"cube"},
}
#: What takes seconds, and may.
SLOW = {
    ("poisson_bound", "noise_multiplier", "true"),
    ("poisson_bound", "noise_multiplier", "half"),
}
CASES = [
    (name, argument, word)
    for name, (_, given) in CALLS.items()
    for argument in given
    for word in (*NONSENSE, *EDGES)
    if (name, argument, word) not in SLOW
]
SAMPLED = 800  # of some 5,000, by the seed below


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm")
def test_nonsense_is_refused_in_one_line_or_answered_and_soon():
    """33 of 682 calls raised something else, hung, or took nonsense for a number."""
    chosen = np.random.default_rng(25).choice(len(CASES), SAMPLED, replace=False)
    wrong = {}
    for name, argument, word in (CASES[place] for place in chosen.tolist()):
        call, given = CALLS[name]
        value = NONSENSE[word] if word in NONSENSE else EDGES[word]
        found = outcome(call, {**given, argument: value})
        is_sensible = word in EDGES or word in SENSIBLE.get((name, argument), ())
        if found != "refused" and not (found == "answered" and is_sensible):
            wrong[name, argument, word] = found
    assert not wrong


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("poisson_bound", {"noise_multiplier": 0.01, "steps": 100_000, "rate": 1e-9}),
        ("poisson_bound", {"noise_multiplier": 1.0, "steps": 10**9}),
        ("Ledger", {"place": "x" * 5000}),
        ("gaussian", {"sensitivity": 10**400}),
        ("gaussian", {"value": 10**400}),
        ("mean", {"column": []}),
        ("Statistics", {"delta": math.nan}),
        ("recommend", {"n_records": "x"}),
        ("recommend", {"n_records": 10**9}),
        ("group_privacy", {"size": 10**30}),
        ("compare", {"group": 10**20}),
        ("choose", {"draws": 10**9}),
    ],
)
def test_what_was_not_refused_is(name, given):
    call, usual = CALLS[name]
    assert outcome(call, {**usual, **given}) == "refused"


@pytest.mark.parametrize("words", ["gaussian(1e300)", "laplace(1e300)", "gaussian(1e-300)",
                                   "exponential(1e300)", "1000000000 x laplace(0.1)"])  # fmt: skip
@pytest.mark.parametrize("group", [1, 10**9])
def test_extreme_amounts_are_compared_where_a_formula_can(words, group):
    assert outcome(lambda: ac.compare(ac.event_of_words(words), 1e-5, group=group), {}) in (
        "answered",
        "refused",
    )


def test_equal_events_are_counted_and_not_composed_one_by_one():
    """2,000 of them took minutes."""
    event = ac.event_of_words("gaussian(400)")
    start = time.process_time()
    one_by_one = ac.compare([event] * 2000, 1e-5)
    assert time.process_time() - start < SECONDS
    counted = ac.compare(ac.Composition([event], [2000]), 1e-5)
    assert [row.epsilon for row in one_by_one] == [row.epsilon for row in counted]

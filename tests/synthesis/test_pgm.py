"""Marginals fitted by mbi: beside brute force, beside our own fit, and where no tree has room for them."""

import copy
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from collegium import Policy, Schema, Synthesizer
from collegium.data.cells import Cells
from collegium.errors import InputError
from collegium.synthesis import pgm, run
from collegium.synthesis.coarsening import Coarsening
from collegium.synthesis.junction_tree import JunctionTree, cells_needed
from collegium.synthesis.max_entropy import Marginal, fit
from collegium.synthesis.model import TableModel
from collegium.synthesis.pgm import refit
from collegium.synthesis.rules import rules_of
from collegium.synthesis.tables_of_marginals import marginals_table

NAMES = ("a", "b", "c")
SIZES = (3, 4, 2)
SCHEMA = Schema(
    {
        name: {
            "kind": "category",
            "categories": [f"{name}{n}" for n in range(size)],
            "missing": False,
        }
        for name, size in zip(NAMES, SIZES, strict=True)
    }
)
LOOP = [(0, 1), (1, 2), (0, 2)]


@pytest.fixture
def mbi():
    return pytest.importorskip("mbi", reason="mbi is not installed (400 MB, most of it JAX)")


def summed(table, columns):
    return table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in columns))


def noisy(seed=0, pairs=LOOP):
    """Pairs of a random table, with noise by which they contradict one another, unlike from cell to cell."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(int(np.prod(SIZES)), 1.0)).reshape(SIZES)
    found = []
    for pair in pairs:
        sd = rng.uniform(0.005, 0.03, [SIZES[one] for one in pair])
        found.append(Marginal(pair, summed(table, pair) + sd * rng.normal(size=sd.shape), sd))
    return found


def measured(marginals, constraints=()):
    """A synthesizer of which this was released, and whose own fit is that of independent columns."""
    cells = Cells(SCHEMA)
    rules = rules_of(constraints, cells)
    coarse = tuple(Coarsening.none(size) for size in SIZES)
    made = Synthesizer(SCHEMA, random_state=0)
    made._take(TableModel(cells, coarse, (), (), tuple(marginals), rules, 1000))
    return made


def joint(synthesizer):
    """All shares of the distribution that rows are drawn from, by brute force."""
    model = synthesizer._model
    logs = np.zeros(model.sizes)
    for factor, theta in zip(model.factors, model.thetas, strict=True):
        logs = logs + theta.reshape(
            [size if one in factor else 1 for one, size in enumerate(model.sizes)]
        )
    shares = np.exp(logs - logs.max())
    shares = shares / shares.sum()
    return shares.sum(axis=-1) if model.hidden else shares


def misfit(table, marginals):
    """Squares of what is missed, in standard deviations."""
    return 0.5 * sum(
        (((summed(table, one.columns) - one.shares) / one.sd) ** 2).sum() for one in marginals
    )


def least_misfit(marginals, possible):
    """The nearest table there is, over all combinations of cells, each by itself."""

    def of(logits):
        shares = np.where(possible.ravel(), np.exp(logits - logits.max()), 0)
        table = (shares / shares.sum()).reshape(SIZES)
        slope = np.zeros(SIZES)
        for one in marginals:
            missed = (summed(table, one.columns) - one.shares) / one.sd**2
            slope += missed.reshape(
                [size if axis in one.columns else 1 for axis, size in enumerate(SIZES)]
            )
        gradient = (table * (slope - (table * slope).sum())).ravel()
        return misfit(table, marginals), gradient

    return min(
        minimize(
            of,
            np.random.default_rng(start).normal(size=np.prod(SIZES)),
            jac=True,
            options={"maxiter": 5000, "gtol": 1e-8},
        ).fun
        for start in range(3)
    )


@pytest.mark.parametrize("components", [None, 60])
def test_no_table_is_nearer_to_what_was_released(mbi, components):
    marginals = noisy()
    found = joint(refit(measured(marginals), components=components, iterations=3000))
    least = least_misfit(marginals, np.ones(SIZES, dtype=bool))
    assert 0.5 < least <= misfit(found, marginals) + 1e-6
    assert misfit(found, marginals) == pytest.approx(least, abs=2e-3 if components is None else 0.1)


def test_without_softness_it_is_our_own_fit(mbi):
    """Ours in the limit of no penalty is mbi's: of the nearest tables, that of largest entropy."""
    marginals = noisy(1)
    beliefs, thetas = fit(JunctionTree.of(SIZES, LOOP), marginals, softness=1e-3)
    made = measured(marginals)
    ours = copy.copy(made)
    ours._take(replace(made._model, factors=beliefs.factors, thetas=tuple(thetas)))
    found = refit(made, iterations=3000)
    assert joint(found) == pytest.approx(joint(ours), abs=2e-3)
    assert found.marginals_["standard_error"].to_numpy() == pytest.approx(
        ours.marginals_["standard_error"].to_numpy()
    )


def test_what_cannot_be_is_part_of_the_fit_of_a_graphical_model(mbi):
    marginals = noisy(2)
    made = refit(measured(marginals, ["a != 'a0' or b == 'b0'"]), iterations=3000)
    found = joint(made)
    possible = np.ones(SIZES, dtype=bool)
    possible[0, 1:] = False
    assert not found[~possible].any()
    assert misfit(found, marginals) == pytest.approx(least_misfit(marginals, possible), rel=0.02)
    rows = made.sample(500)
    assert (rows.b[rows.a == "a0"] == "b0").all()


def test_constraints_hold_in_a_mixture(mbi):
    made = refit(measured(noisy(2), ["a != 'a0' or b == 'b0'"]), components=20, iterations=50)
    rows = made.sample(2000)
    assert (rows.a == "a0").any() and (rows.b[rows.a == "a0"] == "b0").all()
    assert list(rows) == list(NAMES)
    some = made.sample(50, where="c == 'c1' and a == 'a2'")
    assert set(some.c) == {"c1"} and set(some.a) == {"a2"}


@pytest.mark.parametrize("components", [None, 20])
def test_of_a_column_that_a_crash_took_nothing_is_known(mbi, components):
    made = refit(measured(noisy(3, [(0, 1)])), components=components, iterations=500)
    assert summed(joint(made), (2,)) == pytest.approx([0.5, 0.5])
    assert joint(refit(measured([]), components=components)) == pytest.approx(1 / 24)


# --------------------------------------------------------------------- fitted to people


LOOPING = [f"x{n}" for n in range(6)]
WIDE = Schema(
    {
        **{
            name: {"kind": "category", "categories": list("pqrst"), "missing": False}
            for name in LOOPING
        },
        "sick": {"kind": "flag", "missing": False},
    }
)


def people(n=6_000, seed=0):
    """Each column tells of the next, and the last one of the first, so that no tree has them all."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 5, (n, len(LOOPING)))
    common = rng.integers(0, 5, n)
    for place in range(len(LOOPING)):
        codes[:, place] = np.where(rng.random(n) < 0.6, (common + place) % 5, codes[:, place])
    frame = pd.DataFrame(np.array(list("pqrst"))[codes], columns=LOOPING)
    frame["sick"] = rng.random(n) < 0.1 + 0.15 * common
    frame["level"] = rng.choice(["low", "high"], n)
    return frame


@pytest.fixture
def fitted(monkeypatch):
    """A structure of 15 pairs, of which a tree of 800 cells has room for some."""
    monkeypatch.setattr(run, "MOST_GIVEN_CELLS", 800)
    monkeypatch.setattr(pgm, "MOST_GIVEN_CELLS", 800)
    made = Synthesizer(
        WIDE, "sick", "both", list(combinations(LOOPING, 2)), noise_seed=0, random_state=0
    )
    return made.fit(people(), Policy({"low": 2.0, "high": 6.0}), privacy="level")


def apart(rows, pairs):
    """Total variation between rows and the people, mean of the pairs."""
    real, found = people(), []
    for pair in pairs:
        shares = [
            pd.crosstab(*(one[name] for name in pair), normalize=True) for one in (rows, real)
        ]
        found.append(float((shares[0] - shares[1]).abs().to_numpy().sum() / 2))
    return np.mean(found)


def test_what_a_tree_has_no_room_for_is_measured_and_said(fitted):
    followed, model = fitted._model.followed, fitted._model
    assert 6 + 5 < len(followed) < len(model.marginals) == len(fitted.measured_) == 6 + 15
    factors = [one.columns for one in followed]
    assert cells_needed(model.sizes, factors) <= 800
    (note,) = fitted.notes_
    left = [one.columns for one in model.marginals if one.columns not in factors]
    named = "; ".join(", ".join(LOOPING[one] for one in columns) for columns in left)
    assert f"Measured, and not fitted: {named}. " in note and "collegium.synthesis.pgm" in note
    # Error bars are those of what was fitted, and owe nothing to what was not.
    alone = marginals_table(replace(model, marginals=followed))
    pd.testing.assert_frame_equal(fitted.marginals_, alone)


def test_marginals_that_no_tree_has_room_for_are_followed(mbi, fitted, tmp_path):
    """From the file of the release alone, where neither people nor their budgets are; saved as any other."""
    held = {one.columns for one in fitted._model.followed}
    pairs = {
        kept: [
            tuple(LOOPING[one] for one in marginal.columns)
            for marginal in fitted._model.marginals
            if (marginal.columns in held) == kept and 6 not in marginal.columns
        ]
        for kept in (True, False)
    }
    assert len(pairs[False]) >= 3
    fitted.save(tmp_path / "released.json")
    found = refit(Synthesizer.load(tmp_path / "released.json"))
    assert found._model.hidden == pgm.MIXED
    rows, ours = found.sample(20_000, random_state=1), fitted.sample(20_000)
    assert apart(ours, pairs[False]) > 0.1 and apart(rows, pairs[False]) < 0.05
    assert apart(rows, pairs[True]) < 0.05
    found.save(tmp_path / "mixed.json")
    again = Synthesizer.load(tmp_path / "mixed.json")
    assert again._model.hidden == pgm.MIXED and not fitted._model.hidden
    pd.testing.assert_frame_equal(again.sample(20_000, random_state=1), rows)


def test_what_is_said_of_the_release_stays(mbi, fitted):
    found = refit(fitted, components=2, iterations=50)
    assert found.privacy_ is fitted.privacy_ and found.heard_ is fitted.heard_
    assert found.measured_ == fitted.measured_ and found.n_rows_ == fitted.n_rows_
    assert found._model is not fitted._model and fitted._model.hidden == 0


def test_settings_of_jax_stay_as_they_are(mbi):
    import jax

    before = jax.config.jax_enable_x64
    made = refit(measured(noisy()), iterations=50)
    assert made._model.thetas[0].dtype == np.float64
    assert jax.config.jax_enable_x64 == before


# --------------------------------------------------------------------- refused


@pytest.mark.parametrize("module", ["jax", "mbi"])
def test_without_it_there_is_one_line(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'collegium\[pgm\]'"):
        refit(measured(noisy()))


@pytest.mark.parametrize("older", ["1.1.0", "0.9"])
def test_an_older_one_is_not_enough(older, monkeypatch):
    """Other packages bring 1.1, which has other names."""
    monkeypatch.setattr(pgm, "version", lambda _: older)
    with pytest.raises(InputError, match="version 2 or later, is not installed"):
        refit(measured(noisy()))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: refit(Synthesizer(SCHEMA)), "nothing is fitted yet"),
        (lambda: refit(SCHEMA), "synthesizer must be"),
        (lambda: refit(measured(noisy()), iterations=0), "iterations must be"),
        (lambda: refit(measured(noisy()), components=0), "components must be"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(given, said):
    with pytest.raises(InputError, match=said) as caught:
        given()
    assert "\n" not in str(caught.value)

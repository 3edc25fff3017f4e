"""Membership inference with shadow runs: the same pipeline, fitted again and again on random halves.

What is attacked is given as a function: who is in, and the number of the run, to what an attacker sees of the
release about each person. Every run has noise of its own. Each run is attacked once, with all others as its
shadows, so that 64 runs give 64 scores of everybody.

The coins are independent of one another and fair, so a person is "in or out, all others as they happen to
be": what the account of adding and removing is about. Whatever is public (group sizes, settings, classes)
must be the same in all runs; give sizes that are declared.

What a score can show about a person at known coins of all others is more; this attacker knows the population
and the pipeline, and has as much computing time as the data holder. "Not detected" means that this one found
nothing, and never that nothing is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from collegium.attacks.conjugate import KINDS, scores_by_shadows
from collegium.attacks.finite import finite_numbers
from collegium.attacks.membership import MembershipFinding, judge_membership
from collegium.attacks.people import right_guesses
from collegium.budgets import Budget
from collegium.checks import check_choice, check_whole
from collegium.errors import InputError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Release = Callable[[Flags, int], ArrayLike]
"""Who is in, of shape (n_people,), and the number of a run: what is seen of its release about each person."""

SHADOW_RUNS = 64
_FEWEST = 32
_MOST_LOGIT = 50.0


@dataclass(frozen=True, eq=False)
class ShadowAttack:
    """What was seen of all runs.

    ``seen`` (n_runs, n_people). ``is_in`` (n_runs, n_people).
    """

    seen: Floats
    is_in: Flags

    def scores(self, kind: str = "conjugate") -> Floats:
        """Attack each run, with all others as its shadows. Returns (n_runs, n_people)."""
        others = [np.delete(np.arange(len(self.seen)), run) for run in range(len(self.seen))]
        return np.stack(
            [
                scores_by_shadows(self.seen[run], self.seen[rest], self.is_in[rest], kind)
                for run, rest in enumerate(others)
            ]
        )

    def judged(
        self,
        mus: Mapping[str, float],
        groups: Sequence[str] | None = None,
        budgets: Mapping[str, Budget] | None = None,
        kind: str = "conjugate",
        confidence: float = 0.95,
    ) -> tuple[MembershipFinding, ...]:
        """Hold what each group's people lost against what the account charged; as ``judge_membership``."""
        return judge_membership(
            self.scores(kind),
            self.is_in,
            mus,
            groups,
            budgets,
            confidence,
            right=right_guesses(self.seen, self.is_in),
        )


def run_shadows(
    release: Release,
    n_people: int,
    *,
    runs: int = SHADOW_RUNS,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> ShadowAttack:
    """Make all runs.

    Parameters
    ----------
    release : callable
        As the module says.
    n_people : int
        How many people there are; each is in about half of the runs.
    runs : int, default=64
        At least 32.
    seed : int, default=0
        Of the coins.
    progress : callable, optional
        Called with (runs done, runs in all).

    Returns
    -------
    ShadowAttack

    Raises
    ------
    InputError
        If there are too few runs, or a release gives not one finite number for each person.
    """
    check_whole("runs", runs)
    check_whole("n_people", n_people)
    if runs < _FEWEST:
        raise InputError(f"an attack with shadow runs needs at least {_FEWEST} of them, got {runs}")
    is_in = np.random.default_rng([seed, 11]).random((runs, n_people)) < 0.5
    seen = np.empty((runs, n_people))
    for run, coins in enumerate(is_in):
        values = finite_numbers(f"what is seen of run {run}", release(coins.copy(), run))
        if values.shape != (n_people,):
            raise InputError(
                f"a release must be seen as one number for each of {n_people:,} people, got an array of "
                f"shape {values.shape}"
            )
        seen[run] = values
        progress(run + 1, runs)
    return ShadowAttack(seen, is_in)


def infer_membership(
    release: Release,
    mus: Mapping[str, float],
    groups: Sequence[str],
    *,
    budgets: Mapping[str, Budget] | None = None,
    runs: int = SHADOW_RUNS,
    kind: str = "conjugate",
    seed: int = 0,
    confidence: float = 0.95,
) -> tuple[MembershipFinding, ...]:
    """Ask of everybody whether they were in, by shadow runs, and hold what is found against the account.

    Parameters
    ----------
    release : callable
        Called with who is in, a bool for each person, and the number of the run; fits the pipeline to these
        with noise of its own, and returns what an attacker sees of it about each person, shape (n_people,):
        see :func:`model_signal` for models.
    mus : mapping of str to float
        By group, what the account charges each person in μ (add or remove); infinite for a control without
        noise.
    groups : sequence of str
        Group of each person.
    budgets : mapping of str to Budget, optional
        By group, what was granted; default: none is said, which is written as infinite.
    runs : int, default=64
        Each is attacked once, with all others as its shadows.
    kind : {"conjugate", "fixed", "ratio"}, default="conjugate"
        What scores assume (:mod:`collegium.attacks.conjugate`); chosen before anything is seen.
    seed : int, default=0
        Of the coins.
    confidence : float, default=0.95
        Of all lower bounds of one group. That of the worst person is exact; those of averages take runs for
        independent, though each serves as a shadow of the others.

    Returns
    -------
    tuple of MembershipFinding
        For each group: true positives at 0.1 %, 1 % and 10 % false ones, the area under the curve, each with
        an interval and beside what the account allows; all of these on average over its people. And of the
        most exposed person, by guesses in all runs but the first 16, each made by the runs before it.

    Raises
    ------
    InputError
        If something cannot be used.

    References
    ----------
    R. Brännvall, "Exponential-family membership inference: from LiRA and RMIA to BaVarIA", 2026,
    arXiv 2603.11799v1.

    Examples
    --------
    A noisy count of each of 200 people's own answer, at μ = 1 for everybody:

    >>> noise = lambda run: np.random.default_rng([1, run]).normal(size=200)
    >>> [found] = infer_membership(lambda is_in, run: is_in + noise(run), {"all": 1.0}, ["all"] * 200)
    >>> found.verdict, found.holds, round(found.auc.value, 2), round(found.most_auc, 2)
    ('detected', True, 0.76, 0.76)
    """
    check_choice("kind", kind, KINDS)
    unknown = sorted(set(groups) - set(mus))
    if unknown:
        raise InputError(f"group {unknown[0]!r} has no mu: give one for each group")
    attack = run_shadows(release, len(groups), runs=runs, seed=seed)
    return attack.judged(mus, groups, budgets, kind, confidence)


def model_signal(model: Any, X: Any, y: ArrayLike) -> Floats:
    """See how sure a model is of each person's class: log(p / (1 − p)), which is nearly normal.

    Parameters
    ----------
    model : classifier
        With ``classes_`` and ``predict_proba``.
    X : array-like or DataFrame, shape (n_people, n_features)
        One record of each.
    y : array-like, shape (n_people,)
        Their classes.

    Returns
    -------
    ndarray of shape (n_people,)

    Raises
    ------
    InputError
        If the model does not know somebody's class.

    References
    ----------
    N. Carlini et al., "Membership inference attacks from first principles", arXiv 2112.03570, section IV.C.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(20.0)[:, None]
    >>> model = LogisticRegression().fit(X, X[:, 0] > 9)
    >>> bool(model_signal(model, [[19.0], [0.0]], [True, True])[0] > 3)
    True
    """
    places = {label: place for place, label in enumerate(np.asarray(model.classes_).tolist())}
    labels = np.asarray(y).tolist()
    unknown = [label for label in labels if label not in places]
    if unknown:
        raise InputError(
            f"the model does not know class {unknown[0]!r}: attack people of its classes, {list(places)}"
        )
    chances = np.asarray(model.predict_proba(X), dtype=np.float64)
    own = chances[np.arange(len(labels)), [places[label] for label in labels]]
    rest = np.maximum(chances.sum(axis=1) - own, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.clip(np.log(own) - np.log(rest), -_MOST_LOGIT, _MOST_LOGIT))

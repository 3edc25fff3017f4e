"""Five games against a generative model that learns from noisy votes, each on two neighbouring tables.

A fit is run as it is, with ears on its parts: what every teacher learns from, what is noised, what comes
out, what the student is shown, what the account was charged when the noise was drawn. Then it is run
again on a table that differs in one owner's rows, with the same outputs forced upon it. All that was not
noised must then be the same to the last bit, and what was noised must have moved by no more than was
charged for.

====================  ==========================================================================
:func:`sensitivity`   no noised number moves by more than was charged
:func:`distinguish`   the best test's lower bounds on μ and ε stay below what is claimed
:func:`recompute`     the account says at least what an independent one does, before each draw
:func:`identical`     columns, student and generator are bit for bit the same
:func:`fingerprints`  each teacher learns from its own people, always the same, and nobody else does
====================  ==========================================================================

These are the ways in which six public implementations of PATE-GAN were found to leak (G. Ganev, M. S. M. S.
Annamalai, E. De Cristofaro, "The elusive pursuit of reproducing PATE-GAN", arXiv 2406.13985).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf
from numpy.typing import NDArray
from scipy.optimize import brentq

from collegium.attacks.bounds import binomial_bounds, epsilon_from_rates, mu_from_rates
from collegium.attacks.generative_recording import Neighbouring, Transcript, replayed
from collegium.noise.grid import GRID

Floats = NDArray[np.float64]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Verdict:
    """What a game showed.

    ``game``: its name. ``holds``: whether nothing was found.
    ``found``: what was, in one line.
    """

    game: str
    holds: bool
    found: str

    def __str__(self) -> str:
        return f"{self.game}: {'holds' if self.holds else 'VIOLATED'}; {self.found}"


def sensitivity(neighbouring: Neighbouring, pair: tuple[Transcript, Transcript]) -> Verdict:
    """Compare every noised number with its neighbour's: it moves by no more than was charged."""
    one, other = pair
    cohort = one.run.account.names.index(neighbouring.group)
    before, worst, allowed_there = 0.0, 0.0, 0.0
    if len(one.draws) != len(other.draws):
        return Verdict("sensitivity", False, "the number of draws depends on private rows")
    for draw, its in zip(one.draws, other.draws, strict=True):
        charged = float(draw.mu_squared[cohort]) - before
        before = float(draw.mu_squared[cohort])
        if draw.sums.shape != its.sums.shape:
            return Verdict("sensitivity", False, "how much is noised depends on private rows")
        allowed = draw.sigma * math.sqrt(charged / draw.sums.size)
        moved = float(abs(draw.sums - its.sums).max()) * GRID
        if moved - allowed > worst - allowed_there or not allowed_there:
            worst, allowed_there = moved, allowed
    return Verdict(
        "sensitivity",
        worst <= allowed_there * (1 + _ROUNDING),
        f"a number of votes moved by {worst:.4f}, and {allowed_there:.4f} was charged",
    )


def identical(pair: tuple[Transcript, Transcript]) -> Verdict:
    """Compare all that is not noised: it must not depend on private rows, given what was released."""
    one, other = pair
    found = [
        what
        for what, same in {
            "columns and their edges": one.run.cells.edges == other.run.cells.edges,
            "the plan": one.run.plan == other.run.plan,
            "the noise": [d.sigma for d in one.draws] == [d.sigma for d in other.draws],
            "what the student learns from": one.shown == other.shown,
            "student or generator": one.ended == other.ended,
        }.items()
        if not same
    ]
    return Verdict(
        "identical",
        not found,
        f"private rows decide on {', '.join(found)}" if found else "nothing but noise differs",
    )


def fingerprints(
    neighbouring: Neighbouring, pair: tuple[Transcript, Transcript], identity: int
) -> Verdict:
    """Compare what every teacher learnt from, step by step, by a column that names each row.

    ``identity``: place among the cells of a column with another cell in each row of the first table.
    """
    game = "fingerprints"
    one, other = pair
    if not (one.persistent and other.persistent):
        return Verdict(game, False, "teachers were replaced during the fit")
    frame, budgets = neighbouring.tables[0]
    cells, n_teachers = one.run.cells, one.run.plan.n_teachers
    most = max(group.duplicates for group in one.run.plan.groups.values())
    codes = cells.codes(frame)[:, identity]
    owner_of = dict(zip(codes.tolist(), budgets.record_owner.tolist(), strict=True))
    teachers_of: dict[int, set[int]] = {}
    for rows, has_rows in one.taught:
        for teacher in np.flatnonzero(has_rows).tolist():
            for code in np.unique(rows[teacher, :, identity]).tolist():
                teachers_of.setdefault(owner_of[code], set()).add(teacher)
    if not teachers_of:
        return Verdict(game, False, "no teacher was heard learning")
    widest = max(len(teachers) for teachers in teachers_of.values())
    if widest > most:
        return Verdict(
            game,
            False,
            f"one owner's rows were seen by {widest} of {n_teachers} teachers, allowed are {most}",
        )
    changed = {
        teacher
        for (rows, has), (others, have) in zip(one.taught, other.taught, strict=True)
        for teacher in range(len(has))
        if has[teacher] != have[teacher]
        or (has[teacher] and not np.array_equal(rows[teacher], others[teacher]))
    }
    return Verdict(
        game,
        len(changed) <= most,
        f"one owner's rows decide on what {len(changed)} of {n_teachers} teachers learn from, "
        f"allowed are {most}",
    )


def recompute(heard: Transcript) -> Verdict:
    """Add up what was really drawn, in high precision and without the package's account.

    Sensitivities are those of the public plan, noise is what was heard. What each group is said to have
    spent, and what was charged when each noise was drawn, must be no less; and no more than it granted.
    """
    groups = heard.run.plan.groups
    claimed = heard.run.account.epsilon_spent_by_name()
    names, found = heard.run.account.names, []
    with mp.workdps(30):
        for name, group in groups.items():
            moved, total = mpf(group.sensitivity), mpf(0)
            late = False
            for draw in heard.draws:
                total += draw.sums.size * (moved / mpf(draw.sigma)) ** 2
                late |= float(draw.mu_squared[names.index(name)]) < float(total) * (1 - _ROUNDING)
            spent = _epsilon(mp.sqrt(total), group.budget.delta)
            if spent > min(claimed[name], group.budget.epsilon) * (1 + _ROUNDING):
                found.append(
                    f"group {name!r} spent {spent:.4f}, is said to have spent {claimed[name]:.4f} and "
                    f"granted {group.budget.epsilon:g}"
                )
            elif late:
                found.append(f"group {name!r} was charged after the draw, or too little")
    return Verdict(
        "recompute", not found, "; ".join(found) or "the account is right, before every draw"
    )


def _epsilon(mu: mpf, delta: float) -> float:
    """The ε of μ-GDP, by bisection on δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2)."""
    if not mu:
        return 0.0

    def excess(epsilon: mpf) -> mpf:
        x = epsilon / mu
        return mp.ncdf(-x + mu / 2) - mp.exp(epsilon) * mp.ncdf(-x - mu / 2) - delta

    low, high = mpf(0), mpf(1)
    if excess(low) <= 0:
        return 0.0
    while excess(high) > 0:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return float(high)


def distinguish(
    neighbouring: Neighbouring, runs: int = 200, seed: int = 0, confidence: float = 0.95
) -> tuple[Verdict, float]:
    """Play against whole fits with the best test there is, which knows both tables but not which was used.

    Given what came out, each table decides what the noise was added to. The test is the ratio of both
    likelihoods, for which the fit is repeated on the other table with the same outputs. Its threshold is
    chosen on half of the runs, its two error rates are judged on the others, with Clopper-Pearson limits.

    ``runs``: fits on each table, at least 20, each repeated once. ``seed``: of their noise.
    ``confidence``: probability that both lower bounds hold.

    Returns the verdict, and the lower bound on μ.
    """
    ratios = np.empty((2, runs))
    claim = budget = None
    for side in (0, 1):
        for number in range(runs):
            heard = replayed(neighbouring, seed + 2 * number + side, side)
            ratios[side, number] = _log_ratio(heard) * (1 - 2 * side)
            claim = heard[0].run.account.epsilon_spent_by_name()[neighbouring.group]
            budget = heard[0].run.plan.groups[neighbouring.group].budget
    assert claim is not None and budget is not None
    half = runs // 2
    learnt, judged = ratios[:, :half], ratios[:, half:]
    thresholds = np.unique(learnt)
    hits = (learnt[0] > thresholds[:, None]).sum(axis=1)
    alarms = (learnt[1] > thresholds[:, None]).sum(axis=1)
    error = (1 - confidence) / 4
    chosen = thresholds[int(np.argmax(_mu_of(hits, alarms, half, error)))]
    hit, alarm = int((judged[0] > chosen).sum()), int((judged[1] > chosen).sum())
    trials = judged.shape[1]
    lower_mu = float(_mu_of(np.array(hit), np.array(alarm), trials, error))
    true_low, _ = binomial_bounds(hit, trials, error)
    _, false_high = binomial_bounds(alarm, trials, error)
    lower = float(epsilon_from_rates(true_low, false_high, budget.delta))
    claim_mu = _mu(claim, budget.delta)
    return (
        Verdict(
            "distinguish",
            lower <= claim and lower_mu <= claim_mu,
            f"lower bounds μ {lower_mu:.3f} (claimed {claim_mu:.3f}), ε {lower:.3f} (claimed {claim:.3f}); "
            f"right in {hit} and wrong in {alarm} of {trials} runs",
        ),
        lower_mu,
    )


def _log_ratio(heard: tuple[Transcript, Transcript]) -> float:
    """How much likelier the outputs are on the table that was used; inf where only it can make them."""
    one, other = heard
    if [d.sums.shape for d in one.draws] != [d.sums.shape for d in other.draws]:
        return math.inf
    total = 0.0
    for draw, its in zip(one.draws, other.draws, strict=True):
        mine, theirs = ((draw.noisy - sums) * GRID for sums in (draw.sums, its.sums))
        total += float((theirs**2 / its.sigma**2 - mine**2 / draw.sigma**2).sum()) / 2
        total += draw.sums.size * (math.log(its.sigma) - math.log(draw.sigma))
    return total


def _mu_of(hits: NDArray[np.intp], alarms: NDArray[np.intp], trials: int, error: float) -> Floats:
    true_low, _ = binomial_bounds(hits, trials, error)
    _, false_high = binomial_bounds(alarms, trials, error)
    return mu_from_rates(true_low, false_high)


def _mu(epsilon: float, delta: float) -> float:
    """The largest μ whose ε is at most this."""
    return float(brentq(lambda mu: _epsilon(mpf(mu), delta) - epsilon, 1e-6, 100.0, xtol=1e-9))


def play_all(
    neighbouring: Neighbouring, identity: int, runs: int | None = 200, seed: int = 0
) -> dict[str, Verdict]:
    """Play all five games, by name.

    ``identity``: see :func:`fingerprints`.
    ``runs``: see :func:`distinguish`, which takes most of the time; None: without it.
    """
    pair = replayed(neighbouring, seed)
    verdicts = [
        sensitivity(neighbouring, pair),
        recompute(pair[0]),
        identical(pair),
        fingerprints(neighbouring, pair, identity),
    ]
    if runs is not None:
        verdicts.append(distinguish(neighbouring, runs, seed)[0])
    return {verdict.game: verdict for verdict in verdicts}

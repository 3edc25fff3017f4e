"""Membership inference on a student of votes, by somebody who chooses queries and whom to ask about.

An attacker who meets a student as it is hardly finds anybody (:mod:`benchmarks.membership`): one record
moves one vote of many, which seldom decides, and the student smooths what is left. So this one does all that
may be done: knows everybody else, and the partition, which is public; chooses the public records that are
asked about, far from all others, so that one teacher learns them by heart (nearest neighbour) and no other
is moved; takes those on which the votes of everybody else are closest; and asks about people, *canaries*, who
have exactly these records, with the class that comes second. So each one who is in decides a vote. What is
looked at is how much likelier the student (logistic regression) finds the second class there than the first.

2,000 made-up people (ε = 1, 2 and 3 for 54, 37 and 9 %) are always in, 20 with each of 100 teachers; of 12
canaries, four of each level, each is in half of the runs and is asked about five times. The control has as
good as no noise (σ = 0.01), and is judged against the bound of the private release.

    python -m benchmarks.membership_student             # 1,024 runs each
    python -m benchmarks.membership_student --runs 40 --only control
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.membership import HEAD, LEVELS, line
from collegium import Budgets, GNMax, PATEClassifier, Policy
from collegium.accounting import gdp_mu
from collegium.attacks.shadow_runs import ShadowAttack, run_shadows
from collegium.pate.settings import Queries

Floats = NDArray[np.float64]
N_CLASSES, N_FEATURES = 3, 20
N_TEACHERS, N_PEOPLE, CANARIES, COPIES = 100, 2_000, 12, 5
SIGMA, WITHOUT_NOISE, DELTA = 28.0, 0.01, 1e-5
CENTRES = 0.7 * np.random.default_rng(0).normal(size=(N_CLASSES, N_FEATURES))


def people(n: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Make records and classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, N_CLASSES, n)
    return CENTRES[y] + rng.normal(size=(n, N_FEATURES)), y


X, Y = people(N_PEOPLE, 2)
LEVEL = np.random.default_rng(5).permutation(
    np.repeat(list(LEVELS), [round(N_PEOPLE * share) for share in (0.54, 0.37, 0.09)])
)
CANARY_LEVEL = np.tile(list(LEVELS), CANARIES // len(LEVELS))
SIZES = {name: int(np.sum([*LEVEL, *CANARY_LEVEL] == np.array(name))) for name in LEVELS}


def granted(is_private: bool, canaries: NDArray[np.intp]) -> Budgets:
    """Give everybody and some canaries their budgets, or as good as none."""
    policy = Policy(LEVELS if is_private else dict.fromkeys(LEVELS, 1e9), delta=DELTA)
    owners = [f"person {i}" for i in range(N_PEOPLE)] + [f"canary {i}" for i in canaries]
    levels = np.concatenate([LEVEL, CANARY_LEVEL[canaries]])
    return policy.assign(levels, owners=owners, sizes=SIZES)


def pate(sigma: float, seed: int, **more: Any) -> PATEClassifier:
    """Teachers that know their records by heart; the partition is the same in all runs."""
    return PATEClassifier(
        KNeighborsClassifier(1),
        n_teachers=N_TEACHERS,
        aggregator=GNMax(sigma=sigma),
        classes=range(N_CLASSES),
        noise_seed=seed,
        random_state=0,
        **more,
    )


def closest_votes() -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Find the remote records on which everybody else is divided, their first class and their second."""
    records, _ = people(3_000, 3)
    rng = np.random.default_rng(6)
    corner = rng.integers(0, 2, records.shape) * 2 - 1
    remote = records + 3 * corner * (records.max(axis=0) - records.min(axis=0))
    asked = pate(WITHOUT_NOISE, 0, queries=Queries(release="histogram")).fit(
        X,
        Y,
        budgets=granted(False, np.array([], dtype=np.intp)),
        X_public=remote,
        scales_may_differ=True,
    )
    counts = np.asarray(asked.histograms_.counts)
    in_order = np.argsort(counts, axis=1)
    ordered = np.sort(counts, axis=1)
    close = np.argsort(ordered[:, -1] - ordered[:, -2])[:CANARIES]
    rows = np.asarray(asked.histograms_.queries)[close]
    return remote[rows], in_order[close, -1], in_order[close, -2]


def attacked(is_private: bool, runs: int) -> dict[str, ShadowAttack]:
    """Attack the student, and the answers from which it learns."""
    records, first, second = closest_votes()
    asked = np.repeat(np.arange(CANARIES), COPIES)
    answers = np.zeros((runs, CANARIES))

    def release(is_in: NDArray[np.bool_], run: int) -> Floats:
        there = np.flatnonzero(is_in)
        model = pate(SIGMA if is_private else WITHOUT_NOISE, run).fit(
            np.concatenate([X, records[there]]),
            np.concatenate([Y, second[there]]),
            budgets=granted(is_private, there),
            X_public=records[asked],
            public_may_overlap=True,
            scales_may_differ=True,
        )
        about = asked[model.labelled_indices_]
        is_for = (model.labels_ == second[about]) * 1.0 - (model.labels_ == first[about])
        answers[run] = np.bincount(about, is_for, minlength=CANARIES)
        chances = np.clip(model.predict_proba(records), 1e-9, 1)
        each = np.arange(CANARIES)
        return np.asarray(np.log(chances[each, second] / chances[each, first]))

    seen = run_shadows(release, CANARIES, runs=runs)
    return {"student": seen, "answers": ShadowAttack(answers, seen.is_in)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of the release, and of its control."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_024)
    parser.add_argument("--only", default="", choices=["", "private", "control"])
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    mus = {name: gdp_mu(epsilon, DELTA) for name, epsilon in LEVELS.items()}
    print(HEAD)
    for is_private in (True, False):
        if given.only == ("control" if is_private else "private"):
            continue
        began = time.perf_counter()
        for what, attack in attacked(is_private, given.runs).items():
            told = what if is_private else f"{what}, control"
            for one in attack.judged(mus, CANARY_LEVEL.tolist()):
                print(line(told, one), flush=True)
        print(f"<!-- {time.perf_counter() - began:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()

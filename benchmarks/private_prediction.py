"""What answers tell of a person: natural or poisoned records, natural or chosen queries, as in 2402.09403.

Chadha, Jagielski, Papernot, Choquette-Choo & Nasr, "Auditing private prediction" (ICML 2024, arXiv
2402.09403), attack PATE and three other ways to answer queries privately: adversaries whose record is natural
or poisoned, and who may choose queries or not, bound the Rényi divergence of each answer from below by what
it is on the two vote histograms with and without the record. The same on our votes: people of ε = 1, 2 and 3
(54, 37 and 9 %), MNIST, 200 teachers (logistic regression of 32 principal components), weights, GNMax, and as
many queries as all budgets pay for. For each adversary and level:

- the divergence itself, of labels alone at order 8 and of noisy counts, added up over all queries, without
  sampling: the teachers of 20 people are trained with and without them. Written as the μ of Gaussian noise
  that tells as much, √(2D/8): mean over the people, and of the most exposed one;
- what a test shows for that one: whole labelling jobs with noise of the system and a real account, on both
  vote tables, the likelihood ratio of all labels (or of all noisy counts) as score, and a lower bound on μ at
  95 %;
- what the account charges for the noisy counts, and for labels alone (at order 8, as μ).

A poisoner gives one record, the best of 24 (some of them far outside). Who chooses queries asks one of 2,000
public records, or the person's own, again and again.

    python -m benchmarks.private_prediction [--data-dir DATA] [--runs 600]
    python -m benchmarks.private_prediction --quick      # 60 runs, 4 people of each level
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from collegium import GNMax, Policy
from collegium.accounting.arg_max import gaussian_arg_max_rdp
from collegium.attacks.game import play_votes
from collegium.attacks.mechanism import AuditedMechanism
from collegium.attacks.membership import judge_membership
from collegium.datasets import load_dataset
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.personalisation import Weighting

Floats = NDArray[np.float64]
Votes = NDArray[np.int32]
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
N_TEACHERS, N_PEOPLE, N_PUBLIC, SIGMA, QUERIES, ORDER = 200, 10_000, 2_000, 40.0, 100, 8.0
N_CLASSES, N_FEATURES, POISONS, SHORTLIST = 10, 32, 24, 20
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
ADVERSARIES = (
    "natural record, natural queries",
    "natural record, chosen query",
    "poisoned record, natural queries",
    "poisoned record, chosen query",
)


def log_winners(counts: Floats) -> Floats:
    """Logarithm of each class's probability to win. ``counts`` (n, n_classes), in units of the noise."""
    ahead = counts[:, :, None] - counts[:, None, :]  # of one class over another
    logs = log_ndtr(ahead[..., None] + _NODES)
    logs[:, np.arange(N_CLASSES), np.arange(N_CLASSES)] = 0.0
    summed = (np.exp(logs.sum(axis=2)) * _WEIGHTS).sum(axis=-1)
    return np.asarray(np.log(summed / summed.sum(axis=1, keepdims=True)))


def divergence(first: Floats, second: Floats) -> Floats:
    """Rényi divergence of labels at the order, the larger of both directions. Arguments: log winners."""
    both = [
        np.log(np.exp(ORDER * p + (1 - ORDER) * q).sum(axis=1)) / (ORDER - 1)
        for p, q in ((first, second), (second, first))
    ]
    return np.asarray(np.maximum(*both).clip(min=0))


def as_mu(total: float) -> float:
    """μ of Gaussian noise of this divergence."""
    return math.sqrt(2 * total / ORDER)


@dataclass(frozen=True, eq=False)
class Exposure:
    """What an adversary gets of a person: queries, and votes of the person's teacher without and with them.

    ``labels``, ``counts``: μ of all answers.
    """

    queries: NDArray[np.intp]
    teacher: int
    without: Votes
    with_it: Votes
    labels: float
    counts: float


class Study:
    """Teachers of everybody, and their votes on whatever may be asked."""

    def __init__(self, data_dir: str | None) -> None:
        data = load_dataset("mnist", data_dir)
        rng = np.random.default_rng(0)
        rows = rng.permutation(len(data.y))[: N_PEOPLE + N_PUBLIC]
        X, self.y = np.asarray(data.X)[rows], np.asarray(data.y)[rows].astype(int)
        X = X.reshape(len(X), -1).astype(np.float64)
        seen = PCA(N_FEATURES, whiten=True, random_state=0).fit(X[N_PEOPLE:])
        self.X = seen.transform(X)
        self.public = self.X[N_PEOPLE:]
        level = rng.permutation(np.repeat(list(LEVELS), [5_400, 3_700, 900]))
        self.level = level
        policy = Policy(LEVELS, delta=1e-5)
        budgets = policy.assign(level, sizes={name: int((level == name).sum()) for name in LEVELS})
        self.plan = Weighting().plan_for(budgets, N_TEACHERS)
        assigned = self.plan.assign(budgets, b"public randomness")
        place = {str(name): number for number, name in enumerate(budgets.owners)}
        self.teacher_of = assigned.owner_teachers[
            [place[str(person)] for person in range(N_PEOPLE)], 0
        ]
        self.shards = assigned.shards()
        self.electorate = self.plan.electorate(0)
        self.weights = self.electorate.ballot(0).weights
        self.votes = np.stack([self.vote(shard) for shard in self.shards], axis=1)

    def vote(
        self, shard: NDArray[np.intp], more: tuple[Floats, int] | None = None, asked: Any = None
    ) -> Votes:
        """Train a teacher, on one more record where it is given, and ask it."""
        X, y = self.X[shard], self.y[shard]
        if more is not None:
            X, y = np.vstack([X, more[0]]), np.append(y, more[1])
        model = LogisticRegression(max_iter=200).fit(X, y)
        return np.asarray(model.predict(self.public if asked is None else asked), dtype=np.int32)

    def counts(self, votes: Votes) -> Floats:
        """Weighted votes, in units of the noise."""
        return (
            np.stack([(votes == label) @ self.weights for label in range(N_CLASSES)], axis=1)
            / SIGMA
        )

    def exposure(
        self, teacher: int, votes: Votes, without: Votes, with_it: Votes, choose: bool
    ) -> Exposure:
        """Add up what all queries tell, or what the best one does so many times.

        ``votes`` (n_queries, n_teachers).
        """
        own = np.flatnonzero(without != with_it)
        if choose:  # of those on which the most votes are for the person's two classes
            others = self.counts(votes[own])
            each = np.arange(len(own))
            divided = np.minimum(others[each, without[own]], others[each, with_it[own]])
            own = own[np.argsort(-divided)[:SHORTLIST]]
        else:
            own = own[own < QUERIES]
        tells = np.zeros(len(votes))
        if len(own):
            sides = []
            for voted in (without, with_it):
                side = votes[own]
                side[:, teacher] = voted[own]
                sides.append(log_winners(self.counts(side)))
            tells[own] = divergence(*sides)
        queries = np.full(QUERIES, int(np.argmax(tells))) if choose else np.arange(QUERIES)
        moves = int((without[queries] != with_it[queries]).sum())
        counted = math.sqrt(2 * moves) * float(self.weights[teacher]) / SIGMA
        return Exposure(
            queries,
            teacher,
            without[queries],
            with_it[queries],
            as_mu(float(tells[queries].sum())),
            counted,
        )

    def attacked(self, person: int, rng: np.random.Generator) -> list[Exposure]:
        """Let all adversaries look for the best they can do."""
        teacher = int(self.teacher_of[person])
        shard = self.shards[teacher]
        others = shard[shard != person]
        without, own = self.vote(others), (self.X[person], int(self.y[person]))
        found = [
            self.exposure(teacher, self.votes, without, self.vote(others, own), choose)
            for choose in (False, True)
        ]
        best: list[Exposure | None] = [None, None]
        for trial in range(POISONS):
            record = self.public[rng.integers(N_PUBLIC)] * (1.0, 3.0, 10.0)[trial % 3]
            with_it = self.vote(others, (record, int(rng.integers(N_CLASSES))))
            for place, choose in enumerate((False, True)):
                one = self.exposure(teacher, self.votes, without, with_it, choose)
                so_far = best[place]
                if so_far is None or one.labels > so_far.labels:
                    best[place] = one
        return [*found, *(one for one in best if one is not None)]

    def tested(self, one: Exposure, level: str, runs: int) -> list[float]:
        """Play the real mechanism on both tables: μ shown by labels, and by noisy counts."""
        aggregator = GNMax(sigma=SIGMA)
        mechanism = AuditedMechanism(
            self.electorate,
            aggregator,
            WorstCasePricing(aggregator, self.electorate),
            {level: np.array([one.teacher])},
        )
        table = self.votes[one.queries].copy()
        sides, exact = [], []
        for votes in (one.without, one.with_it):
            table[:, one.teacher] = votes
            exact.append(self.counts(table))
            sides.append(play_votes(mechanism, table.copy(), N_CLASSES, runs, lambda done: None))
        chances = [log_winners(counts) for counts in exact]
        assert all((side.labels >= 0).all() for side in sides)  # the budgets pay for all of them
        each = np.arange(QUERIES)
        ratio, difference = chances[1] - chances[0], exact[1] - exact[0]
        by_label = [ratio[each, side.labels].sum(axis=1) for side in sides]
        by_count = [(side.answers * difference).sum(axis=(1, 2)) for side in sides]
        is_in = np.repeat([False, True], runs)
        return [
            judge_membership(np.concatenate(scores), is_in, {level: math.inf})[0].lower_mu
            for scores in (by_label, by_count)
        ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default=None)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=600)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    study, rng = Study(given.data_dir), np.random.default_rng(1)
    n_people, runs = (4, 60) if given.quick else (20, given.runs)
    head = (
        *("adversary", "level", "labels: mean", "worst", "test shows", "account"),
        *("counts: mean", "worst", "test shows", "account"),
    )
    print(f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|")
    rows: dict[str, list[str]] = {name: [] for name in ADVERSARIES}
    for level in LEVELS:
        people = rng.choice(np.flatnonzero(study.level == level), n_people, replace=False)
        found = [study.attacked(int(person), rng) for person in people]
        weight = float(study.weights[study.teacher_of[people[0]]])
        of_counts = math.sqrt(2 * QUERIES) * weight / SIGMA
        of_labels = as_mu(QUERIES * float(gaussian_arg_max_rdp(weight, SIGMA, [ORDER])[0]))
        for name, exposures in zip(ADVERSARIES, zip(*found, strict=True), strict=True):
            worst = max(exposures, key=lambda one: one.labels)
            shown = study.tested(worst, level, runs)
            told = [
                *(float(np.mean([one.labels for one in exposures])), worst.labels, shown[0]),
                *(of_labels, float(np.mean([one.counts for one in exposures]))),
                *(max(one.counts for one in exposures), shown[1], of_counts),
            ]
            rows[name].append(f"| {name} | {level} | {' | '.join(f'{x:.3f}' for x in told)} |")
    for lines in rows.values():
        print("\n".join(lines))
    print(f"<!-- {time.perf_counter() - began:.0f} s -->")


if __name__ == "__main__":
    main()

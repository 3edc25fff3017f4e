"""Direct training rehearsed on public records: the very steps, with the noise that these budgets need.

What noise does to a linear model depends on the signal S = Σ μ (:mod:`collegium.dpsgd.by_rule`). A rehearsal
learns from n public records in place of N private ones, with the mean gradient's noise of all N: the sum's
noise is made smaller by n/N. So it tells what noise costs, and which way to learn suffers least; how much can
be learnt at all is told by the known classes (``alone``).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from threadpoolctl import threadpool_limits

from collegium.accounting.neighbours import Neighbours
from collegium.budgets import Budgets
from collegium.data.tables import take_rows
from collegium.distillation.gaussian_process import OnSameRecords
from collegium.distillation.goal import AUC, BALANCED, believed_shares
from collegium.distillation.supervised import beliefs_of
from collegium.dpsgd.by_rule import signal, with_components
from collegium.dpsgd.ensemble_choice import learnt_from
from collegium.dpsgd.linear_model import as_rows
from collegium.dpsgd.public_solver import Columns
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.taught_view import of_trees, public_view, said_by_trees
from collegium.evaluation.quality import measure_quality
from collegium.models.preprocessing.taught_table import TaughtTable, can_teach
from collegium.planner.facts import Facts
from collegium.planner.public_features import Looks, ends_in_kernel
from collegium.planner.surrogates import StandIns, completed, public_model
from collegium.runs.records import Records

Floats = NDArray[np.float64]
_COMPARED, _FEWEST_COMPARED = 1000, 40
_TIMED = 500
_DRAWS = 3
_LEAST = 1e-12  # probability
NO_NOISE = 1e9
"""A signal beside which no noise is left."""


@dataclass(frozen=True)
class Rehearsed:
    """How a way to learn did on public records.

    ``score``: the goal's measure, on records that were not learnt from.
    ``error``: standard deviation of it, from how many records there were to judge by.
    ``accuracy``: share of right answers.
    ``n``: records that it was judged by.
    ``by_student``: in which share of the folds a student that learnt from beliefs was published.
    """

    score: float
    error: float
    accuracy: float
    n: int
    by_student: float = 0.0


class DPSGDRehearsal:
    """Direct training on stand-ins, seen through one preprocessing.

    Parameters
    ----------
    facts : Facts
        Of the plan.
    found : StandIns
        Public records; where they have no classes, clusters are taken.
    preprocessing : transformer
        Not fitted.
    with_student : bool
        Whether a student learns from what the model believes, and the better of both counts.

    Attributes
    ----------
    looks : Looks
        At the stand-ins, for others who see them in a way like this.
    seen : ndarray, shape (n, n_features)
        The stand-ins as the model sees them.
    found : StandIns
        With a class for each.
    seconds_to_see, seconds_to_step, seconds_to_solve : float
        What it took to see a record, to take all steps over one, and to solve, whatever private records
        there are.
    """

    def __init__(
        self, facts: Facts, found: StandIns, preprocessing: Any, with_student: bool
    ) -> None:
        self.facts, self.with_student = facts, with_student
        n = found.X.shape[0]
        made = with_components(preprocessing, facts.dpsgd, facts.dpsgd_plan, n, len(facts.classes))
        self.looks = Looks(found.X)
        if ends_in_kernel(made):
            self._view = self.looks.view(made)
            seen = self.looks.seen(self._view)
        else:
            known = np.where(found.codes >= 0, found.codes, np.nan)
            n_classes = len(facts.classes)
            self._view, seen = public_view(made, found.X, known, n_classes, facts.dpsgd, facts.seed)
            seen = self._view.of(found.X) if seen is None else seen
        self._described = seen
        self._by_fold: dict[bytes, NDArray[np.float32]] = {}
        self.seen: Floats = as_rows(seen, "public records")
        begun = time.perf_counter()
        timed = self.see(take_rows(found.X, slice(0, _TIMED)))
        self.seconds_to_see = (time.perf_counter() - begun) / len(timed)
        self.seconds_to_step = self.seconds_to_solve = 0.0
        self.known = found
        self._student = OnSameRecords(random_state=facts.seed)
        self.found = completed(found, self.seen, len(facts.classes))

    def see(self, X: Any) -> Floats:
        """Show public records as the model sees them."""
        return as_rows(self._view.of(X), "public records")

    def apart_from(self, X: Any) -> float:
        """Tell how well other public records are told from the stand-ins: an AUC, 0.5 if not at all."""
        mine, other = self.seen[:_COMPARED], self.see(take_rows(X, slice(0, _COMPARED)))
        rows, which = np.concatenate([mine, other]), np.repeat([0, 1], [len(mine), len(other)])
        if min(len(mine), len(other)) < _FEWEST_COMPARED:
            return 0.5
        scores = cross_val_predict(
            LogisticRegression(C=1.0, max_iter=200), rows, which, cv=4, method="decision_function"
        )
        return float(roc_auc_score(which, scores))

    @property
    def n_features(self) -> int:
        """Of the model."""
        return int(self.seen.shape[1])

    def anchors_of(self, n_public: int) -> int:
        """Records that others are compared with, where so many are public; 0 where nobody compares."""
        steps = getattr(self._view.transformer, "steps", [("", self._view.transformer)])
        return min(n_public, getattr(steps[-1][1], "n_anchors", 0))

    def alone(self, share: float = 1.0) -> Rehearsed:
        """Learn from known public classes only, without noise; nobody's privacy is touched.

        ``share``: of those that are learnt from.
        """
        beliefs = np.zeros((len(self.seen), len(self.facts.classes)))
        for learn, judged in self.known.folds():
            some = learn[: max(1, round(share * len(learn)))]
            codes = self.known.codes[some]
            if np.unique(codes).size < 2:
                beliefs[np.ix_(judged, codes[:1])] = 1.0
                continue
            beliefs[judged] = self._taught(some, codes, judged)
        rows = self.known.labelled
        return scored(self.facts, beliefs[rows], self.known.codes[rows])

    def _taught(
        self, some: NDArray[np.intp], codes: NDArray[np.intp], judged: NDArray[np.intp]
    ) -> Floats:
        """Let a linear model, and trees if there are any, learn from some labels, and ask about others."""
        seen = self._seen_by(some)
        n_taught = Columns.of(self._view.transformer).taught
        linear = seen[:, : seen.shape[1] - n_taught]
        model = public_model(linear[some], codes)
        found = np.zeros((len(judged), len(self.facts.classes)))
        found[:, model.classes_] = model.predict_proba(linear[judged])
        said = said_by_trees(self._view, seen[judged])
        if said is None or not seen[:, -n_taught:].any():
            return found
        if n_taught == 1:
            said = np.hstack([-said / 2, said / 2])
        logs = np.log(np.clip(found, _LEAST, 1.0))
        return np.asarray(softmax((logs + said) / 2, axis=1))

    def _seen_by(self, learn: NDArray[np.intp]) -> Floats:
        """Show the stand-ins as whoever learns from these sees them: no tree knows the label of another."""
        if of_trees(self._view) is None:
            return self.seen
        key = learn.tobytes()
        if key not in self._by_fold:
            labels = np.full(len(self.seen), np.nan)
            labels[learn] = np.where(self.known.codes >= 0, self.known.codes, np.nan)[learn]
            table: TaughtTable = self._view.transformer  # type: ignore[assignment]
            enough = can_teach(labels, table.n_classes)
            silent = np.zeros((len(labels), table.n_taught_), dtype=np.float32)
            self._by_fold[key] = table.columns_by(self.known.X, labels) if enough else silent
        heard = self._by_fold[key]
        return as_rows(np.hstack([self._described[:, : -heard.shape[1]], heard]), "public records")

    def score(self, of_signal: float) -> Rehearsed:
        """Learn from three quarters of the stand-ins and judge by the last, four times.

        ``of_signal``: S, of the budgets that are tried.
        """
        beliefs, by_student = self._rehearsed(self.found, of_signal)
        rows = self.found.labelled
        return scored(self.facts, beliefs[rows], self.found.codes[rows], by_student=by_student)

    def steps_of_known(self, of_signal: float) -> tuple[Rehearsed, float]:
        """Take noisy steps over known classes alone, with several noises.

        Returns: how they did on average; and the standard deviation that noise gives the accuracy of one run.
        """
        rows, codes = self.known.labelled, self.known.codes
        tried, right = [], []
        for draw in range(_DRAWS):
            beliefs, by_student = self._rehearsed(self.known, of_signal, draw)
            tried.append(scored(self.facts, beliefs[rows], codes[rows], by_student=by_student))
            named = beliefs.argmax(axis=1) == codes
            right.append([named[judged].mean() for _, judged in self.known.folds()])
        mean = float(np.mean([one.score for one in tried]))
        return replace(tried[0], score=mean), math.sqrt(np.var(right, axis=0, ddof=1).mean())

    def _rehearsed(self, found: StandIns, of_signal: float, draw: int = 0) -> tuple[Floats, float]:
        """Ask about every labelled record those who did not learn from it; how often was it a student?"""
        beliefs = np.zeros((len(self.seen), len(self.facts.classes)))
        taught = []
        with threadpool_limits(1):  # so small are the matrices
            for fold, (learn, judged) in enumerate(found.folds()):
                # Noise of its own: one lucky draw must not speak for all.
                random = np.random.default_rng([self.facts.seed, draw, fold])
                seen = self._seen_by(learn)
                model, is_student = self._learn(seen, learn, of_signal, int(random.integers(2**31)))
                beliefs[judged] = beliefs_of(model, seen[judged], np.arange(beliefs.shape[1]))
                taught.append(is_student)
        return beliefs, float(np.mean(taught))

    def _learn(
        self, seen: Floats, rows: NDArray[np.intp], of_signal: float, noise_seed: int
    ) -> tuple[Any, bool]:
        facts = self.facts
        classes = np.arange(len(facts.classes))
        records = Records(
            X=seen[rows],
            codes=self.found.codes[rows],
            budgets=Budgets.from_epsilons(np.ones(len(rows))),
            classes=classes,
            X_public=seen,
        )
        dpsgd = replace(facts.dpsgd, components=None, neighbours=None)
        recipe = DPSGDRecipe(
            dpsgd,
            None,
            seed=facts.seed,
            noise_seed=noise_seed,
            columns=Columns.of(self._view.transformer),
        )
        run = DPSGDRun(recipe, records, relation=Neighbours.ADD_OR_REMOVE, n_threads=1)
        # The same mean gradient, with the noise that so much signal leaves in it.
        run.plan = replace(run.plan, noise=run.plan.noise * signal(run.plan) / of_signal)
        begun = time.perf_counter()
        learnt = run.learn()
        solver = 0.0 if run.solver is None else run.solver.seconds
        self.seconds_to_step = (time.perf_counter() - begun - solver) / len(rows)
        self.seconds_to_solve = solver
        model = run.model(learnt)
        if not self.with_student:
            return model, False
        student, picked = learnt_from(
            model, self._student, run.noise_left, seen, seen, classes, seed=facts.seed
        )
        return picked.of(model, student, run.noise_left), picked.student


def scored(
    facts: Facts,
    beliefs: Floats,
    codes: NDArray[np.intp],
    named: NDArray[np.intp] | None = None,
    by_student: float = 0.0,
) -> Rehearsed:
    """Judge by the goal's measure.

    ``named`` (n,): class numbers; default: what the goal makes of the beliefs.
    """
    classes = np.arange(beliefs.shape[1])
    if named is None:
        shares = believed_shares(beliefs) if facts.goal == BALANCED else 1.0
        named = (beliefs / shares).argmax(axis=1)
    quality = measure_quality(classes, codes, named, beliefs)
    assert quality is not None
    score, n = quality.accuracy, len(codes)
    if facts.goal in (BALANCED, AUC):  # rests on the rarest class
        score = quality.balanced_accuracy if facts.goal == BALANCED else quality.auc or math.nan
        counts = np.bincount(codes, minlength=len(classes))
        n = len(classes) * int(counts[counts > 0].min())
    error = math.sqrt(max(score * (1 - score), 0.25 / n) / n)
    return Rehearsed(float(score), error, float(quality.accuracy), len(codes), by_student)

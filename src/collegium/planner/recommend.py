"""Which way to learn, with which settings, and what to expect: from public facts, with a reason each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from collegium.accounting.gaussian import gdp_mu
from collegium.budgets import DEFAULT_DELTA, Budget, Budgets, as_budgets
from collegium.checks import check_choice, check_whole, is_number, listed
from collegium.data.class_shares import as_class_shares
from collegium.data.record_kinds import TABLE
from collegium.data.tables import as_records
from collegium.distillation.goal import ACCURACY, BALANCED, MOSTLY_ONE
from collegium.dpsgd.by_rule import few_public, with_components
from collegium.dpsgd.classifier import DPSGDClassifier
from collegium.dpsgd.footprint import PROGRAM, bytes_of, require_room, working_bytes
from collegium.dpsgd.public_labels import OF_EACH
from collegium.dpsgd.run import RELATIONS
from collegium.dpsgd.settings import COMBINE
from collegium.errors import InputError
from collegium.notebooks import InNotebooks
from collegium.pate.classifier import PATEClassifier
from collegium.planner.candidates import Candidate, Sections, direct
from collegium.planner.expected import (
    MEASURES,
    Expected,
    at_least,
    from_experience,
    from_labels,
    of_some_classes,
    score_in_words,
    share_of_more,
)
from collegium.planner.facts import LABELS, Facts
from collegium.planner.rehearsal import NO_NOISE, DPSGDRehearsal, Rehearsed
from collegium.planner.share import AUTO, NOT_ALL_CLASSES, Share, least_share
from collegium.planner.surrogates import ENOUGH, stand_ins
from collegium.planner.votes import rehearse_votes, votes
from collegium.runs.estimator_base import one_each
from collegium.zero_and_public_budgets import split_by_level

Tell = Callable[[str], None]
_MORE = 1.5
"""By how much a group's ε is raised to tell what more consent is worth."""
_MOST_RECORDS = 100_000_000
"""Of people who are told of by their number alone: the plan has a budget for each."""
_MOST_ROWS = 8
_BEGINNING, _STUDENT = 10.0, 2e-3
"""Seconds: to begin and to report, and of a student for each public record."""
_COPIES = 2
"""Of records as they are."""
_SQUARES = 4
"""Of the kernel between anchors, when its components are found."""
_OTHERS = 0.7
"""How well public and test records may be told apart (AUC) before it is pointed out."""
_SO_FAR = 0.02
"""By how much more votes must win, since they never did in what was measured, and one rehearsal may err."""
_OF_CLUSTERS = 0.05
"""By how much more votes must win where classes are clusters, which any method finds."""
_FARTHEST = 2.0**12
NOT_WORTH_IT = "the model would be no better than"
_ALONE = "the model of the private records alone would be no better than"
_MANY_MORE = 0.9
"""From ten private records for each known public class on, noisy steps miss little that classes tell."""


@dataclass(frozen=True)
class Consent:
    """What more consent of one group would be worth.

    ``group``, ``people``: which, and how many they are.
    ``epsilon``, ``instead``: what they grant, and what is asked.
    ``signal``: by which factor the signal of everybody together would grow.
    ``gain``: of the score; None where no rehearsal could tell.
    """

    group: str
    people: int
    epsilon: float
    instead: float
    signal: float
    gain: float | None


@dataclass(frozen=True)
class Recommendation(InNotebooks):
    """Settings, chosen from public facts alone, and what to expect of them.

    Attributes
    ----------
    candidate : Candidate
        The way to learn that was chosen.
    sections : mapping
        Of a study's file: section, key, value; everything else has defaults.
    expected : Expected
        The score, as an interval.
    alternatives : mapping of str to Rehearsed
        How each way to learn did in rehearsal, the chosen one among them.
    answers : int or None
        Answers that votes would give; None where no votes are held.
    minutes, gigabytes : float
        What a run would take on this machine, roughly: within a factor of two or three.
    consent : tuple of Consent
        What more consent would be worth, the most valuable first.
    notes : tuple of str
        What should be known before anything is spent.
    share : Share or None
        Of their budgets, what this release takes; None where nothing was to be chosen.
    of_clusters : bool
        Whether the rehearsal had clusters in place of classes, since too few are known.
    """

    candidate: Candidate
    sections: Sections
    expected: Expected
    alternatives: Mapping[str, Rehearsed] = field(default_factory=dict)
    answers: int | None = None
    minutes: float = 0.0
    gigabytes: float = 0.0
    consent: tuple[Consent, ...] = ()
    notes: tuple[str, ...] = ()
    share: Share | None = None
    of_clusters: bool = False

    @property
    def method(self) -> str:
        """How it is learnt, in words."""
        return self.candidate.name

    @property
    def verdict(self) -> str:
        """Say that private records would teach no more than one answer; empty where nobody can tell."""
        return next((line for line in self.notes if line.startswith((NOT_WORTH_IT, _ALONE))), "")

    @property
    def reasons(self) -> Mapping[str, str]:
        """A reason for each choice."""
        if self.share is None:
            return self.candidate.reasons
        return {**self.candidate.reasons, "privacy.spend": self.share.why}

    def estimator(self, **parameters: Any) -> DPSGDClassifier | PATEClassifier:
        """Make what was chosen, not fitted.

        ``parameters``: of the estimator, beside what was chosen: ``classes``, ``random_state``, …
        """
        given = {"goal": self.sections.get("student", {}).get("goal", ACCURACY), **parameters}
        return self.candidate.estimator(**given)

    def __str__(self) -> str:
        lines = [f"{self.method}; expected: {self.expected.in_words()}"]
        lines += [f"  {key}: {why}" for key, why in self.reasons.items()]
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Make a dictionary for JSON."""
        expected = self.expected
        return {
            "method": self.method,
            "settings": self.sections,
            "reasons": dict(self.reasons),
            "expected": {
                "measure": expected.measure,
                "low": expected.low,
                "middle": expected.middle,
                "high": expected.high,
                "basis": expected.basis,
                "always_the_largest_class": expected.floor,
            },
            "answers": self.answers,
            "minutes": self.minutes,
            "gigabytes": self.gigabytes,
            "rehearsed": {name: tried.score for name, tried in self.alternatives.items()},
            "consent": [vars(row) for row in self.consent],
            "notes": list(self.notes),
            **({} if self.share is None else {"share": vars(self.share)}),
        }


def recommend_from(
    facts: Facts,
    X_test: Any = None,
    tell: Tell = lambda line: None,
    spend: float | str = 1.0,
) -> Recommendation:
    """Choose a way to learn and predict what comes of it. Spends nothing and looks at no private value.

    ``X_test``: public test records that the model will be measured on, if there are any.
    ``tell``: is told what is being done.
    ``spend``: share of these budgets that may be spent; ``"auto"``: the least that is expected to do.
    """
    facts.require_drawable()
    n_test = None if X_test is None else int(X_test.shape[0])
    by_votes = votes(facts)
    if by_votes is None and facts.goal == LABELS:
        raise InputError(
            f"labels are released by votes, but {facts.n_people:,} people with {facts.n_public:,} "
            "public records are too few for votes: leave the goal out to train with DP-SGD"
        )
    found = stand_ins(facts)
    candidate = direct(facts)
    preprocessing = with_components(
        candidate.preprocessing(facts.seed),
        facts.dpsgd,
        facts.dpsgd_plan,
        facts.n_public,
        len(facts.classes),
    )
    working = working_bytes(preprocessing, facts.X_public, facts.n_records)
    require_room(working)
    tell(f"rehearsing {candidate.name} on {found.X.shape[0]:,} public records")
    rehearsal = DPSGDRehearsal(
        facts, found, candidate.preprocessing(facts.seed), candidate.has_student
    )
    at = _Scores(rehearsal)
    whole = at(facts.signal)
    tried = {candidate.name: whole}
    if by_votes is not None:
        tell(f"rehearsing {by_votes.name}")
        held = tried[by_votes.name] = rehearse_votes(
            facts, rehearsal.found, by_votes, rehearsal.looks
        )
        if facts.goal == LABELS or (
            _is_better(held, whole, rehearsal.found.synthetic)
            and at(NO_NOISE).score > whole.score + whole.error
        ):  # what noise costs nothing, votes cannot save: then they only bear few stand-ins better
            candidate = by_votes
    is_by_votes = candidate is by_votes
    share = _chosen_share(spend, facts, at, is_by_votes, found.synthetic)
    everything, facts = facts, facts.with_share(float(spend) if share is None else share.value)
    if is_by_votes:
        candidate = votes(facts) or candidate
    if facts.signal != everything.signal:
        tell(f"rehearsing {candidate.name} with the share that is spent")
        tried[candidate.name] = (
            rehearse_votes(facts, rehearsal.found, candidate, rehearsal.looks)
            if is_by_votes
            else at(facts.signal)
        )
    sections = candidate.sections
    if share is not None:
        sections = {**sections, "privacy": {"spend": share.value}}
    if facts.kept_goal != ACCURACY:
        sections = {**sections, "student": {**sections.get("student", {}), "goal": facts.goal}}
    notes = []
    if found.synthetic:
        expected = from_experience(facts)
        notes.append(
            f"fewer than {ENOUGH} public labels are known, so the rehearsal used clusters in place of "
            f"classes: noise costs {100 * max(0.0, at(NO_NOISE).score - whole.score):.1f} points "
            "there. A few hundred public labels would make a real prediction possible"
        )
    else:
        alone, half, steps = rehearsal.alone(), rehearsal.alone(0.5), None
        unshown = facts.unshown(OF_EACH)
        is_combined = not (is_by_votes or unshown) and facts.dpsgd.public_labels == COMBINE
        if not is_by_votes and share_of_more(facts, alone.n) < _MANY_MORE:
            steps = rehearsal.steps_of_known(facts.signal)

        def expected_at(signal: float) -> Expected:
            here = tried[candidate.name] if signal == facts.signal else at(signal)
            # Without noise, few stand-ins are learnt by heart: less than they teach, then.
            most = max(at(NO_NOISE).score, alone.score)
            cost = max(0.0, most - here.score)
            told = from_labels(
                facts, alone, half, cost, n_test, steps if signal == facts.signal else None
            )
            return of_some_classes(told, len(unshown) / len(facts.classes))

        expected = expected_at(facts.signal)
        teach = replace(expected, middle=alone.score).is_better  # by themselves
        begins = _ALONE if is_combined and teach else NOT_WORTH_IT
        notes += _if_useless(facts, expected_at, begins)
        notes += _of_unshown(unshown)
        if not unshown:
            notes += _of_public_labels(expected, alone, teach, is_combined)
        if is_combined:
            expected = at_least(expected, alone)
    notes += _of_shape(facts)
    if X_test is not None and (apart := rehearsal.apart_from(X_test)) > _OTHERS:
        notes.append(
            f"public and test records differ: a model tells them apart (AUC {apart:.2f}; 0.5 if they "
            "were alike). The prediction is for records like the public ones"
        )
    return Recommendation(
        candidate,
        sections,
        expected,
        tried,
        candidate.sections.get("aggregation", {}).get("answers"),
        *_resources(facts, rehearsal, candidate, n_test or 0, working),
        _consent(everything, facts, at if not found.synthetic else None),
        tuple(notes),
        share,
        found.synthetic,
    )


def _chosen_share(
    spend: float | str, facts: Facts, at: _Scores, is_by_votes: bool, synthetic: bool
) -> Share | None:
    """Choose how much of these budgets to spend; None if that was said."""
    if spend != AUTO:
        return None
    if is_by_votes:
        return Share.of_answers()
    if synthetic:
        return Share.half()
    if facts.unshown(OF_EACH):
        return Share.half(NOT_ALL_CLASSES)
    return least_share(lambda part: at(facts.with_share(part).signal), MEASURES[facts.goal])


def _is_better(votes: Rehearsed, direct: Rehearsed, synthetic: bool) -> bool:
    """Tell whether votes are so much better that chance does not explain it; clusters prove little."""
    margin = 2 * math.hypot(votes.error, direct.error) + (_OF_CLUSTERS if synthetic else _SO_FAR)
    return votes.score > direct.score + margin


def _resources(
    facts: Facts, rehearsal: DPSGDRehearsal, candidate: Candidate, n_test: int, working: int
) -> tuple[float, float]:
    """Guess minutes and gigabytes of a run from what the rehearsal took.

    ``working``: bytes that direct training takes beside the records.
    """
    n = facts.n_records + facts.n_public + n_test
    seconds = (
        n * rehearsal.seconds_to_see
        + facts.n_records * rehearsal.seconds_to_step
        + rehearsal.seconds_to_solve
        + _BEGINNING
    )
    if candidate.has_student:
        seconds += facts.n_public * _STUDENT
    given = n * bytes_of(facts.X_public) / facts.n_public
    # Either public records are being learnt from, or all private ones are seen.
    anchors = rehearsal.anchors_of(facts.n_public)
    at_once = max(
        8 * facts.n_records * rehearsal.n_features,
        8 * anchors * (_SQUARES * anchors + facts.n_public),
        working,
    )
    return seconds / 60, (PROGRAM + _COPIES * given + at_once) / 2**30


class _Scores:
    """Scores at a few signals, and between them, never falling as the signal grows."""

    def __init__(self, rehearsal: DPSGDRehearsal) -> None:
        self._rehearsal = rehearsal
        self._known: dict[float, Rehearsed] = {}

    def __call__(self, signal: float) -> Rehearsed:
        if signal not in self._known:
            self._known[signal] = self._rehearsal.score(signal)
        return self._known[signal]

    def between(self, signal: float, base: float) -> float:
        """Interpolate, from the score at ``base`` and at four times of it, or, if near, without noise."""
        here, most = self(base), self(NO_NOISE).score
        low, high = here.score, most
        if (
            most > low + here.error
        ):  # else four times the signal are no different, and need no rehearsal
            high = self(4 * base).score
        return low + max(0.0, high - low) * min(1.0, math.log(signal / base) / math.log(4))


def _of_public_labels(
    expected: Expected, alone: Rehearsed, teach: bool | None, is_combined: bool
) -> list[str]:
    """Say what public labels are worth, and where they do as well: then nobody's budget need be spent.

    ``teach``: whether they alone are better than a constant answer.
    """
    worth = score_in_words(alone.score, expected.measure)
    if alone.score >= expected.middle:
        if teach is False:
            return []
        return [
            f"the public labels alone are enough for this ({expected.measure} {worth}), at no cost to "
            "anybody: consider whether private records are needed"
        ]
    if not is_combined:
        return []
    return [
        f"{alone.n:,} public labels alone would make a model with {expected.measure} {worth}; it is "
        "combined with that of the private records where that helps, at no cost to anybody"
    ]


def _of_unshown(unshown: list[str]) -> list[str]:
    """Say which classes public labels do not show, where there are any."""
    if not unshown:
        return []
    return [
        f"public labels show fewer than {OF_EACH} records of {listed(unshown)}: they are not learnt from, "
        "and do not tell how often such records are told right; a class that is only written otherwise there "
        "must be written alike"
    ]


def _if_useless(facts: Facts, expected_at: Callable[[float], Expected], begins: str) -> list[str]:
    """Where a constant answer is as good as what private records make, say what it would take."""
    expected = expected_at(facts.signal)
    if expected.is_better is not False:
        return []
    always = "guessing"
    if facts.shares is not None and facts.goal in (ACCURACY, LABELS):
        always = f"always answering “{facts.classes[facts.shares.argmax()]}”"
    line = f"{begins} {always} ({expected.measure}). {_other_goal(facts)}To do better"
    times = 4.0
    while times <= _FARTHEST:
        if expected_at(times * facts.signal).is_better:
            return [
                f"{line}, it takes about {times:g} times as many people, or ε = "
                f"{_epsilon_for(facts, times):.2g} from everybody"
            ]
        times *= 4
    return [
        f"{line}, it takes other features or more public labels: even without noise these tell too "
        "little"
    ]


def _other_goal(facts: Facts) -> str:
    """Advise a goal that counts classes alike, where one is so frequent that nothing else counts."""
    if facts.shares is None or facts.goal != ACCURACY or facts.shares.max() <= MOSTLY_ONE:
        return ""
    return (
        f"{100 * facts.shares.max():.0f} % of the public labels are one class: goal = {BALANCED!r} "
        "([student]) counts all classes alike. "
    )


def _epsilon_for(facts: Facts, times: float) -> float:
    """Find the ε that, granted by everybody, gives so many times the signal."""
    delta = min(budget.delta for budget in facts.groups.values())
    wanted = times * facts.signal / facts.n_people
    low, high = 1e-4, 1e4
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gdp_mu(middle, delta) < wanted else (low, middle)
    return high


def _of_shape(facts: Facts) -> list[str]:
    """Notes about sizes alone."""
    notes = []
    if len(facts.sizes) > facts.n_people:
        notes.append(f"there are more levels ({len(facts.sizes)}) than people ({facts.n_people})")
    known = facts.known[facts.labelled]
    if known.size and np.unique(known).size == 1:
        notes.append(
            f"all {known.size:,} known public labels are {str(facts.classes[known[0]])!r}: they do not "
            "show how to tell classes apart"
        )
    if facts.kind == TABLE:
        constant = [
            str(name) for name in facts.X_public.columns if facts.X_public[name].nunique() < 2
        ]
        if constant:
            notes.append(
                f"column {constant[0]!r} has the same value in all public records"
                + (f" (and so have {len(constant) - 1} more)" if len(constant) > 1 else "")
                + ", so what private records hold there cannot be used: check that public records are "
                "like private ones"
            )
    few = few_public(facts.X_public)
    return [*notes, few] if few else notes


def _consent(facts: Facts, spent: Facts, at: _Scores | None) -> tuple[Consent, ...]:
    """Ask of each group what half as much again would be worth, of which as large a share is spent."""
    finite = {
        name: b for name, b in facts.groups.items() if not b.is_unlimited and facts.sizes[name]
    }
    if len(finite) > _MOST_ROWS:
        return ()
    rows = []
    for name, budget in finite.items():
        instead = Budget(_MORE * budget.epsilon, budget.delta)
        times = replace(facts, groups={**facts.groups, name: instead}).signal / facts.signal
        gain = None
        if at is not None:
            gain = at.between(times * spent.signal, spent.signal) - at(spent.signal).score
        rows.append(
            Consent(
                name,
                facts.sizes[name],
                budget.epsilon,
                instead.epsilon,
                times,
                gain,
            )
        )
    return tuple(sorted(rows, key=lambda row: -row.signal))


def recommend(
    budgets: Budgets | Budget | ArrayLike,
    *,
    X_public: Any,
    classes: ArrayLike,
    y_public: ArrayLike | None = None,
    goal: str = "accuracy",
    neighbours: str = "zero-out",
    class_shares: Mapping[Any, float] | ArrayLike | None = None,
    delta: float = DEFAULT_DELTA,
    n_records: int | None = None,
    random_state: int = 0,
) -> Recommendation:
    """Choose how to learn, and predict what comes of it, from public facts alone. Spends nothing.

    Rehearses on public records what would be done with the private ones, with the noise of these budgets.

    Parameters
    ----------
    budgets : Budgets, array-like of float of shape (n_records,), float or Budget
        What everybody granted, as for ``fit``: ε per owner, with ``delta``.
    X_public : array-like or DataFrame, shape (n_public, n_features)
        Public records, like the private ones.
    classes : array-like, shape (n_classes,)
        The public list of classes.
    y_public : array-like, shape (n_public,), optional
        Their classes, where somebody knows them; missing values (None, NaN) elsewhere. A few hundred make the
        prediction one.
    goal : {"accuracy", "balanced", "auc", "labels"}
        What the model is for; or labels of public records, which only votes release.
    neighbours : {"zero-out", "replace-one"}
        Whom the guarantee compares.
    class_shares : mapping of class to share, or array-like, optional
        Public shares of the classes.
    delta : float
        δ of budgets that are given as numbers.
    n_records : int, optional
        How many records there are, where everybody has the same budget.
    random_state : int
        Public randomness.

    Returns
    -------
    Recommendation
        ``print`` it; :meth:`Recommendation.estimator` makes what was chosen.

    Raises
    ------
    InputError
        If anything that was given cannot be used.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(500, random_state=0)
    >>> found = recommend(1.0, n_records=5000, X_public=X, y_public=y, classes=[0, 1])
    >>> found.method
    'direct training'
    >>> bool(found.expected.low <= found.expected.middle <= found.expected.high)
    True
    """
    if n_records is None and (isinstance(budgets, Budget) or is_number(budgets)):
        raise InputError(
            "budgets is one budget for everybody, so the number of records is missing: give "
            "n_records, or one ε for each record"
        )
    if n_records is not None:
        check_whole("n_records", n_records, most=_MOST_RECORDS)
    check_choice("neighbours", neighbours, RELATIONS)
    check_choice("goal", goal, MEASURES)
    granted = split_by_level(as_budgets(budgets, delta, n_records)).budgets
    X = as_records(X_public, "public")
    if 0 in X.shape:
        raise InputError(
            f"public records must have rows and columns, got shape {X.shape}: give some like the private ones"
        )
    known, names = np.full(X.shape[0], -1, dtype=np.intp), np.unique(np.asarray(classes))
    if y_public is not None:
        given = one_each(y_public, X.shape[0], "public records", "classes in y_public")
        known = pd.Index(names).get_indexer(pd.Index(given)).astype(np.intp)
        strange = np.flatnonzero((known < 0) & ~pd.isna(np.asarray(given, dtype=object)))
        if strange.size:
            raise InputError(
                f"y_public: {strange.size:,} of {len(known):,} labels are not in classes, first "
                f"{str(given[strange[0]])!r} in record {strange[0] + 1:,}: allowed are "
                f"{', '.join(map(str, names[:20]))}; leave unknown ones missing (None or NaN)"
            )
    facts = Facts.of(
        granted,
        classes=names,
        X_public=X,
        known=known,
        n_records=granted.n_records,
        goal=goal,
        neighbours=RELATIONS[neighbours],
        class_shares=None if class_shares is None else as_class_shares(class_shares, names),
        seed=random_state,
    )
    return recommend_from(facts)

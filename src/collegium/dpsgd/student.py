"""A student that learns from what a directly trained model believes about public records: post-processing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collegium.data.tables import one_hot
from collegium.distillation.goal import ACCURACY, BALANCED, answering
from collegium.distillation.rehearsal import rehearse_student
from collegium.distillation.share_matching import match_shares
from collegium.dpsgd.ensemble_choice import Choice, learnt_from
from collegium.dpsgd.run import DPSGDRun
from collegium.errors import CollegiumError
from collegium.models.trial import one_line_about
from collegium.runs.views import SAME, View, fitted_view


class DistilledStudent:
    """The student of a run of direct training; it costs nobody anything.

    It learns, of every public record, the directly trained model's belief in each class. Records whose owners
    let them be published are beyond doubt.

    Parameters
    ----------
    run : DPSGDRun
        With public records.
    estimator : estimator
        What learns; not changed.
    preprocessing : "same", None or transformer
        What it sees of records: as the model does, as they are, or another transformer.
    shares : ndarray, shape (n_classes,), optional
        Public shares of the classes that it is matched to.
    goal : {"accuracy", "balanced", "auc"}
        What its answers are to be good at.
    name, view_name : str
        What messages call the estimator and its preprocessing.
    """

    def __init__(
        self,
        run: DPSGDRun,
        estimator: Any,
        *,
        preprocessing: Any = SAME,
        shares: NDArray[np.float64] | None = None,
        goal: str = ACCURACY,
        name: str = "student",
        view_name: str = "preprocessing of the student",
    ) -> None:
        self._run, self._estimator, self._preprocessing = run, estimator, preprocessing
        self._shares, self._goal, self._name, self._view_name = shares, goal, name, view_name

    @cached_property
    def view(self) -> View:
        """What it sees of records: as the model does, if nothing else is said."""
        if isinstance(self._preprocessing, str):
            return self._run.view
        return fitted_view(self._preprocessing, self._run.records.X_public, self._view_name)

    @cached_property
    def _seen(self) -> Any:
        if self.view is self._run.view:
            return self._run.X_seen
        with one_line_about(self.view.name, "applied to the public records"):
            return self.view.of(self._run.records.X_public, self._run.memory.folder)

    def rehearsed(self) -> Any | None:
        """Train it on synthetic beliefs, as it would be published; None where there is nothing to try."""
        student = rehearse_student(
            self._estimator,
            self._seen,
            self._run.records.classes,
            soft=True,
            class_shares=self._shares,
            name=self._name,
        )
        return None if student is None else self.view.published(student)

    def taught(
        self, model: Any, tell: Callable[[str], None] | None = None
    ) -> tuple[Any, Choice | None]:
        """Train it on a model's beliefs, and tell which of both is better.

        ``tell``: told, in a line, if it cannot be trained: budgets are spent by then, and what they paid for
            is published, the model. Default: the run's observer.
        Returns: the better one, or both where each is, which takes records as they are; and why.
        """
        run = self._run
        try:
            return self._taught(model)
        except CollegiumError as error:
            tell = run.observer.note if tell is None else tell
            tell(f"the model itself is published: {error}")
            return published_model(run, model, self._goal), None

    def _taught(self, model: Any) -> tuple[Any, Choice]:
        run = self._run
        classes, given = run.records.classes, run.records.given
        certain = None
        if given is not None:
            with one_line_about(self.view.name, "applied to the records of public levels"):
                shown = self.view.of(given.X, run.memory.folder)
            certain = shown, one_hot(given.codes, len(classes))
        noise = run.noise_left * run.weight_of_private
        with one_line_about(self._name, "trained on what the model believes"):
            student, choice = learnt_from(
                model,
                self._estimator,
                noise,
                run.X_seen,
                self._seen,
                classes,
                certain=certain,
                refine=self._matched,
                seed=run.recipe.seed,
                tell=run.observer.note,
            )
        if not choice.student:
            return published_model(run, model, self._goal), choice
        both, views = (model, student), (run.view, self.view)
        return published_by(
            choice, self._goal, noise, both, views, run.records.X_public, self._seen
        ), choice

    def _matched(self, student: Any) -> Any:
        if self._shares is None:
            return student
        return match_shares(student, self._seen, self._run.records.classes, self._shares)


def published_by(
    choice: Choice,
    goal: str,
    noise: float,
    both: tuple[Any, Any],
    views: tuple[View, View],
    X_public: Any,
    seen: Any,
) -> Any:
    """Let what a choice publishes, the student's part in it, answer for a goal, and take records as they are.

    ``both``, ``views``: the model and the student, and what each of them sees of records.
    ``X_public``, ``seen``: public records as they are, and as the student sees them.
    """
    (model, student), (of_model, of_student) = both, views
    if choice.alone or of_student.transformer is of_model.transformer:
        return of_student.published(answering(goal, choice.of(model, student, noise), seen))
    better = choice.of(of_model.published(model), of_student.published(student), noise)
    return answering(goal, better, X_public)


def published_model(run: DPSGDRun, model: Any, goal: str) -> Any:
    """Let what DP-SGD trained answer for a goal, and take records as they are."""
    seen = run.X_seen if goal == BALANCED else None
    return run.view.published(answering(goal, model, seen))

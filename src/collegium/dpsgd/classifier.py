"""The scikit-learn face of direct training: private records and budgets in, a publishable model out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from collegium.budgets import DEFAULT_DELTA, Budget, Budgets
from collegium.checks import check_truth, shown
from collegium.data.record_kinds import kind_of_records
from collegium.data.tables import encode_classes
from collegium.distillation.goal import (
    ACCURACY,
    BALANCED,
    answering,
    check_goal,
    without_goal,
)
from collegium.distillation.supervised import believed_by, seeded
from collegium.dpsgd.by_rule import USUAL_STUDENT
from collegium.dpsgd.ensemble_choice import Choice, learnt_from
from collegium.dpsgd.estimator_base import AUTO, Answering, DPSGDEstimator, warn_user
from collegium.dpsgd.linear_model import as_rows
from collegium.dpsgd.progress import OnStep
from collegium.dpsgd.public_labels import judged_unseen
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import DPSGDSettings, Sampling
from collegium.dpsgd.student import DistilledStudent, published_by
from collegium.errors import InputError
from collegium.evaluation.quality import (
    LEARNT,
    Quality,
    judge_by_itself,
    measure_quality,
    of_a_model,
)
from collegium.models.catalogue import build_model
from collegium.models.classifiers import check_classifier
from collegium.models.trial import one_line_about
from collegium.runs.estimator_base import (
    ClassifierFace,
    one_each,
    share_to_spend,
    warn_of_quality,
)
from collegium.runs.fit_inputs import NO_LIST, given_records
from collegium.runs.records import Records
from collegium.runs.views import SAME, View, fitted_view

if TYPE_CHECKING:
    from collegium.ledger.ledger import Ledger
    from collegium.parties.collective import Party

_DEFAULT = DPSGDSettings()
_LEARNS_BY = ("fit", "fit_released")


class DPSGDClassifier(ClassifierFace, DPSGDEstimator):
    """A linear classifier that is trained directly, under individual privacy budgets.

    Softmax (for two classes: logistic) regression, learnt by noisy steps: in each, everybody's gradient is
    clipped, weighted by what each person granted, summed, and noised; the account of a full batch is exact.
    Needs no public records; with some, features are whitened on them, which helps a lot, and a student may
    learn from what the model believes about them. The fitted object holds the published model, the plan and
    the statement, and nothing of any private record.

    Parameters
    ----------
    sampling : "full-batch" or Sampling
        Who takes part in a step: everybody, with a say in proportion to what they grant; or, as
        ``Sampling("sample", rate=0.1)`` or ``Sampling("scale", rate=0.1)`` says, a random sample, in which
        generous people are more often, or have more say. Its ``accountant`` (``"pld"``, or ``"rdp"``) and,
        of full batches, its ``individual_filter`` are described there (:class:`~collegium.Sampling`).
    steps : int
        How many; fixed beforehand, and paid for.
    clip_norm : float
        Norm to which the gradient of all of a person's records together is clipped.
    learning_rate : float, optional
        Size of the steps. Default: as large as the noise allows, from public numbers alone. One that is too
        large is warned of, from what was released.
    components : int, optional
        How many principal components of the public records the model looks at, where preprocessing makes
        some. Default: as many as there is signal for, at most those that it makes.
    momentum : float
        Share of a step that the next one repeats.
    neighbours : {"zero-out", "replace-one"}, optional
        Whom the guarantee compares: a person's records are there or blank; or are others, which takes twice
        the noise. Default: as the ledger promises, or else blanked.
    delta : float
        δ of budgets that are given as numbers.
    student : None, "auto" or estimator
        What learns from the model's beliefs about the public records, which costs nobody anything and helps
        where budgets are small; the better of both is published, or each where it knows better, as
        ``choice_`` says. ``"auto"``: what a plan chooses, of images a
        :class:`~collegium.students.GaussianProcessStudent`, else none. It sees what the model sees; for
        another view, or another student of the same model: :meth:`teach`.
    preprocessing : "auto", None or transformer
        Fitted on the public records only, applied to all; rows are then brought to unit length. ``"auto"``:
        what is usual for such records, or None where there are no public ones. None: features as they are.
        What learns nothing needs no public records: :class:`~collegium.features.DeclaredTable` of a schema.
    classes : array-like, optional
        The public list of classes. Default: those that occur in ``y``, which the guarantee then does not
        cover: ``privacy_`` says so, and a :class:`~collegium.PrivacyWarning` is given.
    goal : {"accuracy", "balanced", "auc"}
        What the model is to be good at (:mod:`collegium.distillation.goal`): to be right as often as
        possible; to be right about each class alike, however frequent it is (its probabilities are held
        against the shares that it believes in over the public records, which it needs); or to put records
        in order. Steps and probabilities are the same, and so is the cost.
    noise_seed : int, optional
        Seeded noise (and samples) for experiments: **the result is not private**. Default: from the
        operating system.
    random_state : int, RandomState or None
        Public randomness.
    n_jobs : int, optional
        Threads of the sums; what comes out does not depend on it. Default: those of BLAS.
    verbose : int
        1: a line a second on standard error, with the time left; 2: a line for each step.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class labels.
    model_ : Pipeline
        What is published: a fitted scikit-learn pipeline that takes records as they are (without missing
        values, unless its preprocessing fills them; of numbers beyond 1e150, or all below 1e-150, it makes
        nothing, where :meth:`predict` does).
    direct_ : Pipeline
        What the steps trained: ``model_`` itself, unless a student is published, too.
    choice_ : Choice or None
        Which of both is published, and why; None without a student.
    preprocessing_ : transformer or None
        As fitted to public records; the first step of ``model_``.
    privacy_ : PrivacyStatement
        Budgets and spending by group: ``privacy_.by_group()``.
    noise_ : float
        Standard deviation of the noise that all steps left in a score of a row of unit length. Public.
    public_labels_ : PublicLabels or None
        What public labels added, where there are any: ``print(model.public_labels_.in_words)``.
    plan_ : DPSGDPlan
        Rates, clips and noise: from public numbers alone.
    steps_taken_ : int
        Steps that were charged.
    quality_ : Quality or None
        What can be said of the model without test records: whether it names one class for all public
        records; with ``y_public``, how right it is on them. With test records: :meth:`quality`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    Abadi et al., *Deep learning with differential privacy*, arXiv:1607.00133; Boenisch et al., *Have it your
    way: individualized privacy assignment for DP-SGD*, arXiv:2303.17046; Dong, Roth & Su, *Gaussian
    differential privacy*, arXiv:1905.02383.

    Notes
    -----
    Missing values, and what is no number, count as 0 once records are preprocessed. Each fit is a release of
    its own. A search (``GridSearchCV``) or cross-validation on private records makes many: each spends the
    budgets anew, which is warned of where noise is private, and no statement adds up, nor covers scores of
    records that were held out, as ``privacy_`` then says. With a ``ledger`` it is
    refused, since the first fit would spend what all of them need: search without one on public records, or
    with ``noise_seed`` where nothing gets out, and fit once with the ledger.

    Steps before it in a scikit-learn ``Pipeline``, such as a ``StandardScaler``, would be fitted to all
    private records, which no account covers: they are refused, unless they learn nothing, such as a
    ``Normalizer`` (:mod:`collegium.runs.callers`). The scaler belongs into ``preprocessing``, with public
    records.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from collegium import DPSGDClassifier, Policy
    >>> X, y = load_digits(return_X_y=True)
    >>> policy = Policy({"high": 1.0, "low": 3.0})
    >>> budgets = policy.assign(["high"] * 400 + ["low"] * 800)
    >>> model = DPSGDClassifier(steps=40, classes=range(10), noise_seed=1)
    >>> model = model.fit(X[:1200], y[:1200], budgets=budgets, X_public=X[1200:1500])
    >>> model.privacy_.by_group()["epsilon_spent"].round(6).to_dict()
    {'high': 1.0, 'low': 3.0}
    >>> bool(model.score(X[1500:], y[1500:]) > 0.7)
    True
    """

    def __init__(
        self,
        *,
        sampling: str | Sampling = _DEFAULT.sampling,
        steps: int = _DEFAULT.steps,
        clip_norm: float = _DEFAULT.clip_norm,
        learning_rate: float | None = _DEFAULT.learning_rate,
        components: int | None = _DEFAULT.components,
        momentum: float = _DEFAULT.momentum,
        student: Any = None,
        neighbours: str | None = _DEFAULT.neighbours,
        delta: float = DEFAULT_DELTA,
        preprocessing: Any = AUTO,
        classes: ArrayLike | None = None,
        goal: str = ACCURACY,
        noise_seed: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.sampling = sampling
        self.steps = steps
        self.clip_norm = clip_norm
        self.learning_rate = learning_rate
        self.components = components
        self.momentum = momentum
        self.student = student
        self.neighbours = neighbours
        self.delta = delta
        self.preprocessing = preprocessing
        self.classes = classes
        self.goal = goal
        self.noise_seed = noise_seed
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        budgets: Budgets | Budget | ArrayLike,
        X_public: Any = None,
        y_public: ArrayLike | None = None,
        public_may_overlap: bool = False,
        scales_may_differ: bool = False,
        ledger: Ledger | None = None,
        spend: float | None = None,
        release_name: str = "DPSGDClassifier.fit",
        on_step: OnStep | None = None,
        parties: Party | None = None,
    ) -> DPSGDClassifier:
        """Plan, and take all steps.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Private records.
        y : array-like, shape (n_records,)
            Their classes.
        budgets : Budgets, array-like of float of shape (n_records,), float or Budget
            From :meth:`Policy.assign <collegium.Policy.assign>`, or one ε per record, or the same for
            everybody. Records with ε = 0 are read into nothing: the result is what it would be without them.
            Those of a policy's public levels count as public records whose classes are known.
        X_public : array-like or DataFrame, shape (n_public, n_features), optional
            Public records: what preprocessing is fitted to.
        y_public : array-like, shape (n_public,), optional
            Their classes; missing ones are allowed. A model of those that are known is combined with that of
            the private records, weighted by how right each is, if that is better: ``public_labels_`` says
            what each is worth. 200 and more of a table also teach trees, whose answer is one more column. It
            costs nobody anything.
        public_may_overlap : bool, default=False
            Whether public records may equal private ones. By default more than a handful are refused.
        scales_may_differ : bool, default=False
            Whether private and public numbers may lie on different scales.
        ledger : Ledger, optional
            One account per person over all releases: who has less left has less say, who has nothing left
            takes no part, and all that may be spent is reserved before the first step. Needs named owners
            and a list of classes. Default: nobody remembers what was spent before.
        spend : float, optional
            Which share of what people have left in the ledger this fit may use: above 0, at most 1. Default:
            half, since other releases are to follow; 1 leaves them nothing.
        release_name : str
            What the ledger calls this release, for people who read their account.
        on_step : callable, optional
            Is told after each step how it stands (:class:`~collegium.dpsgd.progress.Progress`: ``step``,
            ``epsilon`` by group, the ``model`` as released), and stops the training by returning True. What
            it decides may depend on public and released things alone, never on private records.

        parties : Party, optional
            Take the steps over the records of several parties, which show one another none of them; all call
            this with the same settings and public records, and get the same model. Needs a list of classes.

        Returns
        -------
        DPSGDClassifier

        Raises
        ------
        InputError
            If anything given cannot be used; nothing has been spent then.
        BudgetExceededError
            If nobody has anything left in the ledger.
        """
        self._forget()
        share = share_to_spend(ledger, spend)
        check_truth("public_may_overlap", public_may_overlap)
        check_truth("scales_may_differ", scales_may_differ)
        check_goal(self.goal)
        if self.goal == BALANCED and X_public is None:
            raise InputError(
                f"goal {BALANCED!r} takes the shares of the classes from public records, and there are none: "
                "give X_public, or another goal"
            )
        if ledger is not None and self.classes is None:
            raise InputError(NO_LIST)
        if parties is not None and self.classes is None:
            raise InputError(
                "classes are missing: all parties need the same public list; give classes=[…]"
            )
        recipe = self._recipe(X_public)
        given = given_records(
            X,
            y,
            budgets,
            X_public,
            encode=partial(encode_classes, classes=self.classes),
            delta=self.delta,
            private_classes=self.classes is None,
            public_may_overlap=public_may_overlap,
            scales_may_differ=scales_may_differ,
            learner="the model",
        )
        known = self._codes_of_public(y_public, given.records)
        self.classes_ = given.records.classes
        run = self._learn(recipe, given, known, on_step, ledger, share, release_name, parties)
        self._publish_better(run)
        self.quality_: Quality | None = self._verdict(run, known)
        if self.quality_ is not None and self.quality_.tone == "caution":
            warn_of_quality(self.quality_)
        return self

    def _codes_of_public(
        self, y_public: ArrayLike | None, records: Records
    ) -> NDArray[np.float64] | None:
        """Number the classes of public records; NaN where none is known."""
        if y_public is None:
            return None
        if records.X_public is None:
            raise InputError("y_public are classes of public records: give X_public, too")
        given = one_each(y_public, int(records.X_public.shape[0]), "public records", "classes")
        known = ~pd.isna(given)
        codes = np.full(len(given), np.nan)
        if known.any():
            codes[known] = encode_classes(given[known], records.classes)[1]
        return codes

    def _verdict(self, run: DPSGDRun, known: NDArray[np.float64] | None) -> Quality | None:
        if run.records.X_public is None:
            return None
        combined = self.public_labels_
        if combined is not None and known is not None:
            # A student learnt these labels, too, by the model.
            unseen = judged_unseen(combined, known, self.classes_, self.goal)
            if unseen is not None:
                return self._worded(unseen)
        model, prepared = self._ready_for(run.X_seen)
        predicted = model.predict(prepared)
        found = None
        if combined is None and known is not None:
            truth = np.full(len(predicted), None, dtype=object)
            there = ~np.isnan(known)
            truth[there] = self.classes_[known[there].astype(np.intp)]
            beliefs = believed_by(model, prepared, self.classes_)
            found = measure_quality(self.classes_, truth, predicted, beliefs, LEARNT, self.goal)
        return self._worded(judge_by_itself(self.classes_, predicted) if found is None else found)

    def _recipe(self, X_public: Any) -> DPSGDRecipe:
        student = self.student
        if isinstance(student, str) and student != AUTO:
            raise InputError(f"student must be 'auto', None or a classifier, got {shown(student)}")
        if student is not None and not isinstance(student, str):
            check_classifier(student, "student", learns_by=_LEARNS_BY)
            if X_public is None:
                raise InputError(
                    f"student ({type(student).__name__}) learns from public records, and there are none: "
                    "give X_public, or leave student out"
                )
        return super()._recipe(X_public)

    def _student_of(self, run: DPSGDRun) -> DistilledStudent | None:
        """Build the student; None where there is to be none."""
        student, public = self.student, run.records.X_public
        if public is None:
            return None
        if isinstance(student, str):
            usual = USUAL_STUDENT.get(kind_of_records(public))
            student = None if usual is None else build_model("student", usual, {})
        if student is None:
            return None
        return DistilledStudent(run, seeded(student, run.recipe.seed), goal=self.goal)

    def _rehearse(self, run: DPSGDRun) -> None:
        believer = self._student_of(run)
        if believer is not None:
            believer.rehearsed()

    def _publish_better(self, run: DPSGDRun) -> None:
        self.direct_, self.choice_ = self.model_, None
        believer = self._student_of(run)
        if believer is None:
            return
        direct = without_goal(self._last(self.model_))
        self.model_, self.choice_ = believer.taught(direct, warn_user)

    def _answering(self, run: DPSGDRun) -> Answering:
        if self.goal != BALANCED:
            return super()._answering(run)
        return partial(answering, self.goal, X_public=as_rows(run.X_seen, "public records"))

    def _worded(self, found: Quality) -> Quality:
        return of_a_model(found)

    def teach(
        self, student: Any, X_public: Any, *, preprocessing: Any = SAME
    ) -> tuple[Any, Choice]:
        """Let a student learn from what the model believes of public records, and tell which is better.

        Post-processing of what was released: it costs nobody anything, and may be tried again. A student that
        learns how public records lie to each other, such as a
        :class:`~collegium.students.GaussianProcessStudent`, mends what noise did to the model.

        Parameters
        ----------
        student : estimator
            Any scikit-learn classifier, or a student with ``fit_released``; not changed.
        X_public : array-like or DataFrame, shape (n_public, n_features)
            Public records, the more the better.
        preprocessing : "same", None or transformer
            What the student sees: what the model does, records as they are, or another transformer, fitted
            on these records.

        Returns
        -------
        Pipeline
            The student, the model itself, or each where it knows better; takes records as they are.
        Choice
            ``choice.student`` and ``choice.alone`` tell which it is, ``choice.in_words`` why; made of public
            and released things alone.

        Raises
        ------
        InputError
            If the records are not like those that the model was fitted to, or the student cannot learn from
            them.
        """
        check_classifier(student, "student", learns_by=_LEARNS_BY)
        records, own = self._like_fitted(X_public), View(self.preprocessing_, "preprocessing")
        model, shown = without_goal(self._last(self.direct_)), own.of(records)
        prepared = as_rows(shown, "records")
        if isinstance(preprocessing, str) and preprocessing == SAME:
            view, seen = own, shown
        else:
            view = fitted_view(preprocessing, records, "preprocessing")
            seen = view.of(records)
        with one_line_about("student", "trained on what the model believes"):
            taught, choice = learnt_from(model, student, self.noise_, prepared, seen, self.classes_)
        if not choice.student:
            return self.direct_, choice
        both, views = (model, taught), (own, view)
        return published_by(choice, self.goal, self.noise_, both, views, records, seen), choice

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities, shape (n_records, n_classes)."""
        model, prepared = self._ready(X)
        return believed_by(model, prepared, self.classes_)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Score classes, as scikit-learn's LogisticRegression does, whatever the goal is.

        Where a student is published, too, these are the logarithms of probabilities, and for two classes
        their difference.
        """
        model, prepared = self._ready(X)
        if not self._student_answers:
            return np.asarray(model.decision_function(prepared))
        with np.errstate(divide="ignore"):
            beliefs = believed_by(model, prepared, self.classes_)
            scores = np.log(np.maximum(beliefs, np.finfo(float).tiny))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _ready_for(self, seen: Any) -> tuple[Any, Any]:
        """Give what is published, and records as it takes them; a student learnt of rows of any length."""
        if self._student_answers:
            return self._last(self.model_), seen
        return super()._ready_for(seen)

    @property
    def _student_answers(self) -> bool:
        choice = getattr(self, "choice_", None)  # none before it is fitted
        return choice is not None and choice.student

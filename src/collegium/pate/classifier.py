"""The scikit-learn face of Collegium: private records and budgets in, a publishable student out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from collegium.accounting.statement import PrivacyStatement
from collegium.budgets import Budget, Budgets
from collegium.checks import check_truth
from collegium.data.class_shares import as_class_shares
from collegium.data.record_kinds import has_more_than_numbers, kind_of_records
from collegium.data.tables import (
    as_records,
    encode_classes,
)
from collegium.distillation.goal import ACCURACY
from collegium.distillation.supervised import beliefs_of
from collegium.errors import (
    InputError,
    NothingReleasedError,
    StudentError,
)
from collegium.evaluation.effects import Effects, StudentAnswers, measure_effects
from collegium.evaluation.quality import (
    Quality,
    beliefs_about,
    judge_by_answers,
)
from collegium.index_alignment import refuse_other_order
from collegium.models.preprocessing import TabularEncoder
from collegium.noise.sources import noise_from
from collegium.pate.between_parties import PERSON, joint_votes, recipe_of_parties, together
from collegium.pate.by_rule import FEWEST, FEWEST_ASKED, VoteChoice, signal, votes_by_rule
from collegium.pate.classifier_settings import (
    check_settings,
    shares_of,
    views_of,
    where_and_how_many,
)
from collegium.pate.memory import Memory, TrainedTeachers
from collegium.pate.pipeline import PateRun
from collegium.pate.recipe import Recipe
from collegium.pate.recipe_by_rule import chosen_recipe
from collegium.pate.settings import Account, Queries
from collegium.pate.teacher_effects import sensitive_teacher_effects
from collegium.pate.voting.aggregators import Aggregator, ConfidentGNMax
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import Personalisation, as_personalisation
from collegium.runs.callers import with_what_called
from collegium.runs.estimator_base import (
    ClassifierFace,
    one_each,
    share_to_spend,
    tell_of_fits_before,
    warn_of_quality,
)
from collegium.runs.fit_inputs import NO_LIST, given_records
from collegium.runs.records import Records
from collegium.runs.user_warnings import Warner
from collegium.runs.views import View
from collegium.workers.engines import Engine, running

if TYPE_CHECKING:
    from collegium.ledger.allowance import Entry
    from collegium.ledger.ledger import Ledger
    from collegium.parties.collective import Party

_TEACHERS = 250
ADVICE = "the statement in `privacy_` tells what was spent"


def default_model() -> Any:
    """Logistic regression on standardised features: what is used where no model is given."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


_DEFAULTS: dict[str, Any] = {
    "aggregator": ConfidentGNMax(),
    "account": Account(),
    "queries": Queries(),
}


def _student_has(method: str) -> Any:
    def check(self: PATEClassifier) -> bool:
        student = getattr(self, "student_", None)
        if student is None:
            student = self.student if self.student is not None else default_model()
        return hasattr(student, method)

    return check


class PATEClassifier(ClassifierFace):
    """A classifier trained under individual privacy budgets.

    Teachers are trained on disjoint (when upsampling or bagging: overlapping) shards of the private records;
    they vote on public records; the votes are noised and accounted for each owner; voting stops before
    any owner's budget is exceeded; a student learns from the released labels. The fitted object holds the
    student and the statement, not the teachers or votes: under a worst-case guarantee with secure noise
    it may be published as it is.

    Parameters
    ----------
    teacher : estimator, optional
        Model of each teacher: any object with ``fit`` and ``predict``. Preprocessing belongs into its
        pipeline, or into ``preprocessing``. Default: logistic regression on standardised features; but
        where it, ``n_teachers``, ``aggregator``, ``queries``, ``student`` and preprocessing are all left out,
        they follow from public numbers (:mod:`collegium.pate.by_rule`), as ``recipe_`` tells.
    n_teachers : int, optional
        Nominal number of teachers k, for which the aggregator's numbers are given. Default: 250, or by rule.
    personalisation : str or Personalisation
        How budgets become influence: ``"uniform"``, ``"upsampling"``, ``"weighting"``, ``"vanishing"``,
        ``"bagging"`` or ``"hybrid"``. An object has settings of its own, such as ``Weighting(rule="exact")``;
        each has ``assignment``: with ``"hash"`` an owner's teachers follow from the owner's name alone;
        ``"balanced"``: shards of equal size, protecting against replacement only.
    aggregator : Aggregator, optional
        How votes become labels. Default: ``ConfidentGNMax()``, with noise in proportion to ``n_teachers``.
    account : Account, optional
        Which ``guarantee``, and how it is computed. Default: ``Account(guarantee="worst-case")``, which
        holds whatever the data are. ``Account("data-dependent")`` is the papers' account of this one data
        set: what it spends is sensitive, and so is the number of labels; ``orders`` (``"wide"``,
        ``"seeds"`` or numbers above 1), ``conversion`` (``"canonne"``, or ``"mironov"`` as in the papers)
        and ``bounds`` (``"papers"``, or ``"sharp"``) say how. ``price`` is what an answer is charged in the
        worst case: ``"histogram"``, or ``"labels"`` where they alone are released; default: whichever pays
        for more answers, as ``privacy_`` says. ``delta`` is that of budgets given as numbers.
    queries : Queries, optional
        What is asked, and what is shown of the answers: ``query_order`` (``"random"``; ``"coverage"``: public
        records that represent the others best come first; ``"active"``: those of which the student, fitted
        again and again to what was released, is least certain; ``"doubtful"``: the second half are those that
        linear regression of the first is least certain of), ``max_queries``, ``max_labels``,
        ``release`` (``"labels"``, or ``"histogram"``: the noisy counts of all classes) and
        ``targets`` (what the student learns from histograms: ``"mixture"``, ``"noise"``, ``"argmax"``).
    student : estimator, optional
        Any scikit-learn classifier, or a student with ``fit_released(X_public, queries, targets)``, which
        learns from all public records. Default: as ``teacher``'s.
    preprocessing : transformer or mapping, optional
        Fitted on the public records only, applied to all. Or what teachers and student see of records,
        ``{"teacher": transformer, "student": other}``: None is the records as they are; a student that is
        left out sees what teachers see.
    classes : array-like, optional
        The public list of classes. Default: those that occur in ``y``, which the guarantee then does not
        cover: ``privacy_`` says so, and a :class:`~collegium.PrivacyWarning` is given.
    class_shares : mapping, optional
        Against budgets that go by class, which bend votes towards the classes of generous people:
        ``{"teacher": shares, "student": shares}``, or one of both. Shares are *public*: a mapping of class
        to share, or array-like of shape (n_classes,). They cost nobody anything. Each teacher sees its own
        shard in its shares (:mod:`collegium.pate.teachers.class_balance`); the student is corrected until
        its mean belief in each class, over the public records, is the class's share
        (:mod:`collegium.distillation.share_matching`).
    goal : {"accuracy", "balanced", "auc"}
        What the student is to be good at (:mod:`collegium.distillation.goal`): to be right as often as
        possible; to be right about each class alike, however frequent it is; or to put records in order. With
        the last two each teacher votes as if the classes of its shard were equally frequent, and the
        student's probabilities are of such classes, unless its ``class_shares`` are given.
    noise_seed : int, optional
        Seeded noise for experiments: **the result is not private**. Default: noise from the operating
        system.
    random_state : int, RandomState or None
        Public randomness: assignment of owners, training, order of the queries, and a student that has no
        ``random_state`` of its own. The same number gives what a study with this ``seed`` gives.
    n_jobs : int, str or Engine, optional
        Parallel training, as in joblib: how many at once, on the joblib backend that is active (``with
        joblib.parallel_config("threading"): …``). Or where teachers are trained and asked, by all who work
        there: ``"local"``, ``"dask"``, ``"ray"``, another joblib backend, or an
        :class:`~collegium.workers.engines.Engine` with its own number of workers.
    verbose : int, default=0
        Progress messages of training and voting, as in joblib.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class labels.
    recipe_ : VoteChoice or None
        What was chosen by rule; None where something was given.
    student_ : estimator
        The student; it predicts classes of records as ``student_preprocessing_`` shows them.
    preprocessing_, student_preprocessing_ : transformer or None
        As fitted, for teachers and for the student.
    privacy_ : PrivacyStatement
        Budgets and spending by group: ``privacy_.by_group()``.
    plan_ : Plan
        Teachers, weights, duplicates and frequencies.
    labelled_indices_ : ndarray of int, shape (n_labels,)
        Rows of ``X_public`` that got a label.
    labels_ : ndarray, shape (n_labels,)
        Their released labels.
    targets_ : ndarray, shape (n_labels, n_classes)
        What the student learnt of them: probabilities from histograms, or one-hot labels.
    histograms_ : NoisyHistograms
        Noisy counts and checks of all queries asked, with ``release="histogram"``.
    quality_ : Quality
        What can be said of the student without test records: whether it names one class for everything, and
        how far it agrees with the released answers. With test records: :meth:`quality`.
    n_queries_ : int
        Queries asked.
    stop_reason_ : {"budget", "queries", "labels"}
        Why voting ended.
    n_public_ : int
        Public records given.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    Papernot et al., *Semi-supervised knowledge transfer…*, arXiv:1610.05755v4; Papernot et al., *Scalable
    private learning with PATE*, arXiv:1802.08908v1; Boenisch et al., *Individualized PATE*, PoPETs 2023.

    Notes
    -----
    Preprocessing belongs into ``teacher`` or ``preprocessing``: ``PATEClassifier(preprocessing=
    StandardScaler())`` fits the scaler on the public records and applies it to all. The earlier steps of a
    scikit-learn ``Pipeline`` around a ``PATEClassifier``, as in ``make_pipeline(StandardScaler(),
    PATEClassifier())``, would be fitted to all private records together, which no account covers: ``fit``
    refuses them, unless they learn nothing (:mod:`collegium.runs.callers`). Searching
    parameters with ``GridSearchCV`` on private records is not accounted for, either: each fit is a release
    of its own (of a second one on most of the same records, in one process, a
    :class:`~collegium.PrivacyWarning` tells, unless ``noise_seed`` is set; with a ``ledger`` it is refused),
    and so are scores of private records that were held out, as ``privacy_`` then says.
    It also cuts whatever has as many rows as ``X``: give it an ``X_public`` of another length.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from collegium import GNMax, PATEClassifier, Policy
    >>> X, y = load_digits(return_X_y=True)
    >>> policy = Policy({"high": 8.0, "low": 16.0}, delta=1e-5)
    >>> budgets = policy.assign(["high"] * 400 + ["low"] * 800)
    >>> model = PATEClassifier(n_teachers=40, aggregator=GNMax(sigma=8), noise_seed=1, random_state=1)
    >>> model = model.fit(X[:1200], y[:1200], budgets=budgets, X_public=X[1200:1500])
    >>> model.privacy_.by_group()["epsilon"].to_dict()
    {'high': 8.0, 'low': 16.0}
    >>> bool((model.privacy_.by_group()["spent_share"] <= 1).all())
    True
    """

    _fitted = "student_"

    def __init__(
        self,
        teacher: Any = None,
        *,
        n_teachers: int | None = None,
        personalisation: str | Personalisation = "weighting",
        aggregator: Aggregator | None = None,
        account: Account | None = None,
        queries: Queries | None = None,
        student: Any = None,
        preprocessing: Any = None,
        classes: ArrayLike | None = None,
        class_shares: Mapping[str, Mapping[Any, float] | ArrayLike] | None = None,
        goal: str = ACCURACY,
        noise_seed: int | None = None,
        random_state: Any = None,
        n_jobs: int | str | Engine | None = None,
        verbose: int = 0,
    ) -> None:
        self.teacher = teacher
        self.n_teachers = n_teachers
        self.personalisation = personalisation
        self.aggregator = aggregator
        self.account = account
        self.queries = queries
        self.student = student
        self.preprocessing = preprocessing
        self.classes = classes
        self.class_shares = class_shares
        self.goal = goal
        self.noise_seed = noise_seed
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _setting(self, name: str, given: Any = None) -> Any:
        found = super()._setting(name, given)
        if name == "personalisation" and isinstance(found, str):
            return as_personalisation(found)
        return _DEFAULTS.get(name) if found is None else found

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        budgets: Budgets | Budget | ArrayLike,
        X_public: Any,
        public_may_overlap: bool = False,
        scales_may_differ: bool = False,
        ledger: Ledger | None = None,
        spend: float | None = None,
        release_name: str = "PATEClassifier.fit",
        keep_sensitive: bool = False,
        parties: Party | None = None,
        unit: str = PERSON,
    ) -> PATEClassifier:
        """Train teachers, let them vote, and train the student.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Private records.
        y : array-like, shape (n_records,)
            Their labels.
        budgets : Budgets, array-like of float of shape (n_records,), float or Budget
            From :meth:`Policy.assign <collegium.Policy.assign>`, or one ε per record, or the same for
            everybody. Records, labels and budgets belong together by position: pandas objects with one
            index in two orders are refused. Records with ε = 0 are read into nothing: the result is what it
            would be without them. From those of a policy's public levels the student learns as they are.
        X_public : array-like or DataFrame, shape (n_public, n_features)
            Public records without labels. They say which columns are numbers: what is none in a private
            record ("n/a", say) is a missing value of that record alone, and pandas' types of ``X`` decide
            on nothing.
        public_may_overlap : bool, default=False
            Whether public records may equal private ones. By default more than a handful are refused;
            if it is allowed, the statement says so.

        scales_may_differ : bool, default=False
            Whether private and public numbers may lie on different scales. By default they are refused if one
            side seems to be scaled, or a column to be in another unit.
        ledger : Ledger, optional
            One account per person over all releases: who has less left weighs less, who has nothing left
            takes no part, and all that may be spent is reserved before the first query. Needs named owners,
            Gaussian noise and the worst-case guarantee. Default: nobody remembers what was spent before.
        spend : float, optional
            Which share of what people have left in the ledger this fit may use: above 0, at most 1. Default:
            half, since other releases are to follow; 1 leaves them nothing.
        release_name : str, default="PATEClassifier.fit"
            What the ledger calls this release, for people who read their account, and other parties, too.
        keep_sensitive : bool, default=False
            Keep ``sensitive_teachers_``, ``sensitive_votes_`` and, under a data-dependent guarantee, the
            amounts spent. An object that keeps them must not be published.
        parties : Party, optional
            Let the teachers of several parties vote together, whose records and votes they show one another
            none of. All call it with the same settings (but ``teacher`` and ``n_jobs``), classes and public
            records, each with its own ``X``, ``y`` and ``budgets``, and all get the same answers: noisy
            histograms of the ``n_teachers`` teachers of all of them, with ``gnmax`` or ``confident``
            (``docs/parties.md``). Default: all records are here.
        unit : {"person", "party"}
            Whose budgets these are, between parties. ``"party"``: each party has one teacher, and grants one
            budget for everything that it holds, which neighbouring data sets may differ in.

        Returns
        -------
        PATEClassifier

        Raises
        ------
        InputError
            If anything given cannot be used; nothing has been spent then. Teacher and student are tried on
            public records with synthetic classes first (:mod:`collegium.distillation.rehearsal`).
        NothingReleasedError
            If no label was released; ``privacy_`` tells what was spent.
        StudentError
            If the student cannot learn from the labels that were released, of which there may be too few for
            it. ``labels_``, ``labelled_indices_``, ``targets_`` and ``privacy_`` are kept then.
        """
        self._forget()
        recipe = self._recipe()
        check_truth("public_may_overlap", public_may_overlap)
        check_truth("scales_may_differ", scales_may_differ)
        check_truth("keep_sensitive", keep_sensitive)
        share = share_to_spend(ledger, spend)
        if ledger is not None and self.classes is None:
            raise InputError(NO_LIST)
        if parties is not None:
            if self.classes is None:
                raise InputError(
                    "classes are missing: all parties need the same public list; give classes=[…]"
                )
            how_many = len(parties.collective.members)
            recipe = recipe_of_parties(recipe, unit, how_many, self.n_teachers is not None)
        elif unit != PERSON:
            raise InputError(
                f"unit={unit!r} is for votes between parties: give parties, or leave it out"
            )
        if X_public is None:
            as_records(X_public, "public")
        given = given_records(
            X,
            y,
            budgets,
            X_public,
            encode=partial(encode_classes, classes=self.classes),
            delta=recipe.account.delta,
            private_classes=self.classes is None,
            public_may_overlap=public_may_overlap,
            scales_may_differ=scales_may_differ,
        )
        records, self.classes_ = given.records, given.records.classes
        self._remember(given)
        if parties is None:
            recipe = self._chosen(recipe, records)
        memory = _InProcess(bool(keep_sensitive))

        def make(recipe: Recipe, records: Records) -> PateRun:
            joint = None
            if parties is not None:
                by_rule = self._may_choose()
                records, release, census = together(
                    records, recipe, unit, parties, release_name, by_rule
                )
                recipe = self._chosen(recipe, records)
                number = parties.collective.number_of(parties.key)
                noise = release.sum_with(census, noise_from(recipe.noise_seed))
                about = (records.budgets, census, parties.collective, number)
                joint = joint_votes(recipe, *about, noise)
            return PateRun(
                recipe,
                records,
                memory,
                Warner(),
                lambda: running(*where_and_how_many(self.n_jobs)),
                int(self.verbose),
                joint=joint,
            )

        spending = None
        if ledger is None:
            run = make(recipe, records)
        else:
            from collegium.pate.ledgered import LedgeredRun, allow  # a database comes with it

            people = records.budgets
            if records.made_public is not None and len(records.made_public):
                ledger.refuse_published(records.made_public)
            left = ledger.left(people)
            allowance = allow(left, recipe, records, people).part(share)
            spending = LedgeredRun(people, allowance)
            run = spending.plan(recipe, records, make)
        recipe, records = run.recipe, run.records
        self.plan_ = run.plan
        self.n_public_ = int(records.X_public.shape[0])
        self.preprocessing_ = run.teachers_view.transformer
        self.student_preprocessing_ = run.student_view.transformer
        run.rehearse()
        if recipe.noise_seed is None:
            tell_of_fits_before(records, ledger is None)
        remembered: AbstractContextManager[Entry | None] = nullcontext()
        if spending is not None and ledger is not None:
            remembered = spending.reserved(
                ledger,
                release_name,
                spending.at_most(),
                run.arrangement,
                allow_new_people=True,  # all who are offered were asked about when they were looked up
            )
        with remembered as entry:
            votes = run.votes()
            if keep_sensitive:
                self.sensitive_teachers_ = memory.sensitive_teachers
                self.sensitive_votes_: VoteTable = votes
                self._has_votes_of_all = parties is None
            if entry is not None:
                entry.draws()
            released = run.release(votes)
            if entry is not None:
                entry.settle(released, run.arrangement.neighbours)
        self.privacy_: PrivacyStatement = with_what_called(released.privacy)
        if released.histograms is not None:
            self.histograms_ = released.histograms
        self.labelled_indices_ = released.labels.queries
        self.labels_ = self.classes_[released.labels.labels]
        self.n_queries_ = released.labels.n_asked
        self.stop_reason_ = released.labels.stop_reason
        self.targets_ = run.targets(released)
        try:
            student = run.teach(released, self.targets_)
            run.try_student(student)
            self.quality_: Quality = judge_by_answers(
                self.classes_,
                released.labels.queries,
                released.labels.labels,
                released.histograms,
                student.predict(run.X_seen),
                beliefs_about(student, run.X_seen, self.classes_),
                self.goal,
            )
        except NothingReleasedError as error:
            raise NothingReleasedError(f"{error} ({ADVICE})") from None
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise StudentError(
                f"the student ({type(recipe.student).__name__}) cannot learn from the labels that were "
                f"released ({type(error).__name__}: {reason}); they are kept in `labels_`, their records in "
                f"`labelled_indices_`: training another student on them costs nothing; {ADVICE}"
            ) from None
        self.student_ = student
        if self.quality_.tone == "caution":
            warn_of_quality(self.quality_)
        return self

    def _has_default_models(self) -> bool:
        """Tell whether nothing was said of how teachers and student take records."""
        return self.teacher is None and self.student is None and self.preprocessing is None

    def _may_choose(self) -> bool:
        """Tell whether nothing was given of what public numbers can decide."""
        named = ("teacher", "n_teachers", "aggregator", "queries", "student", "preprocessing")
        return all(getattr(self, name) is None for name in named)

    def _chosen(self, recipe: Recipe, records: Records) -> Recipe:
        """Put into a recipe what public numbers decide."""
        self.recipe_ = self._by_rule(records)
        if self.recipe_ is not None:
            return chosen_recipe(recipe, self.recipe_)
        if self._has_default_models() and has_more_than_numbers(records.X_public):
            return replace(recipe, preprocessing=TabularEncoder("onehot"))
        return recipe

    def _by_rule(self, records: Records) -> VoteChoice | None:
        """Choose what public numbers decide; None where something was given."""
        budgets, n_public = records.budgets, int(records.X_public.shape[0])
        sizes = budgets.public_sizes()
        finite = [
            name for name, one in budgets.groups.items() if not one.is_unlimited and sizes[name]
        ]
        few = sum(sizes.values()) < FEWEST or n_public < FEWEST_ASKED or not finite
        account = self._setting("account")
        if few or account.guarantee != "worst-case" or account.price is not None:
            return None
        if not self._may_choose():
            return None
        return votes_by_rule(
            sum(sizes.values()),
            signal(budgets.groups, sizes),
            n_public,
            len(records.classes),
            kind_of_records(records.X_public),
            self.goal,
        )

    def _recipe(self) -> Recipe:
        """Check every setting, whatever the records are."""
        teacher, student = (
            default_model() if model is None else model for model in (self.teacher, self.student)
        )
        given = {name: self._setting(name) for name in _DEFAULTS}
        seed = check_settings(self, given)
        of_teachers, of_student = views_of(self.preprocessing)
        teacher_shares, student_shares = shares_of(self.class_shares)
        return Recipe(
            teacher=teacher,
            student=student,
            n_teachers=_TEACHERS if self.n_teachers is None else self.n_teachers,
            personalisation=as_personalisation(self.personalisation),
            preprocessing=of_teachers,
            student_preprocessing=of_student,
            teacher_class_shares=teacher_shares,
            student_class_shares=student_shares,
            goal=self.goal,
            seed=seed,
            noise_seed=self.noise_seed,
            **given,
        )

    @available_if(_student_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities with the student, shape (n_records, n_classes)."""
        student, prepared = self._ready(X)
        return beliefs_of(student, prepared, self.classes_)

    def effects(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        y_public: ArrayLike | None = None,
    ) -> Effects:
        """Tabulate what the budgets did to classes and groups; see :mod:`collegium.evaluation.effects`.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_test, n_features)
            Public test records.
        y : array-like, shape (n_test,)
            Their classes.
        groups : array-like, shape (n_test,), optional
            Group (privacy level) that the person behind each test record is in.
        y_public : array-like, shape (n_public,), optional
            True classes of the public records that were given to :meth:`fit`.

        Returns
        -------
        Effects
            ``by_class()`` and ``by_group()``. Made of public and released things only.

        Raises
        ------
        InputError
            If lengths do not fit, or pandas objects have the same index in two orders.
        """
        check_is_fitted(self, "student_")
        refuse_other_order(test_records=X, classes=y, groups=groups)
        records = as_records(X, "new")
        truth = one_each(y, int(records.shape[0]), "test records", "classes")
        level = None
        if groups is not None:
            level = one_each(groups, int(records.shape[0]), "test records", "groups")
        known = None
        if y_public is not None:
            known = one_each(y_public, self.n_public_, "public records", "true classes")
            known = known[self.labelled_indices_]
        predicted = self.predict(X)
        for_teachers, for_student = shares_of(self.class_shares)
        public = for_teachers if for_student is None else for_student
        shares = None if public is None else as_class_shares(public, self.classes_)
        answers = StudentAnswers(truth, predicted, level)
        return measure_effects(self.plan_, self.classes_, self.labels_, known, answers, shares)

    def sensitive_teacher_effects(self, y_public: ArrayLike) -> pd.DataFrame:
        """Tell how right teachers and their majority are, by class, after ``fit(keep_sensitive=True)``.

        Parameters
        ----------
        y_public : array-like, shape (n_public,)
            True classes of the public records that were given to :meth:`fit`.

        Returns
        -------
        DataFrame
            See :func:`collegium.pate.teacher_effects.sensitive_teacher_effects`. **Sensitive.**

        Raises
        ------
        InputError
            If votes were not kept, or several parties voted.
        """
        check_is_fitted(self, "student_")
        votes = getattr(self, "sensitive_votes_", None)
        if votes is None:
            raise InputError(
                "votes were not kept: fit with keep_sensitive=True, on a machine of your own"
            )
        if not self._has_votes_of_all:
            raise InputError(
                "some teachers have voted on nothing here: between parties, each has the votes of its own "
                "alone, and nobody can tell how right all are"
            )
        return sensitive_teacher_effects(votes, self.classes_, y_public, self.plan_)

    def _ready(self, X: Any) -> tuple[Any, Any]:
        records = self._like_fitted(X)
        return self.student_, View(self.student_preprocessing_).of(records)


class _InProcess(Memory):
    """Forgets what is sensitive, unless it is told to keep it."""

    def __init__(self, keeps: bool) -> None:
        self._keeps = keeps
        self._teachers: TrainedTeachers | None = None

    def teachers(self, n_teachers: int) -> TrainedTeachers:
        self._teachers = TrainedTeachers(n_teachers)
        return self._teachers

    @property
    def sensitive_teachers(self) -> list[Any]:
        assert self._teachers is not None
        return self._teachers.kept

    def keep_spending(self, privacy: PrivacyStatement) -> PrivacyStatement:
        return privacy if self._keeps else privacy.without_spending()

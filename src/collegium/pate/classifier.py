"""The scikit-learn face of Collegium: private records and budgets in, a publishable student out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from collegium.accounting.statement import statement
from collegium.budgets import DEFAULT_DELTA, Budgets, as_budgets
from collegium.data.class_shares import as_class_shares
from collegium.data.tables import as_records, encode_classes, like_private, warn_of_unseen_classes
from collegium.errors import (
    CollegiumError,
    InputError,
    NothingReleasedError,
    PrivacyWarning,
    StudentError,
)
from collegium.models.trial import one_line_about
from collegium.noise.sources import SecureNoise, SeededNoise
from collegium.pate.classifier_settings import SAME, check_settings
from collegium.pate.effects import (
    Effects,
    StudentAnswers,
    measure_effects,
    sensitive_teacher_effects,
)
from collegium.pate.rehearsal import rehearse_student, rehearse_teacher, try_student
from collegium.pate.students.active_choice import ActiveChooser
from collegium.pate.students.selection import (
    ACTIVE,
    COVERAGE,
    RANDOM,
    comparable_records,
    query_order,
)
from collegium.pate.students.share_matching import match_shares, require_probabilities
from collegium.pate.students.supervised import RefittedStudent, beliefs_of, fit_released
from collegium.pate.students.targets import released_targets
from collegium.pate.teachers.engines import Engine, running
from collegium.pate.teachers.ensemble import TeacherEnsemble
from collegium.pate.voting.affordable import refuse_unaffordable
from collegium.pate.voting.aggregators import Aggregator
from collegium.pate.voting.choosing import QueryChooser
from collegium.pate.voting.histograms import released_histograms
from collegium.pate.voting.labelling import LabellingJob, Labels
from collegium.pate.voting.pricing import pricing_for
from collegium.pate.voting.release import HISTOGRAM, LABELS
from collegium.pate.voting.vote_table import VoteTable
from collegium.personalisation import Personalisation, as_personalisation

ADVICE = "the statement in `privacy_` tells what was spent"


def default_model() -> Any:
    """Logistic regression on standardised features: what is used where no model is given."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _student_has(method: str) -> Any:
    def check(self: PATEClassifier) -> bool:
        student = getattr(self, "student_", None)
        if student is None:
            student = self.student if self.student is not None else default_model()
        return hasattr(student, method)

    return check


class PATEClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier trained under individual privacy budgets.

    Teachers are trained on disjoint (or, when upsampling, overlapping) shards of the private records;
    they vote on public records; the votes are noised and accounted for each owner; voting stops before
    any owner's budget is exceeded; a student learns from the released labels. The fitted object holds the
    student and the statement, not the teachers or votes: under a worst-case guarantee with secure noise
    it may be published as it is.

    Parameters
    ----------
    teacher : estimator, optional
        Model of each teacher: any object with ``fit`` and ``predict``. Preprocessing belongs into its
        pipeline, or into ``preprocessing``. Default: logistic regression on standardised features.
    n_teachers : int, default=250
        Nominal number of teachers k, for which the aggregator's numbers are given.
    personalisation : {"uniform", "upsampling", "weighting", "vanishing"} or Personalisation
        How budgets become influence.
    weight_rule : str, optional
        Weight rule of a personalisation given by name; default ``"exact"``.
    aggregator : Aggregator, optional
        Default: :class:`ConfidentGNMax`. Noise that is not given follows ``n_teachers``.
    guarantee : {"worst-case", "data-dependent"}
        ``worst-case`` holds whatever the data are. ``data-dependent`` is the papers' account of this one
        data set: what it spends is sensitive, and so is the number of labels.
    student : estimator, optional
        Any scikit-learn classifier, or a student with ``fit_released(X_public, queries, targets)``, which
        learns from all public records. Default: as ``teacher``'s.
    release : {"labels", "histogram"}
        What is shown of each answered query. ``histogram``: the noisy counts of all classes, at the same
        price (worst-case guarantee and Gaussian or Laplace noise only).
    targets : {"mixture", "noise", "argmax"}
        What the student learns from histograms: see :mod:`collegium.pate.students.targets`.
    query_order : {"random", "coverage", "active"}
        Which public records are asked about first. ``coverage``: those that represent the others best.
        ``active``: where the student, fitted again and again to what was released, is least certain
        (worst-case guarantee only; costs nothing: :mod:`collegium.pate.voting.choosing`). The last two
        compare public records by their distances after ``preprocessing``.
    preprocessing : transformer, optional
        Fitted on the public records only, applied to all.
    student_preprocessing : "same", None or transformer
        What the student sees instead: the records as they are, or another transformer, fitted on the public
        records only. ``"same"``: as the teachers.
    classes : array-like, optional
        The public list of classes. Default: those that occur in ``y``, treated as public.
    teacher_class_shares, student_class_shares : mapping of class to share, or array-like, optional
        Against budgets that go by class, which bend votes towards the classes of generous people. Both take
        *public* shares of the classes, shape (n_classes,), and cost nobody anything. With the first, each
        teacher sees its own shard in these shares (:mod:`collegium.pate.teachers.class_balance`); with the
        second, the student is corrected until its mean belief in each class, over the public records,
        is the class's share (:mod:`collegium.pate.students.share_matching`).
    delta : float, default=1e-5
        δ of budgets that are given as numbers.
    assignment : {"hash", "balanced"}
        ``hash``: adding or removing an owner changes that owner's teachers only. ``balanced``: shards of
        equal size, protecting against replacement only.
    max_queries, max_labels : int, optional
        Stop after so many queries or labels.
    orders : array-like, optional
        Rényi orders of the data-dependent account.
    conversion : {"canonne", "mironov"}
        From Rényi DP to (ε, δ), for the data-dependent account.
    noise_seed : int, optional
        Seeded noise for experiments: **the result is not private**. Default: noise from the operating
        system.
    random_state : int, RandomState or None
        Public randomness: assignment of owners, training, order of the queries.
    keep_sensitive : bool, default=False
        Keep ``sensitive_teachers_``, ``sensitive_votes_`` and, under a data-dependent guarantee, the
        amounts spent. An object that keeps them must not be published.
    n_jobs : int, optional
        Parallel training, as in joblib.
    engine : str or Engine, optional
        Where teachers are trained and asked: ``"local"``, ``"dask"``, ``"ray"``, another joblib backend, or
        an :class:`~collegium.pate.teachers.engines.Engine` with its own number of workers. Default: the
        joblib backend that is active (``with joblib.parallel_config("threading"): …``).
    verbose : int, default=0
        Progress messages of training and voting, as in joblib.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Class labels.
    student_ : estimator
        The student, trained on class numbers.
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
    Preprocessing belongs into ``teacher`` or ``preprocessing``. The earlier steps of a scikit-learn
    ``Pipeline`` around a ``PATEClassifier`` would be fitted on all private records together, which no
    account covers, and would not be applied to ``X_public``. Searching parameters with
    ``GridSearchCV`` on private records is not accounted for, either: each fit is a release of its own.

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

    def __init__(
        self,
        teacher: Any = None,
        *,
        n_teachers: int = 250,
        personalisation: str | Personalisation = "weighting",
        weight_rule: str | None = None,
        aggregator: Aggregator | None = None,
        guarantee: str = "worst-case",
        student: Any = None,
        release: str = LABELS,
        targets: str = "mixture",
        query_order: str = RANDOM,
        preprocessing: Any = None,
        student_preprocessing: Any = SAME,
        classes: ArrayLike | None = None,
        teacher_class_shares: Mapping[Any, float] | ArrayLike | None = None,
        student_class_shares: Mapping[Any, float] | ArrayLike | None = None,
        delta: float = DEFAULT_DELTA,
        assignment: str = "hash",
        max_queries: int | None = None,
        max_labels: int | None = None,
        orders: ArrayLike | None = None,
        conversion: str = "canonne",
        noise_seed: int | None = None,
        random_state: Any = None,
        keep_sensitive: bool = False,
        n_jobs: int | None = None,
        engine: str | Engine | None = None,
        verbose: int = 0,
    ) -> None:
        self.teacher = teacher
        self.n_teachers = n_teachers
        self.personalisation = personalisation
        self.weight_rule = weight_rule
        self.aggregator = aggregator
        self.guarantee = guarantee
        self.student = student
        self.release = release
        self.targets = targets
        self.query_order = query_order
        self.preprocessing = preprocessing
        self.student_preprocessing = student_preprocessing
        self.classes = classes
        self.teacher_class_shares = teacher_class_shares
        self.student_class_shares = student_class_shares
        self.delta = delta
        self.assignment = assignment
        self.max_queries = max_queries
        self.max_labels = max_labels
        self.orders = orders
        self.conversion = conversion
        self.noise_seed = noise_seed
        self.random_state = random_state
        self.keep_sensitive = keep_sensitive
        self.n_jobs = n_jobs
        self.engine = engine
        self.verbose = verbose

    def fit(
        self, X: Any, y: ArrayLike, *, budgets: Budgets | ArrayLike, X_public: Any
    ) -> PATEClassifier:
        """Train teachers, let them vote, and train the student.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Private records.
        y : array-like, shape (n_records,)
            Their labels.
        budgets : Budgets or array-like of float, shape (n_records,)
            From :meth:`Policy.assign <collegium.Policy.assign>`, or one ε per record.
        X_public : array-like or DataFrame, shape (n_public, n_features)
            Public records without labels.

        Returns
        -------
        PATEClassifier

        Raises
        ------
        InputError
            If anything given cannot be used; nothing has been spent then. Teacher and student are tried on
            public records with made-up classes first (:mod:`collegium.pate.rehearsal`).
        NothingReleasedError
            If no label was released; ``privacy_`` tells what was spent.
        StudentError
            If the student cannot learn from the labels that were released, of which there may be too few for
            it. ``labels_``, ``labelled_indices_``, ``targets_`` and ``privacy_`` are kept then.
        """
        self._forget()
        teacher, student = (
            default_model() if model is None else model for model in (self.teacher, self.student)
        )
        aggregator, generator = check_settings(self, teacher, student)
        records = as_records(X, "private")
        public = like_private(as_records(X_public, "public"), records)
        self.classes_, codes = encode_classes(y, self.classes)
        teacher_shares = self._shares("teacher_class_shares")
        student_shares = self._shares("student_class_shares")
        if student_shares is not None:
            require_probabilities(student)
        granted = as_budgets(budgets, self.delta)
        for what, length in (("labels", len(codes)), ("budgets", len(granted))):
            if length != records.shape[0]:
                raise InputError(
                    f"{records.shape[0]} private records, but {length} {what}: give one per record"
                )
        self._remember_features(X, records)
        key_seed, training_seed, order_seed = generator.randint(2**31 - 1, size=3).tolist()
        personalisation = as_personalisation(self.personalisation, self.weight_rule)
        self.plan_ = personalisation.plan_for(granted, self.n_teachers)
        aggregator = aggregator.resolved(self.n_teachers, self.plan_.electorate(key_seed))
        refuse_unaffordable(aggregator, self.plan_, self.guarantee)
        assignment = self.plan_.assign(granted, str(key_seed).encode(), self.assignment)
        self.n_public_ = int(public.shape[0])
        public, seen = self._fit_preprocessing(public)
        interactive = None
        if aggregator.consults_student:
            interactive = RefittedStudent(student, seen, len(self.classes_))
        points = (
            None if self.query_order == RANDOM else comparable_records(public, self.query_order)
        )
        shard_size = -(-records.shape[0] // self.n_teachers)
        rehearse_teacher(teacher, public, len(self.classes_), shard_size)
        limits = [limit for limit in (self.max_queries, self.max_labels) if limit is not None]
        rehearse_student(
            student,
            seen,
            len(self.classes_),
            most_labels=min(limits, default=None),
            soft=self.release == HISTOGRAM and self.targets != "argmax",
            tells_beliefs=interactive is not None or self.query_order == ACTIVE,
            class_shares=student_shares,
        )
        if points is None:
            order = np.random.default_rng(order_seed).permutation(public.shape[0])
        else:
            order = query_order(COVERAGE, points, order_seed)
        with running(self.engine, self.n_jobs) as workers:
            ensemble = TeacherEnsemble(
                teacher,
                training_seed,
                verbose=self.verbose,
                n_classes=len(self.classes_),
                workers=workers,
                class_shares=teacher_shares,
            )
            sensitive_teachers = ensemble.train(self._prepared_private(records), codes, assignment)
            sensitive_votes = VoteTable.from_predictions(
                ensemble.ask(sensitive_teachers, public), len(self.classes_), allow_abstention=True
            )
        warn_of_unseen_classes(codes, self.classes_)
        if self.keep_sensitive:
            self.sensitive_teachers_ = sensitive_teachers
            self.sensitive_votes_ = sensitive_votes
        labels = self._label(
            sensitive_votes,
            aggregator,
            student,
            interactive,
            seen,
            granted,
            order,
            points,
            key_seed,
        )
        self.labelled_indices_ = labels.queries
        self.labels_ = self.classes_[labels.labels]
        self.n_queries_ = labels.n_asked
        self.stop_reason_ = labels.stop_reason
        self.targets_ = released_targets(
            labels, len(self.classes_), getattr(self, "histograms_", None), self.targets
        )
        self.student_ = self._taught(student, seen, labels, student_shares)
        return self

    def _taught(
        self, student: Any, seen: Any, labels: Labels, shares: NDArray[np.float64] | None
    ) -> Any:
        """Train the student on what was released, and try it: what fails now has been paid for."""
        classes = np.arange(len(self.classes_))
        try:
            fitted = fit_released(
                student, seen, labels.queries, labels.labels, classes, self.targets_
            )
            if shares is not None:
                fitted = match_shares(fitted, seen, classes, shares)
            try_student(fitted, seen, len(classes))
        except NothingReleasedError as error:
            raise NothingReleasedError(f"{error} ({ADVICE})") from None
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise StudentError(
                f"the student ({type(student).__name__}) cannot learn from the labels that were released "
                f"({type(error).__name__}: {reason}); they are kept in `labels_`, their records in "
                f"`labelled_indices_`: training another student on them costs nothing; {ADVICE}"
            ) from None
        return fitted

    def _label(
        self,
        votes: VoteTable,
        aggregator: Aggregator,
        student: Any,
        interactive: RefittedStudent | None,
        seen: Any,
        budgets: Budgets,
        order: NDArray[np.intp],
        points: NDArray[Any] | None,
        seed: int,
    ) -> Labels:
        electorate = self.plan_.electorate(seed)
        options: dict[str, Any] = {} if self.orders is None else {"orders": self.orders}
        pricing = pricing_for(
            self.guarantee,
            aggregator,
            electorate,
            conversion=self.conversion,
            neighbours=self.plan_.neighbours(self.assignment),
            **options,
        )
        noise = SecureNoise() if self.noise_seed is None else SeededNoise(self.noise_seed)
        asking: NDArray[np.intp] | QueryChooser = order
        if self.query_order == ACTIVE:
            asking = ActiveChooser(
                student,
                seen,
                points,
                order,
                electorate,
                aggregator,
                votes.n_classes,
                release=self.release,
                targets=self.targets,
                tell=_warn,
            )
        job = LabellingJob(
            votes,
            electorate,
            aggregator,
            pricing,
            noise,
            asking,
            student=interactive,
            max_queries=self.max_queries,
            max_labels=self.max_labels,
            release=self.release,
        )
        labels = job.run()
        if self.release == HISTOGRAM:
            self.histograms_ = released_histograms(labels, electorate, aggregator, votes.n_classes)
        sizes = budgets.group_sizes()
        self.privacy_ = statement(
            pricing.accountant,
            owners=sizes,
            budgets={name: group.budget for name, group in self.plan_.groups.items()},
            adjacency=self.plan_.adjacency(self.assignment),
            noise_is_private=noise.is_private,
            released=self.release,
        )
        if self.guarantee != "worst-case" and not self.keep_sensitive:
            self.privacy_ = self.privacy_.without_spending()
        return labels

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the student.

        Parameters
        ----------
        X : array-like or DataFrame, shape (n_records, n_features)
            Any records.

        Returns
        -------
        ndarray, shape (n_records,)
            Class labels.
        """
        student, prepared = self._ready(X)
        return np.asarray(self.classes_[np.asarray(student.predict(prepared), dtype=np.intp)])

    @available_if(_student_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict probabilities with the student, shape (n_records, n_classes)."""
        student, prepared = self._ready(X)
        return beliefs_of(student, prepared, len(self.classes_))

    def effects(
        self,
        X: Any,
        y: ArrayLike,
        *,
        groups: ArrayLike | None = None,
        y_public: ArrayLike | None = None,
    ) -> Effects:
        """Tabulate what the budgets did to classes and groups; see :mod:`collegium.pate.effects`.

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
            If lengths do not fit.
        """
        check_is_fitted(self, "student_")
        records = as_records(X, "new")
        truth = _one_each(y, int(records.shape[0]), "test records", "classes")
        level = None
        if groups is not None:
            level = _one_each(groups, int(records.shape[0]), "test records", "groups")
        known = None
        if y_public is not None:
            known = _one_each(y_public, self.n_public_, "public records", "true classes")
            known = known[self.labelled_indices_]
        predicted = self.predict(X)
        shares = self._shares("student_class_shares")
        if shares is None:
            shares = self._shares("teacher_class_shares")
        answers = StudentAnswers(truth, predicted, level)
        return measure_effects(self.plan_, self.classes_, self.labels_, known, answers, shares)

    def sensitive_teacher_effects(self, y_public: ArrayLike) -> pd.DataFrame:
        """Tell how right teachers and their majority are, by class, where ``keep_sensitive=True``.

        Parameters
        ----------
        y_public : array-like, shape (n_public,)
            True classes of the public records that were given to :meth:`fit`.

        Returns
        -------
        DataFrame
            See :func:`collegium.pate.effects.sensitive_teacher_effects`. **Sensitive.**

        Raises
        ------
        InputError
            If votes were not kept.
        """
        check_is_fitted(self, "student_")
        votes = getattr(self, "sensitive_votes_", None)
        if votes is None:
            raise InputError(
                "votes were not kept: fit with keep_sensitive=True, on a machine of your own"
            )
        return sensitive_teacher_effects(votes, self.classes_, y_public, self.plan_)

    def _shares(self, name: str) -> NDArray[np.float64] | None:
        given = getattr(self, name)
        return None if given is None else as_class_shares(given, self.classes_, name)

    def _ready(self, X: Any) -> tuple[Any, Any]:
        check_is_fitted(self, "student_")
        records = as_records(X, "new")
        if records.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {records.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(records, "columns"):
            if set(names) != set(records.columns):
                raise InputError(
                    "the feature names should match those that were passed during fit: expected "
                    f"{', '.join(map(str, names))}"
                )
            records = records[list(names)]
        return self.student_, _transformed(self.student_preprocessing_, records)

    def _fit_preprocessing(self, public: Any) -> tuple[Any, Any]:
        """Fit both to public records; these as teachers see them, and as the student does."""
        self.preprocessing_, prepared = _fitted(self.preprocessing, public, "preprocessing")
        if isinstance(self.student_preprocessing, str):
            self.student_preprocessing_ = self.preprocessing_
            return prepared, prepared
        self.student_preprocessing_, seen = _fitted(
            self.student_preprocessing, public, "student_preprocessing"
        )
        return prepared, seen

    def _prepared_private(self, records: Any) -> Any:
        """Show private records as teachers see them; what the preprocessing says of them is not shown."""
        failure = ""
        try:
            return _transformed(self.preprocessing_, records)
        except CollegiumError:
            raise
        except Exception as error:
            failure = type(error).__name__
        raise InputError(
            f"preprocessing ({type(self.preprocessing).__name__}) could not transform the private records: "
            f"{failure}, whose message is not shown because it may quote them; it is fitted on public "
            "records: choose one that takes values and categories which those lack"
        )

    def _remember_features(self, X: Any, records: Any) -> None:
        self.n_features_in_ = int(records.shape[1])
        if hasattr(X, "columns"):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)

    def _forget(self) -> None:
        """Drop what an earlier fit learnt: a refit that fails must leave no student of other data."""
        for name in [
            name for name in vars(self) if name.endswith("_") and not name.startswith("_")
        ]:
            delattr(self, name)


def _fitted(preprocessing: Any | None, public: Any, name: str) -> tuple[Any | None, Any]:
    """Fit a transformer to public records; it, and the records as it shows them."""
    if preprocessing is None:
        return None, public
    with one_line_about(name, "fitted to the public records"):
        fitted = clone(preprocessing, safe=False).fit(public)
        return fitted, fitted.transform(public)


def _transformed(preprocessing: Any | None, records: Any) -> Any:
    return records if preprocessing is None else preprocessing.transform(records)


def _one_each(given: ArrayLike, n_records: int, records: str, what: str) -> NDArray[Any]:
    """Take one thing for each record."""
    column = np.asarray(given)
    if column.shape != (n_records,):
        have = str(len(column)) if column.ndim == 1 else f"an array of shape {column.shape} of"
        raise InputError(f"{n_records} {records}, but {have} {what}: give one per record")
    return column


def _warn(line: str) -> None:
    warnings.warn(line, PrivacyWarning, stacklevel=2)

"""What the same records would give without individual budgets, and without privacy.

For comparisons on public data only: a baseline is a second use of the records, which nobody's budget
pays for, and the accuracy of a non-private model is a statement about private records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from collegium.errors import NothingReleasedError
from collegium.pate.catalogue import build_model
from collegium.pate.classifier import PATEClassifier
from collegium.personalisation import Uniform
from collegium.study.config import StudyConfig
from collegium.study.preprocessed import SAME, preprocessing_of, student_kind
from collegium.study.records import load_study_data


@dataclass(frozen=True)
class Baselines:
    """Student accuracies on the public test records.

    Attributes
    ----------
    uniform_labels : int
        Labels that uniform PATE releases at the strictest budget.
    uniform_accuracy : float or None
        Accuracy of its student; None if no label was released.
    non_private_accuracy : float
        Accuracy of one model (the student's kind, with what the student sees) trained on all private
        records and true labels.
    """

    uniform_labels: int
    uniform_accuracy: float | None
    non_private_accuracy: float


def measure_baselines(config: StudyConfig) -> Baselines:
    """Run uniform PATE at everybody's strictest budget, and train a model without privacy.

    Parameters
    ----------
    config : StudyConfig
        A study with public test records.
    """
    data = load_study_data(config)
    assert data.X_test is not None and data.y_test is not None
    seed = config["study.seed"]
    student = build_model("student.model", config["student.model"], config["student.params"])
    preprocessing = preprocessing_of(config, config["preprocessing.kind"])
    own = preprocessing_of(config, student_kind(config))
    same = student_kind(config) == config["preprocessing.kind"]
    uniform = PATEClassifier(
        build_model("teachers.model", config["teachers.model"], config["teachers.params"]),
        n_teachers=config["teachers.n_teachers"],
        personalisation=Uniform(),
        aggregator=config.aggregator(
            Uniform().plan_for(data.budgets.strictest(), config["teachers.n_teachers"])
        ),
        guarantee=config["privacy.guarantee"],
        student=student,
        release=config["aggregation.release"],
        targets=config["student.targets"] or "mixture",
        query_order=config["aggregation.query_order"],
        preprocessing=preprocessing,
        student_preprocessing=SAME if same else own,
        classes=data.classes,
        teacher_class_shares=config.class_shares("teachers", data.classes),
        student_class_shares=config.class_shares("student", data.classes),
        assignment=config["teachers.assignment"],
        random_state=seed,
        n_jobs=config["run.n_jobs"],
    )
    y = data.classes[data.codes]
    try:
        uniform.fit(data.X, y, budgets=data.budgets.strictest(), X_public=data.X_public)
        accuracy: float | None = float(uniform.score(data.X_test, data.y_test))
        n_labels = len(uniform.labels_)
    except NothingReleasedError:
        accuracy, n_labels = None, 0
    X, X_test = data.X, data.X_test
    if own is not None:
        fitted = clone(own).fit(data.X_public)
        X, X_test = fitted.transform(X), fitted.transform(X_test)
    predicted = clone(student).fit(X, y).predict(X_test)
    return Baselines(n_labels, accuracy, float(np.mean(predicted == data.y_test)))

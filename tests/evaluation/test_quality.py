"""A student beside one that always gives the same answer: words and figures, and how often they are wrong."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from collegium import GNMax, PATEClassifier, PrivacyWarning, Queries
from collegium.errors import InputError, StudentWarning
from collegium.evaluation.quality import PUBLIC, beliefs_about, judge_by_answers, measure_quality
from collegium.pate.voting.histograms import NoisyHistograms
from collegium.report.quality import threshold_tables
from collegium.study.result import notes_on_test_records

CLASSES = np.array(["no", "yes"])


def imbalanced(n=1000, share=0.12):
    return np.where(np.arange(n) < round(share * n), "yes", "no")


def test_88_percent_right_on_a_table_of_88_percent_is_no_success():
    found = measure_quality(CLASSES, imbalanced(), np.full(1000, "no"))
    assert found.verdict == "The student is no better than always answering “no”"
    assert found.better is False and found.tone == "caution"
    assert found.accuracy == found.majority_share == 0.88
    assert found.balanced_accuracy == found.chance == 0.5
    assert "It answers “no” for all 1,000 records" in found.reason


def test_a_hospital_student_that_names_one_of_three_classes_for_all_5000_stays():
    """What became of the diabetes data when 94 labels were asked for: 54 % right, and nothing learnt."""
    truth = np.repeat(["NO", ">30", "<30"], [2695, 1746, 559])
    beliefs = np.tile([0.8, 0.15, 0.05], (5000, 1))
    found = measure_quality(["NO", ">30", "<30"], truth, np.full(5000, "NO"), beliefs)
    assert found.verdict == "The student is no better than always answering “NO”"
    assert "It answers “NO” for all 5,000 records" in found.reason
    assert found.accuracy == found.majority_share == pytest.approx(0.539)
    assert found.balanced_accuracy == pytest.approx(1 / 3) and found.auc == 0.5


def test_a_few_other_answers_do_not_make_it_one():
    truth, predicted = imbalanced(), np.full(1000, "no", dtype="U3")
    predicted[[1, 2, 500]] = "yes"  # two of three are right: 88.1 %
    found = measure_quality(CLASSES, truth, predicted)
    assert found.accuracy > found.majority_share and found.better is False
    assert "So small a difference can be chance" in found.reason
    assert "answers “no” for 997 of 1,000 records" in found.reason


def test_a_good_student_is_called_good():
    truth = imbalanced()
    predicted = truth.copy()
    predicted[::20] = np.where(truth[::20] == "no", "yes", "no")
    found = measure_quality(CLASSES, truth, predicted)
    assert found.verdict == "The student is better than always answering “no”"
    assert found.better and found.tells_apart and found.tone == "good"


def test_thresholds_say_what_they_would_find():
    truth = np.array(["yes"] * 10 + ["no"] * 90)
    chance = np.array([0.6] * 4 + [0.25] * 4 + [0.01] * 2 + [0.25] * 12 + [0.02] * 78)
    beliefs = np.stack([1 - chance, chance], axis=1)
    found = measure_quality(CLASSES, truth, np.where(chance > 0.5, "yes", "no"), beliefs)
    rows = {row.at: (row.recall, row.precision) for row in found.thresholds}
    assert {row.name for row in found.thresholds} == {"yes"}
    assert rows[0.5] == (0.4, 1.0) and rows[0.2] == (0.8, 0.4) and rows[0.7] == (0.0, None)
    (shown,) = threshold_tables(found)[0].blocks
    assert ("0.2", "80.0 %", "40.0 %") in shown.rows and (
        "0.7",
        "0.0 %",
        "none is found",
    ) in shown.rows
    three = measure_quality(["a", *CLASSES], truth, truth, np.full((100, 3), 1 / 3))
    assert three.thresholds == () and threshold_tables(three) == []


def test_a_class_that_is_never_believed_in_says_why_no_threshold_finds_it():
    truth, never = np.repeat(["no", "yes"], [90, 10]), np.tile([1.0, 0.0], (100, 1))
    found = measure_quality(["no", "yes"], truth, np.full(100, "no"), never)
    caption = "".join(
        getattr(part, "text", part) for part in threshold_tables(found)[0].blocks[0].caption
    )
    assert (
        "No record reaches 0.05: what it learnt from named “yes” too rarely, or never." in caption
    )


def test_one_that_finds_the_rare_class_at_the_price_of_the_frequent_one_tells_them_apart():
    truth = imbalanced()
    predicted = np.where((truth == "yes") | (np.arange(1000) % 4 == 0), "yes", "no")
    found = measure_quality(CLASSES, truth, predicted)
    assert found.accuracy < found.majority_share
    assert found.verdict.startswith("The student tells classes apart, but is not more often right")
    assert (found.better, found.tells_apart, found.tone) == (False, True, "caution")


def test_ten_thousand_records_do_not_make_a_tiny_difference_a_good_student():
    truth = imbalanced(100_000, 0.5)
    generator = np.random.default_rng(0)
    chance = np.where(truth == "yes", 0.51, 0.49)
    predicted = np.where(generator.random(100_000) < chance, "yes", "no")
    assert measure_quality(CLASSES, truth, predicted).balanced_accuracy < 0.52


def test_in_a_tie_the_first_class_is_named():
    truth = np.array(["yes", "no"] * 50)
    found = measure_quality(CLASSES, truth, np.full(100, "yes"))
    assert found.majority == "no" and found.majority_share == 0.5 and found.named == "yes"
    assert found.verdict == "The student is no better than always answering “no”"
    assert "answers “yes” for all" in found.reason


def test_a_student_may_name_one_class_that_is_not_the_most_frequent_one():
    found = measure_quality(CLASSES, imbalanced(), np.full(1000, "yes"))
    assert found.better is False and found.accuracy == pytest.approx(0.12)
    assert "would be right on 88.0 %" in found.reason


def test_classes_that_are_missing_from_the_test_records_are_left_out():
    classes = ["a", "b", "c", "d"]
    truth = np.array(["a", "b", "c"] * 40)
    found = measure_quality(classes, truth, np.where(np.arange(120) < 20, "d", truth))
    assert found.chance == pytest.approx(1 / 3) and found.better
    assert found.balanced_accuracy == pytest.approx(100 / 120, abs=0.01)
    one = measure_quality(classes, np.full(30, "b"), np.full(30, "b"))
    assert one.better is None and one.tone == "caution"
    assert one.verdict.endswith("cannot be told: all test records are of class “b”")


def test_records_without_a_class_and_classes_off_the_list():
    truth = np.array(["no", None, "yes", "maybe", None] * 20, dtype=object)
    found = measure_quality(CLASSES, truth, np.full(100, "no"))
    assert found.n == 60 and found.accuracy == pytest.approx(1 / 3)
    assert measure_quality(CLASSES, [None, None], ["no", "yes"]) is None


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_guessing_is_seldom_taken_for_knowledge(share):
    """Each of two tests errs in at most 2.5 % of cases: 5 % of 400 are 20, 40 has a chance of 2e-5."""
    generator = np.random.default_rng(7)
    wrong = 0
    for _ in range(400):
        truth = np.where(generator.random(150) < share, "yes", "no")
        guess = np.where(generator.random(150) < generator.choice([share, 0.3]), "yes", "no")
        found = measure_quality(CLASSES, truth, guess)
        wrong += found.tells_apart is True
    assert wrong <= 40


@pytest.mark.parametrize("n_classes", [2, 4])
def test_figures_are_scikit_learns(n_classes):
    generator = np.random.default_rng(n_classes)
    codes = generator.integers(0, n_classes, 500)
    codes[:n_classes] = np.arange(n_classes)
    beliefs = generator.dirichlet(np.ones(n_classes), 500).round(1) + 0.8 * np.eye(n_classes)[codes]
    beliefs /= beliefs.sum(axis=1, keepdims=True)
    predicted = beliefs.argmax(axis=1)
    found = measure_quality(np.arange(n_classes), codes, predicted, beliefs)
    scores = beliefs[:, 1] if n_classes == 2 else beliefs
    assert found.auc == pytest.approx(roc_auc_score(codes, scores, multi_class="ovr"))
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(codes, predicted))
    said = pd.DataFrame({"sure": beliefs.max(axis=1), "right": codes == predicted})
    bins = said.groupby(np.minimum((10 * said["sure"]).astype(int), 9))
    gaps = (bins["sure"].mean() - bins["right"].mean()).abs()
    assert found.calibration_error == pytest.approx((gaps * bins.size()).sum() / 500)


def test_probabilities_that_tell_more_than_answers_are_pointed_out():
    truth = imbalanced()
    beliefs = np.where(truth[:, None] == "yes", [[0.7, 0.3]], [[0.9, 0.1]])
    found = measure_quality(CLASSES, truth, np.full(1000, "no"), beliefs)
    assert found.auc == 1 and found.better is False
    assert "a threshold of your own" in found.reason


def answers(noise, n=2000, votes=100, seed=0):
    """Histograms of teachers of whom 80 % name the true class, and a student that is always right."""
    generator = np.random.default_rng(seed)
    truth = (np.arange(n) % 10 == 0).astype(int)
    counts = np.where(np.eye(2, dtype=bool)[truth], 0.8 * votes, 0.2 * votes)
    counts = counts + generator.normal(0, noise, (n, 2))
    column = np.full(n, np.nan)
    shown = NoisyHistograms(
        np.arange(n),
        ("answered",) * n,
        counts.argmax(axis=1),
        counts,
        column,
        np.full(n, float(votes)),
        np.full(n, float(noise)),
        column,
        column,
        "gaussian",
    )
    return truth, shown


def test_without_truth_a_student_is_held_against_what_was_released_and_noise_averages_out():
    truth, shown = answers(noise=500)
    assert (shown.labels == truth).mean() < 0.6  # each alone is nearly worthless
    beliefs = np.where(np.eye(2, dtype=bool)[truth], 0.8, 0.2)
    found = judge_by_answers(CLASSES, shown.queries, shown.labels, shown, CLASSES[truth], beliefs)
    assert found.better is None and not found.truth_is_known and found.tone == "plain"
    assert found.verdict.startswith("How often the student is right is unknown")
    # Standard errors: 5 votes of 100 per record and class, over 2,000 records.
    assert found.accuracy == pytest.approx(0.8, abs=4 * 5 / 2000**0.5)
    assert found.calibration_error < 4 * 5 / 2000**0.5
    assert "against these answers, not the truth" in found.figures()


def test_without_truth_a_constant_student_is_pointed_out():
    predicted = np.full(2000, "no", dtype="U3")
    predicted[:10] = "yes"
    labels = np.zeros(50, dtype=np.intp)
    found = judge_by_answers(CLASSES, np.arange(50), labels, None, predicted)
    assert found.tone == "caution" and found.better is None
    assert "answers “no” for 1,990 of 2,000 public records" in found.verdict
    assert "“no” has 100.0 % of them" in found.reason


def test_public_records_with_a_class_are_named_as_such():
    found = measure_quality(CLASSES, imbalanced(), np.full(1000, "no"), measured_on=PUBLIC)
    assert "public records (which it learnt from, but not their true classes)" in found.reason


def test_probabilities_that_cannot_be_read_are_left_out():
    class Broken:
        def predict_proba(self, X):
            raise RuntimeError("no")

    assert beliefs_about(Broken(), np.zeros((2, 1)), CLASSES) is None
    assert beliefs_about(object(), np.zeros((2, 1)), CLASSES) is None


def fitted(signal, release="labels"):
    generator = np.random.default_rng(3)
    y = np.where(generator.random(1500) < 0.12, "yes", "no")
    X = generator.normal(size=(1500, 3)) + signal * (y == "yes")[:, None]
    model = PATEClassifier(
        LogisticRegression(),
        n_teachers=20,
        aggregator=GNMax(sigma=10),
        student=LogisticRegression(),
        queries=Queries(max_labels=150, release=release),
        classes=["no", "yes"],
        noise_seed=1,
        random_state=1,
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(X[:1000], y[:1000], budgets=np.full(1000, 20.0), X_public=X[1000:1300])
    return model, X[1300:], y[1300:], [line for line in told if line.category is StudentWarning]


def test_python_says_it_after_fit_and_score():
    model, X, y, told = fitted(signal=0.0)
    assert model.quality_.tone == "caution" and "answers “no” for" in model.quality_.verdict
    assert "answers “no” for" in str(told[0].message)
    with pytest.warns(StudentWarning, match="no better than always answering “no”"):
        score = model.score(X, y)
    found = model.quality(X, y)
    assert score == found.accuracy == (y == "no").mean() == found.majority_share
    assert found.better is False and found.auc is not None


@pytest.mark.parametrize("release", ["labels", "histogram"])
def test_python_is_quiet_about_a_good_student(release):
    model, X, y, told = fitted(signal=3.0, release=release)
    assert not told and model.quality_.tone == "plain"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = model.score(X, y)
    found = model.quality(X, y)
    assert found.better and found.accuracy == score
    assert found.auc > 0.9 and found.calibration_error < 0.2
    with pytest.raises(InputError, match="the class of every test record is missing"):
        model.quality(X, [None] * len(y))
    with pytest.raises(InputError, match="give one per record"):
        model.quality(X, y[:-1])


def test_classes_that_are_not_on_the_list_are_told():
    model, X, y, _ = fitted(signal=3.0)
    other = y.astype(object)
    other[:3] = "maybe"
    for ask in (model.score, model.quality):
        with pytest.warns(
            StudentWarning, match=r"^3 of .* not on the list \(maybe; the list: .*\): what"
        ):
            ask(X, other)
    data = SimpleNamespace(
        classes=CLASSES,
        test_groups=None,
        y_test=np.array(["no", "yes", "x"]),
        y_public=np.array(["?"]),
        n_tests_left_out=0,
    )
    test, public = notes_on_test_records(None, data)
    assert test.startswith("1 of 3 test records") and public.startswith("1 of 1 public records")


def test_the_warning_is_no_privacy_warning():
    assert not issubclass(StudentWarning, PrivacyWarning)


def test_labels_in_another_spelling_or_number_are_refused_in_one_line():
    with pytest.raises(InputError, match=r"no label of the .* is among the classes no, yes"):
        measure_quality(["no", "yes"], ["NO", "YES"], ["no", "no"])
    with pytest.raises(InputError, match="2 records, but 1 labels"):
        measure_quality(["no", "yes"], ["no"], ["no", "no"])


@pytest.mark.parametrize(("sure", "calibrated"), [(0.9, True), (0.999, False)])
def test_probabilities_that_are_no_chances_are_pointed_out(sure, calibrated):
    truth, beliefs = imbalanced(400, 0.22), np.tile([sure, 1 - sure], (400, 1))
    found = measure_quality(CLASSES, truth, np.full(400, "no"), beliefs)
    assert found.is_calibrated is calibrated
    assert ("do not take them for chances" in found.reason) is not calibrated

"""Active choice: a function of public records and released outcomes, wherever blocks begin."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier

from collegium import ConfidentGNMax, GNMax, VoteTable
from collegium.distillation.graph import GraphStudent
from collegium.distillation.supervised import released_beliefs
from collegium.errors import InputError
from collegium.mechanisms import SeededNoise
from collegium.pate.queries.active_choice import ActiveChooser
from collegium.pate.queries.selection import comparable_records, next_queries, query_order
from collegium.pate.voting.labelling import LOST, LabellingJob, Outcome
from collegium.pate.voting.pricing import WorstCasePricing
from collegium.study.journal import FileJournal

IMAGES, DIGITS = load_digits(return_X_y=True)
PUBLIC = (IMAGES[:150] / 16).astype(np.float32)
K = 20
ORDER = query_order("coverage", PUBLIC, 0)
MECHANISM = GNMax(sigma=3)
CHECKED = ConfidentGNMax(threshold=14, sigma_threshold=4, sigma=4)


def votes(agreement=0.8):
    generator = np.random.default_rng(0)
    agrees = generator.random((150, K)) < agreement
    others = generator.integers(0, 10, (150, K))
    return VoteTable.from_predictions(np.where(agrees, DIGITS[:150, None], others), 10)


VOTES = votes()


class PerQueryNoise(SeededNoise):
    """Noise that depends on the query alone, so that an interrupted job draws what it would have drawn."""

    def noised(self, total, noise, *, query, purpose):
        seed = [query, len(purpose)]
        drawn = noise.scale * np.random.default_rng(seed).standard_normal(total.shape)
        return total + np.rint(drawn).astype(np.int64)


def chooser(house, student=None, mechanism=MECHANISM, **options):
    return ActiveChooser(
        LogisticRegression(C=1.0, max_iter=50) if student is None else student,
        PUBLIC,
        PUBLIC,
        ORDER,
        house.unlimited(K),
        mechanism,
        10,
        **options,
    )


def job(house, choose, mechanism=MECHANISM, **options):
    electorate = house.unlimited(K)
    pricing = WorstCasePricing(mechanism, electorate)
    return LabellingJob(VOTES, electorate, mechanism, pricing, PerQueryNoise(0), choose, **options)


@pytest.fixture(scope="module", params=[MECHANISM, CHECKED], ids=["gnmax", "confident"])
def whole(house, request):
    """A job that nothing interrupted."""
    return request.param, job(
        house, chooser(house, mechanism=request.param), request.param, max_labels=60
    ).run()


def test_the_first_questions_follow_the_order_and_then_the_students_doubts(house):
    labels = job(house, chooser(house), max_labels=40).run()
    rows = [outcome.query for outcome in labels.outcomes]
    assert rows[:16] == ORDER[:16].tolist() and rows[16:] != ORDER[16:40].tolist()
    for learnt, until in ((16, 24), (24, 36), (36, 40)):
        queries, codes = labels.queries[:learnt], labels.labels[:learnt]
        student = LogisticRegression(C=1.0, max_iter=50)
        beliefs = released_beliefs(student, PUBLIC, queries, codes, 10)
        expected = next_queries(beliefs, PUBLIC, rows[:learnt], until - learnt)
        assert rows[learnt:until] == expected.tolist()


@pytest.mark.parametrize("block", [1, 3, 7, 150])
def test_the_choice_does_not_depend_on_where_blocks_begin(house, whole, block):
    mechanism, labels = whole
    choose = chooser(house, mechanism=mechanism)
    assert job(house, choose, mechanism, max_labels=60, block=block).run().outcomes == (
        labels.outcomes
    )


@pytest.mark.parametrize("stop", [0, 1, 15, 16, 17, 30, 41])
def test_a_job_that_was_interrupted_goes_on_as_if_it_had_not_been(house, whole, tmp_path, stop):
    mechanism, labels = whole
    path = tmp_path / "journal"
    asked = iter([False] * stop + [True])
    first = job(
        house,
        chooser(house, mechanism=mechanism),
        mechanism,
        journal=FileJournal(path),
        should_stop=lambda: next(asked),
    ).run()
    assert (first.stop_reason, first.n_asked) == ("interrupted", stop)
    second = job(
        house,
        chooser(house, mechanism=mechanism),
        mechanism,
        journal=FileJournal(path),
        max_labels=60,
    ).run()
    assert second.outcomes == labels.outcomes


def test_lost_answers_are_missing_and_never_asked_again(house, whole, tmp_path):
    mechanism, labels = whole
    path = tmp_path / "journal"
    journal = FileJournal(path)
    settled = labels.outcomes[:20]
    journal.reserve(0, [outcome.query for outcome in settled])
    journal.settle(settled)
    lost = [outcome.query for outcome in labels.outcomes[20:24]]
    journal.reserve(20, lost)
    choose = chooser(house, mechanism=mechanism)
    after = job(house, choose, mechanism, journal=FileJournal(path)).run()
    rows = [outcome.query for outcome in after.outcomes]
    assert rows[20:24] == lost and len(set(rows)) == len(rows) == 150
    assert [outcome.verdict for outcome in after.outcomes[20:24]] == [LOST] * 4


def test_the_same_outcomes_lead_to_the_same_rows_in_any_state(house, whole):
    """A chooser that has seen other things before says the same as a fresh one."""
    mechanism, labels = whole
    used = chooser(house, mechanism=mechanism)
    generator = np.random.default_rng(0)
    for _ in range(12):
        n = int(generator.integers(0, labels.n_asked))
        outcomes = labels.outcomes[:n]
        if generator.random() < 0.5:  # another story, of the same length
            outcomes = [
                Outcome(o.position, o.query, o.verdict, o.label if o.label < 0 else 9 - o.label)
                for o in outcomes
            ]
        fresh = chooser(house, mechanism=mechanism)
        assert used.next(5, outcomes) == fresh.next(5, outcomes)


def test_soft_targets_of_released_histograms_are_learnt_from(house, monkeypatch):
    lessons = []
    real = released_beliefs

    def spy(student, X, queries, labels, n_classes, targets):
        lessons.append(targets)
        return real(student, X, queries, labels, n_classes, targets)

    monkeypatch.setattr("collegium.pate.queries.active_choice.released_beliefs", spy)
    choose = chooser(house, release="histogram", targets="mixture")
    labels = job(house, choose, release="histogram", max_labels=30).run()
    assert [len(targets) for targets in lessons] == [16, 24]
    assert all(((targets > 0.001) & (targets < 0.999)).any() for targets in lessons)
    assert len(labels.labels) == 30
    lessons.clear()
    job(house, chooser(house), max_labels=20).run()
    assert np.isin(lessons[0], (0, 1)).all()


def test_a_student_that_cannot_be_fitted_yet_leaves_the_order_as_it_was_and_says_so(house):
    told = []
    student = KNeighborsClassifier(n_neighbors=30)  # predicting fails with fewer labels
    labels = job(house, chooser(house, student, tell=told.append), max_labels=60).run()
    rows = [outcome.query for outcome in labels.outcomes]
    assert rows[:36] == ORDER[:36].tolist() and rows[36:] != ORDER[36:60].tolist()
    assert len(told) == 2 and all("could not be fitted to" in line for line in told)
    assert "16 labels" in told[0] and "\n" not in "".join(told)


def test_labels_of_one_class_only_teach_nothing(house):
    outcomes = [Outcome(p, int(row), "answered", 4) for p, row in enumerate(ORDER[:20])]
    told = []
    assert chooser(house, tell=told.append).next(3, outcomes) == ORDER[20:23].tolist()
    assert told == []


def test_students_that_learn_from_all_records_may_choose(house):
    student = GraphStudent(n_components=10, coupling=8.0, mistrust=0.02)
    labels = job(house, chooser(house, student), max_labels=40).run()
    assert len(set(labels.queries.tolist())) == 40


def test_bad_input_is_told_in_one_line(house):
    with pytest.raises(InputError, match="RidgeClassifier has no predict_proba"):
        chooser(house, RidgeClassifier())
    with pytest.raises(InputError, match="growth above 1"):
        chooser(house, growth=1.0)
    with pytest.raises(InputError, match="first from 2"):
        chooser(house, first=1)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (np.array([["red"], ["blue"]], dtype=object), "give numbers"),
        (np.array([[np.nan], [1.0]]), "finite"),
    ],
)
def test_records_that_cannot_be_compared_are_refused(records, reason):
    with pytest.raises(InputError, match=f"query order 'coverage' compares .*{reason}.*'random'"):
        comparable_records(records, "coverage")

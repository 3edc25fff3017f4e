import numpy as np
import pandas as pd
import pytest

from collegium import Budget, Uniform, Upsampling, Vanishing, VoteTable, Weighting
from collegium.errors import InputError
from collegium.evaluation.effects import StudentAnswers, influence_shares, measure_effects
from collegium.pate.teacher_effects import sensitive_teacher_effects

BUDGETS = {"strict": Budget(1.0), "middle": Budget(2.0), "free": Budget(3.0)}
SIZES = {"strict": 5000, "middle": 3000, "free": 2000}


@pytest.mark.parametrize("kind", [Uniform, Upsampling, Weighting, Vanishing])
def test_influence_adds_up_and_follows_budgets(kind):
    plan = kind().plan(BUDGETS, SIZES, 100)
    shares = influence_shares(plan)
    assert sum(shares.values()) == pytest.approx(1)
    each = [shares[name] / SIZES[name] for name in BUDGETS]
    if kind is Uniform:
        assert np.ptp(each) < 1e-12
    else:
        assert each[0] < each[1] < each[2]


@pytest.mark.parametrize("kind", [Upsampling, Weighting])
def test_influence_of_one_person_is_the_sensitivity_relative_to_equal_budgets(kind):
    """What one owner can move, times the number of owners, is what the group moves."""
    plan = kind().plan(BUDGETS, SIZES, 200)
    moved = {name: group.sensitivity * group.owners for name, group in plan.groups.items()}
    total = sum(moved.values())
    for name, share in influence_shares(plan).items():
        # Teachers are whole numbers: at most one of 200 teachers away from proportional.
        assert share == pytest.approx(moved[name] / total, abs=0.01)


def test_classes_are_counted_by_truth_and_by_name():
    plan = Uniform().plan({"all": Budget(1.0)}, {"all": 100}, 10)
    answers = StudentAnswers(
        truth=np.array(["a", "a", "b", "c", "stranger"]),
        predicted=np.array(["a", "b", "b", "a", "a"]),
        groups=np.array(["all", "all", "all", "none", "all"]),
    )
    effects = measure_effects(
        plan, ["a", "b", "c"], ["a", "b", "b"], ["a", "a", "b"], answers, [0.5, 0.3, 0.2]
    )
    table = effects.by_class()
    assert table["labels"].tolist() == [1, 2, 0]
    assert table["true_among_labelled"].tolist() == [2, 1, 0]
    assert table["label_accuracy"].tolist()[:2] == [0.5, 1.0]
    assert pd.isna(table["label_accuracy"].iloc[2])
    assert table["student_accuracy"].tolist() == [0.5, 1.0, 0.0]
    assert table["named_by_student"].tolist() == [0.6, 0.4, 0.0]
    assert table["public_share"].tolist() == [0.5, 0.3, 0.2]
    group = effects.by_group().loc["all"]
    assert (group["test_records"], group["student_accuracy"]) == (4, 0.5)


def test_without_truth_nothing_is_claimed():
    plan = Uniform().plan({"all": Budget(1.0)}, {"all": 100}, 10)
    effects = measure_effects(plan, [0, 1], [1, 1, 0])
    assert effects.by_class()["labels"].tolist() == [1, 2]
    assert all(row.label_accuracy is None for row in effects.classes)
    assert effects.groups[0].student_accuracy is None
    with pytest.raises(InputError, match="one for each label"):
        measure_effects(plan, [0, 1], [1, 1, 0], [1, 1])


@pytest.mark.parametrize("kind", [Upsampling, Weighting, Vanishing])
def test_teachers_by_class_agree_with_counting_one_by_one(kind):
    generator = np.random.default_rng(0)
    plan = kind().plan(BUDGETS, SIZES, 12)
    n = 5000  # more than are looked at together
    truth = generator.integers(0, 4, n)
    table = np.where(generator.random((n, plan.n_teachers)) < 0.5, truth[:, None], 0)
    table[:, 0] = -1
    table = np.where(table == 3, 2, table)
    votes = VoteTable.from_predictions(table, 3, allow_abstention=True)
    found = sensitive_teacher_effects(votes, [0, 1, 2], truth, plan)
    weights = plan.electorate(0).weights
    for label in range(3):
        rows = np.flatnonzero(truth == label)
        assert found["public_records"].iloc[label] == len(rows)
        assert found["teachers"].iloc[label] == pytest.approx((table[rows] == label).mean())
        majority = [
            np.argmax([weights[table[row] == c].sum() for c in range(3)]) == label for row in rows
        ]
        assert found["majority"].iloc[label] == pytest.approx(np.mean(majority))
        for group, (first, end) in plan.teacher_ranges().items() if not plan.mixed else ():
            own = (table[rows, first:end] == label).mean()
            assert found[f"teachers of {group}"].iloc[label] == pytest.approx(own)


def test_teachers_by_class_need_votes_of_these_records():
    plan = Uniform().plan({"all": Budget(1.0)}, {"all": 100}, 3)
    counts = VoteTable.from_counts([[2, 1], [0, 3]])
    with pytest.raises(InputError, match="only vote counts are known"):
        sensitive_teacher_effects(counts, [0, 1], [0, 1], plan)
    votes = VoteTable.from_predictions([[0, 1, 1], [1, 1, 1]], 2)
    with pytest.raises(InputError, match="2 public records were voted on, but 3"):
        sensitive_teacher_effects(votes, [0, 1], [0, 1, 1], plan)

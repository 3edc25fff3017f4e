"""The verdict asks for what a student was to be good at, with that measure first."""

import numpy as np

from collegium.evaluation.quality import judge_by_answers, measure_quality
from collegium.report.quality import quality_headlines

CLASSES = ["no", "yes"]
TRUTH = np.repeat([0, 1], [880, 120])


def named(right_no, right_yes):
    return np.concatenate(
        [np.arange(880) >= 880 * right_no, np.arange(120) < 120 * right_yes]
    ).astype(int)


def judge(answers, goal, beliefs=None):
    truth, given = (np.array(CLASSES)[codes] for codes in (TRUTH, answers))
    return measure_quality(CLASSES, truth, given, beliefs, goal=goal)


def test_balanced_answers_are_better_by_their_own_measure_only():
    answers = named(0.75, 0.8)
    by_accuracy, by_goal = judge(answers, "accuracy"), judge(answers, "balanced")
    assert by_accuracy.better is False and by_goal.better and by_goal.tone == "good"
    assert (
        by_goal.verdict == "The student is better than always answering “no”, by balanced accuracy"
    )
    assert by_goal.reason.startswith(
        "Its balanced accuracy is 77.5 % on 1,000 public test records; always answering “no” would have "
        "50.0 %. It is right on 75.6 % of them"
    )
    assert by_goal.to_dict()["goal"] == "balanced"


def test_one_class_for_everything_is_said_for_every_goal():
    beliefs = np.tile([0.88, 0.12], (1000, 1))
    for goal in ("accuracy", "balanced", "auc"):
        found = judge(np.zeros(1000, dtype=int), goal, beliefs)
        assert found.better is False and "no better" in found.verdict and found.tone == "caution"


def test_an_order_counts_where_it_is_the_goal():
    generator = np.random.default_rng(0)
    rare = np.clip(generator.normal(0.1 + 0.1 * TRUTH, 0.1), 0, 0.45)
    found = judge(np.zeros(1000, dtype=int), "auc", np.stack([1 - rare, rare], axis=1))
    assert found.better and found.verdict.startswith("The student puts records in order")
    assert found.figures().startswith("ROC AUC")
    unknown = judge(np.zeros(1000, dtype=int), "auc")
    assert unknown.better is None and "cannot be told: it gives no probabilities" in unknown.verdict


def test_chance_is_seldom_taken_for_an_order():
    """At 2.5 % each, more than 17 of 200 would happen with a probability below 1e-5."""
    generator, alarms = np.random.default_rng(1), 0
    for _ in range(200):
        rare = generator.random(1000)
        alarms += bool(judge(TRUTH * 0, "auc", np.stack([1 - rare, rare], axis=1)).better)
    assert alarms <= 17


def test_the_measure_of_the_goal_comes_first_on_the_page():
    generator = np.random.default_rng(0)
    beliefs = generator.dirichlet([1, 1], 1000)
    first = {
        goal: quality_headlines(judge(named(0.8, 0.7), goal, beliefs))[0].name
        for goal in ("accuracy", "balanced", "auc")
    }
    assert first == {
        "accuracy": "Student accuracy", "balanced": "Balanced accuracy", "auc": "ROC AUC"
    }  # fmt: skip


def test_released_answers_judge_for_a_goal_as_well():
    found = judge_by_answers(
        CLASSES, np.arange(1000), TRUTH, None, np.array(CLASSES)[TRUTH], goal="balanced"
    )
    assert found.goal == "balanced" and found.better is None

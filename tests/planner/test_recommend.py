"""Choices and predictions are functions of public facts; what is predicted comes true."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, make_classification

import collegium as cg
from collegium.data.record_kinds import kind_of_records
from collegium.dpsgd.by_rule import few_public
from collegium.dpsgd.settings import DPSGDSettings
from collegium.errors import InputError
from collegium.models.preprocessing import BinnedTable
from collegium.planner import recommend
from collegium.planner.candidates import direct
from collegium.planner.expected import from_experience, from_labels
from collegium.planner.facts import Facts
from collegium.planner.recommend import recommend_from
from collegium.planner.rehearsal import NO_NOISE, DPSGDRehearsal, Rehearsed
from collegium.planner.surrogates import ENOUGH, completed, stand_ins
from collegium.planner.votes import rehearse_votes, votes
from collegium.report.choice import figures


@pytest.fixture(autouse=True)
def no_votes(request, monkeypatch):
    """Votes take seconds: they are rehearsed where a test is about them."""
    if "votes" not in request.node.name:
        monkeypatch.setattr(
            recommend, "rehearse_votes", lambda *given: Rehearsed(0.0, 0.1, 0.0, 100)
        )


NAMES = [f"column {number}" for number in range(6)]


def table(n, seed=0, apart=1.0):
    X, y = make_classification(
        n, 6, n_informative=4, n_redundant=0, class_sep=apart, random_state=seed, weights=[0.7]
    )
    return pd.DataFrame(X, columns=NAMES), y


def facts(X, y=None, epsilon=1.0, n=4000, **others):
    known = np.full(len(X), -1) if y is None else np.asarray(y)
    budgets = cg.Policy({"careful": epsilon, "open": 3 * epsilon}).assign(
        ["careful"] * (n // 2) + ["open"] * (n - n // 2)
    )
    given = {"classes": np.array([0, 1]), "X_public": X, "known": known, "n_records": n, **others}
    return Facts.of(budgets, **given)


def test_the_same_facts_give_the_same_choice_byte_for_byte():
    X, y = table(200)
    said = [
        json.dumps(
            {
                k: v
                for k, v in recommend_from(facts(X, y, n=500)).to_dict().items()
                if k != "minutes"
            }
        )
        for _ in range(2)
    ]
    assert said[0] == said[1]


def test_what_is_predicted_comes_true():
    """On four tables: at least three results lie in their intervals, which mean nine in ten."""
    inside = 0
    for seed in range(4):
        X, y = table(4500, seed, apart=0.6 + 0.3 * seed)
        given = facts(X[:500], np.where(np.arange(500) < 300, y[:500], -1), 0.5, n=2000)
        found = recommend_from(given, X[2500:])
        model = found.estimator(classes=[0, 1], noise_seed=seed, random_state=0)
        levels = ["careful"] * 1000 + ["open"] * 1000
        budgets = cg.Policy({"careful": 0.5, "open": 1.5}).assign(levels)
        model.fit(X[500:2500], y[500:2500], budgets=budgets, X_public=X[:500])
        result = model.score(X[2500:], y[2500:])
        inside += found.expected.low <= result <= found.expected.high
    assert inside >= 3


def test_noise_costs_in_a_rehearsal_what_it_costs_in_a_run():
    """The rehearsal's noise is that of N people, though only n records are there to learn from."""
    X, y = table(9000)
    given = facts(X[:1000], y[:1000], 0.02, n=8000)
    rehearsal = DPSGDRehearsal(given, stand_ins(given), BinnedTable(800), False)
    most = max(rehearsal.score(NO_NOISE).score, rehearsal.alone().score)
    cost = most - rehearsal.score(given.signal).score
    budgets = cg.Policy({"careful": 0.02, "open": 0.06}).assign(
        ["careful"] * 4000 + ["open"] * 4000
    )
    runs = {}
    for name, people in (
        ("noisy", budgets),
        ("without", cg.Policy({"all": 1e6}).assign(["all"] * 8000)),
    ):
        scores = [
            cg.DPSGDClassifier(
                classes=[0, 1], noise_seed=seed, random_state=0, preprocessing=BinnedTable(800)
            )
            .fit(X[1000:], y[1000:], budgets=people, X_public=X[:1000])
            .score(X[:1000], y[:1000])
            for seed in range(4)
        ]
        runs[name] = np.mean(scores)
    assert cost == pytest.approx(runs["without"] - runs["noisy"], abs=0.04)
    assert cost > 0.01


def test_more_consent_is_worth_more_and_never_less_than_nothing():
    X, y = table(300)
    found = recommend_from(facts(X, y, 0.02, n=1000))
    assert {row.group for row in found.consent} == {"careful", "open"}
    assert all(row.signal > 1 and row.gain >= 0 for row in found.consent)
    assert [row.signal for row in found.consent] == sorted(
        (row.signal for row in found.consent), reverse=True
    )


def test_useless_budgets_are_told_with_what_would_be_needed():
    X, y = table(400)
    found = recommend_from(facts(X, y, 0.02, n=60))
    (line,) = [line for line in found.notes if "no better than" in line]
    assert "times as many people" in line and "ε = " in line
    # Public labels alone are better than that; budgets would be spent for nothing nevertheless.
    assert any("the public labels alone are enough" in line for line in found.notes)
    assert "of the private records alone" in line
    assert found.verdict == line


def test_labels_that_teach_nothing_are_not_called_enough():
    X, y = table(400, apart=0.05)
    found = recommend_from(facts(X, y, 0.02, n=60))
    assert found.expected.is_better is False
    assert found.verdict.startswith("the model would be no better than always answering")
    assert not any("alone are enough" in line for line in found.notes)


def test_ten_people_get_a_plan():
    X, y = table(100)
    found = recommend_from(facts(X, y, n=10))
    assert 0 <= found.expected.low <= found.expected.high <= 1


def test_without_public_labels_nobody_pretends_to_know():
    X, _ = table(200)
    found = recommend_from(facts(X))
    assert any("clusters in place of classes" in line for line in found.notes)
    assert found.expected.high - found.expected.low > 0.3
    assert all(row.gain is None for row in found.consent)
    few = np.where(np.arange(200) < ENOUGH - 1, 1, -1)
    assert stand_ins(facts(X, few)).synthetic


def test_one_class_in_public_labels_is_told():
    X, _ = table(200)
    found = recommend_from(facts(X, np.ones(200, dtype=int)))
    line = "all 200 known public labels are '1': they do not show how to tell"
    assert any(note.startswith(line) for note in found.notes)
    # Nor how often a class comes: no prediction of 100 % is made of labels that were selected.
    assert (found.expected.low, found.expected.floor) == (0.5, None)


def test_public_columns_without_variety_are_told():
    X, y = table(200)
    found = recommend_from(facts(X.assign(**{"column 3": 1.0}), y))
    assert any("'column 3' has the same value" in line for line in found.notes)


def test_more_levels_than_people_are_told():
    X, y = table(200)
    budgets = cg.Policy({f"level {number}": 1.0 + number for number in range(5)}).assign(
        ["level 1"] * 3
    )
    given = Facts.of(budgets, classes=np.array([0, 1]), X_public=X, known=y, n_records=3)
    assert any("more levels (5) than people (3)" in line for line in recommend_from(given).notes)


def test_one_class_is_nothing_to_learn():
    X, _ = table(50)
    with pytest.raises(InputError, match="classes has 1 class"):
        facts(X, classes=np.array([0]))


def test_guessed_classes_follow_the_known_ones():
    X, y = table(600, apart=2.0)
    given = facts(X, np.where(np.arange(600) < 200, y, -1))
    found = stand_ins(given)
    rehearsal = DPSGDRehearsal(given, found, cg.DPSGDClassifier()._recipe(X).preprocessing, False)
    whole = completed(found, rehearsal.seen, 2)
    assert (whole.codes >= 0).all()
    known = found.codes >= 0
    assert (whole.codes[known] == found.codes[known]).all()
    truth = y[np.arange(600)]  # all 600 are stand-ins, in order
    assert np.mean(whole.codes == truth) > 0.75


def test_every_labelled_stand_in_is_judged_by_once_and_never_learnt_from_in_that_fold():
    X, y = table(101)
    found = stand_ins(facts(X, y))
    judged = []
    for learn, judge in found.folds():
        assert not set(learn) & set(judge)
        judged += list(judge)
    assert sorted(judged) == list(range(101))


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        (np.zeros((5, 28, 28)), "images"),
        (load_digits().data, "images"),
        (np.random.default_rng(0).normal(size=(300, 64)), "rows"),
        (np.random.default_rng(0).normal(size=(300, 64)).cumsum(axis=1), "rows"),
        (np.zeros((300, 64)), "rows"),
        (pd.DataFrame({"a": [1.0]}), "table"),
    ],
    ids=["images", "flat images", "noise", "series", "nothing", "table"],
)
def test_what_records_are_is_told_by_public_ones(records, kind):
    assert kind_of_records(records) == kind


def test_large_flat_images_are_told_without_all_pairs_of_pixels():
    """Of 224 × 224 pixels, all pairs would take 20 GB."""
    blocks = np.random.default_rng(0).normal(size=(40, 28, 28))
    images = blocks.repeat(8, axis=1).repeat(8, axis=2).reshape(40, -1)
    tracemalloc.start()
    try:
        assert kind_of_records(images) == "images"
        assert tracemalloc.get_traced_memory()[1] < 20 * images.nbytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("colour", [False, True])
def test_experience_grows_with_the_signal(colour):
    X = np.random.default_rng(0).normal(size=(200, 8, 8, 3) if colour else (200, 8, 8))
    lows, few = [], ""
    for n in (100, 1000, 10_000, 100_000, 1_000_000):
        given = facts(X, n=n, classes=np.arange(10))
        expected = from_experience(given)
        lows.append(expected.low)
        few = expected.basis if n == 100 else few
        assert expected.low < expected.middle < expected.high <= 1
    assert lows == sorted(lows)
    assert (
        0.1 <= lows[0] < 0.5 and "larger budgets" in few
    )  # nobody has tried images on a hundred people


def test_photographs_are_not_promised_what_digits_had():
    X = np.random.default_rng(0).normal(size=(200, 8, 8, 3))
    grey = from_experience(facts(X[..., 0], n=50_000, classes=np.arange(10)))
    colour = from_experience(facts(X, n=50_000, classes=np.arange(10)))
    assert "MNIST and Fashion-MNIST had" in grey.basis
    assert "CIFAR-10 and Fashion-MNIST had" in colour.basis
    assert colour.low < 0.726 < colour.high < 0.95 and colour.low < grey.low - 0.1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"goal": "speed"}, "goal must be one of accuracy"),
        ({"neighbours": "next door"}, "neighbours must be one of zero-out, replace-one"),
        ({"y_public": [0, 1]}, "300 public records, but 2 classes in y_public"),
        ({"X_public": None}, "public records are missing"),
        ({"n_records": None}, "the number of records is missing: give n_records"),
        (
            {"classes": ["0", "1"]},
            "y_public: 300 of 300 labels are not in classes, first '[01]' in record 1: allowed",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(changed, message):
    X, y = table(300)
    given = {"X_public": X, "y_public": y, "classes": [0, 1], "n_records": 100, **changed}
    with pytest.raises(InputError, match=message) as told:
        cg.recommend(1.0, **given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("with_votes", "without_noise", "method"),
    [
        (0.99, 0.95, "votes (PATE)"),
        (0.86, 0.95, "direct training"),
        (0.99, 0.86, "direct training"),
    ],
    ids=["better", "by chance", "nothing to save"],
)
def test_votes_are_chosen_only_if_they_are_better_than_chance_explains_and_noise_costs_steps_much(
    monkeypatch, with_votes, without_noise, method
):
    X, y = table(300)
    monkeypatch.setattr(
        recommend, "rehearse_votes", lambda *given: Rehearsed(with_votes, 0.02, with_votes, 300)
    )
    scores = {NO_NOISE: without_noise}
    monkeypatch.setattr(
        DPSGDRehearsal,
        "score",
        lambda self, signal: Rehearsed(scores.get(signal, 0.85), 0.02, 0.85, 300),
    )
    found = recommend_from(facts(X, y))
    assert found.method == method
    assert found.answers == (300 if "votes" in method else None)


def test_votes_are_really_held_in_a_rehearsal():
    """With budgets without end they are right nearly always; with tiny ones they guess."""
    X, _ = table(300)
    y = (X["column 0"] > X["column 0"].median()).astype(int)
    scores = {}
    for epsilon in (0.01, 50.0):
        given = facts(X, y, epsilon, n=1200)
        found = completed(stand_ins(given), np.asarray(X), 2)
        scores[epsilon] = rehearse_votes(given, found, votes(given)).score
    assert scores[50.0] > 0.85 > scores[0.01] + 0.05


def test_test_records_of_another_kind_are_told():
    X, y = table(900)
    notes = recommend_from(facts(X[:300], y[:300]), X[300:]).notes
    assert not any("public and test records differ" in line for line in notes)
    notes = recommend_from(facts(X[:300], y[:300]), X[300:] + 2.0).notes
    assert any("public and test records differ" in line for line in notes)


def test_the_estimator_is_the_one_that_was_chosen():
    X, y = table(100)
    learner = recommend_from(facts(X, y, goal="balanced")).estimator(random_state=3)
    assert isinstance(learner, cg.DPSGDClassifier)
    assert (learner.goal, learner.random_state, learner.student) == ("balanced", 3, None)
    voted = recommend_from(facts(X, y, goal="labels")).estimator()
    assert isinstance(voted, cg.PATEClassifier) and voted.goal == "accuracy"


def test_the_estimator_has_the_student_that_was_chosen():
    X, y = load_digits(return_X_y=True)
    budgets = cg.Policy({"all": 1.0}).assign(["all"] * 300)
    given = Facts.of(budgets, classes=np.arange(10), X_public=X[:100], known=y[:100], n_records=300)
    assert direct(given).estimator().student == "auto"


def test_labels_of_too_few_people_are_refused():
    X, y = table(100)
    with pytest.raises(InputError, match="labels are released by votes, but 5 people"):
        recommend_from(facts(X, y, n=5, goal="labels"))


def test_a_group_too_small_for_teachers_of_its_own_gets_a_hybrid_of_votes():
    X, y = table(100)
    for few, method in ((2, "hybrid"), (30, "weighting")):
        budgets = cg.Policy({"a": 1.0, "b": 2.0}).assign(["a"] * 60 + ["b"] * few)
        given = Facts.of(budgets, classes=np.array([0, 1]), X_public=X, known=y, n_records=60 + few)
        chosen = votes(given)
        assert chosen.sections["personalisation"]["method"] == method
        found = completed(stand_ins(given), np.asarray(X), 2)
        assert rehearse_votes(given, found, chosen).n == 50


def test_where_people_are_few_the_luck_of_noise_is_in_the_interval():
    """With as many people as known classes, one run's noise is not averaged away."""
    X, y = table(200, apart=2.0)
    given = facts(X, y, 0.2, n=200, dpsgd=DPSGDSettings(public_labels="judge"))
    found = recommend_from(given)
    rehearsal = DPSGDRehearsal(
        given, stand_ins(given), cg.DPSGDClassifier()._recipe(X).preprocessing, False
    )
    _, luck = rehearsal.steps_of_known(given.signal)
    without = from_labels(given, rehearsal.alone(), rehearsal.alone(0.5), 0.0, None)
    assert luck > 0.01
    assert found.expected.high - found.expected.low > without.high - without.low + luck
    assert found.expected.middle < without.middle
    assert rehearsal.steps_of_known(NO_NOISE)[1] < luck / 10


def test_steep_curves_do_not_promise_that_nothing_will_be_wrong():
    X, y = table(100)
    given = facts(X, y, n=60_000)
    whole, half = Rehearsed(0.9, 0.01, 0.9, 400), Rehearsed(0.8, 0.01, 0.8, 400)
    assert from_labels(given, whole, half, 0.0, None).middle == pytest.approx(0.95, abs=0.001)


def test_many_more_images_than_labels_may_teach_much_more():
    """With 500 labels of CIFAR-10, far less was taught than the 76 % that came out of 50,000 people."""
    X, y = table(100)
    rows = {"whole": Rehearsed(0.43, 0.02, 0.43, 500), "half": Rehearsed(0.35, 0.02, 0.35, 500)}
    images = np.random.default_rng(0).random((100, 8, 8, 3))
    as_table, many, few, some = (
        from_labels(facts(shown, y, n=n), **rows, cost=0.0, n_test=None)
        for shown, n in ((X, 50_000), (images, 50_000), (images, 100), (images, 2_000))
    )
    assert as_table.high < 0.76 < many.high < 0.9
    assert few.high < some.high < many.high
    assert few.middle < some.middle < as_table.middle < 0.5 < many.middle < 0.76


@pytest.mark.parametrize(
    ("n_known", "whole", "half", "came_out"),
    [
        (200, 0.66, 0.474, 0.991),  # MNIST: means of six draws of so many labels
        (500, 0.83, 0.67, 0.991),
        (200, 0.559, 0.411, 0.917),  # Fashion-MNIST
        (500, 0.716, 0.593, 0.917),
        (200, 0.306, 0.202, 0.74),  # CIFAR-10
        (500, 0.415, 0.338, 0.74),
    ],
)
def test_images_are_expected_where_they_come_out(n_known, whole, half, came_out):
    """Each of these labels taught so much; what came out of 50,000 and 60,000 people at ε = 1-2-3."""
    _, y = table(100)
    images = np.random.default_rng(0).random((100, 8, 8, 3))
    of_whole, of_half = (Rehearsed(one, 0.02, one, n_known) for one in (whole, half))
    found = from_labels(facts(images, y, n=55_000), of_whole, of_half, cost=0.0, n_test=None)
    assert found.low < came_out < found.high
    assert abs(found.middle - came_out) < 0.15


def test_budgets_that_no_noise_can_keep_are_named_with_what_to_do():
    X, y = table(200)
    with pytest.raises(InputError, match=r"smallest ε is 1e-09.*ask these people for a larger ε"):
        recommend_from(facts(X, y, epsilon=1e-9))


def test_what_is_not_worth_its_budgets_is_said_first_and_with_the_class():
    X, _ = table(200)
    y = np.r_[np.ones(170, dtype=int), np.zeros(30, dtype=int)]  # nothing to do with X
    said = recommend_from(facts(X, y, n=200)).notes[0]
    assert said.startswith("the model would be no better than always answering “1”")


def test_budgets_in_words_are_refused_in_one_line():
    with pytest.raises(InputError, match=r"budgets must be numbers .* got 'viel'"):
        cg.recommend("viel", X_public=np.eye(4), classes=[0, 1], n_records=10)


def of_three(n, names=("low", "medium", "high")):
    X, _ = table(n)
    value = X[NAMES[0]].to_numpy()
    return X, np.searchsorted(np.quantile(value, [1 / 3, 2 / 3]), value), np.array(names)


def test_public_labels_that_lack_a_class_promise_nothing_of_it():
    """They showed two classes of three, and let expect 91 % where 74 came out."""
    X, y, classes = of_three(400)
    lacking = np.where(y == 1, -1, y)
    whole = recommend_from(facts(X, y, classes=classes), spend="auto")
    found = recommend_from(facts(X, lacking, classes=classes), spend="auto")
    assert found.expected.low < 2 / 3 < found.expected.high
    assert whole.expected.low > 0.9
    assert found.expected.basis.endswith("they do not show all classes")
    assert [
        note for note in found.notes if "fewer than 2 records of medium: they are not lear" in note
    ]
    assert not [note for note in found.notes if "alone are enough" in note or "combined" in note]
    assert (
        found.share is not None and found.share.value == 0.5 and "not show all" in found.share.why
    )
    assert not [note for note in whole.notes if "fewer than 2 records" in note]


def test_votes_that_stand_ins_hold_warn_of_no_class(recwarn):
    X, y, classes = of_three(200)
    given = facts(X, np.where(y == 1, -1, y), n=2000, classes=classes)
    rehearse_votes(given, completed(stand_ins(given), np.asarray(X), 3), votes(given))
    assert not [one for one in recwarn if "no teacher" in str(one.message)]


def test_figures_of_clusters_are_told_from_predictions():
    X, y, classes = of_three(200)
    given = facts(X, classes=classes)
    found = recommend_from(given)
    with_votes = replace(
        found, alternatives={**found.alternatives, "votes": Rehearsed(0.8, 0.1, 0.8, 9)}
    )
    assert found.of_clusters
    assert [
        line
        for line in figures(with_votes)
        if "on clusters in place of classes, which says noth" in line
    ]
    assert not recommend_from(facts(X, y, classes=classes)).of_clusters


@pytest.mark.parametrize(("n", "is_few"), [(1, True), (19, True), (20, False)])
def test_few_public_records_are_pointed_out(n, is_few):
    X, _ = table(100)
    assert bool(few_public(X[:n])) is is_few
    assert bool(few_public(np.zeros((n, 8, 8))))  # of images, a hundred are
    assert not few_public(np.zeros((100, 8, 8)))

"""Synthetic tables: scores and distances against brute force, and verdicts that no failure passes."""

import json
import math
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import roc_auc_score

from collegium import Schema
from collegium.errors import InputError
from collegium.evaluation.synthetic import evaluate_synthetic
from collegium.evaluation.synthetic_learning import (
    area,
    difference,
    explained,
    loss_saved,
    spread_of,
)
from collegium.evaluation.synthetic_marginals import (
    Measured,
    associations,
    distances,
    sampling_floor,
    without_relations,
)

SCHEMA = Schema(
    {
        "age": {"kind": "whole", "bounds": [18, 90], "bins": [18, 30, 45, 60, 75, 90]},
        "city": {"kind": "category", "categories": ["Ulm", "Bonn", "Kiel", "Jena"]},
        "smokes": {"kind": "flag", "missing": False},
        "weight": {"kind": "number", "bounds": [40, 160]},
        "ill": {"kind": "category", "categories": ["no", "yes"], "missing": False},
    }
)


def people(n, seed, *, ill_from=True):
    """People whose illness follows from age and smoking, or from nothing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, n)
    city = rng.choice(["Ulm", "Bonn", "Kiel", "Jena"], n, p=[0.4, 0.3, 0.2, 0.1])
    smokes = rng.random(n) < np.where(city == "Ulm", 0.5, 0.2)
    weight = np.clip(70 + 0.2 * age + rng.normal(0, 10, n), 40, 160).round(1)
    logit = -3 + 0.04 * (age - 18) + 1.5 * smokes
    ill = rng.random(n) < 1 / (1 + np.exp(-logit))
    frame = pd.DataFrame(
        {
            "age": age,
            "city": city,
            "smokes": smokes,
            "weight": weight,
            "ill": np.where(ill, "yes", "no"),
        }
    )
    if not ill_from:
        for name in frame:
            frame[name] = rng.permutation(frame[name].to_numpy())
    return frame


HELD_OUT = people(4_000, 100)


def judge(synthetic, **more):
    return evaluate_synthetic(synthetic, HELD_OUT, schema=SCHEMA, **{"target": "ill", **more})


# Scores.


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_area_is_that_of_scikit_learn_ties_and_all(n_classes):
    rng = np.random.default_rng(n_classes)
    truth = rng.integers(0, n_classes, 500)
    beliefs = rng.dirichlet(np.ones(n_classes), 500).round(1) + 0.3 * np.eye(n_classes)[truth]
    found, influence = area(truth, beliefs)
    if n_classes == 2:
        expected = roc_auc_score(truth, beliefs[:, 1])
    else:
        expected = np.mean(
            [roc_auc_score(truth == label, beliefs[:, label]) for label in range(n_classes)]
        )
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert influence.mean() == pytest.approx(0, abs=1e-12)
    assert found.low < found.value < found.high


def test_the_areas_variance_is_delongs():
    """Computed from the pairwise comparisons, as the paper writes it."""
    rng = np.random.default_rng(0)
    truth = (rng.random(120) < 0.3).astype(np.int64)
    belief = rng.normal(size=120).round(1) + truth
    won = (belief[truth == 1][:, None] > belief[truth == 0]).astype(float)
    won += 0.5 * (belief[truth == 1][:, None] == belief[truth == 0])
    expected = won.mean(axis=1).var(ddof=1) / len(won) + won.mean(axis=0).var(ddof=1) / won.shape[1]
    _, influence = area(truth, np.column_stack([-belief, belief]))
    assert spread_of(influence, truth) == pytest.approx(math.sqrt(expected), rel=1e-12)


def test_intervals_of_areas_and_of_their_differences_hold():
    """600 samples of 200: at 95 %, fewer than 92 % hold with probability 0.001 (binomial)."""
    rng = np.random.default_rng(1)
    area_is, better_is = 0.7602, 0.8556  # Φ(1/√2) and Φ(1.5/√2)
    held = gained = 0
    for _ in range(600):
        truth = (rng.random(200) < 0.4).astype(np.int64)
        noise = rng.normal(size=200)
        one, other = noise + 1.5 * truth, 0.6 * noise + 0.8 * rng.normal(size=200) + truth
        better, first = area(truth, np.column_stack([-one, one]))
        found, second = area(truth, np.column_stack([-other, other]))
        gain = difference(first, second, better.value - found.value, truth)
        held += found.low <= area_is <= found.high
        gained += gain.low <= better_is - area_is <= gain.high
    assert held >= 552
    assert gained >= 552


def test_a_perfect_area_from_few_records_is_not_certain():
    found, _ = area(np.array([0] * 50 + [1] * 5), np.eye(2)[[0] * 50 + [1] * 5])
    assert found.value == 1
    assert found.low == pytest.approx(0.025 ** (1 / 5))


def test_shares_explained_and_saved():
    truth = np.array([1.0, 2.0, 3.0, 6.0])
    found, _ = explained(truth, np.full(4, 3.0))
    assert found.value == pytest.approx(0)
    labels = np.array([0, 0, 0, 1])
    assert loss_saved(labels, np.tile([0.75, 0.25], (4, 1))).value == pytest.approx(0)
    assert loss_saved(labels, np.eye(2)[1 - labels]).value < -5  # sure, and wrong


# Marginals.


def some_codes(n, seed, sizes=(3, 4, 2, 5)):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, sizes[0], n)
    columns = [first, *((first + rng.geometric(0.4, n) - 1) % size for size in sizes[1:])]
    return np.stack(columns, axis=1).astype(np.int64)


SIZES = (3, 4, 2, 5)
MEASURED = Measured.of("abcd", SIZES, np.random.default_rng(0))


@pytest.mark.parametrize("most_cells", [1 << 20, 3])
def test_distances_are_those_of_pandas(monkeypatch, most_cells):
    monkeypatch.setattr("collegium.evaluation.synthetic_marginals._MOST_CELLS", most_cells)
    one, other = some_codes(300, 0), some_codes(200, 1)
    found = MEASURED.variations(one, other)
    assert [len(of) for of in found] == [4, 6, 4]
    for ways, of in enumerate(found, start=1):
        for clique, value in zip(combinations(range(4), ways), of, strict=True):
            shares = [
                pd.DataFrame(codes[:, clique]).value_counts(normalize=True)
                for codes in (one, other)
            ]
            expected = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
            assert value == pytest.approx(expected, abs=1e-12)


def test_columns_without_relation_keep_their_shares_alone():
    """40,000 rows drawn column by column: each cell of a pair is the product of its shares, within 0.02."""
    codes = some_codes(400, 2)
    drawn = without_relations(codes, 40_000, np.random.default_rng(0))
    for one, other in combinations(range(4), 2):
        joint = np.zeros((SIZES[one], SIZES[other]))
        np.add.at(joint, (drawn[:, one], drawn[:, other]), 1 / len(drawn))
        shares = [np.bincount(codes[:, at], minlength=SIZES[at]) / 400 for at in (one, other)]
        assert joint == pytest.approx(np.outer(*shares), abs=0.02)
    assert np.abs(associations(MEASURED, drawn)[~np.eye(4, dtype=bool)]).max() < 0.05


@pytest.mark.parametrize("n", [100, 1_000, 20_000])
def test_what_sampling_explains_is_what_fresh_samples_have(n):
    """Splits of 2,000 records against 20 fresh samples: within 15 %, for twice as many cells, too."""
    sizes = (12, 20, 15)
    measured = Measured.of("abc", sizes, np.random.default_rng(0))
    held_out = some_codes(2_000, 3, sizes)
    floor = sampling_floor(measured, held_out, n, np.random.default_rng(0))
    fresh = [
        [
            of.mean()
            for of in measured.variations(
                some_codes(n, seed, sizes), some_codes(2_000, seed + 50, sizes)
            )
        ]
        for seed in range(100, 120)
    ]
    for (mean, largest), expected in zip(floor, np.mean(fresh, axis=0), strict=True):
        assert mean == pytest.approx(expected, rel=0.15)
        assert largest >= mean


def test_there_is_no_floor_without_records():
    assert sampling_floor(MEASURED, some_codes(30, 0), 1000, np.random.default_rng(0)) is None


def test_a_wrong_table_is_beyond_sampling():
    codes = some_codes(3_000, 4)
    wrong = np.stack(
        [codes[:, 0], *np.random.default_rng(0).permuted(codes[:, 1:], axis=0).T], axis=1
    )
    for table, beyond in ((some_codes(3_000, 5), False), (wrong, True)):
        pairs = distances(MEASURED, table, codes, np.random.default_rng(0))[1]
        assert (pairs.mean > 2 * pairs.sampling_mean) == beyond
        assert (pairs.beyond_sampling > 0.02) == beyond


def test_associations_are_bergsmas():
    codes = some_codes(500, 6)
    found = associations(MEASURED, codes)
    for one, other in combinations(range(4), 2):
        table = pd.crosstab(codes[:, one], codes[:, other]).to_numpy()
        n, (r, k) = table.sum(), table.shape
        squared = chi2_contingency(table, correction=False).statistic / n
        corrected = max(0, squared - (r - 1) * (k - 1) / (n - 1))
        least = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
        assert found[one, other] == pytest.approx(math.sqrt(corrected / least), abs=1e-10)
    assert np.isnan(associations(MEASURED, np.zeros((50, 4), dtype=np.int64))[0, 1])


def test_many_columns_are_sampled_and_the_same_ones_again():
    names = [f"c{place}" for place in range(90)]
    one = Measured.of(names, [2] * 90, np.random.default_rng(3))
    assert [len(order) for order in one.cliques] == [90, 2_000, 300]
    assert one.n_all == (90, 4_005, 117_480)
    assert one.cliques == Measured.of(names, [2] * 90, np.random.default_rng(3)).cliques
    assert all(len(set(clique)) == 3 for clique in one.cliques[2])


# Verdicts.


def test_a_good_table_is_better_than_few_public_rows():
    found = judge(people(8_000, 1), public=people(60, 2), real=people(8_000, 3))
    assert found.better_than_constant
    assert found.better_than_public
    assert found.keeps_relations
    assert found.tone == "good"
    assert found.verdict == "Better than the public rows alone for learning ill"
    assert [table.name for table in found.tables] == [
        "synthetic",
        "real",
        "public rows alone",
        "constant",
    ]
    for one, other in zip(found.synthetic.learnt, found.table("real").learnt, strict=True):
        assert one.score.value == pytest.approx(other.score.value, abs=0.01)
    pairs = found.synthetic.distances[1]
    assert pairs.mean == pytest.approx(pairs.sampling_mean, rel=0.15)
    assert "no guarantee covers it" in found.looked_at


def test_columns_without_relation_are_no_success():
    """Six tables whose columns have nothing to do with one another: none is a success."""
    for seed in range(6):
        found = judge(people(4_000, seed, ill_from=False), public=people(300, 20))
        assert not found.better_than_constant
        assert not found.better_than_public
        assert found.keeps_relations is False
        assert found.tone == "caution"


def test_a_random_direction_is_called_luck():
    """A table with the right relations of all other columns, and a target of dice."""
    lucky = []
    for seed in range(8):
        table = people(4_000, 40 + seed)
        table["ill"] = np.random.default_rng(seed).permutation(table["ill"].to_numpy())
        found = judge(table)
        assert not found.better_than_constant
        if found.better_than_constant is None:
            lucky.append(max(one.score.low for one in found.synthetic.learnt))
            assert found.verdict == "What it teaches about ill may be luck"
    assert lucky
    assert (
        min(lucky) > 0.5
    )  # an interval of the held-out records alone would have called it a success


def test_a_table_that_teaches_the_opposite_is_no_success():
    table = people(4_000, 1)
    table["ill"] = table["ill"].map({"yes": "no", "no": "yes"})
    found = judge(table)
    assert found.better_than_constant is False
    assert all(one.loss_saved.high < 0 for one in found.synthetic.learnt)


def test_a_collapsed_table_is_judged_and_said_to_be_one():
    table = people(1_000, 1).assign(ill="no", city="Ulm")
    found = judge(table, public=people(200, 2))
    assert found.better_than_constant is False
    assert [one.score.value for one in found.synthetic.learnt] == [0.5, 0.5]
    assert any("one value of ill only ('no')" in note for note in found.notes)


def test_as_good_as_public_rows_is_not_better():
    found = judge(people(300, 1), public=people(300, 2))
    assert found.better_than_public is False
    assert found.tone == "caution"


def test_without_a_target_there_are_marginals_alone():
    found = judge(people(2_000, 1), target=None)
    assert found.better_than_constant is None
    assert found.better_than_public is None
    assert found.keeps_relations
    assert found.models == ()
    assert "AUC" not in str(found)


def test_a_number_is_explained():
    found = judge(people(4_000, 1), target="weight", public=people(100, 2))
    assert found.measure == "R²"
    assert found.better_than_constant
    assert 0.05 < found.synthetic.learnt[0].score.value < 0.3
    shuffled = judge(people(4_000, 1, ill_from=False), target="weight")
    assert shuffled.better_than_constant is False


def test_several_classes():
    found = judge(people(3_000, 1), target="city")
    assert found.better_than_constant
    assert found.positive is None
    assert len(found.table("constant").learnt) == 2


def test_the_constant_is_the_most_frequent_answer():
    share = (HELD_OUT["ill"] == "no").mean()
    constant = judge(people(500, 1)).table("constant")
    assert [one.accuracy.value for one in constant.learnt] == [pytest.approx(share)] * 2
    assert constant.n == 500
    assert constant.distances[0].mean < 0.05 < constant.distances[1].mean


def test_few_real_records_are_no_failure():
    """200 of them are further off in pairs than 4,000 rows without any relation: that is a floor."""
    few = judge(people(200, 1)).synthetic.distances[1]
    many = judge(people(4_000, 1)).table("constant").distances[1]
    assert few.mean > many.mean
    assert judge(people(200, 1)).keeps_relations


def test_pairs_that_are_worse_than_public_ones_are_said_in_the_verdict():
    table = people(4_000, 1)
    table["weight"] = np.random.default_rng(0).permutation(table["weight"].to_numpy())
    table["city"] = "Ulm"
    found = judge(table, public=people(250, 2))
    assert found.keeps_relations is False
    assert found.verdict.endswith(
        "; pairs of columns are hardly nearer to real ones than without any relation"
    )
    assert found.tone == "caution"


# Groups.


def test_shares_and_distances_by_group():
    table = people(6_000, 1)
    table = pd.concat([table[table["city"] != "Jena"], table[table["city"] == "Jena"].head(100)])
    far = table["city"] == "Kiel"
    table.loc[far, "smokes"] = ~table.loc[far, "smokes"]
    found = judge(table, by="city")
    groups = {group.name: group for group in found.groups}
    assert set(groups) == {"Ulm", "Bonn", "Kiel", "Jena"}
    assert groups["Jena"].synthetic_share < groups["Jena"].share.low
    assert sum(group.synthetic_share for group in found.groups) == pytest.approx(1)
    assert sum(group.share.value for group in found.groups) == pytest.approx(1)
    near, moved = (groups[name].tables[0].distances[0] for name in ("Bonn", "Kiel"))
    assert near.mean < 2 * near.sampling_mean
    assert moved.mean > 3 * moved.sampling_mean
    assert moved.worst == ("smokes",)


def test_a_level_that_only_held_out_records_have():
    """Whose distribution is this? That of those whom the table follows."""
    held_out = HELD_OUT.assign(level=np.where(HELD_OUT["age"] > 60, "free", "strict"))
    old = people(12_000, 1)
    found = evaluate_synthetic(
        old[old["age"] > 60], held_out, schema=SCHEMA, target="ill", by="level"
    )
    groups = {group.name: group.tables[0] for group in found.groups}
    assert found.groups[0].synthetic_share is None
    assert groups["free"].distances[1].mean < 0.3 * groups["strict"].distances[1].mean


def test_small_groups_have_no_score():
    held_out = HELD_OUT.assign(level=["few"] * 8 + ["many"] * (len(HELD_OUT) - 8))
    found = evaluate_synthetic(people(500, 1), held_out, schema=SCHEMA, target="ill", by="level")
    few = found.groups[0]
    assert (few.n, few.tables[0].scores, few.tables[0].distances) == (8, (None, None), ())


def test_calibration_by_group():
    table = people(8_000, 1)
    ulm = (table["city"] == "Ulm").to_numpy()
    table.loc[ulm & (np.random.default_rng(0).random(len(table)) < 0.5), "ill"] = "yes"
    found = judge(table, by="city", positive="yes")
    gaps = {group.name: group.tables[0].calibration_gaps[1] for group in found.groups}
    assert gaps["Ulm"] > 0.2
    assert abs(gaps["Bonn"]) < 0.05


# What is given.


def test_text_cells_other_types_and_other_libraries_are_read_alike():
    table = people(800, 1)
    text = table.astype(str)
    arrow = pa.Table.from_pandas(table)
    first, *others = (judge(one).to_dict() for one in (table, text, arrow))
    assert all(other == first for other in others)


def test_the_same_again_with_the_same_seed():
    table = people(600, 1)
    assert judge(table, seed=5).to_dict() == judge(table, seed=5).to_dict()


def test_json_text_and_notebook():
    found = judge(people(600, 1), public=people(100, 2), by="city")
    written = json.loads(json.dumps(found.to_dict()))
    assert written["verdict"] == found.verdict
    assert len(written["columns"]) == 5
    assert len(written["associations"]["held_out"]) == 5
    text = str(found)
    for words in ("public rows alone", "constant", "sampling alone", "By city:", found.looked_at):
        assert words in text


def test_other_categories_are_counted_and_never_taken_for_values():
    table = people(1_000, 1)
    table = table.astype({"smokes": object, "ill": object})
    table.loc[:99, "smokes"] = None
    table.loc[:199, "ill"] = "perhaps"
    found = judge(table)
    assert any("200 of 1,000 values of ill" in note and "'perhaps'" in note for note in found.notes)
    smokes = next(one for one in found.columns if one.name == "smokes")
    assert smokes.labels[-1] == "missing"
    assert smokes.synthetic[-1] == pytest.approx(0.1)
    assert smokes.held_out[-1] == 0


def test_held_out_records_that_took_part_are_noticed():
    copies = pd.concat([people(900, 1), HELD_OUT.head(300)])
    [said] = [note for note in judge(copies).notes if "stand in the synthetic table, too" in note]
    assert 300 <= int(said.split()[0]) <= 320  # a few more are equal by chance
    with pytest.raises(
        InputError, match="4,000 of 4,000 held-out records stand in real, too: hold out"
    ):
        judge(people(900, 1), real=pd.concat([people(9, 1), HELD_OUT]))
    assert not any("stand in" in note for note in judge(people(4_000, 1)).notes)


def test_equal_records_of_coarse_tables_are_chance():
    schema = Schema({name: SCHEMA[name] for name in ("city", "smokes", "ill")})
    found = evaluate_synthetic(people(900, 1), HELD_OUT, schema=schema, target="ill")
    assert not any("stand in" in note for note in found.notes)


def test_columns_that_the_schema_lacks_are_named():
    assert any(
        "shoe size" in note for note in judge(people(500, 1).assign(**{"shoe size": 42})).notes
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: {"synthetic": people(10, 1).head(0)}, "the synthetic table has no rows"),
        (lambda: {"synthetic": people(10, 1).drop(columns="age")}, "the synthetic table: .*'age'"),
        (lambda: {"synthetic": HELD_OUT}, "the synthetic table is the same table as held_out"),
        (
            lambda: {"synthetic": HELD_OUT.sample(frac=1, random_state=0)},
            "has the same rows as held_out",
        ),
        (lambda: {"public": HELD_OUT.copy()}, "public has the same rows as held_out"),
        (lambda: {"real": people(10, 1).drop(columns="city")}, "real: .*'city'"),
        (lambda: {"held_out": people(49, 1)}, "held_out has 49 rows, and at least 50"),
        (
            lambda: {"held_out": HELD_OUT[HELD_OUT["ill"] == "no"]},
            "1 different values of target 'ill'",
        ),
        (
            lambda: {"synthetic": people(99, 1).assign(city="x")},
            "knows no value of column 'city'.*'x'",
        ),
        (lambda: {"synthetic": people(99, 1).assign(ill=None)}, "has no value of target 'ill'"),
        (lambda: {"target": "il"}, "did you mean 'ill'"),
        (lambda: {"target": 3}, "target must be a column"),
        (lambda: {"by": "level"}, "level"),
        (lambda: {"by": 3}, "by must be the name of a column"),
        (
            lambda: {"positive": "maybe"},
            "positive must be a class of 'ill' \\(no, yes\\), got 'maybe'",
        ),
        (lambda: {"target": "city", "positive": "Ulm"}, "positive is for targets of two classes"),
        (lambda: {"seed": -1}, "seed must be a whole number"),
        (lambda: {"schema": {}}, "schema must be of type Schema"),
    ],
)
def test_what_cannot_be_judged_is_refused_in_one_line(change, message):
    given = {
        "synthetic": people(200, 1),
        "held_out": HELD_OUT,
        "schema": SCHEMA,
        "target": "ill",
        **change(),
    }
    with pytest.raises(InputError, match=message) as caught:
        evaluate_synthetic(given.pop("synthetic"), given.pop("held_out"), **given)
    assert "\n" not in str(caught.value)

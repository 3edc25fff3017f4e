"""Budgets: who granted how much, and nobody twice."""

import copy
import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import KFold
from sklearn.utils import _safe_indexing

from collegium import Budget, Budgets, Policy, PrivacyWarning
from collegium.budgets import as_budgets
from collegium.errors import InputError

LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
COLUMN = ["low", "high", "average", "high", "low", "high"]


def per_owner(budgets):
    """Owner to (ε, δ), whatever the order of groups or records."""
    granted = [budgets.groups[budgets.group_names[code]] for code in budgets.owner_group]
    return {
        owner: (budget.epsilon, budget.delta)
        for owner, budget in zip(budgets.owners.tolist(), granted, strict=True)
    }


@pytest.mark.parametrize("epsilon", [1e-12, 0.03, 50, np.float32(2), math.inf])
def test_budget_keeps_every_allowed_number_as_it_is(epsilon):
    assert Budget(epsilon, 1e-300).epsilon == float(epsilon)
    assert Budget(epsilon).is_unlimited == math.isinf(epsilon)


def test_policy_assigns_levels_by_name():
    budgets = Policy(LEVELS, delta=1e-6).assign(COLUMN)
    assert per_owner(budgets) == dict(enumerate((LEVELS[level], 1e-6) for level in COLUMN))
    assert budgets.record_groups().tolist() == COLUMN
    assert budgets.group_sizes() == {"high": 3, "average": 1, "low": 2}


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(COLUMN, index=range(10, 16)),
        pd.Series(COLUMN, dtype="category"),
        pd.Categorical(COLUMN, categories=["low", "average", "high", "never used"]),
        pd.Series(COLUMN, dtype="string"),
        pd.Series(COLUMN, dtype=object),
        np.array(COLUMN),
        np.array(COLUMN)[:, None],
        pd.DataFrame({"privacy": COLUMN}),
        tuple(COLUMN),
    ],
    ids=lambda column: f"{type(column).__name__}-{getattr(column, 'dtype', '')}",
)
def test_policy_reads_every_kind_of_column_alike(column):
    assert per_owner(Policy(LEVELS).assign(column)) == per_owner(Policy(LEVELS).assign(COLUMN))


@pytest.mark.parametrize("order", list(itertools.permutations(LEVELS)))
def test_order_of_levels_never_matters(order):
    owners = ["eve", "bob", "ann", "bob", "eve", "dan"]
    permuted = Policy({name: LEVELS[name] for name in order}).assign(COLUMN, owners)
    assert per_owner(permuted) == {
        "eve": (3.0, 1e-5),
        "bob": (1.0, 1e-5),
        "ann": (2.0, 1e-5),
        "dan": (1.0, 1e-5),
    }
    for name, size in {"high": 2, "average": 1, "low": 1}.items():
        assert permuted.group_sizes()[name] == size


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0, 7.25]), min_size=1, max_size=30), st.randoms())
def test_every_owner_gets_the_epsilon_that_was_asked_for_in_whatever_order(epsilons, random):
    order = list(range(len(epsilons)))
    random.shuffle(order)
    budgets = Budgets.from_epsilons(
        [epsilons[i] for i in order], delta=1e-9, owners=[f"owner {i}" for i in order]
    )
    expected = {f"owner {i}": (epsilon, 1e-9) for i, epsilon in enumerate(epsilons)}
    assert per_owner(budgets) == expected


def test_policy_takes_whole_budgets_beside_numbers():
    policy = Policy({"strict": Budget(0.5, 1e-8), "usual": 1.0}, delta=1e-6)
    assert policy.levels["strict"] == Budget(0.5, 1e-8)
    assert policy.levels["usual"] == Budget(1.0, 1e-6)
    with pytest.raises(TypeError):
        policy.levels["usual"] = Budget(100.0)


def test_all_records_of_one_owner_make_one_owner():
    budgets = Policy(LEVELS).assign(
        ["high", "low", "high", "low"], owners=["ann", "bob", "ann", "bob"]
    )
    assert (budgets.n_records, budgets.n_owners, len(budgets)) == (4, 2, 4)
    assert budgets.owners.tolist() == ["ann", "bob"]
    assert budgets.record_owner.tolist() == [0, 1, 0, 1]
    assert budgets.group_sizes() == {"high": 1, "average": 0, "low": 1}


def test_one_name_is_one_owner_however_it_was_typed():
    budgets = Budgets.from_epsilons(
        [1, 1, 1, 1, 2, 2], owners=[7, "7", 7.0, np.int64(7), "x", "7.0"]
    )
    assert budgets.owners.tolist() == ["7", "x", "7.0"]
    with pytest.raises(InputError, match="read that column as text"):
        Budgets.from_epsilons([1, 1], owners=[1e16, 2.0])


@pytest.mark.parametrize(
    ("given", "meant"), [("High", "high"), (" low", "low"), ("averge", "average")]
)
def test_of_a_level_that_is_almost_right_the_right_one_is_shown(given, meant):
    with pytest.raises(InputError, match=f"first record 2 .*did you mean '{meant}'") as refusal:
        Policy(LEVELS).assign(["low", given])
    assert given == meant.strip() or f"'{given}'" not in str(refusal.value)


def test_a_cell_that_is_no_level_is_not_shown():
    """It may be of another column than that of the levels, which is private."""
    with pytest.raises(InputError, match=r"first record 2 .*: allowed are") as refusal:
        Policy(LEVELS).assign(["low", "positive since 2019"])
    with pytest.raises(InputError, match=r"first record 2 \(row 3[^:]*\): give") as other:
        Budgets.from_epsilons([1.0, -123.5])
    assert "2019" not in str(refusal.value) and "123" not in str(other.value)


def test_levels_that_pandas_took_for_numbers_are_the_words_of_the_policy():
    policy = Policy({"1": 1.0, "2": 2.0}, delta=1e-9)
    expected = policy.assign(["1", "2", "2"]).record_groups().tolist()
    assert policy.assign(pd.Series([1.0, 2.0, 2.0])).record_groups().tolist() == expected
    assert policy.assign([1, "2", np.int64(2)]).record_groups().tolist() == expected


def test_no_two_numbers_share_a_group():
    epsilons = [0.1, 0.1 + 1e-16, 0.1 + 1e-15, 1e-5, 1e5, 3]
    budgets = Budgets.from_epsilons(epsilons, delta=1e-9)
    assert [per_owner(budgets)[i][0] for i in range(6)] == epsilons
    assert len(budgets.groups) == len(set(epsilons))


def test_unlimited_budgets_are_allowed_but_loud():
    with pytest.warns(PrivacyWarning, match=r"'ε=inf'.*NO PRIVACY for its 2 owner\(s\)"):
        budgets = Budgets.from_epsilons([1, math.inf, math.inf], delta=1e-9)
    assert budgets.groups["ε=inf"].is_unlimited


def test_levels_that_nobody_chose_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Policy({"none": math.inf, "loose": Budget(1.0, 0.9), "usual": 1.0}).assign(["usual"] * 5)


def test_splitting_records_keeps_every_owner_and_budget():
    owners = np.array([f"patient {i // 3}" for i in range(30)])
    levels = np.array(["high", "low"])[np.arange(30) // 3 % 2]
    budgets = Policy(LEVELS).assign(levels, owners)
    for train, test in KFold(3, shuffle=True, random_state=0).split(owners):
        for rows in (train, test, np.isin(np.arange(30), train)):
            part = _safe_indexing(budgets, rows)
            assert part.n_records == owners[rows].size
            assert part.owners[part.record_owner].tolist() == owners[rows].tolist()
            assert part.record_groups().tolist() == levels[rows].tolist()
            assert dict(part.groups) == dict(budgets.groups)


def test_default_owners_keep_their_names_when_split():
    part = Budgets.from_epsilons([1, 2, 3, 4])[np.array([2, 0])]
    assert part.owners.tolist() == [2, 0]
    assert per_owner(part) == {2: (3.0, 1e-5), 0: (1.0, 1e-5)}


@pytest.mark.parametrize("rows", [slice(1, 3), [1, 2], [False, True, True, False]])
def test_budgets_index_like_an_array(rows):
    assert Budgets.from_epsilons([1, 2, 3, 4])[rows].record_groups().tolist() == ["ε=2", "ε=3"]


def test_one_record_is_still_budgets_and_none_is_refused():
    budgets = Budgets.from_epsilons([1, 2])
    assert budgets[-1].record_groups().tolist() == ["ε=2"]
    assert list(budgets) == ["ε=1", "ε=2"]
    with pytest.raises(InputError, match="at least one record"):
        budgets[[]]
    with pytest.raises(IndexError):
        budgets[2]


def test_strictest_takes_the_least_epsilon_and_delta_that_somebody_chose():
    policy = Policy(
        {"unused": Budget(0.01, 1e-12), "strict": Budget(1.0, 1e-5), "careful": Budget(2.0, 1e-8)}
    )
    budgets = policy.assign(["careful", "strict", "strict"], owners=["c", "s", "s"]).strictest()
    assert per_owner(budgets) == {"c": (1.0, 1e-8), "s": (1.0, 1e-8)}
    assert budgets.record_owner.tolist() == [0, 1, 1]


@pytest.mark.filterwarnings("ignore::collegium.errors.PrivacyWarning")
def test_strictest_of_unlimited_and_limited_is_limited():
    assert Budgets.from_epsilons([math.inf, 4.0]).strictest().groups["everybody"].epsilon == 4.0
    assert Budgets.from_epsilons([math.inf]).strictest().groups["everybody"].is_unlimited


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_budgets_and_policies_can_be_copied_to_other_processes(duplicate):
    policy = duplicate(Policy(LEVELS))
    assert dict(policy.levels) == dict(Policy(LEVELS).levels)
    budgets = Policy(LEVELS).assign(COLUMN, owners=list("abcdef"))
    assert per_owner(duplicate(budgets)) == per_owner(budgets)


def test_groups_cannot_be_changed_after_the_fact():
    budgets = Policy(LEVELS).assign(COLUMN)
    with pytest.raises(TypeError):
        budgets.groups["high"] = Budget(100.0)


def test_as_budgets_passes_budgets_through_and_reads_numbers():
    budgets = Policy(LEVELS).assign(COLUMN)
    assert as_budgets(budgets) is budgets
    assert per_owner(as_budgets([1, 2], delta=1e-7)) == {0: (1.0, 1e-7), 1: (2.0, 1e-7)}
    with pytest.raises(InputError, match="budgets are missing"):
        as_budgets(None)


def test_text_forms_name_no_owner():
    budgets = Policy(LEVELS).assign(["low"], owners=["Ann Secret"])
    assert repr(budgets) == "Budgets(1 records, 1 owners, {'high': 0, 'average': 0, 'low': 1})"
    assert repr(Policy(LEVELS)) == "Policy('high': ε=1, 'average': ε=2, 'low': ε=3)"


TWICE = ["Xenia", "bob", "Xenia", "Xenia"]
NOT_POSITIVE = r"^1 record\(s\).*record 2 "
NO_MAPPING = r"must be a mapping \{'name': epsilon\}"
REFUSED = [
    # maker, arguments that it refuses alike, what the message says
    (Budget, [0, -1, -1e-300, math.nan, -math.inf, "much", None], "epsilon must"),
    (
        lambda delta: Budget(1.0, delta),
        [0, 1, -1e-9, 1.5, math.nan, math.inf, "small"],
        "delta must",
    ),
    (Policy, [{}], "at least one level"),
    (Policy, [{"": 1.0}, {"  ": 1.0}, {1: 1.0}], "name must be a word"),
    (Policy, [[1, 2], "high", None, 3.0, {"a", "b"}, np.array([1.0, 2.0])], NO_MAPPING),
    (Policy, [{"low": 1.0, "none": -1e-300}], "level 'none'.*greater than 0"),
    (Policy, [{"none": 0.0}, {"none": 0, "never": -0.0}], "at least one level with a budget"),
    (
        lambda public: Policy({"some": 1.0, "any": math.inf, "none": 0}, public=public),
        [["some"], ["none"], ["any", "gift"]],
        "^a public level must be one with ε = inf.*got '(some|none|gift)'",
    ),
    (lambda public: Policy({"any": math.inf}, public=public), ["any", {"any"}], "list of names"),
    (lambda public: Policy({"any": math.inf}, public=public), [["any"]], "nothing to protect"),
    (  # even where no level uses it
        lambda delta: Policy({"high": Budget(1.0)}, delta=delta),
        ["x", 0, 1, -1, None, math.nan, True],
        "^delta must",
    ),
    (
        lambda level: Policy(LEVELS).assign(pd.Series(["low", "high", level], dtype=object)),
        ["LOW", "", None, math.nan, pd.NA, 1.0],
        r"^1 record\(s\).* record 3 .*high, average, low",
    ),
    (Policy(LEVELS).assign, [["x", "low", "y", None]], r"^3 record\(s\)"),
    (Policy(LEVELS).assign, [[]], "at least one record"),
    (lambda column: Budgets({"a": Budget(1)}, column), [[]], "at least one record"),
    (Policy(LEVELS).assign, [np.ones((3, 2))], r"one column, got an array of shape \(3, 2\)"),
    (Budgets.from_epsilons, [np.ones((3, 2))], r"one column, got an array of shape \(3, 2\)"),
    (lambda bad: Budgets.from_epsilons([1, bad, 2]), [-1, math.nan, -math.inf], NOT_POSITIVE),
    (Budgets.from_epsilons, [["much", "little"], [None, pd.NA], [{}]], "must be numbers, got text"),
    (Budgets.from_epsilons, [[[1, 2], [3, 4]], 3.0], "must be one column"),
    (Budgets.from_epsilons, [[]], "at least one record"),
    (
        lambda owners: Policy(LEVELS).assign(["high", "low", "high", "low"], owners),
        [TWICE],
        r"^1 owner\(s\) with two budgets.*record 1 .* and record 4 ",
    ),
    (
        lambda owners: Budgets.from_epsilons([1.0, 1.0 + 1e-12], owners=owners),
        [[7, 7]],
        "two budgets, first record 1 .* and record 2 ",
    ),
    (
        lambda owners: Budgets.from_epsilons([1, 1, 1], owners=owners),
        [["a", None, "c"], [1.0, math.nan, 2.0], [pd.NaT, "b", "c"]],
        r"1 record\(s\) without an owner, first record [12] ",
    ),
    (
        lambda owners: Budgets.from_epsilons([1, 1, 1], owners=owners),
        [["xenia", "bob"], ["xenia"] * 4],
        r"^3 privacy levels, but [24] owners",
    ),
    (
        lambda owners: Budgets.from_epsilons([1, 1, 1], owners=owners),
        [[["xenia", "bob", "eve"]]],
        "^owners must be one column",
    ),
    (
        lambda owners: Policy(LEVELS).assign(pd.Series(["high", "low", "low"]), owners=owners),
        [
            pd.Series(["xenia", "bob", "eve"])[::-1],
            pd.Series(["xenia", "bob", "eve"], index=[1, 0, 2]),
        ],
        "^privacy levels and owners have one index in two orders.*reset_index",
    ),
    (
        lambda owners: Budgets.from_epsilons(pd.Series([1, 2], index=["a", "b"]), owners=owners),
        [pd.Series(["xenia", "bob"], index=["b", "c"])],
        "^privacy budgets and owners have two indexes that disagree",
    ),
]


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [(make, one, message) for make, alike, message in REFUSED for one in alike],
)
def test_what_is_refused_is_told_in_one_line_that_names_no_owner(make, given, message):
    with pytest.raises(InputError, match=message) as error:
        make(given)
    assert "\n" not in str(error.value)
    assert "xenia" not in str(error.value).lower()


def test_owners_that_differ_in_case_or_blanks_are_counted_and_not_named():
    with pytest.warns(PrivacyWarning, match="3 of 4 owners are called like another one") as told:
        Policy({"low": 3.0}).assign(["low"] * 5, owners=["Anna ", "anna", "Bo", "ANNA", "Bo"])
    assert not any("nna" in str(one.message) for one in told)


@pytest.mark.parametrize(
    "owners",
    [COLUMN_OWNERS := pd.Series(list("abcdef"), index=[7, 3, 9, 5, 1, 0]), COLUMN_OWNERS.to_numpy(),
     COLUMN_OWNERS.reset_index(drop=True), COLUMN_OWNERS.index.to_numpy(), None],
    ids=["equal", "array", "numbered", "numbers", "none"],
)  # fmt: skip
def test_columns_without_another_order_go_by_position_and_remember_whose_rows_they_are(owners):
    levels = pd.Series(COLUMN, index=COLUMN_OWNERS.index)
    budgets = Policy(LEVELS).assign(levels, owners)
    assert budgets.record_groups().tolist() == COLUMN
    assert budgets.index.equals(levels.index)
    assert budgets[2:4].index.tolist() == [9, 5]
    assert Policy(LEVELS).assign(COLUMN).index is None

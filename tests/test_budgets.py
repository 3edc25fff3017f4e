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

from collegium.budgets import Budget, Budgets, Policy, as_budgets
from collegium.errors import InputError, PrivacyWarning

LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
COLUMN = ["low", "high", "average", "high", "low", "high"]


def per_owner(budgets):
    """Owner to (ε, δ), whatever the order of groups or records."""
    granted = [budgets.groups[budgets.group_names[code]] for code in budgets.owner_group]
    return {
        owner: (budget.epsilon, budget.delta)
        for owner, budget in zip(budgets.owners.tolist(), granted, strict=True)
    }


def one_line(error):
    message = str(error.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("epsilon", [0, -1, -1e-300, math.nan, -math.inf, "much", None])
def test_budget_refuses_an_epsilon_that_is_not_positive(epsilon):
    with pytest.raises(InputError, match="epsilon must") as error:
        Budget(epsilon)
    one_line(error)


@pytest.mark.parametrize("delta", [0, 1, -1e-9, 1.5, math.nan, math.inf, "small"])
def test_budget_refuses_a_delta_outside_the_open_interval(delta):
    with pytest.raises(InputError, match="delta must") as error:
        Budget(1.0, delta)
    one_line(error)


@pytest.mark.parametrize("epsilon", [1e-12, 0.03, 50, np.float32(2), math.inf])
def test_budget_keeps_every_allowed_number_as_it_is(epsilon):
    assert Budget(epsilon, 1e-300).epsilon == float(epsilon)
    assert Budget(epsilon).is_unlimited == math.isinf(epsilon)


def test_budget_in_words_follows_the_posterior_of_an_undecided_attacker():
    assert "73.2 %" in Budget(1.0).in_words()  # e / (1 + e) = 0.73106, rounded up
    assert "75.0 %" in Budget(math.log(3)).in_words()  # 3 / (1 + 3)
    assert "all but certain" in Budget(10.0).in_words()
    assert "no privacy" in Budget(math.inf).in_words()


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


@pytest.mark.parametrize("bad", ["LOW", "", None, math.nan, pd.NA, 1.0])
def test_policy_refuses_an_unknown_or_missing_level_and_says_what_is_allowed(bad):
    with pytest.raises(InputError, match=r"1 record\(s\).* row 2 ") as error:
        Policy(LEVELS).assign(pd.Series(["low", "high", bad, "low"], dtype=object))
    assert "high, average, low" in one_line(error)


def test_policy_counts_all_records_with_an_unknown_level():
    with pytest.raises(InputError, match=r"^3 record\(s\)"):
        Policy(LEVELS).assign(["x", "low", "y", None])


@pytest.mark.parametrize("levels", [{}, {"": 1.0}, {"  ": 1.0}, {1: 1.0}])
def test_policy_refuses_levels_without_names(levels):
    with pytest.raises(InputError) as error:
        Policy(levels)
    one_line(error)


def test_policy_names_the_level_with_a_bad_budget():
    with pytest.raises(InputError, match=r"level 'none'.*greater than 0") as error:
        Policy({"low": 1.0, "none": 0.0})
    one_line(error)


def test_all_records_of_one_owner_make_one_owner():
    budgets = Policy(LEVELS).assign(
        ["high", "low", "high", "low"], owners=["ann", "bob", "ann", "bob"]
    )
    assert (budgets.n_records, budgets.n_owners, len(budgets)) == (4, 2, 4)
    assert budgets.owners.tolist() == ["ann", "bob"]
    assert budgets.record_owner.tolist() == [0, 1, 0, 1]
    assert budgets.group_sizes() == {"high": 1, "average": 0, "low": 1}


def test_an_owner_with_two_budgets_is_refused_by_row_and_never_by_name():
    with pytest.raises(InputError, match=r"^1 owner\(s\) with two budgets.*rows 0 and 3") as error:
        Policy(LEVELS).assign(
            ["high", "low", "high", "low"], owners=["Ann Secret", "bob", "Ann Secret", "Ann Secret"]
        )
    assert "Secret" not in one_line(error)


def test_an_owner_with_two_numbers_is_refused():
    with pytest.raises(InputError, match="two budgets, first in rows 0 and 1"):
        Budgets.from_epsilons([1.0, 1.0 + 1e-12], owners=[7, 7])


@pytest.mark.parametrize("owners", [["a", None, "c"], [1.0, math.nan, 2.0], [pd.NaT, "b", "c"]])
def test_a_record_without_an_owner_is_refused(owners):
    with pytest.raises(InputError, match=r"1 record\(s\) without an owner, first in row [01]"):
        Budgets.from_epsilons([1, 1, 1], owners=owners)


@pytest.mark.parametrize("owners", [["ann", "bob"], ["ann"] * 4, [["ann", "bob", "eve"]]])
def test_owners_must_be_one_per_record(owners):
    with pytest.raises(InputError) as error:
        Budgets.from_epsilons([1, 1, 1], owners=owners)
    assert "ann" not in one_line(error)


def test_names_of_different_kinds_are_different_owners_and_keep_their_kind():
    budgets = Budgets.from_epsilons([1, 2, 2], owners=[7, "7", "x"])
    assert budgets.owners.tolist() == [7, "7", "x"]


@pytest.mark.parametrize("bad", [0, -1, math.nan, -math.inf])
def test_from_epsilons_refuses_what_is_no_budget(bad):
    with pytest.raises(InputError, match=r"1 record\(s\).*row 1 ") as error:
        Budgets.from_epsilons([1, bad, 2])
    one_line(error)


@pytest.mark.parametrize(
    "bad", [["much", "little"], [None, pd.NA], [[1, 2], [3, 4]], 3.0, [], [{}]]
)
def test_from_epsilons_refuses_what_is_no_column_of_numbers(bad):
    with pytest.raises(InputError) as error:
        Budgets.from_epsilons(bad)
    one_line(error)


def test_empty_budgets_are_refused_everywhere():
    for make in (lambda: Policy(LEVELS).assign([]), lambda: Budgets({"a": Budget(1)}, [])):
        with pytest.raises(InputError, match="at least one record"):
            make()


@pytest.mark.parametrize("make", [Policy(LEVELS).assign, Budgets.from_epsilons])
def test_two_columns_are_refused(make):
    with pytest.raises(InputError, match=r"one column, got an array of shape \(3, 2\)"):
        make(np.ones((3, 2)))


def test_no_two_numbers_share_a_group():
    epsilons = [0.1, 0.1 + 1e-16, 0.1 + 1e-15, 1e-5, 1e5, 3]
    budgets = Budgets.from_epsilons(epsilons, delta=1e-9)
    assert [per_owner(budgets)[i][0] for i in range(6)] == epsilons
    assert len(budgets.groups) == len(set(epsilons))


def test_unlimited_budgets_are_allowed_but_loud():
    with pytest.warns(PrivacyWarning, match=r"'ε=inf'.*NO PRIVACY for its 2 owner\(s\)"):
        budgets = Budgets.from_epsilons([1, math.inf, math.inf], delta=1e-9)
    assert budgets.groups["ε=inf"].is_unlimited


def test_delta_above_one_in_the_number_of_people_warns_and_at_it_does_not():
    with pytest.warns(PrivacyWarning, match="more than 1 / number of people"):
        Budgets.from_epsilons(np.ones(11), delta=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Budgets.from_epsilons(np.ones(10), delta=0.1)


def test_delta_is_compared_with_people_not_records():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Budgets.from_epsilons(np.ones(100), delta=0.1, owners=np.arange(100) % 10)


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


@pytest.mark.parametrize("levels", [[1, 2], "high", None, 3.0, {"a", "b"}, np.array([1.0, 2.0])])
def test_levels_that_are_no_mapping_are_refused(levels):
    with pytest.raises(InputError, match=r"must be a mapping \{'name': epsilon\}") as error:
        Policy(levels)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("delta", ["x", 0, 1, -1, None, math.nan, True])
def test_a_wrong_delta_is_refused_even_where_no_level_uses_it(delta):
    with pytest.raises(InputError, match=r"^delta must"):
        Policy({"high": Budget(1.0)}, delta=delta)

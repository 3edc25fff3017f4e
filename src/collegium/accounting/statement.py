"""The privacy statement: what was promised to whom, under which guarantee, and what was spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, TypeVar

import pandas as pd

from collegium.accounting.accountant import Accountant
from collegium.accounting.neighbours import OWNER, TEACHER
from collegium.accounting.tradeoff import TradeOff
from collegium.budgets import Budget
from collegium.json_files import number_as_json

MEANING = {
    "worst-case": (
        "holds whatever the data are, and was enforced before every draw: the labels, the student and "
        "the numbers below may be published"
    ),
    "data-dependent": (
        "a statement about this one data set, computed from its raw votes: the amounts spent are "
        "themselves sensitive and stay in the vault, and the number of labels depends on private data"
    ),
}
#: Said where an account kept the papers' rule of stopping.
ANY_ORDER = (
    "As published: voting went on while any Rényi order was within the budget. That is proved for costs "
    "fixed beforehand, not for costs that depend on earlier answers; with bounds = 'sharp' the order is "
    "fixed before the first query."
)
#: How a statement speaks where nothing is known of people, but of teachers alone.
_OF_TEACHERS = {
    "the labels, the student and": "the labels and",
    "somebody's records are these": "what a teacher has learnt from is this",
    "with a person's records": "with what a teacher has learnt from",
    "with others in their place": "with something else in its place",
    "about the same people": "of the same teachers",
    "knowing somebody's budget tells something about that person": (
        "knowing a teacher's budget tells something about what it has learnt from"
    ),
}
#: How it speaks where no labels are released, but what its sentence says.
_OF_OTHERS = {
    "the labels, the student and": "what is released, what follows from it, and",
    "whenever voting stops": "whenever it stops",
}
#: How it speaks where neighbours have blanks in the place of somebody's records, and nothing else.
_OF_BLANKS = {
    "with others in their place": "with blanks in their place",
    "records are these, or others": "records are there, or blank",
    "records are these": "records are there",
    "they are these": "they are there",
}
#: Said where the account pays for labels alone.
LABELS_CHARGED = (
    "Each answer is charged as its label alone, in Rényi DP at one order for each budget, fixed before the "
    "first query. Noisy counts would cost more: nobody may see them."
)
#: What is released of each answered query, by name; another method says it in a sentence of its own.
RELEASED = {
    "labels": "its label, and nothing of the vote counts",
    "histogram": (
        "the noisy vote counts of all classes, of which the label is the largest; and of each check its "
        "noisy value, also where the query was rejected. What is spent covers all of it"
    ),
}
#: False alarms at which statements say what an attacker finds.
FALSE_ALARMS = (0.01, 0.05, 0.1)
DELTA_MEANS = (
    "δ is not the probability that a limit fails. It bounds a sum: by how much the probability of what comes "
    "out with a person's records exceeds e^ε times its probability with others in their place, added up over "
    "all that could come out"
)
Row = TypeVar("Row")
_MOST_ROWS, _SHOWN_ROWS = 12, 10
_PLAIN = (0.1, 1e6)  # numbers outside are written with significant digits, not with decimals


@dataclass(frozen=True)
class GroupSpending:
    """What the owners of one group granted and paid, each.

    Attributes
    ----------
    group : str
        Name of the group.
    owners : int
        Number of owners.
    budget : Budget
        Granted by each owner.
    epsilon_spent : float
        Spent by each owner at the budget's δ (the largest in the group), rounded up. Sensitive under
        a data-dependent guarantee.
    mu : float
        Within which μ of Gaussian DP everything stays as well; infinite where none is known but the budget's.
    delta_0 : float
        Probability but for which it does.
    """

    group: str
    owners: int
    budget: Budget
    epsilon_spent: float
    mu: float = math.inf
    delta_0: float = 0.0

    @property
    def share(self) -> float:
        """Spent share of ε; NaN where ε is infinite."""
        return math.nan if self.budget.is_unlimited else self.epsilon_spent / self.budget.epsilon


@dataclass(frozen=True)
class PrivacyStatement:
    """What holds for the labels, and for everything computed from them.

    Attributes
    ----------
    guarantee : {"worst-case", "data-dependent"}
        Kind of the guarantee.
    adjacency : str
        Which data sets it is about, in words: :attr:`Arrangement.sentence
        <collegium.accounting.neighbours.Arrangement.sentence>`.
    noise_is_private : bool
        False if the noise was seeded: then nothing is guaranteed to anybody.
    groups : tuple of GroupSpending
        One for each group with members.
    released : str
        What is shown of each answered query: "labels" or "histogram"; or, in words, what was released.
    unit : {"owner", "teacher"}
        What a group's members are; teachers where nothing is known of owners.
    gaussian : bool
        Whether what was released is Gaussian-DP within each budget's μ.
    provisos : tuple of str
        What else was allowed and weakens it, one sentence each: :attr:`Arrangement.provisos
        <collegium.accounting.neighbours.Arrangement.provisos>`.
    any_order : bool
        Whether the account went on while any Rényi order was within the budget, as the papers' does.
    price : {"histogram", "labels"}
        What an answer was charged in the worst case: all noisy counts, or the label alone.
    """

    guarantee: str
    adjacency: str
    noise_is_private: bool
    groups: tuple[GroupSpending, ...]
    released: str = "labels"
    unit: str = OWNER
    gaussian: bool = False
    provisos: tuple[str, ...] = ()
    any_order: bool = False
    price: str = "histogram"

    @property
    def may_publish_spending(self) -> bool:
        """Whether the amounts spent are free of private information."""
        return self.guarantee == "worst-case"

    @property
    def shown(self) -> list[GroupSpending]:
        """The groups that are told people: all, or some of very many; :meth:`by_group` has all."""
        return some_of(self.groups, lambda row: row.budget)

    def without_spending(self) -> PrivacyStatement:
        """Forget the amounts spent (they become NaN)."""
        return replace(self, groups=tuple(replace(g, epsilon_spent=math.nan) for g in self.groups))

    def in_digits(self, row: GroupSpending) -> tuple[str, str]:
        """Write a group's budget and what was spent of it; "in vault" if that is sensitive."""
        if self.may_publish_spending:
            return budget_and_cost(row.budget.epsilon, row.epsilon_spent)
        # Not even the number of digits may depend on what was spent.
        return budget_in_digits(row.budget.epsilon), "in vault"

    def trade_off(self, row: GroupSpending) -> TradeOff:
        """How well the best test can tell records of a group's member from others, within the budget."""
        one_way = not self.may_publish_spending
        return TradeOff(row.budget, self.gaussian, one_way, row.mu, row.delta_0)

    def found_of_100(self, row: GroupSpending, false_alarms: float) -> str:
        """Write how many of 100 owners the best test finds at most, with some false alarms."""
        return ceil_decimals(100 * self.trade_off(row).most_found(false_alarms), 1)

    def risk_in_words(self, row: GroupSpending) -> str:
        """Say what a group's budget means for whoever wants to find out about one of its members."""
        if row.budget.is_unlimited:
            return "no privacy: anything about them may be revealed"
        return self.told(
            "the best test for whether somebody's records are these, with 5 false alarms in 100, finds at "
            f"most {self.found_of_100(row, 0.05)} in 100"
        )

    def told(self, sentence: str) -> str:
        """Say a sentence as it is true of this release: of what it shows, whose it is, and its neighbours."""
        other_words = {
            **(_OF_TEACHERS if self.unit == TEACHER else {}),
            **({} if self.released in RELEASED else _OF_OTHERS),
            **({} if "replaced" in self.adjacency or "blank" not in self.adjacency else _OF_BLANKS),
        }
        for words, others in other_words.items():
            sentence = sentence.replace(words, others)
        return sentence

    @property
    def meaning(self) -> str:
        """What the guarantee means, in words."""
        return self.told(MEANING[self.guarantee])

    @property
    def large_deltas(self) -> str:
        """Which δ are too large to promise much; empty if none is: :func:`large_deltas`."""
        return large_deltas([(row.group, row.owners, row.budget) for row in self.groups], self.unit)

    @property
    def title(self) -> str:
        """The guarantee in a few words, with what voids it."""
        return (
            self.guarantee
            if self.noise_is_private
            else f"NOT PRIVATE: seeded noise ({self.guarantee})"
        )

    def by_group(self) -> pd.DataFrame:
        """Tabulate budgets and spending.

        Returns
        -------
        DataFrame
            Indexed by group, with columns ``owners``, ``epsilon`` (granted by each owner), ``delta``,
            ``epsilon_spent`` (by each owner; named ``sensitive_epsilon_spent`` under a data-dependent
            guarantee), ``spent_share`` (likewise) and ``guarantee``.
        """
        prefix = "" if self.may_publish_spending else "sensitive_"
        rows = [
            {
                "group": row.group,
                "owners": row.owners,
                "epsilon": row.budget.epsilon,
                "delta": row.budget.delta,
                f"{prefix}epsilon_spent": row.epsilon_spent,
                f"{prefix}spent_share": row.share,
                "guarantee": self.title,
            }
            for row in self.groups
        ]
        return pd.DataFrame(rows).set_index("group")

    def __str__(self) -> str:
        """Say the most important of it, line by line."""
        lines = [f"Guarantee: {self.title}", f"Neighbouring data sets: {self.adjacency}"]
        lines += [self._of_group(row) for row in self.shown]
        lines += [*filter(None, [left_out(len(self.groups))])]
        lines += [*self.provisos, *filter(None, [self.large_deltas])]
        return "\n".join([*lines, "All that this means: sentences(); as a table: by_group()"])

    def _of_group(self, row: GroupSpending) -> str:
        who = f"Each of the {row.owners} {self.unit}(s) of group {row.group!r}"
        if row.budget.is_unlimited:
            return f"{who} granted ε = ∞: NO PRIVACY is promised to them"
        granted, paid = self.in_digits(row)
        spent = (
            f"and spent ε = {paid}"
            if self.may_publish_spending
            else "(data-dependent account: what was spent stays in the vault)"
        )
        return f"{who} granted ε = {granted} at δ = {row.budget.delta:g} {spent}"

    def sentences(self) -> list[str]:
        """Say it in words, one sentence each, without any sensitive number."""
        lines = []
        if not self.noise_is_private:
            lines.append(
                "NOT PRIVATE: the noise was drawn from a seed, for an experiment. Nothing below holds for "
                "anybody until the study is run with secure noise."
            )
        lines.append(f"Guarantee: {self.guarantee}; {self.meaning}.")
        if self.any_order:
            lines.append(ANY_ORDER)
        if self.price == "labels":
            lines.append(LABELS_CHARGED)
        lines.append(f"Neighbouring data sets: {self.adjacency}.")
        lines += [f"{proviso}." for proviso in self.provisos]
        for row in self.shown:
            meaning = "" if row.budget.is_unlimited else f": {self.risk_in_words(row)}"
            lines.append(f"{self._of_group(row)}{meaning}.")
        if left_out(len(self.groups)):
            lines.append(f"{left_out(len(self.groups))}.")
        lines.append(f"{self.told(DELTA_MEANS)}.")
        if self.large_deltas:
            lines.append(f"{self.large_deltas}.")
        if self.may_publish_spending:
            lines.append(
                self.told(
                    "Promised is the budget, whenever voting stops; spent is what the account had booked "
                    "when it stopped."
                )
            )
        shown = RELEASED.get(self.released)
        lines.append(
            f"Released: {self.released}."
            if shown is None
            else f"Released of each answered query: {shown}."
        )
        lines.append(
            self.told(
                "This is the account of this release alone: whatever else is released about the same people "
                "adds to it."
            )
        )
        lines.append(
            self.told(
                "Budgets, group sizes and all settings are public here: where budgets go together with the "
                "data, knowing somebody's budget tells something about that person."
            )
        )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Make a dictionary for JSON, without any sensitive number."""
        return {
            "guarantee": self.guarantee,
            "meaning": self.meaning,
            "adjacency": self.adjacency,
            "private_noise": self.noise_is_private,
            "released": self.released,
            **({"price": self.price} if self.price == "labels" else {}),
            "unit": self.unit,
            "statement": self.sentences(),
            "groups": [
                {
                    "group": row.group,
                    f"{self.unit}s": row.owners,
                    "epsilon": number_as_json(row.budget.epsilon),
                    "delta": row.budget.delta,
                    "found_at_most": {
                        f"{alarms:g}": self.trade_off(row).most_found(alarms)
                        for alarms in FALSE_ALARMS
                    },
                    **_mu_of(row),
                    **(
                        {"epsilon_spent": number_as_json(row.epsilon_spent)}
                        if self.may_publish_spending
                        else {}
                    ),
                }
                for row in self.groups
            ],
        }


def _mu_of(row: GroupSpending) -> dict[str, Any]:
    if math.isinf(row.mu):
        return {}
    return {"within": {"mu": row.mu, "delta_0": row.delta_0}} if row.delta_0 else {"mu": row.mu}


def statement(
    account: Accountant,
    owners: dict[str, int],
    budgets: dict[str, Budget],
    adjacency: str,
    noise_is_private: bool,
    released: str = "labels",
    unit: str = OWNER,
    provisos: tuple[str, ...] = (),
    price: str = "histogram",
    mu: Mapping[str, float] | None = None,
) -> PrivacyStatement:
    """Read a privacy statement off an account, by group name.

    Parameters
    ----------
    account : Accountant
        Names its cohorts' groups.
    owners : dict of str to int
        Number of owners of each group.
    budgets : dict of str to Budget
        Budget of each group.
    adjacency : str
        Which neighbours the guarantee is about.
    noise_is_private : bool
        Whether noise came from the operating system.
    released : str
        What is shown of each answered query: "labels" or "histogram"; or, in words, what was released.
    unit : {"owner", "teacher"}
        What a group's members are.
    provisos : tuple of str
        What else was allowed and weakens it, one sentence each.
    price : {"histogram", "labels"}
        What an answer was charged in the worst case.
    mu : mapping of str to float, optional
        Of each group: within which μ everything stays that the account allows, where it does not count in μ.
    """
    beside = {} if mu is None else mu
    spent = account.epsilon_spent_by_name()
    groups = tuple(
        GroupSpending(name, owners[name], budget, spent.get(name, 0.0), beside.get(name, math.inf))
        for name, budget in budgets.items()
    )
    return PrivacyStatement(
        account.guarantee,
        adjacency,
        noise_is_private,
        groups,
        released,
        unit,
        account.is_gaussian,
        provisos,
        any_order=account.any_order,
        price=price,
    )


def large_deltas(members: Iterable[tuple[str, int, Budget]], unit: str = OWNER) -> str:
    """Say which groups' δ are more than 1 / number of people; empty if none is.

    Parameters
    ----------
    members : iterable of (str, int, Budget)
        Name of each group, how many are in it, and what each granted.
    unit : {"owner", "teacher"}
        What they are.

    Examples
    --------
    >>> large_deltas([("a", 500, Budget(1.0, 0.5)), ("b", 126, Budget(2.0, 1e-5))])[:61]
    'δ is large for group a (0.5): it is more than 1 / number of p'
    """
    rows = list(members)
    people = sum(owners for _, owners, _ in rows)
    large = [
        f"{name} ({budget.delta:g})"
        for name, _, budget in rows
        if people and not budget.is_unlimited and budget.delta > 1 / people
    ]
    if not large:
        return ""
    return (
        f"δ is large for group {', '.join(large)}: it is more than 1 / number of "
        f"{'people' if unit == OWNER else f'{unit}s'} ({people:,}), so the guarantee would allow publishing "
        "somebody's record outright"
    )


def some_of(rows: Sequence[Row], budget_of: Callable[[Row], Budget]) -> list[Row]:
    """Choose the rows of a table that people read: all, or ten from the strictest to the most generous.

    Examples
    --------
    >>> [int(b.epsilon) for b in some_of([Budget(e) for e in range(1, 101)], lambda budget: budget)]
    [1, 12, 23, 34, 45, 56, 67, 78, 89, 100]
    """
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    ordered = sorted(rows, key=lambda row: (budget_of(row).epsilon, budget_of(row).delta))
    last = len(rows) - 1
    return [ordered[round(i * last / (_SHOWN_ROWS - 1))] for i in range(_SHOWN_ROWS)]


def left_out(n_rows: int) -> str:
    """Say that not all of so many groups are shown; empty if all are."""
    if n_rows <= _MOST_ROWS:
        return ""
    return (
        f"{_SHOWN_ROWS} of {n_rows:,} groups are shown, from the strictest to the most generous: JSON has "
        "all of them"
    )


def ceil_decimals(value: float, decimals: int = 4) -> str:
    """Write a cost with few decimals, rounded up.

    Examples
    --------
    >>> ceil_decimals(0.98761), ceil_decimals(1.0), ceil_decimals(0.0)
    ('0.9877', '1', '0')
    """
    return _rounded(value, decimals, ROUND_CEILING)


def floor_decimals(value: float, decimals: int = 4) -> str:
    """Write a budget with few decimals, rounded down.

    Examples
    --------
    >>> floor_decimals(0.69314718), floor_decimals(3.0), floor_decimals(float("inf"))
    ('0.6931', '3', '∞')
    """
    return _rounded(value, decimals, ROUND_FLOOR)


_ROUNDING = 1e-12
"""Of a conversion there and back: a cost that much below a budget is all of it."""


def budget_and_cost(epsilon: float, spent: float, digits: int = 4) -> tuple[str, str]:
    """Write a budget, rounded down, and what was spent of it, rounded up, so that they can be compared.

    As many digits are written as it takes for what is within the budget to look so; all of a budget is
    written as the budget is.

    Parameters
    ----------
    epsilon : float
        Granted.
    spent : float
        Of it; NaN where nobody may know.
    digits : int, default=4
        Decimals at least, and of small numbers significant digits.

    Examples
    --------
    >>> budget_and_cost(3.0, 0.98761), budget_and_cost(1e-6, 9.87654e-7)
    (('3', '0.9877'), ('1e-6', '9.877e-7'))
    >>> budget_and_cost(0.69314718, 0.69314718)
    ('0.6931', '0.6931')
    >>> budget_and_cost(0.69314718, 0.69314)
    ('0.69314', '0.69314')
    >>> budget_and_cost(0.9993358591262690, 0.9993358591262650)
    ('0.9993', '0.9993')
    """
    while True:
        granted, paid = budget_in_digits(epsilon, digits), cost_in_digits(spent, digits)
        fits = spent <= epsilon and math.isfinite(epsilon)
        if fits and spent >= epsilon * (1 - _ROUNDING):
            return granted, granted
        # From 17 digits on both are exact.
        if not fits or digits > 17 or Decimal(paid) <= Decimal(granted):
            return granted, paid
        digits += 1


def budget_in_digits(value: float, digits: int = 4) -> str:
    """Write a budget, rounded down; small and large ones with so many significant digits.

    Examples
    --------
    >>> budget_in_digits(0.69314718), budget_in_digits(0.00123456), budget_in_digits(1e-5)
    ('0.6931', '0.001234', '1e-5')
    """
    return _in_digits(value, digits, ROUND_FLOOR)


def cost_in_digits(value: float, digits: int = 4) -> str:
    """Write a cost, rounded up; small and large ones with so many significant digits.

    Examples
    --------
    >>> cost_in_digits(0.98761), cost_in_digits(0.0), cost_in_digits(12345678.9)
    ('0.9877', '0', '1.235e7')
    """
    return _in_digits(value, digits, ROUND_CEILING)


def _in_digits(value: float, digits: int, direction: str) -> str:
    if not math.isfinite(value):
        return "∞"
    if _PLAIN[0] <= value < _PLAIN[1]:
        return _rounded(value, digits, direction)
    context = Context(prec=digits, rounding=direction)
    rounded = context.create_decimal(repr(float(value))).normalize()
    if not rounded:
        return "0"
    if -4 < rounded.adjusted() < 0:
        return f"{rounded:f}"
    mantissa, _, exponent = f"{rounded:e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def _rounded(value: float, decimals: int, direction: str) -> str:
    """Round in decimal arithmetic, which is exact where multiplying by a power of ten is not."""
    if not math.isfinite(value):
        return "∞"
    context = Context(prec=400, rounding=direction)
    step = Decimal(1).scaleb(-decimals)
    shown = f"{Decimal(repr(float(value))).quantize(step, context=context):f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def percent_spent(share: float) -> str:
    """Write a share that was spent as a percentage with one decimal, rounded up; '—' where there is none.

    Examples
    --------
    >>> percent_spent(0.0301), percent_spent(1.0), percent_spent(math.nan)
    ('3.1 %', '100.0 %', '—')
    """
    return f"{math.ceil(1000 * share - 1e-9) / 10:.1f} %" if math.isfinite(share) else "—"


def percent_left(share: float) -> str:
    """Write a share that is left as a percentage with one decimal, rounded down.

    Examples
    --------
    >>> percent_left(0.9699), percent_left(1.0)
    ('96.9 %', '100.0 %')
    """
    return f"{math.floor(1000 * share + 1e-9) / 10:.1f} %"

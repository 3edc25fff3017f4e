"""The privacy statement: what was promised to whom, under which guarantee, and what was spent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from typing import Any, TypeVar

import pandas as pd

from collegium.accounting.accountant import Accountant
from collegium.accounting.neighbours import OWNER, PARTY, TEACHER, Arrangement, Neighbours
from collegium.accounting.tradeoff import TradeOff, of_100
from collegium.budgets import Budget
from collegium.json_files import number_as_json
from collegium.notebooks import InNotebooks


class Answers(StrEnum):
    """What is shown of each query that teachers answered; other methods say what they release in words."""

    LABELS = "labels"
    HISTOGRAM = "histogram"


MEANING = {
    "worst-case": "holds for any data: you may publish {published}",
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
#: Said where the account pays for labels alone.
LABELS_CHARGED = (
    "Each answer is charged as its label alone, in Rényi DP at one order for each budget, fixed before the "
    "first query. Noisy counts would cost more: nobody may see them."
)
#: What is released of each answered query.
RELEASED = {
    Answers.LABELS: "its label, and nothing of the vote counts",
    Answers.HISTOGRAM: (
        "the noisy vote counts of all classes, of which the label is the largest; and of each check its "
        "noisy value, also where the query was rejected. What is spent covers all of it"
    ),
}
#: False alarms at which statements say what an attacker finds.
FALSE_ALARMS = (0.01, 0.05, 0.1)
DELTA_MEANS = (
    "δ bounds how much probability may escape the ε limit. It is not the chance of being exposed"
)
#: Templates: :meth:`PrivacyStatement.filled` fills in whose records these are.
#: The one sentence of statements, reports, consent pages and receipts (there of "your records").
RISK_MEANS = (
    "anybody who tries to find out whether {records_are} is right at most {right} times in 100; by "
    "guessing alone, 50 times"
)
RIGHT_MEANS = (
    "“Right at most” is about an attacker who knows all other records and sees everything that is released, "
    "when both answers are equally likely beforehand"
)
PROMISED_MEANS = 'The promise is the budget. "Spent" is what this run used.'
ALONE_MEANS = (
    "This is the account of this release alone: whatever else is released {about_the_same} adds "
    "to it."
)
PUBLIC_MEANS = (
    "Budgets, group sizes and all settings are public here: where budgets go together with the data, knowing "
    "{budget_tells}."
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
class PrivacyStatement(InNotebooks):
    """What holds for a release, and for everything computed from it.

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
    released : Answers or str
        What is shown of each answered query; or, in words, what was released.
    neighbours : Neighbours
        How far a person's records may differ: what ``adjacency`` says in words.
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
    in_short : str
        One line for terminals instead of ``adjacency``: :attr:`Arrangement.in_short
        <collegium.accounting.neighbours.Arrangement.in_short>`.
    """

    guarantee: str
    adjacency: str
    noise_is_private: bool
    groups: tuple[GroupSpending, ...]
    released: Answers | str
    neighbours: Neighbours
    unit: str = OWNER
    gaussian: bool = False
    provisos: tuple[str, ...] = ()
    any_order: bool = False
    price: str = "histogram"
    in_short: str = ""

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
        return self.filled(RISK_MEANS, right=str(self.right_of_100(row)))

    def right_of_100(self, row: GroupSpending) -> int:
        """How often of 100 the best test is right about a group's member, within the budget; guessing: 50."""
        return of_100(self.trade_off(row).right_guesses)

    def filled(self, template: str, **more: str) -> str:
        """Fill a template with what is true of this release: what it shows, whose it is, its neighbours.

        ``more``: further slots of the template.
        Raises KeyError for a slot that is not known.
        """
        return template.format_map({**self._slots, **more})

    @property
    def _slots(self) -> dict[str, str]:
        blanked = self.neighbours is not Neighbours.REPLACE
        return {
            "published": _of_votes(self.unit) if isinstance(self.released, Answers) else _OF_OTHERS,
            **_WHOSE.get(self.unit, _of_a_person)(blanked),
        }

    @property
    def meaning(self) -> str:
        """What the guarantee means, in words."""
        return self.filled(MEANING[self.guarantee])

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
        one, many = _MEMBERS[self.unit]
        whose = f"The one {one}" if row.owners == 1 else f"Each of the {row.owners:,} {many}"
        who = f"{whose} of level {row.group!r}"
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
        lines += [f"{RIGHT_MEANS}.", f"{DELTA_MEANS}."]
        if self.large_deltas:
            lines.append(f"{self.large_deltas}.")
        if self.may_publish_spending:
            lines.append(PROMISED_MEANS)
        lines.append(
            f"Released of each answered query: {RELEASED[self.released]}."
            if isinstance(self.released, Answers)
            else f"Released: {self.released}."
        )
        return [*lines, self.filled(ALONE_MEANS), self.filled(PUBLIC_MEANS)]

    def to_dict(self) -> dict[str, Any]:
        """Make a dictionary for JSON, without any sensitive number."""
        return {
            "guarantee": self.guarantee,
            "meaning": self.meaning,
            "adjacency": self.adjacency,
            "private_noise": self.noise_is_private,
            "released": str(self.released),
            **({"price": self.price} if self.price == "labels" else {}),
            "unit": self.unit,
            "statement": self.sentences(),
            "groups": [
                {
                    "group": row.group,
                    "parties" if self.unit == PARTY else f"{self.unit}s": row.owners,
                    "epsilon": number_as_json(row.budget.epsilon),
                    "delta": row.budget.delta,
                    "right_of_100": self.right_of_100(row),
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


def _of_votes(unit: str) -> str:
    """What may be published of votes: a student only where people's records were learnt from here."""
    student = "" if unit == TEACHER else ", the student,"
    return f"the labels{student} and every number below"


_OF_OTHERS = "what is released, what follows from it, and every number below"


def _of_a_person(blanked: bool) -> dict[str, str]:
    return {
        "records_are": "a person's records were used"
        if blanked
        else "certain records are a person's own",
        "about_the_same": "about the same people",
        "budget_tells": "somebody's budget tells something about that person",
    }


def _of_a_teacher(blanked: bool) -> dict[str, str]:
    """Speak where nothing is known of people, but of teachers alone."""
    return {
        **_of_a_person(blanked),
        "records_are": "a teacher has learnt from something"
        if blanked
        else "a teacher has learnt from certain data",
        "about_the_same": "of the same teachers",
        "budget_tells": "a teacher's budget tells something about what it has learnt from",
    }


def _of_a_party(blanked: bool) -> dict[str, str]:
    """Speak where everything that one party holds is protected together."""
    return {
        "records_are": "a party's records were used"
        if blanked
        else "certain records are all that a party holds",
        "about_the_same": "by the same parties",
        "budget_tells": "a party's budget tells something about what it holds",
    }


_WHOSE = {TEACHER: _of_a_teacher, PARTY: _of_a_party}
_MEMBERS = {
    OWNER: ("person", "people"),
    TEACHER: (TEACHER, f"{TEACHER}s"),
    PARTY: (PARTY, "parties"),
}


def statement(
    account: Accountant,
    owners: Mapping[str, int],
    budgets: Mapping[str, Budget],
    arrangement: Arrangement,
    noise_is_private: bool,
    released: Answers | str,
    price: str = "histogram",
    mu: Mapping[str, float] | None = None,
) -> PrivacyStatement:
    """Read a privacy statement off an account, by group name.

    Parameters
    ----------
    account : Accountant
        Names its cohorts' groups.
    owners : mapping of str to int
        Number of owners of each group.
    budgets : mapping of str to Budget
        Budget of each group.
    arrangement : Arrangement
        Which neighbours the guarantee is about, and what weakens it.
    noise_is_private : bool
        Whether noise came from the operating system.
    released : Answers or str
        What is shown of each answered query; or, in words, what was released.
    price : {"histogram", "labels"}
        What an answer was charged in the worst case.
    mu : mapping of str to float, optional
        Of each group: within which μ everything stays that the account allows, where it does not count in μ.

    Raises
    ------
    KeyError
        If the account, the sizes or μ lack a group.
    """
    beside = dict.fromkeys(budgets, math.inf) if mu is None else mu
    spent = account.epsilon_spent_by_name()
    groups = tuple(
        GroupSpending(
            name,
            owners[name],
            budget,
            spent[name],
            math.inf if budget.is_unlimited else beside[name],
        )
        for name, budget in budgets.items()
    )
    return PrivacyStatement(
        account.guarantee,
        arrangement.sentence,
        noise_is_private,
        groups,
        released,
        arrangement.neighbours,
        arrangement.counts_in,
        account.is_gaussian,
        arrangement.provisos,
        any_order=account.any_order,
        price=price,
        in_short=arrangement.in_short,
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
        f"{_MEMBERS.get(unit, _MEMBERS[OWNER])[1]} ({people:,}), so the guarantee would allow publishing "
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

"""Bagging: all records are split several times, and everybody is seen once in each partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from collegium.budgets import Budget
from collegium.errors import InputError
from collegium.parameters import setting
from collegium.personalisation.base import Personalisation, finish_plan, members_only
from collegium.personalisation.plan import Plan

_MOST_PARTITIONS = 1000
_MOST_TEACHERS = 1_000_000


@dataclass(frozen=True)
class Bagging(Personalisation):
    """Split all owners among the teachers several times over; Δ = the number of partitions.

    Each of ``partitions`` independent partitions has as many teachers as were asked for, and all of them
    vote. Threshold and noise grow with the number of votes, so in terms of the ones that were given every
    teacher has weight 1/partitions and every owner Δ = 1: a label costs what it costs under
    :class:`~collegium.personalisation.Uniform`, and the votes are steadier (thesis, §3.2.6, and Jordon, Yoon
    & van der Schaar, NeurIPS 2019). Everybody is treated alike, as under Uniform: the strictest budget ends
    the voting. Where budgets differ, :class:`~collegium.personalisation.Upsampling` is bagging in which who
    grants more is in more partitions.

    Parameters
    ----------
    partitions : int, default=3
        How many. Training takes so many times as long.

    Notes
    -----
    *Sensitivity.* With or without an owner, one teacher of each partition may vote otherwise, and all of
    them from one class to the same other: √2·partitions in L2, as for so many duplicates. Jordon, Yoon & van
    der Schaar charge an owner by how these teachers really vote; that is read from votes, sensitive, and no
    bound for somebody who is not there (``reproduction/personal_moments.py``).

    Examples
    --------
    >>> plan = Bagging(partitions=4).plan({"a": Budget(1.0)}, {"a": 5_000}, 50)
    >>> plan.n_teachers, plan.groups["a"].sensitivity, plan.electorate(0).ballot(0).scale
    (200, 4.0, 4.0)
    """

    partitions: int = setting(
        3,
        "bagging: how often all people are split among the teachers.",
        least=2,
        most=_MOST_PARTITIONS,
    )
    name: ClassVar[str] = "bagging"
    rules: ClassVar[tuple[str, ...]] = ("exact",)

    def plan(self, groups: Mapping[str, Budget], sizes: Mapping[str, int], n_teachers: int) -> Plan:
        """Give everybody one teacher of each partition; see :meth:`Personalisation.plan`."""
        used = members_only(groups, sizes, n_teachers)
        total = self.partitions * n_teachers
        if total > _MOST_TEACHERS:
            raise InputError(
                f"{self.partitions:,} partitions of {n_teachers:,} teachers are {total:,} teachers, which "
                f"is more than {_MOST_TEACHERS:,}: use fewer partitions"
            )
        return finish_plan(
            self,
            n_nominal=n_teachers,
            n_teachers=total,
            mixed=True,
            used=used,
            sizes=sizes,
            teachers=dict.fromkeys(used, total),
            duplicates=dict.fromkeys(used, self.partitions),
            partitions=self.partitions,
        )

"""stub"""

from dataclasses import dataclass

from collegium.statistics.conditions import *
from collegium.statistics.conditions import Where, all_of

EVERYBODY = all_of([])


@dataclass(frozen=True)
class Asked:
    kind: str
    columns: tuple = ()
    level: float | None = None
    by: tuple = ()
    where: Where = EVERYBODY

    @property
    def needs(self):
        return tuple(sorted({*self.columns, *self.by, *self.where.columns}))

    def __str__(self):
        return f"{self.kind} {self.columns} by {self.by} where {self.where}"


def checked_question(kind, columns=(), level=None, by=(), where="", schema=None):
    w = EVERYBODY if not where else where
    return Asked(kind, columns, level, by, w)


def parse_question(t, schema):
    k, *c = t.split()
    return Asked(k, tuple(c))

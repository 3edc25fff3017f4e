"""Private records larger than memory: from a Parquet data set to one shard on disk per teacher.

A first pass (:func:`scan`) checks everything and counts owners; from its numbers comes a public plan; a
second pass (:func:`build_shards`) writes each record into the shard of each of its teachers, the same
teachers that :meth:`~collegium.personalisation.plan.Plan.assign` chooses in memory. Teachers then read
their own shard, and no other, in the worker that trains them
(:class:`~collegium.pate.teachers.shard_ensemble.ShardEnsemble`), and vote on blocks of public records whose
votes go straight to the disk (:func:`~collegium.pate.voting.vote_blocks.ask_in_blocks`).

Examples
--------
>>> import tempfile
>>> import numpy as np
>>> import pandas as pd
>>> from collegium.budgets import Policy
>>> from collegium.personalisation import Weighting
>>> people = pd.DataFrame({"age": np.arange(60.0), "sick": np.arange(60) % 3 == 0,
...                        "patient": np.arange(60) // 2, "level": ["high", "high", "low", "low"] * 15})
>>> roles = Roles(target="sick", level="level", owner="patient")
>>> with tempfile.TemporaryDirectory() as folder:
...     people.to_parquet(f"{folder}/people.parquet")
...     source = ParquetSource(f"{folder}/people.parquet")
...     found = scan(source, roles, Granted(Policy({"high": 1.0, "low": 2.0}, delta=1e-6)), b"key")
...     plan = Weighting().plan_for(found.budgets, 4)
...     store = build_shards(source, roles, found, plan, b"key", f"{folder}/shards")
...     X, y = store.load(0)
>>> found.budgets.group_sizes(), found.features, X.columns.tolist()
({'high': 15, 'low': 15}, ('age',), ['age'])
"""

from collegium.data.sharding.build import build_shards
from collegium.data.sharding.levels import Granted
from collegium.data.sharding.roles import Roles
from collegium.data.sharding.scan import CountedBudgets, Scanned, named_budgets, scan
from collegium.data.sharding.shard_store import ShardEntry, ShardStore
from collegium.data.sharding.source import ParquetSource, RecordSource

__all__ = [
    "CountedBudgets",
    "Granted",
    "ParquetSource",
    "RecordSource",
    "Roles",
    "Scanned",
    "ShardEntry",
    "ShardStore",
    "build_shards",
    "named_budgets",
    "scan",
]

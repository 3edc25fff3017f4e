"""A label job that is killed around every step that a ledger sees: what left was paid for, once."""

import importlib
from pathlib import Path


def test_a_job_that_is_killed_pays_once_for_all_that_left(tmp_path, monkeypatch):
    """More of it: ``python benchmarks/ledger_kills.py``."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    assert importlib.import_module("ledger_kills").quick(tmp_path) == 5

"""Where budgets go: every function of the package that is handed a policy, budgets or a plan, in order.

    python benchmarks/walk_of_budgets.py

Runs a small study from its TOML file to the report, and the estimator from ``fit`` to the student.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import collegium as cg
from collegium.budgets import Budgets, Policy
from collegium.personalisation.plan import Plan
from collegium.study.config import read_config
from collegium.study.runner import run_study

ROOT = Path(cg.__file__).parent
STUDY = """
data = { private = "private.csv", public = "public.csv", target = "y", classes = ["down", "up"] }
privacy = { column = "privacy", levels = { high = 3.0, low = 6.0 } }
teachers = { n_teachers = 20 }
aggregation = { aggregator = "gnmax", sigma = 4 }
run = { n_jobs = 1 }
"""


def walk(work: Callable[[], Any]) -> list[tuple[str, str]]:
    """List the stations: file and function, each once, where something is handed over."""
    stations: dict[tuple[str, str], None] = {}

    def watch(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(ROOT)):
            return
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [frame.f_locals.get(name) for name in names if name != "self"]
        if any(isinstance(value, (Policy, Budgets, Plan)) for value in given):
            where = Path(code.co_filename).relative_to(ROOT)
            stations.setdefault((str(where), code.co_qualname))

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(stations)


def main() -> None:
    warnings.simplefilter("ignore")
    X = np.random.default_rng(0).normal(size=(500, 4))
    y = np.where(X.sum(axis=1) > 0, "up", "down")
    levels = np.array(["high", "low"] * 200)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = pd.DataFrame(X, columns=list("abcd")).assign(y=y)
        table[:400].assign(privacy=levels).to_csv(folder / "private.csv", index=False)
        table[400:].to_csv(folder / "public.csv", index=False)
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        show("study", walk(lambda: run_study(read_config(folder / "study.toml"), folder / "out")))
    budgets = Policy({"high": 3.0, "low": 6.0}, delta=1e-5).assign(levels)
    model = cg.PATEClassifier(n_teachers=20, aggregator=cg.GNMax(sigma=4), random_state=0)
    show("estimator", walk(lambda: model.fit(X[:400], y[:400], budgets=budgets, X_public=X[400:])))


def show(face: str, stations: list[tuple[str, str]]) -> None:
    print(f"{face}: {len(stations)} stations in {len({file for file, _ in stations})} files")
    for file, function in stations:
        print(f"  {file}: {function}")


if __name__ == "__main__":
    main()

"""What stands ready before blocks of the guide run: files that commands name, names that lines use."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import collegium as cg

Names = dict[str, Any]
WARDS = ["geriatrics", "surgery"]


def people(n: int, first: int, seed: int) -> pd.DataFrame:
    """Invent people with all columns that blocks name."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    income = np.where(rng.random(n) < 1 / (1 + np.exp((45 - age) / 8)), 60_000, 20_000)
    return pd.DataFrame({
        "person": [f"p{first + number}" for number in range(n)],
        "consent": rng.choice(["high", "average", "low"], n, p=[0.54, 0.37, 0.09]),
        "age": age,
        "sex": rng.choice(["F", "M"], n),
        "smoker": rng.random(n) < 0.25,
        "admitted": np.datetime64("2023-01-01") + rng.integers(0, 700, n).astype("timedelta64[D]"),
        "ward": rng.choice(WARDS, n),
        "income": income,
        "again": rng.random(n) < age / 120,
    })  # fmt: skip


def tables(folder: Path) -> Names:
    """Write a private table, a public one, and others of the public kind."""
    people(2000, 0, 1).to_csv(folder / "private.csv", index=False)
    public = people(400, 10_000, 2).drop(columns=["person", "consent"])
    public.to_csv(folder / "public.csv", index=False)
    people(300, 20_000, 3).drop(columns=["person", "consent"]).to_csv(
        folder / "test.csv", index=False
    )
    public.to_csv(folder / "table.csv", index=False)
    return {}


def study(folder: Path) -> Names:
    """Write the tables and a study of votes about them, which is yet to run."""
    tables(folder)
    for name in ("private.csv", "public.csv", "table.csv"):
        frame = pd.read_csv(folder / name).drop(columns=["admitted", "again", "ward"])
        if "person" in frame:
            frame.loc[17, "person"] = "patient-17"
        frame.to_csv(folder / name, index=False)
    (folder / "study.toml").write_text(
        '[study]\nname = "Incomes"\n[data]\nprivate = "private.csv"\npublic = "public.csv"\n'
        'target = "income"\nowner = "person"\nclasses = [20000, 60000]\n'
        '[privacy]\ncolumn = "consent"\nlevels = { high = 1.0, average = 2.0, low = 3.0 }\n'
        '[method]\nkind = "pate"\n[teachers]\nmodel = "tabular"\nn_teachers = 40\n'
        '[preprocessing]\nkind = "principal"\n[student]\nmodel = "evidence-regression"\n'
        '[aggregation]\naggregator = "gnmax"\nsigma = 10\n',
        encoding="utf-8",
    )
    return {}


def votes(folder: Path) -> Names:
    """Write votes of an ensemble, and what its teachers' people granted."""
    rng = np.random.default_rng(0)
    np.save(
        folder / "votes.npy",
        np.where(rng.random((60, 100)) < 0.8, 3, rng.integers(0, 10, (60, 100))),
    )
    (folder / "budgets.csv").write_text("group,epsilon,delta\n" + "all,3,1e-5\n" * 100, "utf-8")
    return {}


def digits(folder: Path) -> Names:
    """Fit a model of digits."""
    from sklearn.datasets import load_digits

    from collegium.students import GaussianProcessStudent

    X, y = load_digits(return_X_y=True)
    levels = ["high"] * 648 + ["average"] * 444 + ["low"] * 108
    budgets = cg.Policy({"high": 1.0, "average": 2.0, "low": 3.0}).assign(levels)
    model = cg.DPSGDClassifier(classes=range(10), steps=20, noise_seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.PrivacyWarning)
        model.fit(X[:1200], y[:1200], budgets=budgets, X_public=X[1200:1500])
    return {
        "model": model,
        "X_public": X[1200:1500],
        "GaussianProcessStudent": GaussianProcessStudent,
    }


def voters(folder: Path) -> Names:
    """Fit a student of votes, and bring test records with the levels of the people whose they are."""
    from sklearn.naive_bayes import GaussianNB

    X = np.random.default_rng(0).normal(size=(1600, 3))
    y = (X[:, 0] > 0).astype(int)
    model = cg.PATEClassifier(
        GaussianNB(), n_teachers=40, aggregator=cg.GNMax(sigma=6), classes=[0, 1]
    )
    budgets = cg.Policy({"high": 4.0, "low": 8.0}).assign(["high", "low"] * 400)
    model.fit(X[:800], y[:800], budgets=budgets, X_public=X[800:1200])
    return {
        "model": model, "X_test": X[1200:], "y_test": y[1200:], "y_public": y[800:1200],
        "level_of_each_test_record": np.array(["high", "low"] * 200),
    }  # fmt: skip


def network(folder: Path) -> Names:
    """Make a small network and its records."""
    import torch

    X = torch.randn(300, 5)
    network = torch.nn.Linear(5, 2)
    return {
        "X": X, "y": (X[:, 0] > 0).long(), "network": network, "levels": ["high", "average", "low"] * 100,
        "patients": [f"p{number}" for number in range(300)],
        "schedule": torch.optim.lr_scheduler.StepLR(torch.optim.SGD(network.parameters(), lr=0.1), 10),
    }  # fmt: skip


def opacus(folder: Path) -> Names:
    """Import what Opacus's users do, beside a plan."""
    import torch
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer

    names = network(folder)
    budgets = cg.Policy({"high": 1.0, "average": 2.0, "low": 3.0}).assign(names["levels"])
    plan = cg.plan_dpsgd(budgets.groups, budgets.public_sizes(), kind="sample", rate=0.1, steps=20)
    return {
        **names, "cg": cg, "torch": torch, "F": torch.nn.functional, "plan": plan, "budgets": budgets,
        "GradSampleModule": GradSampleModule, "DPOptimizer": DPOptimizer,
    }  # fmt: skip


def levels_in_words(folder: Path) -> Names:
    """Bring records of people with all four kinds of levels, and a model that learns from them."""
    import math

    from sklearn.naive_bayes import GaussianNB

    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    return {
        "Policy": cg.Policy, "math": math, "X": X[:600], "y": (X[:600, 0] > 0).astype(int),
        "X_public": X[600:], "levels": ["none", "high", "low", "gift"] * 150, "owners": None,
        "model": cg.PATEClassifier(GaussianNB(), n_teachers=20, aggregator=cg.GNMax(sigma=5), classes=[0, 1]),
    }  # fmt: skip

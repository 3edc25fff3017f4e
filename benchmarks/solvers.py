"""Both solvers of direct training on made-up records: easy ones, rare classes, and public records of others.

``python -m benchmarks.solvers``

Six normal features, y by a logistic model of two of them; 6,000 test records, three seeds of noise. Prints
the area under the ROC curve and log loss by ``solver = "public"`` and by ``"momentum"``, and the loss of
always answering the share of the class. *rare*: 5 % and 0.5 % of the records are of the class. *shifted*:
each feature of the public records is 1 or 2 standard deviations larger. *several*: five records per person.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from collegium.budgets import Budgets
from collegium.dpsgd.linear_model import as_rows
from collegium.dpsgd.run import DPSGDRecipe, DPSGDRun
from collegium.dpsgd.settings import MOMENTUM, PUBLIC, DPSGDSettings
from collegium.runs.records import Records

N_TEST, SEEDS = 6000, 3
CASES = {
    "linear": (4000, 1000, 0.0, 0.0, 1),
    "rare, 5 %": (4000, 1000, -3.4, 0.0, 1),
    "rare, 0.5 %": (6000, 1000, -6.2, 0.0, 1),
    "shifted by 1": (4000, 1000, 0.0, 1.0, 1),
    "shifted by 2": (4000, 1000, 0.0, 2.0, 1),
    "several": (3000, 600, 0.0, 0.0, 5),
}


def measure(case: str, epsilon: float) -> None:
    """Learn by both, and print a line."""
    n, n_public, offset, shift, each = CASES[case]
    random = np.random.default_rng(0)
    X = random.normal(size=(n + n_public + N_TEST, 6))
    y = (random.random(len(X)) < expit(1.2 * X[:, 0] - 0.8 * X[:, 1] + offset)).astype(np.intp)
    private, public, test = np.split(np.arange(len(X)), [n, n + n_public])
    told = []
    for solver in (PUBLIC, MOMENTUM):
        found = []
        for seed in range(SEEDS):
            owners = np.arange(n) // each if each > 1 else None
            records = Records(
                X=X[private],
                codes=y[private],
                budgets=Budgets.from_epsilons(np.full(n, epsilon), owners=owners),
                classes=np.arange(2),
                X_public=X[public] + shift,
            )
            recipe = DPSGDRecipe(DPSGDSettings(solver=solver), None, noise_seed=seed)
            run = DPSGDRun(recipe, records)
            beliefs = run.model(run.learn()).predict_proba(as_rows(X[test], "test records"))[:, 1]
            found.append((roc_auc_score(y[test], beliefs), log_loss(y[test], beliefs)))
        auc, loss = np.mean(found, axis=0)
        told.append(f"{solver} {auc:.3f} / {loss:.3f}")
    base = log_loss(y[test], np.full(N_TEST, y[test].mean()))
    print(f"{case}, ε = {epsilon:g}: {', '.join(told)}; by shares {base:.3f}", flush=True)


if __name__ == "__main__":
    for name in CASES:
        for level in (0.1, 1.0, 8.0):
            measure(name, level)

# %% [markdown]
# # Notebook: patients, two releases and a ledger
#
# A hospital publishes twice about the same 2,400 patients (all of them invented): first some
# numbers, later a model. A ledger remembers what each of them has left, and one of them leaves in
# between.

# %%
import runpy
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import collegium as cg

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "examples").is_dir())
make = runpy.run_path(str(ROOT / "examples/hospitals/make_tables.py"))
folder = Path(tempfile.mkdtemp())
make["write_tables"](folder)
patients = pd.read_csv(folder / "hospital-a/patients.csv")
public = pd.read_csv(folder / "hospital-a/public.csv")
patients.head()

# %% [markdown]
# Each level is a promise over **all** releases together, which the ledger keeps.

# %%
policy = cg.Policy({"strict": 0.5, "usual": 1.0, "generous": 3.0}, delta=1e-5)
budgets = policy.assign(patients["level"], owners=patients["patient"])
cg.Ledger.create(folder / "patients.ledger")
ledger = cg.Ledger(
    folder / "patients.ledger", allow_new_people=True
)  # each run invents the names anew

# %% [markdown]
# ## First release: how long do people stay?
#
# The session may use a fifth of what everybody has, and closing it gives back what it did not need.

# %%
schema = cg.Schema.read(ROOT / "examples/hospitals/files/schema.toml")
with cg.Statistics(
    patients, budgets, schema=schema, ledger=ledger, spend=0.2, questions=3, name="stays-2026"
) as ask:
    print(ask.count(where="readmitted"))
    print(ask.mean("days"))
    print(ask.groupby("sex").mean("age"))

# %% [markdown]
# ## Somebody leaves
#
# One entry in the ledger: no later release may use this person's record. What was released stays
# released.

# %%
ledger.forget("A00007")
stay = patients[patients["patient"] != "A00007"]
budgets = policy.assign(stay["level"], owners=stay["patient"])

# %% [markdown]
# ## Second release: who comes back?
#
# The model gets half of what is left, and needs no part of the ledger's arithmetic from you.

# %%
features = ["age", "sex", "smoker", "days"]
model = cg.DPSGDClassifier(classes=[False, True], steps=30)
model.fit(
    stay[features], stay["readmitted"].to_numpy(), budgets=budgets, X_public=public[features],
    ledger=ledger, spend=0.5, release_name="readmission-2026",
)  # fmt: skip
print(model.quality(public[features], public["readmitted"].to_numpy()).verdict)

# %% [markdown]
# ## Where everybody stands
#
# Shares of μ², which adds up over releases. Nobody can be asked for more than the whole bar.

# %%
standing = {}
for one in ledger.standings():
    level = next(name for name, budget in policy.levels.items() if budget == one.budget)
    standing.setdefault(level, one)
figure, axis = plt.subplots(figsize=(6, 2.4))
for row, level in enumerate(policy.levels):
    one = standing[level]
    share = one.spent.mu_squared / ledger.lifetime.limit(one.budget).mu_squared
    axis.barh(row, share, color="tab:orange")
    axis.barh(row, 1 - share, left=share, color="lightgrey")
    axis.text(
        0.98, row, f"ε {one.epsilon_spent:.2f} of {one.budget.epsilon:g}", ha="right", va="center"
    )
axis.set_yticks(range(len(policy.levels)), policy.levels)
axis.set(xlabel="spent (orange) and left (grey), as shares of μ²", xlim=(0, 1))
plt.show()

# %%
ledger.verify()
account = ledger.account_of("A00003")
print(*(charge.release.name for charge in account.charges), sep="\n")

# %% [markdown]
# **Try:** a third release that asks for more than is left; `ledger.change(...)` for people who
# changed their mind. As commands: [a second release](../recipes/second-release.md), [somebody
# leaves](../recipes/somebody-leaves.md).

# %% [markdown]
# # Notebook: statistics with error bars
#
# Six questions to a table of 5,000 people (invented, so that the truth is known here, which it
# never is to you). Every answer says how far off it may be, who counted how much, and what it cost.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import collegium as cg

rng = np.random.default_rng(4)
age = rng.integers(18, 90, 5000)
people = pd.DataFrame({
    "age": age,
    "ward": rng.choice(["surgery", "geriatrics", "eyes"], 5000, p=[0.55, 0.35, 0.10]),
    "stay": rng.gamma(2 + age / 45, 1.5).clip(0, 30).round(),
    "smoker": rng.random(5000) < 0.25,
})  # fmt: skip
levels = rng.choice(["high", "average", "low"], 5000, p=[0.54, 0.37, 0.09])
budgets = cg.Policy({"high": 0.5, "average": 1.0, "low": 2.0}, delta=1e-5).assign(levels)

# %% [markdown]
# The schema is public: bounds and categories come from knowledge about the world, never from the
# private table.

# %%
schema = cg.Schema({
    "age": {"kind": "whole", "bounds": [18, 90], "missing": False},
    "ward": {"kind": "category", "categories": ["surgery", "geriatrics", "eyes"], "missing": False},
    "stay": {"kind": "whole", "bounds": [0, 30], "bins": [0, 3, 6, 9, 12, 15, 30], "missing": False},
    "smoker": {"kind": "flag", "missing": False},
})  # fmt: skip
ask = cg.Statistics(people, budgets, schema=schema, questions=6)
print(ask.plan("mean stay by ward"))

# %%
answer = ask.groupby("ward").mean("stay")
print(answer)
answer.represented.round(2)

# %% [markdown]
# The same answer beside the truth. 95 of 100 such bars hold it.

# %%
cells = answer.cells
truth = people.groupby("ward")["stay"].mean()
figure, axis = plt.subplots(figsize=(6, 2.4))
rows = range(len(cells))
axis.errorbar(
    cells["value"], rows, fmt="o", capsize=4, label="answer, 95 %",
    xerr=[cells["value"] - cells["lower"], cells["upper"] - cells["value"]],
)  # fmt: skip
wards = (
    [str(ward) for ward in cells["ward"]] if "ward" in cells else [str(one) for one in cells.index]
)
axis.plot([truth[ward] for ward in wards], rows, "x", color="black", label="truth")
axis.set_yticks(rows, wards)
axis.set(xlabel="mean stay in days", ylim=(-0.5, len(cells) - 0.5))
axis.legend(frameon=False)
plt.show()

# %%
print(ask.median("age"))
print(ask.count(where="age >= 65"))
print(ask.groupby("ward").share("smoker"))

# %% [markdown]
# A histogram is one question: a person is in one bin only, so all bins cost what one of them would.

# %%
drawn = ask.histogram("stay")
cells = drawn.cells
figure, axis = plt.subplots(figsize=(6, 2.6))
axis.bar(
    range(len(cells)), cells["value"], color="tab:blue", capsize=3,
    yerr=[cells["value"] - cells["lower"], cells["upper"] - cells["value"]],
)  # fmt: skip
axis.set_xticks(range(len(cells)), [str(one) for one in drawn.to_frame()["stay"]], rotation=20)
axis.set(ylabel="people")
plt.show()

# %% [markdown]
# Asking again is free, since the answer is known. And a session keeps to its budget:

# %%
again = ask.groupby("ward").mean("stay")
print(again)
ask.privacy_

# %% [markdown]
# **Try:** one person with ε = 0.01 in place of 0.5; `weights="uniform"`; `ask.plan(...)` for
# questions of your own. All questions there are: [statistics](../statistics.md#questions).

# %% [markdown]
# # Notebook: census incomes, and who pays for privacy
#
# The Adult data (US census, 1994) ask whether somebody earns more than 50,000 dollars. We train on
# 10,000 people with three budgets, compare with no privacy at all, and look at women and men apart.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import collegium as cg

warnings.simplefilter("ignore", cg.PrivacyWarning)  # several fits of one table: an experiment


def invented(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Make rows with some of Adult's columns, for machines without the data."""
    rng = np.random.default_rng(0)
    age, years = rng.integers(17, 90, n), rng.integers(1, 17, n)
    hours, sex = rng.integers(10, 80, n), rng.choice(["Female", "Male"], n)
    score = (years - 11) / 2 + (hours - 45) / 15 - ((age - 50) / 20) ** 2 + (sex == "Male") - 1
    frame = pd.DataFrame({"age": age, "education-num": years, "hours": hours, "sex": sex})
    return frame, np.where(rng.random(n) < 1 / (1 + np.exp(-score)), ">50K", "<=50K")


try:
    adult = cg.load_dataset("adult", download=False)
    people, income = adult.X, np.asarray(adult.y)
    income = np.where(income == adult.classes[-1], ">50K", "<=50K")
    print(f"{len(people):,} people of the census")
except cg.CollegiumError:
    people, income = invented(40_000)
    print("Adult is not on this machine (set COLLEGIUM_DATA): these rows are invented")

order = np.random.default_rng(1).permutation(len(people))
private, public, test = order[:10_000], order[10_000:13_000], order[13_000:23_000]

# %% [markdown]
# More than half of the people are careful. 3,000 others serve as the public records, without their
# incomes.

# %%
levels = np.random.default_rng(2).choice(["high", "average", "low"], 10_000, p=[0.54, 0.37, 0.09])
budgets = cg.Policy({"high": 1.0, "average": 2.0, "low": 3.0}, delta=1e-5).assign(levels)
model = cg.DPSGDClassifier(classes=["<=50K", ">50K"])
model.fit(people.iloc[private], income[private], budgets=budgets, X_public=people.iloc[public])
quality = model.quality(people.iloc[test], income[test])
print(quality.verdict, quality.reason, sep="\n")

# %% [markdown]
# Area under the ROC curve, beside boosted trees that see everything without noise. That is the most
# that privacy and a linear model can have cost here.


# %%
def seen_by_trees(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.apply(
        lambda column: column if column.dtype.kind in "if" else column.astype("category")
    )


whole = seen_by_trees(people)
trees = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
trees.fit(whole.iloc[private], income[private])
true = income[test] == ">50K"
chances = {
    "Collegium, ε = 1, 2, 3": model.predict_proba(people.iloc[test])[:, 1],
    "trees without privacy": trees.predict_proba(whole.iloc[test])[:, 1],
}
pd.Series(
    {name: round(roc_auc_score(true, chance), 3) for name, chance in chances.items()}, name="AUC"
).to_frame()

# %% [markdown]
# Noise can hurt small groups more than large ones, so look at them apart before you publish.

# %%
sex = people["sex"].astype(str).to_numpy()[test]
figure, axis = plt.subplots(figsize=(6, 2.8))
for shift, (name, chance) in zip((-0.18, 0.18), chances.items(), strict=True):
    areas = [roc_auc_score(true[sex == one], chance[sex == one]) for one in np.unique(sex)]
    bars = axis.barh(np.arange(len(areas)) + shift, areas, height=0.34, label=name)
    axis.bar_label(bars, [f"{area:.3f}" for area in areas], padding=3)
axis.set_yticks(range(len(np.unique(sex))), np.unique(sex))
axis.set(xlabel="area under the ROC curve", xlim=(0.5, 1.08))
axis.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=2)
plt.show()

# %% [markdown]
# **Try:** `goal="balanced"` in the model, which names the rarer class more often; ε = 0.1, 0.2,
# 0.3. Measured with three splits and the command of each number: [results](../results/dpsgd.md).

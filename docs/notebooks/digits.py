# %% [markdown]
# # Notebook: handwritten digits, three budgets
#
# Twelve hundred people each wrote one digit and chose how much privacy they want. We train a model
# that keeps to everybody's choice, see what each group paid, and look at the digits that it gets
# wrong. The images are real (scikit-learn's); the choices are dealt out for this page.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

import collegium as cg

warnings.simplefilter("ignore", cg.PrivacyWarning)  # several fits of one table: an experiment
X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
privacy = ["high"] * 648 + ["average"] * 444 + ["low"] * 108
policy = cg.Policy({"high": 1.0, "average": 2.0, "low": 3.0}, delta=1e-5)
budgets = policy.assign(privacy)

# %% [markdown]
# The plan needs only the budgets: how strongly each group counts, and what that costs its people.
# It spends nothing.

# %%
model = cg.DPSGDClassifier(classes=range(10))
model.plan(budgets)

# %% [markdown]
# Training draws its noise from the operating system, so your numbers differ a little from these.
# 397 public images without labels tell the model what images look like; they cost nobody anything.

# %%
model.fit(X[:1200], y[:1200], budgets=budgets, X_public=X[1200:1597])
print(f"{model.score(X[1597:], y[1597:]):.1%} of 200 test images are right")
model.privacy_

# %% [markdown]
# With one budget for all, everybody would have to get what the most careful person asks for. How
# much does that cost? The smaller the budgets, the more: here they shrink from left to right to a
# thirtieth (one training each).

# %%
shrunk = [1.0, 0.3, 0.1, 0.03]
scores = {"everybody's own budget": [], "the strictest for all": []}
for factor in shrunk:
    own = cg.Policy({"high": factor, "average": 2 * factor, "low": 3 * factor}).assign(privacy)
    for name, granted in (("everybody's own budget", own), ("the strictest for all", factor)):
        tried = cg.DPSGDClassifier(classes=range(10))
        tried.fit(X[:1200], y[:1200], budgets=granted, X_public=X[1200:1597])
        scores[name].append((tried.predict(X[1597:]) == y[1597:]).mean())

figure, axis = plt.subplots(figsize=(6, 3.2))
for (name, right), marker in zip(scores.items(), "os", strict=True):
    axis.plot(range(len(shrunk)), right, marker=marker, label=name)
axis.set_xticks(range(len(shrunk)), [f"{one:g}, {2 * one:g}, {3 * one:g}" for one in shrunk])
axis.set(xlabel="ε of the three levels", ylabel="share right", ylim=(0, 1))
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# The model's errors, with its answer above each:

# %%
predicted = model.predict(X[1597:])
wrong = np.flatnonzero(predicted != y[1597:])[:8]
figure, axes = plt.subplots(1, 8, figsize=(8, 1.5))
for axis in axes:
    axis.axis("off")
for axis, position in zip(axes, wrong, strict=False):
    axis.imshow(X[1597 + position].reshape(8, 8), cmap="gray_r")
    axis.set_title(str(predicted[position]))
plt.show()

# %% [markdown]
# **Try:** leave out `X_public`; give all people `"low"`; ask `cg.recommend(budgets,
# X_public=X[1200:1597], classes=range(10))` what it would choose. The same job as a command:
# `collegium demo`.

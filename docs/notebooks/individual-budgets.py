# %% [markdown]
# # Notebook: individual budgets, explained with pictures
#
# What does an ε mean for a person? Why does one strict person cost everybody so much, and how can
# people count differently without anybody paying more than they granted? No data, only arithmetic.

# %%
from math import ceil

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

from collegium import accounting

DELTA = 1e-5
LEVELS = {"high": 1.0, "average": 2.0, "low": 3.0}
SHARES = {"high": 0.54, "average": 0.37, "low": 0.09}
COLORS = dict(zip(LEVELS, ("tab:green", "tab:blue", "tab:orange"), strict=True))

# %% [markdown]
# ## What a budget means
#
# Somebody knows everything about everybody else, sees all that is released, and guesses whether
# your record took part. Without a release, guessing is right half of the time. The curve says how
# often it can be right at best.

# %%
epsilons = np.geomspace(0.01, 20, 200)
right = [norm.cdf(accounting.gdp_mu(epsilon, DELTA) / 2) for epsilon in epsilons]
figure, axis = plt.subplots(figsize=(6, 3.2))
axis.semilogx(epsilons, right, color="black")
for name, epsilon in LEVELS.items():
    at = norm.cdf(accounting.gdp_mu(epsilon, DELTA) / 2)
    axis.plot(epsilon, at, "o", color=COLORS[name])
    axis.annotate(
        f"{name}: {ceil(100 * at)} of 100",
        (epsilon, at),
        (-8, 6),
        textcoords="offset points",
        ha="right",
    )
axis.set(xlabel="ε (Gaussian noise, δ = 1e-5)", ylabel="right guesses, at most", ylim=(0.48, 1.02))
plt.show()

# %% [markdown]
# ## One noise, different weights
#
# A sum gets one noise. Somebody who may move the sum by less pays less for it: cost is weight
# divided by noise. So with the same noise for all, weights in proportion to μ use up every budget
# exactly, and with one weight for all the strictest budget decides for everybody.

# %%
mu = {name: accounting.gdp_mu(epsilon, DELTA) for name, epsilon in LEVELS.items()}
weight = {name: one / sum(SHARES[other] * mu[other] for other in mu) for name, one in mu.items()}
figure, axes = plt.subplots(1, 2, figsize=(8, 2.8))
for axis, title, of in (
    (axes[0], "weight of one person", weight),
    (axes[1], "share of all weight", {name: SHARES[name] * weight[name] for name in weight}),
):
    bars = axis.bar(list(of), list(of.values()), color=[COLORS[name] for name in of])
    axis.bar_label(bars, [f"{one:.2f}" for one in of.values()])
    axis.set(title=title, ylim=(0, 1.2 * max(of.values())))
plt.show()

# %% [markdown]
# ## What that gains
#
# The error of a mean of 1,000 people when everybody gets the strictest level, and with weights of
# their own: noise and unequal weights together. It gains as long as noise is what matters.

# %%
people, spread = 1000, 0.5
lowest = np.geomspace(0.01, 1, 40)
errors = {"the strictest for all": [], "everybody's own": []}
for strictest in lowest:
    own = np.array([accounting.gdp_mu(strictest * factor, DELTA) for factor in LEVELS.values()])
    n = people * np.array(list(SHARES.values()))
    for name, weights in (("the strictest for all", np.full(3, own[0])), ("everybody's own", own)):
        total = (n * weights).sum()
        unequal = spread**2 * ((n * weights**2).sum() / total**2 - 1 / people)
        errors[name].append(np.sqrt(unequal + 1 / total**2))
figure, axis = plt.subplots(figsize=(6, 3))
for name, error in errors.items():
    axis.loglog(lowest, error, label=name)
axis.set(
    xlabel="ε of the strictest level (others: two and three times as much)",
    ylabel="error of a mean",
)
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# The lines cross on the right: where noise is small, unequal weights cost more than they gain.
# Collegium therefore caps them (*saturating* weights), and does no worse than either line.
#
# ## Many releases
#
# μ² adds up. So after ten equal releases a person has paid √10 times the μ of one, and ε grows
# about as slowly. The dashed lines are the budgets: a filter refuses the release that would cross
# one.

# %%
releases = np.arange(1, 41)
figure, axis = plt.subplots(figsize=(6, 3.2))
for name in LEVELS:
    once = mu[name] / np.sqrt(25)
    paid = [accounting.gdp_epsilon(once * np.sqrt(count), DELTA) for count in releases]
    axis.plot(releases[:25], paid[:25], color=COLORS[name], label=name)
    axis.plot(releases[24:], paid[24:], color=COLORS[name], alpha=0.25)
    axis.axhline(LEVELS[name], color=COLORS[name], linestyle="--", linewidth=0.8)
axis.axvline(25, color="grey", linewidth=0.8)
axis.set(xlabel="releases", ylabel="ε paid")
axis.legend(frameon=False)
plt.show()

# %%
account = accounting.GaussianAccountant(epsilon=list(LEVELS.values()), delta=DELTA)
one = accounting.Gaussian(sensitivity=[mu[name] for name in LEVELS], scale=5.001)
print("releases that everybody can afford:", account.how_many(one))

# %% [markdown]
# **Next:** [how to choose levels](../choose.md) in words; proofs of all of this in
# [composition](../composition.md) and [statistics](../statistics.md#weights).

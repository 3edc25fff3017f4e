"""Weights that a first round of noise finds: where nobody knows in public how much values spread.

Where saturating weights min(b, τ) need a spread s² that is not public, the largest possible one makes τ too
small, and what is rare is heard too evenly. With Gaussian noise s² can be learnt on the way, and nearly
nothing is lost by it, since noisy sums add up.

A first round takes the share α of a price b², in μ², with weights min(b, c); a second one has the weights
v ≤ b at the rest. Say that r₁² and r₂² are what the value's coordinate gets of the two, each over its noise
(α and 1 - α, where both are made alike). Then r₁·(first) + r₂·(second), over r₁² + r₂², is a noisy sum with
the noise of *one* round of r₁² + r₂², in which a person weighs

    β·min(b, c) + (1 - β)·v,    β = r₁²/(r₁² + r₂²).

Any weights w with β·min(b, c) ≤ w ≤ β·min(b, c) + (1 - β)·b are among these: with c = τ_w/β, where τ_w is
the τ of the largest spread, all min(b, τ) for τ ≥ τ_w, but that somebody with b > c weighs β·(b - c) less
where weights are to be nearly proportional. So the first round costs nothing but what measures the spread.

The error of weights is linear in s² (:class:`~collegium.weighted_sums.weights.Errors`), so what has the least
expected error, given the first round, is the τ of the *mean* of s² given the first round.

The noise of the first round is in the answer and in the weights that divide it, so that the two go together a
little. The bias is small beside the standard error: among some 600 random settings (2 to 4 groups of 1 to
20,000 people, μ of .005 to 5, shares of 0 to .9) the eight that looked worst had at most .05 of it.

Prices stay public: weights of the second round depend on what the first one released, and its price is that
of the largest weights that it may have. Composition of Gaussian mechanisms, adaptive: Dong, Roth & Su 2022
(arXiv 1905.02383), Corollary 3.3; each person's own μ² adds up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from collegium.noise.grid import GRID
from collegium.statistics.estimates import Estimate, Heard, unequal
from collegium.weighted_sums.weights import saturation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FIRST = 0.2
"""Share of the price that the first round takes."""
SPREAD_IN_FIRST = 0.15
"""Part of the first round that measures the spread, where values do not say it themselves."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """What each person weighs in two rounds, in units of what they pay.

    Attributes
    ----------
    prices : ndarray of float, shape (n_groups,)
        b: μ that each group's people pay for both at most.
    first : ndarray of float, shape (n_groups,)
        min(b, c): weights in the first, as if it took the whole price.
    gain : tuple of float
        r₁² and r₂².
    """

    prices: Floats
    first: Floats
    gain: tuple[float, float]

    @classmethod
    def of(
        cls,
        prices: Floats,
        sizes: Integers,
        noise: float,
        largest: float,
        diameters: tuple[float, float],
        spread: float,
    ) -> Rounds | None:
        """Plan two rounds; None where weights in proportion to budgets are best whatever the spread is.

        And where the grid has no weight for the strictest beside the most generous: a second round without
        the latter would be of nobody.

        ``noise``: variance of what b = 1 buys, in a round of diameter 1 that takes the whole price.
        ``largest``: variance of values at most, in the same unit.
        ``diameters``: how far one person may move either round's vector.
        ``spread``: share of the first round that measures the spread.
        """
        gain = FIRST * (1 - spread) / diameters[0] ** 2, (1 - FIRST) / diameters[1] ** 2
        tau = saturation(prices, sizes, noise / sum(gain), largest)
        if tau >= prices.max() or prices.min() < 2 * GRID * prices.max():
            return None
        return cls(prices, np.minimum(prices, tau * sum(gain) / gain[0]), gain)

    @property
    def share(self) -> float:
        """β: how much of what is known in the end comes from the first round."""
        return self.gain[0] / sum(self.gain)

    @property
    def paid_first(self) -> Floats:
        """μ that the first round costs."""
        return math.sqrt(FIRST) * self.first

    @property
    def paid_second(self) -> Floats:
        """μ that the second round costs at most."""
        return math.sqrt(1 - FIRST) * self.prices

    def second(self, sizes: Integers, found: Sequence[Estimate], most: float) -> Floats:
        """μ that the second round costs with the weights that go best with what the first one found.

        ``found``: values of the cells, with variances of noise and between people.
        ``most``: variance between people of all of them together, at most.
        """
        known = [one for one in found if not math.isnan(one.value)]
        spread = min(most, sum(one.sample for one in known)) * float(sizes.sum())
        noise = self.share * float(sizes @ self.first) ** 2 * sum(one.noise for one in known)
        # None known: noise is all there is, and weights in proportion to budgets are best.
        best = np.minimum(self.prices, saturation(self.prices, sizes, noise, spread))
        rest = (best - self.share * self.first) / (1 - self.share)
        return np.asarray(math.sqrt(1 - FIRST) * np.clip(rest, 0.0, self.prices))

    def together(
        self,
        sizes: Integers,
        heard: tuple[Heard, Heard],
        weights: tuple[Floats, Floats],
        sums: tuple[Floats, Floats],
    ) -> tuple[Heard, Floats, Floats]:
        """Add both rounds up, in units of their noise: how people are heard, what they weigh, and the sums.

        ``sums``: (n_cells, width) each; the first one's last column is the spread's, if it is wider.
        """
        units = [1 / math.sqrt(one.noise) for one in heard]
        parts = [
            math.sqrt(gain / sum(self.gain)) * unit
            for gain, unit in zip(self.gain, units, strict=True)
        ]
        own = parts[0] * heard[0].main * weights[0] + parts[1] * heard[1].main * weights[1]
        width = sums[1].shape[1]
        both = parts[0] * sums[0][:, :width] + parts[1] * sums[1]
        total = float(sizes @ own)
        whole = replace(
            heard[1],
            noise=1.0,
            total=total,
            unequal=unequal(own, sizes),
            main=1.0,
            beside=heard[0].beside * units[0] * heard[0].total / total,
            beside_unequal=heard[0].unequal,
        )
        return whole, own, np.hstack([both, units[0] * sums[0][:, width:]])

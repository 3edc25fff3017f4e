"""How many teachers call a generated row real: one noisy number for each row, charged before it is drawn.

Which teacher sees whose rows is decided once, by a keyed hash of the owner's name. Whatever an owner's
rows are (there, blank, replaced by others, more or fewer), what they decide is how that owner's d
teachers vote. On each generated row each of them votes yes or no, with a weight w, so the weighted number
of yes moves by at most Δ = d·w: for any change, and not by twice as much for a replacement, as it does
where people themselves are counted. Given everything that was released before, the next rows do not
depend on private ones; Q noisy numbers are therefore μ-Gaussian-DP with μ = Δ·√Q/σ, adaptively (Dong,
Roth & Su, "Gaussian differential privacy", JRSS-B 84(1), 2022, arXiv 1905.02383v3, Cor. 3.3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from collegium.accounting.accountant import Accountant
from collegium.accounting.events import Gaussian
from collegium.accounting.gaussian import gdp_mu
from collegium.accounting.neighbours import Neighbours
from collegium.errors import InputError
from collegium.noise.grid import GRID
from collegium.noise.sums import MAX_SCALE, Noise, NoisySum
from collegium.personalisation.electorate import Electorate

Floats = NDArray[np.float64]
PURPOSE = "vote"


def sigma_for(electorate: Electorate, n_queries: int) -> float:
    """Find the noise at which nobody pays more for all queries than they granted.

    Parameters
    ----------
    electorate : Electorate
        Which teachers weigh how much, and how far an owner of each cohort moves a sum.
    n_queries : int
        Generated rows that are voted on.

    Returns
    -------
    float
        Standard deviation of the noise on each weighted number of votes, in votes.

    Raises
    ------
    InputError
        If the budgets are so small that such noise cannot be drawn exactly.

    Examples
    --------
    >>> from collegium.budgets import Budget
    >>> from collegium.personalisation import Uniform
    >>> plan = Uniform().plan({"all": Budget(1.0, 1e-5)}, {"all": 1000}, 100)
    >>> [round(sigma_for(plan.electorate(0), q), 3) for q in (100, 1_000, 12_800)]
    [37.306, 117.973, 422.073]
    """
    mu = [gdp_mu(budget.epsilon, budget.delta) for budget in electorate.cohort_budgets]
    root = math.sqrt(n_queries)
    needed = [moved * root / one for moved, one in zip(electorate.sensitivity, mu, strict=True)]
    # Each charge is rounded up, by a unit in the last place at most: all of them are affordable still.
    sigma = float(max(needed)) * (1 + 2.0**-40 + n_queries * 2.0**-51)
    if sigma > MAX_SCALE:
        raise InputError(
            f"budgets so small would need noise of {sigma:.2g} votes on each answer, and at most "
            f"{MAX_SCALE:,.0f} can be drawn: ask fewer queries, or leave out the strictest group"
        )
    return max(sigma, GRID)


class NoisyVotes:
    """The only door from teachers to everything else: yes or no in, noisy shares out.

    Parameters
    ----------
    electorate : Electorate
        With the same ballot at every query.
    sigma : float
        Standard deviation of the noise, in votes.
    n_queries : int
        How many generated rows may be voted on in all.
    account : Accountant
        One cohort for each of the electorate's.
    noise : NoisySum
        Where noise is drawn.
    """

    def __init__(
        self,
        electorate: Electorate,
        sigma: float,
        n_queries: int,
        account: Accountant,
        noise: NoisySum,
    ) -> None:
        ballot = electorate.ballot(0)
        self.account, self.noise, self.n_queries = account, noise, n_queries
        self.event = Gaussian(ballot.sensitivity, sigma, neighbours=Neighbours.ANY_CHANGE)
        self.its = Noise.in_votes("gaussian", sigma)
        self.n_asked = 0
        self._steps = np.rint(ballot.weights / GRID).astype(np.int64)
        self._total = float(ballot.total)

    def shares(self, sensitive_votes: NDArray[np.bool_]) -> Floats:
        """Charge for some rows, then draw the noisy weighted share of teachers who call each of them real.

        Parameters
        ----------
        sensitive_votes : ndarray of bool, shape (n_teachers, n)
            Who calls which row real.

        Returns
        -------
        ndarray of float64, shape (n,)
            Not clipped: the noise leaves them unbiased.

        Raises
        ------
        InputError
            If more rows would be voted on than were planned; nothing was charged or drawn.
        BudgetExceededError
            If somebody granted too little; nothing was charged or drawn.
        """
        n = sensitive_votes.shape[1]
        if self.n_asked + n > self.n_queries:
            raise InputError(
                f"{self.n_asked:,} of {self.n_queries:,} generated rows were voted on, and {n:,} more are "
                "asked about: plan for more with n_queries"
            )
        self.account.charge(self.event, times=n)
        query = self.n_asked
        self.n_asked += n
        sums = self._steps @ sensitive_votes
        noisy = self.noise.noised(sums, self.its, query=query, purpose=PURPOSE)
        return np.asarray(noisy * GRID / self._total)

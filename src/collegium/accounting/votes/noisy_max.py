"""Rényi costs of asking a teacher ensemble: noisy arg max and the threshold check.

Neighbours differ in all records of one owner; `sensitivity` is that owner's Delta: how far the
owner can move the vote count of one class. An owner moves at most Delta votes from one class to
another, that is sqrt(2) Delta in L2, and the largest count by at most Delta.

Two kinds of cost live here. The *data-independent* ones hold for every vote table and may be
published. The *data-dependent* ones take `log_q`, computed from the raw votes: they, the orders
that were best for them and everything derived from them are **sensitive**. They bound the Rényi
divergence D_alpha(M(D) || M(D')) of this dataset D towards each neighbour D', and not of D' towards
D, which may be larger: with votes 24 to 0, sigma = 2, Delta = 2, alpha = 2 it is 6,000 times the
bound (both tiny). The papers' data-dependent guarantee has the same limit.

Why they hold (Papernot et al. 2018, arXiv 1802.08908v1, Theorem 6). Let i* be the likely outcome,
q >= Pr[M(D) != i*], and let M satisfy (mu_1, eps_1)- and (mu_2, eps_2)-RDP, alpha <= mu_1. With
h = (q exp(eps_2))^((mu_2 - 1)/mu_2) < 1 bounding Pr[M(D') != i*], A = (1 - q)/(1 - h) and
B = exp(eps_1) q^(-1/(mu_1 - 1)),

    cost(alpha) = log((1 - q) A^(alpha - 1) + q B^(alpha - 1)) / (alpha - 1).

As q is only an upper bound, the expression must grow in q. Writing c = (mu_2 - 1)/mu_2, its
derivative is A^(a-1) (-a + (a-1) c (h/q) A) + (mu_1 - a)/(mu_1 - 1) B^(a-1), which is at least
(a-1) A^(a-1) (c h/q - mu_1/(mu_1 - 1)) if A <= B. So it grows if
h/q >= mu_1/(mu_1 - 1) * mu_2/(mu_2 - 1), which is the condition printed in the theorem. It stays
true for smaller q, and so does A <= B. Where A > B the cost exceeds log B >= eps_1, hence the
data-independent cost, and the minimum with that (taken everywhere) hides it.

The orders of Proposition 10, mu_2 = s sqrt(log 1/q) and mu_1 = mu_2 + 1 for s = sigma/Delta,
minimise h and B separately. (The thesis prints alpha_1 = s sqrt(log 1/q), alpha_2 = alpha_1 + 1:
valid but looser, and for one order less; at s = 4, log q = -20, alpha = 10 it costs 0.1241 instead
of 0.1216.) They also make everything explicit: with x = 1/s and L = log 1/q,

    log h = -(sqrt(L) - x)^2,  log(h/q) = 2 x sqrt(L) - x^2,  log B = x^2 + 2 x sqrt(L),

and the conditions become (alpha - 1) x <= sqrt(L), x < sqrt(L) and
log(h/q) >= 2 artanh(x/sqrt(L)). All three get easier, and the cost smaller, as Delta or q fall: at
given q the cost is monotone in Delta, sigma, q and alpha. But q itself grows with sigma: with the
*same votes*, more noise can raise a data-dependent cost. Only data-independent costs are monotone
in the noise.

References
----------
N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar, U. Erlingsson. Scalable Private
Learning with PATE. ICLR 2018; arXiv 1802.08908v1: Propositions 7, 8, 10, Theorem 6.
"""

from collegium.accounting.votes.gaussian_max import (
    gnmax_log_q,
    gnmax_rdp,
    gnmax_rdp_data_independent,
)
from collegium.accounting.votes.laplace_max import lnmax_log_q, lnmax_pure_epsilon, lnmax_rdp
from collegium.accounting.votes.threshold_check import (
    threshold_log_q,
    threshold_rdp,
    threshold_rdp_data_independent,
    threshold_rdp_exact,
)

__all__ = [
    "gnmax_log_q",
    "gnmax_rdp",
    "gnmax_rdp_data_independent",
    "lnmax_log_q",
    "lnmax_pure_epsilon",
    "lnmax_rdp",
    "threshold_log_q",
    "threshold_rdp",
    "threshold_rdp_data_independent",
    "threshold_rdp_exact",
]

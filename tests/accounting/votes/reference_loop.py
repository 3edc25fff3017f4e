"""The Rényi costs of collegium.accounting.votes.noisy_max, query by query, with the math module only.

Written from the papers' formulas as they are printed, not from the package's closed forms.
"""

import math


def _gaps(counts):
    ordered = sorted(counts, reverse=True)
    return [ordered[0] - count for count in ordered[1:]]


def gnmax_q(counts, sigma):
    """Proposition 7 of Papernot et al. 2018."""
    union = sum(math.erfc(gap / (2 * sigma)) / 2 for gap in _gaps(counts))
    return min(union, 1 - 1 / len(counts))


def theorem_6(q, scale, order, mu_1, mu_2):
    """Theorem 6 of Papernot et al. 2018 for GNMax of noise `scale`, None where it is void."""
    if mu_1 <= 1 or mu_2 <= 1 or order > mu_1:
        return None
    epsilon_1, epsilon_2 = mu_1 / scale**2, mu_2 / scale**2
    limit = (mu_2 - 1) * epsilon_2
    limit -= mu_2 * math.log(mu_1 / (mu_1 - 1) * mu_2 / (mu_2 - 1))
    if math.log(q) > limit or q * math.exp(epsilon_2) >= 1:
        return None
    moved = (q * math.exp(epsilon_2)) ** ((mu_2 - 1) / mu_2)
    log_a = math.log1p(-q) - math.log1p(-moved)
    log_b = epsilon_1 - math.log(q) / (mu_1 - 1)
    first = (1 - q) * math.exp((order - 1) * log_a)
    second = math.exp(math.log(q) + (order - 1) * log_b)
    return math.log(first + second) / (order - 1)


def gnmax_cost(q, sensitivity, sigma, order):
    """One answer: Theorem 6 with the orders of Proposition 10, or the data-independent cost."""
    if sensitivity == 0:
        return 0.0
    scale = sigma / sensitivity
    independent = order / scale**2
    mu_2 = scale * math.sqrt(math.log(1 / q))
    dependent = theorem_6(q, scale, order, mu_2 + 1, mu_2)
    return independent if dependent is None else min(dependent, independent)


def threshold_cost(max_count, threshold, sensitivity, sigma_threshold, order):
    """One check: Theorem 6 for its two outcomes."""
    q = math.erfc(abs(max_count - threshold) / (math.sqrt(2) * sigma_threshold)) / 2
    return gnmax_cost(q, sensitivity, math.sqrt(2) * sigma_threshold, order)


def lnmax_cost(counts, sensitivity, gamma, order):
    """One LNMax answer: Theorem 3 of Papernot et al. 2017 with Lemma 4, Theorem 2, or pure."""
    union = sum((2 + gamma * gap) / (4 * math.exp(gamma * gap)) for gap in _gaps(counts))
    q = min(union, 1 - 1 / len(counts))
    pure = 2 * gamma * sensitivity
    if pure == 0:
        return 0.0
    moment = order - 1
    bounds = [pure * moment, pure**2 * moment * (moment + 1) / 2]
    if q < math.expm1(pure) / math.expm1(2 * pure):
        ratio = (1 - q) / (1 - math.exp(pure) * q)
        bounds.append(math.log((1 - q) * ratio**moment + q * math.exp(pure * moment)))
    return min(bounds) / moment


def gnmax_total(table, sensitivity, sigma, order):
    """Every query is answered."""
    return sum(gnmax_cost(gnmax_q(row, sigma), sensitivity, sigma, order) for row in table)


def confident_gnmax_total(table, answered, sensitivity, threshold, sigma_threshold, sigma, order):
    """Every query is checked, some are answered."""
    total = 0.0
    for row, is_answered in zip(table, answered, strict=True):
        total += threshold_cost(max(row), threshold, sensitivity, sigma_threshold, order)
        if is_answered:
            total += gnmax_cost(gnmax_q(row, sigma), sensitivity, sigma, order)
    return total


def lnmax_total(table, sensitivity, gamma, order):
    """Every query is answered."""
    return sum(lnmax_cost(row, sensitivity, gamma, order) for row in table)

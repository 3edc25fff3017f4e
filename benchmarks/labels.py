"""Prove the constants of labels that cost less than histograms (``docs/vote-accounts.md``).

    python benchmarks/labels.py

Branch and bound over all counts: half a minute on one core. It exits with 1 if one constant is not proved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, owens_t

from collegium.accounting.arg_max import MOMENTS, STEP

Floats = NDArray[np.float64]
Convex = Callable[[Floats], Floats]
ROOT = np.sqrt(2)
OFF = 1e-11  # more than the errors of all functions used
RARE = float(ndtr(-2.0))
FAR = 6.0071  # beyond it, one of the two classes is all but impossible


def moment(tilt: float) -> Convex:
    """Make s ↦ (e^{λs} − 1 − λs)/λ²."""
    if tilt == 0:
        return lambda s: s * s / 2
    return lambda s: (np.expm1(tilt * s) - tilt * s) / tilt**2


def cubic(s: Floats) -> Floats:
    """(|s| + 1/16)³ e^{(|s| + 1/16)/4}, less its value at 0."""
    y = np.abs(s) + 1 / 16
    return np.asarray(y**3 * np.exp(y / 4) - np.exp(1 / 64) / 16**3)


def proves(f: Convex, most: float, depth: int = 14, at_once: int = 4_000_000) -> bool:
    """Whether Σ p_j f(s_j) ≤ most for every pair of counts; f convex, f(0) = 0, f ≥ 0."""
    r = np.concatenate([[-np.inf], np.linspace(-9.0137, 9.0411, 73), [np.inf]])
    d = np.linspace(-FAR, FAR + 1e-3, 49)
    low = np.meshgrid(r[:-1], d[:-1], indexing="ij")
    high = np.meshgrid(r[1:], d[1:], indexing="ij")
    cells = np.array([low[0].ravel(), high[0].ravel(), low[1].ravel(), high[1].ravel()])
    if _far_bound(f) > most or _far_bound(lambda s: f(-s)) > most:
        return False
    for _ in range(depth):
        cells = cells[:, ~(_bound(f, *cells) <= most)]
        if not cells.size:
            return True
        if cells.shape[1] > at_once:
            return False
        cells = _split(cells)
    return False


def _split(cells: Floats) -> Floats:
    r0, r1, d0, d1 = cells
    with np.errstate(invalid="ignore"):
        middle, across = (r0 + r1) / 2, (d0 + d1) / 2
    endless = np.isinf(r0) | np.isinf(r1)
    parts = []
    for low, high in ((d0, across), (across, d1)):
        parts.append(np.array([r0, r1, low, high])[:, endless])
        parts.append(np.array([r0, middle, low, high])[:, ~endless])
        parts.append(np.array([middle, r1, low, high])[:, ~endless])
    return np.concatenate(parts, axis=1)


def _bound(f: Convex, r0: Floats, r1: Floats, d0: Floats, d1: Floats) -> Floats:
    """Bound Σ p_j f(s_j) on cells of (r, d) = ((s + t)/√2, (t − s)/√2), where |d| is at most FAR."""
    s0, s1, t0, t1 = (r0 - d1) / ROOT, (r1 - d0) / ROOT, (r0 + d0) / ROOT, (r1 + d1) / ROOT
    neither = ndtr(-s0) * ndtr(-t0) + OFF
    b_wins = np.maximum(_wins(s1, t0), ndtr(d0) - neither) - OFF
    a_wins = np.maximum(_wins(t1, s0), ndtr(-d1) - neither) - OFF
    between = ndtr(r1) * _highest(d0, d1)
    up = _highest(s0, s1) * ndtr(-t0) - _lowest(t0, t1) * ndtr(-s1)
    down = _highest(t0, t1) * ndtr(-s0) - _lowest(s0, s1) * ndtr(-t1)
    return (
        _term(f, between + _highest(t0, t1) * ndtr(-s0) / ROOT, b_wins, ndtr(np.minimum(t1, d1)))
        + _term(f, -between - _highest(s0, s1) * ndtr(-t0) / ROOT, a_wins, ndtr(np.minimum(s1, -d0)))
        + np.maximum(
            _term(f, np.maximum(up, 0) / ROOT, ndtr(-s1) * ndtr(-t1) - OFF, neither),
            _term(f, np.minimum(-down, 0) / ROOT, ndtr(-s1) * ndtr(-t1) - OFF, neither),
        )
    )  # fmt: skip


def _far_bound(f: Convex) -> float:
    """Bound it where d ≥ FAR, in strips of t: s ≤ t − √2·FAR, so a can hardly win."""
    edges = np.concatenate([[-np.inf], np.linspace(-6.0, 6.0, 6001), [np.inf]])
    t0, t1 = edges[:-1], edges[1:]
    s1 = t1 - ROOT * FAR
    neither = ndtr(-s1) * ndtr(-t1) - OFF
    b_wins = np.maximum(_wins(s1, t0), ndtr(FAR) - ndtr(-t0)) - OFF
    top = _highest(t0, t1)
    up = _highest(np.full_like(s1, -np.inf), s1) * ndtr(-t0)
    far = np.full_like(t0, ndtr(-FAR))
    bound = (
        _term(f, _highest(far * 0 + FAR, far * 0 + np.inf) + top / ROOT, b_wins, ndtr(t1))
        + _term(f, np.full_like(t0, -np.inf), far * 0, far)
        + np.maximum(
            _term(f, up / ROOT, neither, ndtr(-t0)), _term(f, -top / ROOT, neither, ndtr(-t0))
        )
    )
    return float(bound.max())


def _term(f: Convex, slope: Floats, least: Floats, most: Floats) -> Floats:
    """Bound p·f(p′/p) for p in [least, most] and p′ between 0 and slope: f(0) = 0, so it falls with p.

    A rare event can at most have the score of the half-line of its probability: while p < Φ(−2), that
    rises with p.
    """
    slope = slope + np.where(slope < 0, -OFF, OFF)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        value = np.where(least > 0, least * f(slope / least), np.inf)
        p = np.minimum(most + OFF, RARE)
        score = np.exp(-(ndtri(p) ** 2) / 2) / np.sqrt(2 * np.pi) / p
    rare = p * np.maximum(f(score), f(-score))
    return np.where(most + OFF < RARE, np.fmin(value, rare), value)


def _wins(s: Floats, t: Floats) -> Floats:
    """Probability that N(t, 1) is above both 0 and N(s, 1), rounded down."""
    d = (t - s) / ROOT
    with np.errstate(invalid="ignore", divide="ignore"):
        owen = owens_t(t, ROOT * d / t - 1) + owens_t(d, ROOT * t / d - 1)
        value = ndtr(t) / 2 + ndtr(d) / 2 - owen - np.where(t * d < 0, 0.5, 0.0)
    return np.asarray(np.where(np.isfinite(value), value, 0.0) - OFF)


def _highest(low: Floats, high: Floats) -> Floats:
    nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    return np.asarray(np.exp(-(nearest**2) / 2) / np.sqrt(2 * np.pi))


def _lowest(low: Floats, high: Floats) -> Floats:
    farthest = np.maximum(np.abs(low), np.abs(high))
    return np.asarray(np.exp(-(farthest**2) / 2) / np.sqrt(2 * np.pi))


def main() -> int:
    """Prove all of them, and say so."""
    known = [(f"m({STEP * k:g})", moment(STEP * k), most) for k, most in enumerate(MOMENTS)]
    known.append(("E(|s| + 1/16)³e^{…}", cubic, 1.06 - np.exp(1 / 64) / 16**3))
    failed = 0
    for name, f, most in known:
        proved = proves(f, most)
        failed += not proved
        print(f"{name} ≤ {most:.6f}: {'proved' if proved else 'NOT PROVED'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

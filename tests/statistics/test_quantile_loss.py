"""What a quantile's draw and interval lose, by brute force: small tables, all neighbours, all outcomes."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from collegium.accounting import BoundedRange, Neighbours, PureNoise
from collegium.mechanisms import SeededNoise
from collegium.noise.grid import GRID
from collegium.statistics import quantile_intervals, quantiles
from collegium.statistics.quantile_intervals import PARTS, Cut, diameter, transform
from collegium.statistics.quantiles import Priced, Ranks, scores_of
from collegium.weighted_sums.weighing import Weighing

N, CELLS = 4, 2
PLACES = [*product(range(CELLS), range(N))]
BLANKED, REPLACED = Neighbours.ADD_OR_REMOVE, Neighbours.ANY_CHANGE
HEAVY, LIGHT = int(1 / GRID), int(0.25 / GRID)


def priced(level: float, laplace: bool, neighbours: Neighbours, cells: int = CELLS) -> Priced:
    weighing = Weighing(np.array([LIGHT, HEAVY]), 1.0, laplace, 1)
    far = diameter(laplace, neighbours)
    return Priced(level, 1.7, laplace, weighing, weighing, far, neighbours, cells)


def table(rows: tuple[tuple[tuple[int, int], int], ...], cells: int = CELLS) -> np.ndarray:
    steps = np.zeros((cells, N), dtype=np.int64)
    for (cell, place), weight in rows:
        steps[cell, place] += weight
    return steps


def chances(scores: np.ndarray, unit: float, laplace: bool) -> np.ndarray:
    """Of each candidate of a cell: one of those whose coins fell on heads, or in proportion to e^score."""
    accepted = np.exp((scores - scores.max()) * unit)
    if not laplace:
        return np.asarray(accepted / accepted.sum())
    found = np.empty(len(scores))
    for one, chance in enumerate(accepted):
        others = np.array([1.0])  # distribution of how many others would be accepted
        for other in np.delete(accepted, one):
            others = np.convolve(others, [1 - other, other])
        found[one] = chance * float(others @ (1 / np.arange(1, len(others) + 1)))
    return found


def outcomes(steps: np.ndarray, price: Priced) -> np.ndarray:
    """Logarithms of the chances of all that the draws from all cells can be together."""
    scores, unit = scores_of(steps, price.level, price.step)
    logs = [np.log(chances(row, unit, price.laplace)) for row in scores]
    return np.asarray(sum(np.ix_(*logs), np.zeros(())))


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.25])
@pytest.mark.parametrize("neighbours", [BLANKED, REPLACED])
def test_draws_lose_what_is_charged_and_no_less_would_do(
    laplace: bool, level: float, neighbours: Neighbours
) -> None:
    price = priced(level, laplace, neighbours)
    charged = price.events[0].pure_epsilon
    lost = np.zeros(2)
    others = [
        tuple(zip(places, weights, strict=True))
        for places in combinations_with_replacement(PLACES[:N], 2)
        for weights in ((HEAVY, HEAVY), (HEAVY, 8 * HEAVY))
    ] + [(((0, one), 9 * HEAVY), ((1, two), 9 * HEAVY)) for one, two in product(range(N), repeat=2)]
    for rest in others:
        for group, weight in enumerate((LIGHT, HEAVY)):
            # There at each place, or blank; replaced: at each place instead of another.
            ways = [outcomes(table((*rest, (place, weight))), price) for place in PLACES]
            base = [outcomes(table(rest), price)] if neighbours is BLANKED else ways
            for one, other in product(ways, base):
                moved = one - other
                # Bounded range: the two extremes together. Permute-and-flip: each by itself.
                loss = np.abs(moved).max() if laplace else np.ptp(moved)
                lost[group] = max(lost[group], float(loss))
    assert (lost <= charged * (1 + 1e-9)).all()
    # Coins tell less of who moves: the most that coming adds and going takes away is not reached by both.
    assert (lost > (0.8 if laplace and neighbours is REPLACED else 0.9) * charged).all()


def test_in_one_cell_a_replaced_row_pays_for_its_move_alone() -> None:
    price = priced(0.75, False, REPLACED, cells=1)
    charged, lost = float(price.events[0].pure_epsilon[1]), 0.0
    for crowd, before, after in product(range(N), repeat=3):
        one, other = (
            outcomes(table((((0, crowd), 9 * HEAVY), ((0, at), HEAVY)), 1), price)
            for at in (before, after)
        )
        lost = max(lost, float(np.ptp(one - other)))
    assert 0.9 * charged < lost <= charged * (1 + 1e-9)


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("neighbours", [BLANKED, REPLACED])
def test_a_row_moves_the_noised_vector_by_the_diameter_at_most(
    laplace: bool, neighbours: Neighbours
) -> None:
    n = 200
    most = 0.0
    for drawn in (0, 1, 100, 150, n - 1):
        vectors = []
        for cell, place in product(range(2), range(n)):
            steps = np.zeros((2, n), dtype=np.int64)
            steps[cell, place] = 1
            cut = Cut.around(np.array([drawn, 50]), steps, laplace)
            vectors.append((cut.sensitive_steps @ transform(laplace).T).ravel())
        rows = np.unique(np.array(vectors), axis=0)
        moved = rows
        if neighbours is REPLACED:
            moved = (rows[:, None] - rows[None]).reshape(-1, 2 * PARTS[laplace])
        sizes = np.abs(moved).sum(axis=1) if laplace else np.sqrt((moved**2).sum(axis=1))
        most = max(most, float(sizes.max()))
    assert most <= diameter(laplace, neighbours) <= most * (1 + 1e-12)


@pytest.mark.parametrize("laplace", [True, False])
def test_what_is_noised_is_what_is_charged(laplace: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def noised(steps: np.ndarray, weighing: Weighing, *_: object) -> np.ndarray:
        seen.append((steps, weighing))
        return steps * GRID

    monkeypatch.setattr(quantile_intervals, "noised", noised)
    price = priced(0.5, laplace, BLANKED)
    ranks = np.full((1, 40), HEAVY, dtype=np.int64)
    assert price.interval is not None
    for extra in (0, HEAVY):
        ranks[0, 7] += extra
        cut = Cut.around(np.array([20]), ranks, laplace)
        cut.ends(0.5, price.interval, 0.0, 41.0, 0.95, SeededNoise(0), 0)
    moved = (seen[1][0] - seen[0][0]) * GRID / seen[0][1].scale
    event = price.events[1]
    if laplace:
        assert np.abs(moved).sum() == pytest.approx(float(event.pure_epsilon[1]))
    else:
        assert float((moved**2).sum()) == pytest.approx(float(event.mu_squared[1]))


def test_coins_are_charged_as_pure_and_only_the_exponential_mechanism_by_its_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[str] = []
    for name in ("choose", "choose_by_coins"):
        monkeypatch.setattr(quantiles, name, lambda *_, name=name, **__: drawn.append(name) or 0)
    ranks = Ranks(table((((0, 1), HEAVY),)), np.arange(float(N)))
    prices = [priced(0.5, laplace, BLANKED) for laplace in (True, False)]
    for price in prices:
        ranks.draw(price, SeededNoise(0), 0)
    assert drawn == ["choose_by_coins", "choose"]
    assert [type(price.events[0]) for price in prices] == [PureNoise, BoundedRange]


def test_a_place_where_nobody_is_is_no_median() -> None:
    # Half below 20 and half above it would be the distance that is least; but 51 of 100 are at 20.
    steps = np.zeros((1, 61), dtype=np.int64)
    steps[0, 20], steps[0, 40] = 51 * HEAVY, 49 * HEAVY
    scores, _ = scores_of(steps, 0.5, GRID)
    assert scores[0].argmax() == 20
    assert (scores[0] > 0).tolist() == [place == 20 for place in range(61)]
    ranks = Ranks(steps, np.arange(61.0))
    alike = Weighing(np.array([HEAVY]), 1.0, True, 1)
    price = Priced(0.5, 30.0, True, alike, None, 1.0, BLANKED, 1)
    assert ranks.draw(price, SeededNoise(0), 0).tolist() == [20]

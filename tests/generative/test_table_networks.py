"""Rows as blocks of categories, and the networks that make and judge them."""

import numpy as np
import pytest
import torch

from collegium.generative.table_networks import Blocks, TableGenerator, discriminator

SIZES = (2, 5, 3)


def coins(seed=1):
    return torch.Generator().manual_seed(seed)


def test_cells_come_back_from_zeros_and_ones():
    codes = np.stack([np.random.default_rng(1).integers(0, size, 50) for size in SIZES], axis=1)
    rows = Blocks(SIZES).one_hot(codes)
    assert rows.shape == (50, 10)
    assert torch.equal(rows.sum(dim=1), torch.full((50,), 3.0))
    assert (Blocks(SIZES).codes(rows) == codes).all()


def test_cells_are_drawn_with_their_probabilities():
    generator = TableGenerator(SIZES, coins(), n_noise=4, hidden=(8,))
    with torch.no_grad():
        for part in generator.network.parameters():
            part.zero_()
        generator.network[-1].bias[:2] = torch.tensor([0.0, 2.0])
    n = 20_000
    drawn = generator.codes(n, coins(2))
    share = drawn[:, 0].mean()
    expected = np.exp(2) / (1 + np.exp(2))
    # Five standard deviations: a false alarm in 1.7 million seeds.
    assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / n)
    counts = np.bincount(drawn[:, 1], minlength=5)
    assert (abs(counts - n / 5) < 5 * np.sqrt(n * 0.2 * 0.8)).all()


def test_gradients_reach_every_layer_of_the_generator_through_drawn_rows():
    generator = TableGenerator(SIZES, coins())
    judge = discriminator(10, coins(2))
    judge(generator.rows(8, coins(3))).sum().backward()
    assert all(part.grad is not None for part in generator.parameters())
    assert float(generator.network[0].weight.grad.abs().sum()) > 0


def test_the_process_s_generator_decides_nothing():
    drawn = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        generator = TableGenerator(SIZES, coins())
        drawn.append(generator.codes(20, coins(2)).tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("others", [0, 3])
def test_a_row_is_judged_by_itself(others):
    judge = discriminator(10, coins())
    rows = torch.rand(4, 10, generator=coins(2))
    changed = rows.clone()
    changed[others] += 1
    kept = [i for i in range(4) if i != others]
    assert torch.equal(judge(rows)[kept], judge(changed)[kept])

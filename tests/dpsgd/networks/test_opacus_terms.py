"""A plan in the terms of Opacus, and our clipped sums beside those of Opacus."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import collegium as cg
from collegium import opacus_terms
from collegium.accounting import Neighbours
from collegium.dpsgd.grid import UNIT
from collegium.dpsgd.networks.owner_modules import Owned
from collegium.dpsgd.networks.owner_sums import OwnerSums
from collegium.dpsgd.sampling import Sample
from collegium.errors import InputError
from collegium.personalisation.dpsgd_plan import DPSGDPlan, GroupSteps

NORM = 0.4
BUDGETS = cg.Policy({"high": 1e3, "low": 3e3}).assign(["high", "low", "high"] * 20)


def plan(bound="clip", clips=(0.5, 2.0), rates=(0.3, 0.9)):
    sizes = BUDGETS.public_sizes()
    groups = {
        name: GroupSteps(BUDGETS.groups[name], sizes[name], rate, clip, 1.0)
        for name, rate, clip in zip(("high", "low"), rates, clips, strict=True)
    }
    return DPSGDPlan("scale", bound, 40, 1.5, groups, Neighbours.ADD_OR_REMOVE, "gaussian")


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 5, 2, padding=2), nn.Tanh(), nn.MaxPool2d(2, 1), nn.Conv2d(4, 8, 3, 2),
        nn.Tanh(), nn.Flatten(), nn.Linear(8 * 2 * 2, 10),
    ), (1, 12, 12)  # fmt: skip


def mlp():
    return nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 10)), (20,)


class Samples:
    """What of Opacus' optimiser the terms look at."""

    def __init__(self, module, X, y):
        self.params = list(module.parameters())
        each = [torch.autograd.grad(F.cross_entropy(module(x[None]), t[None]), self.params)
                for x, t in zip(X, y, strict=True)]  # fmt: skip
        for number, parameter in enumerate(self.params):
            parameter.grad_sample = torch.stack([gradients[number] for gradients in each])


def data(shape):
    torch.manual_seed(0)
    return 3 * torch.randn(60, *shape), torch.arange(60) % 10


@pytest.mark.parametrize("bound", ["clip", "weight"])
def test_individual_norms_leave_opacus_what_we_sum(bound):
    module, shape = mlp()
    X, y = data(shape)
    terms = opacus_terms(plan(bound), BUDGETS, NORM)
    batch = list(range(0, 60, 2))
    samples = Samples(module, X[batch], y[batch])
    samples.params[0].grad_sample[3] = torch.nan  # counts as nothing
    terms.clip(samples, batch)
    clipped = torch.cat([p.grad_sample.flatten(1) for p in samples.params], dim=1).double()
    norms = clipped.norm(dim=1).numpy()
    assert (norms <= terms.norms[batch] * (1 + 1e-6)).all() and norms[3] == 0
    assert (norms[:3] > 0.3 * terms.norms[batch][:3]).all()
    assert 2.0 * NORM < terms.max_grad_norm < 2.0 * NORM + 3e-6
    assert terms.noise_multiplier * terms.max_grad_norm == pytest.approx(1.5 * NORM)
    assert not terms.uniform_norms
    assert opacus_terms(plan(clips=(1.0, 1.0)), BUDGETS, NORM).uniform_norms


def test_batches_are_drawn_at_individual_rates():
    """Binomial counts beyond six standard deviations: one false alarm in about 250 million runs."""
    low = np.array(["high", "low", "high"] * 20) == "low"
    terms = opacus_terms(plan(), BUDGETS, NORM)
    counts = np.zeros(60)
    batches = [batch for _ in range(20) for batch in terms.batches()]
    for batch in batches:
        counts[batch] += 1
    assert len(batches) == 20 * 40
    for group, rate in ((low, 0.9), (~low, 0.3)):
        n = len(batches) * group.sum()
        assert abs(counts[group].sum() - rate * n) < 6 * np.sqrt(n * rate * (1 - rate))


def test_masks_and_noise_of_a_step_are_not_those_of_a_seed_that_somebody_knows():
    """PyTorch's generator is seeded anew for each batch; equal ones: below 10^-18."""
    terms, drawn = opacus_terms(plan(), BUDGETS, NORM), []
    for _ in range(2):
        torch.manual_seed(0)
        for _, _batch in zip(range(2), terms.batches(), strict=False):
            drawn.append(F.dropout(torch.ones(100), 0.5).tolist())
    assert len({tuple(mask) for mask in drawn}) == 4


def test_what_opacus_cannot_is_said():
    owners = cg.Policy({"high": 1.0, "low": 3.0}).assign(["high"] * 4, owners=["a", "a", "b", "c"])
    with pytest.raises(InputError, match=r"3 owners have 4 records.*individual_dpsgd"):
        opacus_terms(plan(), owners, NORM)
    terms = opacus_terms(plan(), BUDGETS, NORM)
    module, shape = mlp()
    X, y = data(shape)
    with pytest.raises(InputError, match=r"one backward.*hooks"):
        terms.clip(Samples(module, X[:5], y[:5]), [1, 2, 3])
    terms.clip(Samples(module, X[:5], y[:5]), [])  # nobody was drawn


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [cnn, mlp])
@pytest.mark.parametrize("kind", ["uniform", "clip", "weight"])
def test_clipped_sums_are_those_of_opacus(make, kind):
    pytest.importorskip("opacus")
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.manual_seed(2)
    module, shape = make()
    X, y = data(shape)
    norm = 4.0
    its = plan("clip", (1.0, 1.0)) if kind == "uniform" else plan(kind)
    owned = Owned((X, y), BUDGETS, its)
    drawn = owned.draw(Sample.seeded(1, 0))
    sums = OwnerSums(module, F.cross_entropy, norm, 16)
    ours = sums.clipped_sum(drawn, owned.read) * UNIT * norm
    terms = opacus_terms(its, BUDGETS, norm)
    wrapped = GradSampleModule(module, loss_reduction="sum")
    optimiser = DPOptimizer(
        torch.optim.SGD(wrapped.parameters(), lr=1),
        noise_multiplier=0.0,
        max_grad_norm=terms.max_grad_norm,
        expected_batch_size=terms.expected_batch_size,
        loss_reduction="mean",
    )

    def gradient(batch):
        optimiser.zero_grad()
        F.cross_entropy(wrapped(X[batch]), y[batch], reduction="sum").backward()
        norms = torch.cat([p.grad_sample.flatten(1) for p in optimiser.params], 1).norm(dim=1)
        if not terms.uniform_norms:
            terms.clip(optimiser, batch)
        optimiser.pre_step()
        found = torch.cat([p.grad.flatten() for p in optimiser.params])
        return found.double().numpy() * its.divisor, norms.numpy()

    batch = drawn.rows.tolist()
    theirs, norms = gradient(batch)
    clipped = norms * terms.weights[batch] > terms.norms[batch]
    assert 0.1 < clipped.mean() < 0.95
    assert np.linalg.norm(ours - theirs) <= 1e-6 * np.linalg.norm(theirs)
    assert (gradient([])[0] == 0).all()  # nobody was drawn

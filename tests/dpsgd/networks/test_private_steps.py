"""Private steps of a network: who is drawn, what is charged and when, what is divided by what."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import TensorDataset

import collegium as cg
from collegium import plan_dpsgd
from collegium.accounting import Neighbours
from collegium.dpsgd.networks.owner_modules import Owned
from collegium.dpsgd.sampling import Sample
from collegium.errors import BudgetExceededError, InputError
from collegium.noise.sums import Noise
from collegium.personalisation.dpsgd_plan import DPSGDPlan, GroupSteps

WHO = ["low", "high", "high", "average"] * 30
RATES = {"high": 0.05, "average": 0.2, "low": 0.6}
CLIPS = {"high": 0.5, "average": 1.0, "low": 2.0}


EPSILONS = {"high": 1.0, "average": 2.0, "low": 3.0}


def budgets(owners=None, who=WHO, times=1e3, **options):
    """Ample ones by default: most plans below are made by hand."""
    policy = cg.Policy({name: times * epsilon for name, epsilon in EPSILONS.items()})
    return policy.assign(who, owners=owners, **options)


def plan_of(its, rates=RATES, clips=CLIPS, bound="clip", noise=1.0, steps=20):
    groups = {
        name: GroupSteps(its.groups[name], size, rates[name], clips[name], 1.0)
        for name, size in its.public_sizes().items()
    }
    return DPSGDPlan("sample", bound, steps, noise, groups, Neighbours.ADD_OR_REMOVE, "gaussian")


def records(n=120, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn((n, 4), generator=generator), torch.arange(n) % 3


def private(its=None, plan=None, dataset=None, seed=0, lr=1.0, network=None, **options):
    torch.manual_seed(1)
    its = its or budgets()
    network = network or nn.Linear(4, 3)
    optimiser = torch.optim.SGD(network.parameters(), lr=lr)
    made = cg.individual_dpsgd(
        network, optimiser, dataset or records(len(its)), plan or plan_of(its), budgets=its,
        max_grad_norm=0.5, noise_seed=seed, **options,
    )  # fmt: skip
    return made, network


def weights(network):
    return torch.cat([p.detach().flatten() for p in network.parameters()]).numpy().copy()


class Silence:
    """Noise that notes what it was asked for, and is none."""

    is_private, description = True, "none"

    def __init__(self):
        self.asked = []

    def noised(self, total, noise, *, query, purpose):
        self.asked.append((query, noise, total.size))
        return total


def test_each_group_is_drawn_at_its_own_rate():
    """A binomial count beyond six standard deviations: one false alarm in about 170 million runs."""
    its = budgets()
    owned = Owned(records(), its, plan_of(its))
    times = 1500
    drawn = np.zeros(120)
    for _ in range(times):
        drawn[owned.draw(Sample.fresh()).rows] += 1
    for name, rate in RATES.items():
        count = drawn[np.array(WHO) == name].sum()
        n = times * WHO.count(name)
        assert abs(count - n * rate) <= 6 * np.sqrt(n * rate * (1 - rate))


def test_owners_are_drawn_and_never_some_of_their_records():
    """A mutant that draws records would pass with probability below 10^-30."""
    owners = [f"person {i % 40}" for i in range(120)]  # three records each
    its = budgets(owners, [WHO[i % 40] for i in range(120)])
    owned = Owned(records(), its, plan_of(its))
    for _ in range(50):
        drawn = owned.draw(Sample.fresh())
        whose = its.record_owner[drawn.rows]
        assert (whose.reshape(-1, 3) == whose[::3, None]).all()
        assert (drawn.starts == np.arange(0, len(whose), 3)).all()
        assert len(set(whose[::3])) == len(drawn.clips)
        clips = [CLIPS[its.group_names[g]] for g in its.owner_group[whose[::3]]]
        assert drawn.clips.tolist() == clips


def test_groups_are_tied_by_name_whatever_their_order():
    its = budgets()
    plan = plan_of(its)
    reverse = DPSGDPlan(
        "sample", "clip", 20, 1.0, dict(reversed(plan.groups.items())), plan.neighbours, "gaussian"
    )
    (one, first), (two, second) = private(its, plan), private(its, reverse)
    one.step(), two.step()
    assert (weights(first) == weights(second)).all()


def test_who_granted_nothing_is_never_read():
    policy = cg.Policy({"none": 0, "high": 1.0, "average": 2.0, "low": 3.0})
    its = policy.assign(["none" if i % 4 == 0 else who for i, who in enumerate(WHO)])
    plan = plan_dpsgd(
        {n: b for n, b in its.groups.items() if n != "low"},
        {n: s for n, s in its.public_sizes().items() if n != "low"},
        steps=3,
    )
    rows = Owned(records(), its, plan).draw(Sample()).rows
    assert len(rows) == 90 and (rows % 4 != 0).all()


@pytest.mark.parametrize("bound", ["clip", "weight"])
def test_a_step_is_the_clipped_sum_over_a_public_constant(bound):
    its = budgets()
    steps, network = private(its, plan_of(its, dict.fromkeys(RATES, 1.0), bound=bound))
    steps._noise = silence = Silence()
    X, y = records()
    total = 0.0
    for i, who in enumerate(WHO):
        loss = F.cross_entropy(network(X[i : i + 1]), y[i : i + 1])
        each = torch.autograd.grad(loss, list(network.parameters()))
        gradient = torch.cat([g.flatten() for g in each]).double().numpy()
        most, norm = 0.5 * CLIPS[who], np.linalg.norm(gradient)
        weight = CLIPS[who] if bound == "weight" else 1
        total = total + gradient * min(weight, most / norm)
    before = weights(network)
    steps.step()
    divisor = sum(size * CLIPS[name] for name, size in its.public_sizes().items())
    assert np.allclose(before - weights(network), total / divisor, atol=1e-6)
    assert silence.asked == [(0, Noise("gaussian", 2.0**30), 15)]


def test_mutants_division_by_what_was_drawn_and_skipping_empty_batches():
    """Whoever is drawn, the divisor is the plan's; nobody drawn is a step with noise, and charged."""
    its = budgets()
    nobody = plan_of(its, dict.fromkeys(RATES, 1e-300), noise=2.0)
    steps, network = private(its, nobody, seed=None)
    before = weights(network)
    assert not len(steps._owned.draw(Sample.fresh()).rows)
    object.__setattr__(nobody, "divisor", 3.0)
    steps.step()
    moved = (before - weights(network)) / (2.0 * 0.5 / 3.0)
    assert steps.steps_taken == 1
    assert 15 * 0.02 < (moved**2).sum() < 15 * 5  # chi-square of 15: false alarms below 10^-8
    # With the same owners drawn, a plan with a divisor twice as large moves half as far.
    plan = plan_of(its)
    a, first = private(its, plan)
    wide = plan_of(its)
    object.__setattr__(wide, "divisor", 2 * plan.divisor)
    b, second = private(its, wide)
    start = weights(first)
    a.step(), b.step()
    assert np.allclose(start - weights(first), 2 * (start - weights(second)), atol=1e-6)


def test_each_step_is_charged_before_it_is_drawn_and_no_more_than_planned():
    log = []
    its = budgets()
    plan = plan_of(its, steps=3)
    steps, network = private(its, plan, charge=lambda number: log.append(("charged", number)))

    class Noted(Silence):
        def noised(self, total, noise, *, query, purpose):
            log.append(("drawn", query + 1))
            return super().noised(total, noise, query=query, purpose=purpose)

    steps._noise = Noted()
    assert list(steps) == [1, 2, 3]
    assert log == [(what, number) for number in (1, 2, 3) for what in ("charged", "drawn")]
    before = weights(network)
    with pytest.raises(BudgetExceededError, match="nothing was drawn"):
        steps.step()
    assert (weights(network) == before).all() and len(log) == 6


def test_a_charge_that_fails_draws_nothing_and_is_paid_for():
    def full(number):
        raise OSError("no space left")

    steps, network = private(charge=full)
    steps._noise = silence = Silence()
    before = weights(network)
    with pytest.raises(OSError, match="no space"):
        steps.step()
    assert steps.steps_taken == 1 and not silence.asked and (weights(network) == before).all()


def test_what_was_spent_is_known_at_any_step():
    its = budgets(times=1)
    plan = plan_dpsgd(its.groups, its.public_sizes(), steps=4)
    steps, _ = private(its, plan)
    assert steps.epsilon_spent() == dict.fromkeys(RATES, 0.0)
    spent = [dict(steps.epsilon_spent()) for _ in steps]
    assert spent == [plan.epsilon(number) for number in (1, 2, 3, 4)]
    assert spent[-1] == pytest.approx(EPSILONS)
    assert steps.privacy.noise_is_private is False
    assert "left blank at its place" in steps.privacy.adjacency
    named, _ = private(budgets([f"p{i}" for i in range(120)], times=1), plan, seed=None)
    assert (
        named.privacy.noise_is_private
        and "one owner are there or blanked" in named.privacy.adjacency
    )


@pytest.mark.parametrize("kind", ["sample", "scale"])
def test_a_plan_of_samples_is_spent_at_its_last_step_and_not_before(kind):
    its = budgets(times=1)
    plan = plan_dpsgd(
        its.groups, its.public_sizes(), steps=3, kind=kind, rate=0.1, accountant="rdp"
    )
    steps, _ = private(its, plan)
    steps.step()
    first = steps.epsilon_spent()
    assert all(0 < first[name] < 0.99 * epsilon for name, epsilon in EPSILONS.items())
    assert list(steps) == [2, 3]
    assert all(steps.epsilon_spent()[name] <= epsilon for name, epsilon in EPSILONS.items())
    assert steps.epsilon_spent() == pytest.approx(EPSILONS, rel=1e-6)


def test_a_resumed_run_goes_on_where_it_was_and_never_takes_a_step_twice():
    its = budgets()
    whole, network = private(its)
    list(whole)
    first, interrupted = private(its)
    for number in first:
        if number == 7:
            break
    state = first.state_dict()
    second, _ = private(its, network=interrupted)
    second.load_state_dict(state)
    assert second.epsilon_spent() == first.epsilon_spent()
    assert list(second) == list(range(8, 21))
    assert (weights(interrupted) == weights(network)).all()
    second.load_state_dict(state)  # an older state gives nothing back
    assert second.steps_taken == 20
    other, _ = private(its, plan_of(its, noise=1.1))
    for wrong in (state, {**state, "more": 1}, {}):
        with pytest.raises(InputError, match="belongs to another plan"):
            other.load_state_dict(wrong)


def test_same_seed_same_bits_and_without_one_never_again():
    pairs = [[private(seed=seed) for _ in range(2)] for seed in (3, None)]
    for pair in pairs:
        for steps, _ in pair:
            steps.step()
    (a, b), (c, d) = [[weights(network) for _, network in pair] for pair in pairs]
    assert (a == b).all() and (c != d).all()


def test_without_a_seed_samples_are_fresh_in_every_step():
    """Two runs with the same samples: one in 2^30, as rates of 0.05 to 0.6 are of 120 owners."""
    its = budgets()
    moved = []
    for _ in range(2):
        steps, network = private(its, seed=None)
        steps._noise = Silence()
        before = weights(network)
        for _ in range(2):
            steps.step()
            moved.append(weights(network) - before)
            before = weights(network)
    assert len({each.tobytes() for each in moved}) == 4
    assert all(np.linalg.norm(each) > 0 for each in moved)


def test_data_sets_of_every_form_are_the_same_data():
    X, y = records()
    items = [(X[i], int(y[i])) for i in range(120)]
    found = []
    for dataset in ((X, y), TensorDataset(X, y), (X.numpy(), y.numpy()), items):
        steps, network = private(dataset=dataset)
        steps.step()
        found.append(weights(network))
    assert all((found[0] == other).all() for other in found)


def test_variants_are_made_of_one_record_at_a_time():
    shapes = set()

    def augment(record):
        shapes.add(tuple(record.shape))
        return record + 1

    steps, network = private(augment=augment, augmentations=2)
    plain, other = private(dataset=(records()[0] + 1, records()[1]))
    steps.step(), plain.step()
    assert shapes == {(4,)}
    assert np.allclose(weights(network), weights(other), atol=1e-5)


def test_frozen_parameters_stay_and_the_optimiser_is_any():
    network = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    network[0].requires_grad_(False)
    its = budgets()
    made = cg.individual_dpsgd(
        network, torch.optim.Adam(network.parameters(), lr=0.1), records(), plan_of(its),
        budgets=its, max_grad_norm=0.5,
    )  # fmt: skip
    frozen, free = network[0].weight.clone(), network[2].weight.clone()
    made.step()
    assert torch.equal(frozen, network[0].weight) and not torch.equal(free, network[2].weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"network": nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))}, "BatchNorm1d.*GroupNorm"),
        ({"network": nn.Linear(4, 3).requires_grad_(False)}, "no parameters that are trained"),
        ({"network": nn.Linear(4, 3).half()}, "float32 or float64"),
        ({"dataset": records(119)}, "119 records, but budgets of 120"),
        ({"dataset": (*records(), 1)}, "records and targets"),
        ({"plan": plan_of(budgets(who=[*WHO, "low"]))}, "low: 31.*low: 30.*public_sizes"),
        ({"plan": plan_of(budgets(), clips=dict.fromkeys(CLIPS, 2000.0))}, "too large for exact sums"),
        ({"plan": plan_of(budgets(), noise=1e6)}, "take fewer steps"),
        ({"micro_batch": 0}, "micro_batch must be a whole number"),
        ({"augmentations": 0}, "augmentations must be a whole number"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(changes, message):
    with pytest.raises(InputError, match=message) as refusal:
        private(**changes)
    assert "\n" not in str(refusal.value)


def test_a_failure_quotes_no_private_target():
    X, y = records()

    def later(record):  # the first record is read before the first step, to see its shape
        reads.append(1)
        if len(reads) > 8:
            raise KeyError(float(record[0]))
        return record

    reads = []
    made, _ = private(dataset=(X, y), augment=later)
    failures = []
    with pytest.raises(
        InputError, match="clipped sum of a step failed: KeyError, whose message is not"
    ) as failure:
        made.step()
    failures.append(failure)
    with pytest.raises(InputError, match="reading the first record failed: KeyError") as failure:
        private(dataset=(X, y), augment=later)
    failures.append(failure)
    for failure in failures:
        assert "." not in str(failure.value).replace("...", "")
        assert failure.value.__cause__ is None
        assert failure.value.__context__ is None


class Items:
    """Records that are read one at a time; who reads an item of nobody learns of it."""

    def __init__(self, X, y, forbidden=()):
        self.X, self.y, self.forbidden = X, y, forbidden

    def __len__(self):
        return len(self.X)

    def __getitem__(self, row):
        assert row not in self.forbidden
        return self.X[row], self.y[row]


def labels(**wrong):
    y = records()[1].clone()
    for row, label in wrong.items():
        y[int(row[3:])] = label
    return y


@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize(
    ("y", "loss", "said"),
    [
        (labels(row50=3), None, r"none of the 3 classes .*0 to 2.*record 51 "),
        (labels(row50=-3), nn.CrossEntropyLoss(), "record 51 "),
        (labels(row50=-100, row51=1), None, None),  # left out, as PyTorch does
        (records()[1].float(), None, r"torch.float32: convert them.*\.long"),
        (records()[1][:, None], None, r"shape \(1,\)"),
        (F.one_hot(records()[1]).float(), None, None),  # probabilities
        (
            records()[1],
            F.binary_cross_entropy_with_logits,
            "shape .3,.. and a target .* failed: ValueError",
        ),
        (torch.zeros(120, 3), F.mse_loss, None),
    ],
)
def test_every_target_is_looked_at_before_the_first_step(y, loss, said, items):
    X, _ = records()
    data = Items(X, y) if items else (X, y)
    if said is None:
        private(dataset=data, loss=loss)[0].step()
        return
    with pytest.raises(InputError, match=said) as refusal:
        private(dataset=data, loss=loss)
    assert "\n" not in str(refusal.value)


def test_nothing_is_read_of_who_granted_nothing():
    policy = cg.Policy({"none": 0, "some": 1e3})
    its = policy.assign(["none", "some", "some"] * 40)
    plan = plan_dpsgd({"some": its.groups["some"]}, {"some": 80}, steps=1)
    X, _ = records()
    nobody = set(range(0, 120, 3))
    private(its, plan, Items(X, labels(row0=9), nobody))[0].step()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"plan": {"high": 1.0}}, "plan must be of type DPSGDPlan, got one of type dict.*plan_dpsgd"),
        ({"its": [1.0] * 120}, "budgets must be of type Budgets, got one of type list"),
        ({"network": "linear"}, "module must be of type Module"),
        ({"optimiser": 0.1}, "optimiser must be of type Optimizer"),
        ({"loss": "mse"}, "loss must be a function"),
        ({"augment": "flip"}, "augment must be a function"),
        ({"charge": 3}, "charge must be a function"),
        ({"seed": "one"}, "noise_seed must be a whole number"),
        ({"seed": -1}, "noise_seed must be a whole number"),
        ({"dataset": 7}, "type int, has no positions"),
        ({"dataset": pd.DataFrame(np.zeros((120, 5)))}, "type DataFrame, has no positions"),
        ({"dataset": (records()[0], ["one"] * 120)}, "making a tensor failed: ValueError"),
        ({"dataset": [(record, "one") for record in records()[0]]}, "numbers or tensors"),
        ({"dataset": (records()[0].double(), records()[1])}, r"records are torch.float64.*X.float\(\)"),
    ],
)  # fmt: skip
def test_what_is_of_another_type_is_refused_in_one_line(changes, message):
    its = changes.get("its", budgets())
    network = changes.get("network", nn.Linear(4, 3))
    given = {
        "module": network,
        "optimiser": changes.get("optimiser", torch.optim.SGD(nn.Linear(4, 3).parameters(), 0.1)),
        "dataset": changes.get("dataset", records()),
        "plan": changes.get("plan", plan_of(budgets())),
    }
    if isinstance(network, nn.Module) and "optimiser" not in changes:
        given["optimiser"] = torch.optim.SGD(network.parameters(), lr=0.1)
    others = {name: changes[name] for name in ("loss", "augment", "charge") if name in changes}
    with pytest.raises(InputError, match=message) as refusal:
        cg.individual_dpsgd(
            **given, budgets=its, max_grad_norm=0.5, noise_seed=changes.get("seed"), **others
        )
    assert "\n" not in str(refusal.value)


def test_a_plan_by_which_somebody_would_pay_more_than_granted_is_refused():
    """Its budgets are those of the people, and its noise, clips or rates are not those of its budgets."""
    its = budgets(times=1)
    full = plan_dpsgd(its.groups, its.public_sizes(), steps=20)
    sampled = plan_dpsgd(
        its.groups, its.public_sizes(), steps=20, kind="scale", rate=0.2, accountant="rdp"
    )
    louder = {n: replace(g, clip=g.clip * 1.001) for n, g in full.groups.items()}
    oftener = {n: replace(g, rate=0.25) for n, g in sampled.groups.items()}
    for plan in (full, sampled):
        assert not plan.over_budget
        private(its, plan)
    for plan in (
        replace(full, noise=full.noise * 0.999),
        replace(full, steps=21),
        replace(full, groups=louder),
        replace(sampled, groups=oftener),
    ):
        for use in (private, lambda its, plan: cg.opacus_terms(plan, its, 0.5)):
            with pytest.raises(InputError, match="each owner of group 'high' would spend"):
                use(its, plan)


def test_a_plan_for_other_budgets_and_an_optimiser_of_another_module_are_refused():
    its, (X, y) = budgets(), records(len(budgets()))
    stricter = cg.Policy({"high": 0.1, "average": 0.2, "low": 0.3}).assign(its.record_groups())
    net = nn.Linear(4, 3)
    optimiser = torch.optim.SGD(net.parameters(), lr=1.0)
    with pytest.raises(InputError, match="plan with budgets"):
        cg.individual_dpsgd(
            net, optimiser, (X, y), plan_of(its), budgets=stricter, max_grad_norm=0.5
        )
    other = torch.optim.SGD(nn.Linear(4, 3).parameters(), lr=1.0)
    with pytest.raises(InputError, match="optimiser does not hold"):
        cg.individual_dpsgd(net, other, (X, y), plan_of(its), budgets=its, max_grad_norm=0.5)

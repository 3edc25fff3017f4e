"""Networks in which records meet are refused, with the layer that does it; others are left as they were."""

import copy

import pytest
import torch
from torch import nn

from collegium.dpsgd.networks.mixing import refuse_mixing
from collegium.errors import InputError


class Centred(nn.Module):
    def forward(self, x):
        return x - x.mean(0)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen += x.abs().sum()
        return x


IMAGE, VECTOR, SERIES = torch.zeros(3, 8, 8), torch.zeros(6), torch.zeros(3, 6)


@pytest.mark.parametrize(
    ("module", "record", "message"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), IMAGE,
         r"BatchNorm2d \('1'\) mixes.*GroupNorm"),
        (nn.Sequential(nn.Linear(6, 4), nn.SyncBatchNorm(4)), VECTOR, "SyncBatchNorm .* mixes"),
        (nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)).eval(), VECTOR, "BatchNorm1d .* mixes"),
        (nn.Sequential(nn.InstanceNorm2d(3, track_running_stats=True), nn.Flatten(), nn.Linear(192, 2)),
         IMAGE, "running statistics.*track_running_stats=False"),
        (nn.Sequential(nn.Linear(6, 4), nn.Sequential(nn.Tanh(), Centred()), nn.Linear(4, 2)),
         VECTOR, r"Centred \('1\.1'\) mixes the records"),
        (nn.Sequential(nn.Linear(6, 4), nn.Softmax(0)), VECTOR, r"Softmax \('1'\) mixes"),
        (nn.LSTM(6, 2), SERIES, "one tensor with a row for each record"),
        (nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0), nn.Flatten()), SERIES,
         "(MultiheadAttention|TransformerEncoderLayer).* mixes"),
        (nn.Sequential(nn.Linear(6, 4), Counting()), VECTOR, "changes its buffer '1.seen'"),
        (nn.Sequential(nn.LazyLinear(4)), VECTOR, "apply it to a public record once"),
        (nn.Sequential(nn.Linear(5, 4)), VECTOR, "cannot be applied to random numbers"),
        (nn.Sequential(nn.Linear(6, 4), nn.Flatten(0)), VECTOR, "row for each record, got"),
    ],
)  # fmt: skip
def test_refused_in_one_line_that_names_the_layer(module, record, message):
    with pytest.raises(InputError, match=message) as refusal:
        refuse_mixing(module, record)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("module", "record"),
    [
        (nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Dropout(0.5), nn.Flatten()), IMAGE),
        (nn.Sequential(nn.InstanceNorm2d(3), nn.Flatten(), nn.Linear(192, 2)), IMAGE),
        (nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(18, 2)), torch.zeros(6).long()),
        (nn.Sequential(nn.TransformerEncoderLayer(6, 2, 8, batch_first=True), nn.Flatten(),
                       nn.Linear(18, 2)), SERIES),
    ],
)  # fmt: skip
def test_records_apart_are_accepted_and_nothing_is_changed(module, record):
    before, random = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    refuse_mixing(module, record)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert torch.equal(random, torch.get_rng_state())
    assert not any(layer._forward_hooks for layer in module.modules())


def test_buffers_are_as_before_when_a_network_is_refused():
    module = nn.Sequential(nn.Linear(6, 4), Counting())
    with pytest.raises(InputError):
        refuse_mixing(module, VECTOR)
    assert module[1].seen.item() == 0

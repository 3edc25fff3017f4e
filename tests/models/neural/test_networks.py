"""The seeds' network is what their table says; the others are what they promise."""

import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from collegium.errors import InputError  # noqa: E402
from collegium.models.neural.networks import mlp, seed_cnn, small_cnn  # noqa: E402


def test_seed_cnn_is_the_table():
    network = seed_cnn(10)
    assert [type(layer) for layer in network] == [
        nn.Conv2d, nn.ReLU, nn.BatchNorm2d, nn.MaxPool2d, nn.Flatten,
        nn.Linear, nn.ReLU, nn.BatchNorm1d, nn.Linear,
    ]  # fmt: skip
    convolution, hidden, output = network[0], network[5], network[8]
    assert (convolution.out_channels, convolution.kernel_size) == (32, (3, 3))
    assert (convolution.padding, network[3].kernel_size) == ((0, 0), 2)
    assert (hidden.in_features, hidden.out_features) == (13 * 13 * 32, 100)
    assert (output.in_features, output.out_features) == (100, 10)
    for layer in (network[2], network[7]):  # TensorFlow 2.4: momentum 0.99, epsilon 1e-3
        assert layer.momentum == pytest.approx(0.01)
        assert layer.eps == 1e-3


def test_weights_are_he_uniform_and_glorot_uniform():
    torch.manual_seed(0)
    network = seed_cnn(10)
    limits = {
        0: math.sqrt(6 / 9),  # He: fan in
        5: math.sqrt(6 / (13 * 13 * 32)),
        8: math.sqrt(6 / (100 + 10)),  # Glorot: fan in and fan out
    }
    for number, limit in limits.items():
        weights = network[number].weight.detach()
        assert weights.abs().max() <= limit
        assert weights.abs().max() > 0.95 * limit
        # The standard error of a uniform variable's mean square is 0.3 of it over the root of n.
        spread = 5 * 0.9 / math.sqrt(weights.numel())
        assert float(weights.square().mean()) == pytest.approx(limit**2 / 3, rel=spread)
        assert (network[number].bias == 0).all()


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 11, 14), (2, 12, 11)])
def test_networks_take_images_of_other_shapes(shape):
    x = torch.rand(3, *shape)
    for factory in (seed_cnn, small_cnn, mlp):
        assert factory(7, shape)(x).shape == (3, 7)


def test_small_cnn_has_few_parameters():
    count = {
        factory: sum(parameter.numel() for parameter in factory(10, (1, 28, 28)).parameters())
        for factory in (seed_cnn, small_cnn)
    }
    assert count[small_cnn] < count[seed_cnn] / 10


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: seed_cnn(10, (28, 28)), "input_shape=(28, 28)"),
        (lambda: seed_cnn(10, (1, 3, 28)), "at least 4 × 4"),
        (lambda: seed_cnn(0), "n_classes must be a whole number of at least 1, got 0"),
        (lambda: small_cnn(10, (1, 10, 28)), "at least 11 × 11"),
        (lambda: small_cnn(10, width=0), "width must be a whole number of at least 1, got 0"),
        (lambda: mlp(2, (0,)), "every size"),
        (lambda: mlp(2, (3,), hidden=(4, 0)), "every size"),
        (lambda: mlp(2, (3,), dropout=1.0), "dropout must be at least 0 and below 1, got 1.0"),
    ],
)
def test_sizes_that_cannot_be(make, said):
    with pytest.raises(InputError) as caught:
        make()
    assert said in str(caught.value)

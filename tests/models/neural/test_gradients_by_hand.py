"""Gradients written by hand are PyTorch's own, for chains of layers drawn at random."""

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import nn  # noqa: E402

from collegium.models.neural.blueprint import draw_up  # noqa: E402
from collegium.models.neural.by_hand.convolution import ConvolutionLayer  # noqa: E402
from collegium.models.neural.stacks import StepInput  # noqa: E402

CPU = torch.device("cpu")


def convolution(draw, channels):
    return nn.Conv2d(
        channels,
        draw(st.integers(1, 5)),
        draw(st.sampled_from([1, 2, 3, (3, 2)])),
        stride=draw(st.sampled_from([1, 2, (1, 2)])),
        padding=draw(st.sampled_from([0, 1, (1, 0)])),
        bias=draw(st.booleans()),
    )


@st.composite
def chains(draw):
    """An image network: some layers for planes, flattened, some for vectors."""
    shape = (draw(st.integers(1, 3)), draw(st.integers(9, 12)), draw(st.integers(9, 12)))
    layers = []
    channels = shape[0]
    for kind in draw(st.lists(st.sampled_from("crnmagt"), max_size=5)):
        if kind == "c":
            layers.append(convolution(draw, channels))
            channels = layers[-1].out_channels
        layers += {
            "c": [],
            "r": [nn.ReLU()],
            "n": [nn.BatchNorm2d(channels, momentum=0.3)],
            "m": [nn.BatchNorm2d(channels, eps=1e-2), nn.MaxPool2d(2, stride=1)],
            "a": [nn.AvgPool2d(2, stride=1)],
            "g": [nn.GELU()],
            "t": [nn.BatchNorm2d(channels, affine=False), nn.ReLU()],
        }[kind]
    layers.append(nn.Flatten())
    units = nn.Sequential(*layers).eval()(torch.zeros(1, *shape)).shape[1]
    for kind in draw(st.lists(st.sampled_from("lLrs"), max_size=3)):
        if kind in "lL":
            layers.append(nn.Linear(units, 6, bias=kind == "l"))
            units = 6
            layers.append(nn.BatchNorm1d(6, affine=kind == "l"))
        layers += {"l": [], "L": [], "r": [nn.ReLU()], "s": [nn.SiLU()]}[kind]
    layers.append(nn.Linear(units, 3))
    return shape, nn.Sequential(*layers)


def differences(network, shape, sizes, seed):
    """Compare gradients, running averages and answers with PyTorch's, in units of their largest."""
    import copy

    torch.manual_seed(seed)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d) and module.affine:
            nn.init.uniform_(module.weight, -0.2, 1.5)  # also scales that turn the order around
    blueprint = draw_up(lambda n_classes, input_shape: copy.deepcopy(network), 3, shape)
    assert blueprint.method == "by hand"
    stack = blueprint.stack(len(sizes), CPU)
    for row in range(len(sizes)):
        stack.put(row, *blueprint.initial(row))
        stack.trained[row] += 0.1 * torch.randn(blueprint.layout.n_trained)
    # Two steps, so that memory that is kept from one to the next is seen to be harmless.
    found = []
    for _ in range(2):
        x = torch.randn(len(sizes), max(sizes), *shape)
        y = torch.randint(0, 3, x.shape[:2])
        plain = [blueprint.module(stack.trained[row], stack.buffers[row]) for row in range(len(x))]
        stack.backpropagate(x, F.one_hot(y, 3).float(), StepInput(list(sizes)))
        for row, (module, size) in enumerate(zip(plain, sizes, strict=True)):
            F.cross_entropy(module.train()(x[row, :size]), y[row, :size]).backward()
            ours = blueprint.layout.unpack(stack.gradients[row], stack.buffers[row])
            largest = max(float(p.grad.abs().max()) for p in module.parameters())
            for name, parameter in module.named_parameters():
                found.append(float((parameter.grad - ours[name]).abs().max()) / max(largest, 1e-3))
            for name, buffer in module.named_buffers():
                if buffer.is_floating_point():
                    found.append(float((buffer - ours[name]).abs().max()))
            answers = module.eval()(x[row]) - stack.logits(x)[row]
            found.append(float(answers.detach().abs().max()))
    return found


@settings(max_examples=15)
@given(
    chain=chains(),
    sizes=st.sampled_from([(5,), (4, 4), (6, 3, 5)]),
    seed=st.integers(0, 10**6),
)
def test_any_chain_of_layers(chain, sizes, seed):
    shape, network = chain
    assert max(differences(network, shape, sizes, seed)) < 2e-3


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("way", ["matrices", "singly", None])
@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1}, {"dilation": 2, "bias": False}, {"stride": (2, 1)}],
)
def test_every_way_to_convolve(way, options, wanted):
    torch.manual_seed(0)
    module = nn.Conv2d(2, 4, (3, 2), **options)
    as_matrices = None if way is None else way == "matrices"
    layer = ConvolutionLayer(module, CPU, torch.float32, as_matrices)
    k = 1 if way is None else 2
    kept = lambda tensor: tensor.permute(0, 2, 3, 1).contiguous().expand(k, -1, -1, -1, -1)  # noqa: E731
    values = {"weight": kept(module.weight.detach()).contiguous()}
    gradients = {"weight": torch.zeros_like(values["weight"])}
    if module.bias is not None:
        values["bias"] = module.bias.detach().expand(k, -1).contiguous()
        gradients["bias"] = torch.zeros_like(values["bias"])
    layer.see(values, gradients)
    x = torch.randn(k, 3, 2, 9, 8)
    out = layer.forward(x.permute(0, 1, 3, 4, 2).contiguous(), None)
    for_out = torch.randn_like(out)
    for_x = layer.backward(for_out.clone(), wanted)
    for row in range(k):
        own = x[row].clone().requires_grad_()
        module.zero_grad()
        expected = module(own)
        expected.backward(for_out[row].permute(0, 3, 1, 2))
        close = {"rtol": 1e-4, "atol": 1e-4}
        assert torch.allclose(out[row].permute(0, 3, 1, 2), expected, **close)
        assert torch.allclose(
            gradients["weight"][row].permute(0, 3, 1, 2), module.weight.grad, **close
        )
        if module.bias is not None:
            assert torch.allclose(gradients["bias"][row], module.bias.grad, **close)
        if wanted:
            assert torch.allclose(for_x[row].permute(0, 3, 1, 2), own.grad, **close)


def test_order_of_a_flattened_image_matters_only_where_it_is_kept():
    """Batch normalisation straight behind an image has parameters per place: not done by hand."""
    import copy

    network = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(2 * 9 * 9), nn.Linear(2 * 9 * 9, 3))
    blueprint = draw_up(lambda n, shape: copy.deepcopy(network), 3, (2, 9, 9))
    assert blueprint.method == "mapped"

"""How networks of one kind are batched: looked up once, before any record is seen."""

from __future__ import annotations

import copy
import functools
import logging
import math
import textwrap
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from collegium.errors import ModelError
from collegium.models.neural.layer_choice import images_behind, layers_by_hand
from collegium.models.neural.layout import Layout
from collegium.models.neural.networks import Factory
from collegium.models.neural.randomness import DropoutPlace, replace_dropout, seeded
from collegium.models.neural.stacks import Functional, HandBatched, Stack, StepInput

_LOGGER = logging.getLogger(__name__)


@dataclass
class Blueprint:
    """A kind of network, and how it is batched.

    ``layout``: how it lies in a row.
    ``places``: the masks that a training step needs.
    ``method``: layers of our own; ``torch.func.vmap``; or one teacher after another.
    ``activations``: numbers that one record leaves behind in a forward pass.
    """

    factory: Factory
    n_classes: int
    input_shape: tuple[int, ...]
    layout: Layout
    places: list[DropoutPlace]
    method: str
    activations: int
    precision: torch.dtype
    _network: nn.Module

    @property
    def description(self) -> str:
        """What kind of network it is, in full."""
        return (
            f"{self._network!r} {self.input_shape} {self.n_classes} {self.precision} {self.method}"
        )

    def initial(self, seed: int) -> tuple[Tensor, Tensor]:
        """Make the rows of a new network from a seed."""
        with seeded(seed):
            state = _make(self.factory, self.n_classes, self.input_shape).state_dict()
        return self.layout.pack(state)

    def stack(self, rows: int, device: torch.device) -> Stack:
        """Make room for networks."""
        if self.method == "by hand":
            layers = layers_by_hand(self._network, self.input_shape, device, self.precision)
            assert layers is not None
            return HandBatched(self.layout, rows, device, layers)
        # A copy: calling a network with given parameters changes it for the time of the call.
        network = copy.deepcopy(self._network)
        singly = self.method == "singly"
        return Functional(self.layout, rows, device, network, self.precision, singly)

    def module(self, trained: Tensor, buffers: Tensor) -> nn.Module:
        """Make an ordinary network of two rows."""
        with seeded(0):
            network = _make(self.factory, self.n_classes, self.input_shape)
        network.load_state_dict(self.layout.unpack(trained, buffers), strict=False)
        return network.eval()


def draw_up(
    factory: Factory,
    n_classes: int,
    input_shape: tuple[int, ...],
    precision: torch.dtype = torch.float32,
    by_hand: bool = True,
) -> Blueprint:
    """Look at a kind of network, check it, and choose how to batch it.

    ``factory``: ``factory(n_classes, input_shape)``.
    ``n_classes``: length of the public list of classes.
    ``by_hand``: whether layers of our own may be used where they can.
    Returns: a blueprint for any number of stacks.
    """
    with seeded(0):
        network = _make(factory, n_classes, input_shape)
    outputs = _check_output(network, n_classes, input_shape)
    x = torch.zeros(2, *input_shape)
    masked, places = replace_dropout(network, x)
    layers = None
    if by_hand:
        layers = layers_by_hand(network, input_shape, torch.device("cpu"), precision)
    flattened = {} if layers is None else images_behind(network, input_shape)
    made = Blueprint(
        factory,
        n_classes,
        input_shape,
        Layout(network, flattened),
        places,
        "mapped" if layers is None else "by hand",
        outputs,
        precision,
        masked if layers is None else network,
    )
    if made.method == "mapped":
        _try_out(made)
    return made


def _make(factory: Factory, n_classes: int, input_shape: tuple[int, ...]) -> nn.Module:
    name = getattr(factory, "__name__", type(factory).__name__)
    try:
        network = factory(n_classes, input_shape)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"the network factory {name!r} failed for n_classes={n_classes} and "
            f"input_shape={input_shape}: {type(error).__name__}: {error}"
        ) from None
    if not isinstance(network, nn.Module):
        raise ModelError(
            f"the network factory {name!r} returned {type(network).__name__}; it must return a "
            "torch.nn.Module"
        )
    return network


def _check_output(network: nn.Module, n_classes: int, input_shape: tuple[int, ...]) -> int:
    """Ask the network about blank records; return how many numbers one leaves behind."""
    seen = [math.prod(input_shape)]

    def count(module: nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and not list(module.children()):
            seen.append(output.numel() // 2)

    handles = [module.register_forward_hook(count) for module in network.modules()]
    was_training = network.training
    try:
        with torch.no_grad():
            result = network.eval()(torch.zeros(2, *input_shape))
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else ""
        raise ModelError(
            f"the network does not take records of shape {input_shape}: "
            f"{type(error).__name__}: {reason}; give input_shape, or a network that fits"
        ) from None
    finally:
        network.train(was_training)
        for handle in handles:
            handle.remove()
    shape = tuple(result.shape) if isinstance(result, Tensor) else type(result).__name__
    if shape != (2, n_classes):
        raise ModelError(
            f"the network returns {shape} for 2 records; it must return one number per record and "
            f"class, {(2, n_classes)}: its output size must be the number of classes, {n_classes}"
        )
    return sum(seen)


def _try_out(blueprint: Blueprint) -> None:
    """Take a training step on blank records, and do without what does not work."""
    trouble = _trouble(blueprint)
    if trouble and blueprint.precision != torch.float32:
        _tell_once(
            blueprint.description,
            f"this network cannot be batched in {blueprint.precision}: using float32",
        )
        blueprint.precision = torch.float32
        trouble = _trouble(blueprint)
    if trouble:
        _tell_once(
            blueprint.description,
            f"this network cannot be batched ({textwrap.shorten(trouble, 120)}): its teachers are trained "
            "one after another",
        )
        blueprint.method = "singly"


@functools.cache
def _tell_once(network: str, message: str) -> None:
    """Log what is true of a network once: it is looked at anew for each batch of teachers and voting."""
    _LOGGER.warning(message)


def _trouble(blueprint: Blueprint) -> str:
    stack = blueprint.stack(2, torch.device("cpu"))
    for row in range(2):
        stack.put(row, *blueprint.initial(row))
    x = torch.zeros(2, 3, *blueprint.input_shape)
    targets = torch.full((2, 3, blueprint.n_classes), 1 / blueprint.n_classes)
    masks = {f"{place.name}.mask": torch.ones(2, 3, *place.units) for place in blueprint.places}
    try:
        stack.backpropagate(x, targets, StepInput([3, 3], masks))
        stack.logits(x)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""

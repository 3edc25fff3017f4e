"""Networks that were trained elsewhere: made anew, filled with a state that was read, and asked.

A state is read without running anything of its file. A factory is looked at before it is called, and makes a
network that lends its numbers to nobody: each record's features are computed with nothing else beside it, or
in blocks of one size.
"""

from __future__ import annotations

import inspect
import io
import threading
import typing
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from collegium.checks import listed, nearest
from collegium.errors import ConfigError, InputError
from collegium.models.installed import find_installed
from collegium.models.neural import networks
from collegium.models.neural.groups import in_threads
from collegium.models.neural.inputs import as_records
from collegium.models.neural.machine import find_machine
from collegium.models.neural.neural_classifier import NETWORKS
from collegium.models.neural.randomness import seeded

State = dict[str, NDArray[Any]]
_EXAMPLE = "torchvision.models.resnet18"
_ENDINGS = (".pt", ".pth", ".safetensors")
_SHOWN = 3  # keys, of each kind
_COUNTERS = (
    "num_batches_tracked"  # of batch normalisation; old states lack them, and nothing needs them
)
_TASK = 64  # blocks that one thread does in a row
_BORROWS = ("weights", "pretrained")  # what libraries call parameters that fetch weights of theirs


def find_factory(name: str) -> Callable[..., Any]:
    """Find what makes networks of a kind, by the catalogue's name or the full name of something installed.

    It is looked at, and not called.

    Raises ConfigError if there is none, or it is not known to make networks.

    Examples
    --------
    >>> find_factory("small-cnn").__name__, find_factory("torch.nn.Linear").__name__
    ('small_cnn', 'Linear')
    """
    if name in NETWORKS:
        return typing.cast(Callable[..., Any], getattr(networks, name.replace("-", "_")))
    if "." not in name:
        raise ConfigError(
            f"network: {name!r} is not known: {nearest(name, NETWORKS)}; or give the full name of a class "
            f"or function such as {_EXAMPLE}"
        )
    found = find_installed(
        "network", name, kind="network", thing="class or function", example=_EXAMPLE
    )
    return require_factory(found, name)


def require_factory(found: Any, name: str) -> Callable[..., Any]:
    """Refuse what is not known, by looking at it, to make networks: nothing else is ever called."""
    returned = found
    if inspect.isfunction(found):
        try:
            returned = typing.get_type_hints(found).get("return")
        except Exception:  # a name in somebody's annotation that is not there
            returned = None
    if not (inspect.isclass(returned) and issubclass(returned, nn.Module)):
        raise ConfigError(
            f"network: {name!r} is not called, since it is neither a class of torch.nn.Module nor a function "
            "that is annotated to return one: name such a class, or write -> torch.nn.Module behind the "
            "function's parameters"
        )
    return typing.cast(Callable[..., Any], found)


def read_state(content: bytes, name: str) -> State:
    """Read a network's state, without running anything of it.

    ``content``: of the file; ``name``: what it is called, by whose ending its format is known.
    Raises InputError if it is no state, or holds anything but finite numbers.
    """
    ending = Path(name).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(
            f"weights names {name}; allowed are files that end in {', '.join(_ENDINGS)}: write one with "
            "torch.save(network.state_dict(), FILE)"
        )
    found = _from_safetensors(content, name) if ending == ".safetensors" else _saved(content, name)
    _require_state(found, name)
    state = {key: _array(tensor) for key, tensor in found.items()}
    bad = [key for key, array in state.items() if not np.isfinite(array).all()]
    if bad:
        raise InputError(
            f"weights names {name}, which holds NaN or infinity in {_some(bad)}: that training failed; give "
            "a state of finite numbers"
        )
    return state


def _saved(content: bytes, name: str) -> Any:
    reason = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about how it was pickled
            return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # a file that somebody made up may fail anywhere
        reason = type(error).__name__
    raise InputError(
        f"weights names {name}, which holds no state that can be read without running code ({reason}; "
        "nothing of it was run): write one with torch.save(network.state_dict(), FILE)"
    )


def _from_safetensors(content: bytes, name: str) -> Any:
    try:
        load = import_module("safetensors.torch").load
    except ImportError:
        raise InputError(
            f"weights names {name}, and the library for such files is not installed: pip install "
            "safetensors, or give a file of torch.save"
        ) from None
    try:
        return load(content)
    except Exception as error:
        raise InputError(
            f"weights names {name}, which is no file of safetensors ({type(error).__name__}): get it again"
        ) from None


def _require_state(found: Any, name: str) -> None:
    if isinstance(found, Mapping):
        inner = [key for key, value in found.items() if isinstance(value, Mapping)]
        if inner:
            raise InputError(
                f"weights names {name}, in which more stands than a state (under {_some(inner)}): save the "
                f"state alone, as in torch.save(torch.load(FILE)[{str(inner[0])!r}], OTHER)"
            )
        if found and all(_is_numbers(key, value) for key, value in found.items()):
            return
    raise InputError(
        f"weights names {name}, which holds a {type(found).__name__} and no state, a table of names with "
        "arrays of numbers: write one with torch.save(network.state_dict(), FILE)"
    )


def _is_numbers(key: Any, value: Any) -> bool:
    plain = isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized
    return isinstance(key, str) and plain and not value.is_complex()


def _array(tensor: Tensor) -> NDArray[Any]:
    plain = tensor.detach().to("cpu")
    return (plain.float() if plain.is_floating_point() else plain).numpy().copy()


class PretrainedNetwork:
    """A network with a state of its own, which says of each record what one of its layers makes of it.

    ``factory``: makes networks of its kind; ``name``: what messages call that.
    ``given``: arguments of the factory.
    ``state``: of its parameters and buffers.
    ``shape``: of a record.
    ``layer``: name of the module whose output is taken; None: what enters the last linear layer.
    ``device``: as :func:`~collegium.models.neural.machine.find_machine` takes it.
    Raises InputError if the state is another network's, or the network does not take such records.
    """

    def __init__(
        self,
        factory: Callable[..., Any],
        name: str,
        given: Mapping[str, Any],
        state: State,
        shape: tuple[int, ...],
        layer: str | None,
        device: str = "auto",
    ) -> None:
        self._name, self._shape = name, shape
        self._machine = find_machine(device)
        network = _made(require_factory(factory, name), name, given)
        _fill(network, name, state)
        self._network = network.eval().to(self._machine.device)
        self._seen = threading.local()
        self.width = self._listen(layer)

    def _listen(self, layer: str | None) -> int:
        """Find the layer, let it tell what it makes, and count its numbers; on a blank record."""
        modules = dict(self._network.named_modules())
        if layer is None:
            called: list[str] = []
            hooks = [
                module.register_forward_pre_hook(lambda *_, name=name: called.append(name))
                for name, module in modules.items()
                if isinstance(module, nn.Linear)
            ]
            try:
                self._tried()
            finally:
                for hook in hooks:
                    hook.remove()
            if not called:
                raise InputError(
                    f"layer was left out, and the network {self._name!r} has no linear layer before which to "
                    f"look: name one of {listed(_named(modules))}"
                )
            modules[called[-1]].register_forward_pre_hook(self._hear_input)
        elif layer in modules and layer:
            modules[layer].register_forward_hook(self._hear_output)
        else:
            raise InputError(
                f"layer={layer!r} is not in the network {self._name!r}: "
                f"{nearest(layer, _named(modules))}; left out, it is what enters the last linear layer"
            )
        self._seen.made = None
        self._tried()
        made = self._seen.made
        if not isinstance(made, Tensor) or made.ndim < 2 or len(made) != 1:
            what = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
            raise InputError(
                f"layer={layer!r} of the network {self._name!r} makes {what} of one record, and no row of "
                "numbers: name another layer"
            )
        return int(made[0].numel())

    def _hear_input(self, module: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._seen.made = inputs[0] if inputs else None

    def _hear_output(self, module: nn.Module, inputs: object, output: Any) -> None:
        self._seen.made = output

    def _tried(self) -> None:
        try:
            with torch.inference_mode():
                self._network(torch.zeros(1, *self._shape, device=self._machine.device))
        except Exception as error:  # about a blank record: it quotes nothing of anybody
            reason = " ".join(str(error).split())[:150]
            raise InputError(
                f"the network {self._name!r} does not take records of shape {self._shape} "
                f"({type(error).__name__}: {reason}): give records as it was trained on, input_shape, or "
                "another network"
            ) from None

    def features(
        self, X: Any, n: int, scaled: Callable[[NDArray[np.float32]], Any], batch_size: int
    ) -> NDArray[np.float32]:
        """Compute the features of records, in blocks of one size.

        ``X`` (n, ...): records, which can be sliced.
        ``scaled``: brings records to the scale on which the network was trained.
        ``batch_size``: records in a block; the last one is filled up with blank ones.
        Returns (n, n_features).

        Notes
        -----
        On a processor each block is computed on one core: threads inside an operation add in another order.
        """
        made = np.empty((n, self.width), dtype=np.float32)
        step = batch_size * _TASK
        starts = [[start] for start in range(0, n, step)]

        def show(group: list[int]) -> None:
            for first in range(group[0], min(group[0] + step, n), batch_size):
                records = scaled(as_records(X[first : first + batch_size], self._shape))
                made[first : first + len(records)] = self._block(records, batch_size)

        threads = self._machine.threads if self._machine.device.type == "cpu" else 1
        for _ in in_threads(show, starts, threads):
            pass
        return made

    def _block(self, records: NDArray[np.float32], size: int) -> NDArray[np.float32]:
        block = torch.zeros(size, *self._shape)
        block[: len(records)] = torch.from_numpy(records)
        try:
            with torch.inference_mode():
                self._network(block.to(self._machine.device))
        except torch.OutOfMemoryError:
            raise InputError(
                f"a block of {size} records does not fit into the GPU's memory: lower batch_size, or set "
                "device='cpu'"
            ) from None
        made = self._seen.made[: len(records)].flatten(1).float().cpu().numpy()
        return typing.cast(NDArray[np.float32], made)


def arguments(
    factory: Callable[..., Any], params: Mapping[str, Any], state: State, shape: tuple[int, ...]
) -> dict[str, Any]:
    """Say with what a factory is called; those of the catalogue need to know classes and records.

    Raises InputError if a parameter would fetch weights from elsewhere.
    """
    borrowed = [name for name in _BORROWS if params.get(name)]
    if borrowed:
        raise InputError(
            f"params names {borrowed[0]}, and what fills the network is the file of weights alone: remove it"
        )
    if factory.__module__ != networks.__name__:
        return dict(params)
    rows = [len(array) for array in state.values() if array.ndim == 2]
    return {"n_classes": rows[-1] if rows else 1, "input_shape": shape, **params}


def _made(factory: Callable[..., Any], name: str, given: Mapping[str, Any]) -> nn.Module:
    try:
        with seeded(0):
            made: nn.Module = factory(**given)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"the network {name!r} cannot be made with these params ({type(error).__name__}: {reason}): "
            "correct params"
        ) from None
    return made


def _fill(network: nn.Module, name: str, state: State) -> None:
    """Give a network its state, if it is its own."""
    own = network.state_dict()
    differences = {
        "missing": [key for key in own if key not in state and not key.endswith(_COUNTERS)],
        "not of it": [key for key in state if key not in own],
        "of another shape": [
            f"{key} {state[key].shape} for {tuple(own[key].shape)}"
            for key in own
            if key in state and state[key].shape != tuple(own[key].shape)
        ],
    }
    said = "; ".join(f"{what}: {_some(keys)}" for what, keys in differences.items() if keys)
    if said:
        raise InputError(
            f"weights holds a state of another network than {name!r} ({said}): name the network that it was "
            "saved from, with its params"
        )
    network.load_state_dict({key: torch.from_numpy(state[key]) for key in state}, strict=False)


def _named(modules: Mapping[str, nn.Module]) -> list[str]:
    return [name for name in modules if name]


def _some(names: Sequence[Any]) -> str:
    shown = ", ".join(str(name) for name in names[:_SHOWN])
    return f"{shown}, … ({len(names)} in all)" if len(names) > _SHOWN else shown

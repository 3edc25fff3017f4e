"""What travels to a cluster and back: tasks and results, packed so that no log can quote them.

Clusters write about the tasks that they run: their arguments, if one fails, with the values that stand in
them. Here these values are private records. So a task travels as a :class:`Parcel`, which shows its length
and nothing else, and a task that fails does so inside its parcel.
"""

from __future__ import annotations

import pickle
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import cloudpickle
from numpy.typing import NDArray

from collegium.errors import CollegiumError, InputError

_SAME = ("collegium", "numpy", "scipy", "scikit-learn", "pandas", "joblib")
_borrowed = threading.local()
_packing = threading.local()


@dataclass(frozen=True)
class Parcel:
    """Pickled content that no log shows."""

    content: bytes = field(repr=False)

    def __repr__(self) -> str:
        return f"<{len(self.content)} bytes>"

    def __len__(self) -> int:
        return len(self.content)


@dataclass(frozen=True)
class Failed:
    """A task ended with an error of its own, on a worker that lives."""

    error: Exception


@dataclass(frozen=True, eq=False)
class OpaquePayload:
    """Private content that stays on a worker between tasks, and that no log shows.

    ``content``: an array.
    """

    content: NDArray[Any] = field(repr=False)

    def __repr__(self) -> str:
        return f"<{self.content.nbytes} bytes>"

    def __sizeof__(self) -> int:
        return self.content.nbytes  # so that a scheduler knows what moving it would take


class LentPayload:
    """Records that many tasks read, given to workers once.

    ``value``: the records themselves, where the backend shares them by itself.
    ``number``: or: of the value that the cluster hands in beside the parcel.
    """

    def __init__(self, value: Any = None, number: int | None = None) -> None:
        self._value = value
        self.number = number

    def get(self) -> Any:
        """Return the records, on a worker."""
        return self._value if self.number is None else _borrowed.values[self.number]

    def __getstate__(self) -> dict[str, Any]:
        """Travel, and tell :func:`packed_with_lent` so."""
        if self.number is not None:
            getattr(_packing, "numbers", []).append(self.number)
        return self.__dict__


@lru_cache(maxsize=1)
def surroundings() -> dict[str, str]:
    """Tell the versions on which the bits of a teacher may depend.

    Examples
    --------
    >>> sorted(surroundings())[:2]
    ['collegium', 'joblib']
    """
    found = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in _SAME:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def packed(content: Any) -> Parcel:
    """Pack anything that can be pickled; classes of a script travel with it."""
    return Parcel(cloudpickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))


def packed_with_lent(content: Any) -> tuple[Parcel, list[int]]:
    """Pack anything; return also the numbers of what was lent that the content reads."""
    _packing.numbers = []
    parcel = packed(content)
    numbers, _packing.numbers = _packing.numbers, []
    return parcel, sorted(set(numbers))


def unpacked(parcel: Parcel) -> Any:
    """Open a parcel."""
    return pickle.loads(parcel.content)


def raised_on_the_way(parcel: Parcel) -> Any:
    """Open what :func:`run_parcel` returned, and raise the error that it may hold."""
    result = unpacked(parcel)
    if isinstance(result, Failed):
        raise result.error
    return result


def run_parcel(
    parcel: Parcel, expected: Mapping[str, str], numbers: Sequence[int] = (), *lent: Any
) -> Parcel:
    """Run a packed task, on a worker.

    ``parcel``: a function without arguments.
    ``expected``: :func:`surroundings` of who sent it.
    ``numbers``, ``lent``: values that :class:`LentPayload` objects in the task stand for.
    Returns: what the function returned, or :class:`Failed`. No error leaves a worker in any other
        way, since a cluster would log it.
    """
    here = surroundings()
    for name, wanted in expected.items():
        if here.get(name) != wanted:
            return packed(
                Failed(
                    InputError(
                        f"a worker of the cluster has {name} {here.get(name)}, here it is {wanted}, and "
                        "teachers could differ: install the same versions on all machines"
                    )
                )
            )
    _borrowed.values = dict(zip(numbers, lent, strict=True))
    try:
        task: Callable[[], Any] = unpacked(parcel)
        return packed(task())
    except CollegiumError as error:
        return packed(Failed(error.with_traceback(None)))
    except Exception as error:
        return packed(Failed(cannot_travel(error)))
    finally:
        _borrowed.values = {}


def cannot_travel(error: BaseException) -> InputError:
    """Say in one line why a task or result cannot be sent; the error's message is not shown."""
    missing = getattr(error, "name", None) if isinstance(error, ImportError) else None
    what = f"the module {missing!r} is missing there" if missing else type(error).__name__
    return InputError(
        f"a teacher cannot travel between this process and a worker ({what}): define its class in a module "
        "that is installed on all machines, or use --engine local --jobs 1"
    )

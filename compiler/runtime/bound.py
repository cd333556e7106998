"""A kernel whose constants are bound: a call takes the other arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from .adopt import adopt
from .arguments import ArgumentCheck
from .arrays import aligned_bytes
from .errors import ArgumentValueError, CallError
from .function import Function
from .ndarray import CPU

Array = np.ndarray[Any, Any]


class BoundFunction(Function):
    """A function that holds its constants, packed as its kernel reads them. Made by
    `Function.with_constants`.

    What it holds are copies, which no call changes: threads may call it at once, and what later becomes of
    the arrays that were given does not matter.
    """

    def __init__(self, base: Function, constants: Mapping[str, Any]) -> None:
        arrays = _copies(base, constants)
        addresses = ArgumentCheck(base.name, base.constants, what="constant")(arrays)
        packed = [aligned_bytes(w.bytes) for w in base.workspaces if w.is_packed and type(w.bytes) is int]
        base.pack_into(addresses, [p.ctypes.data for p in packed])
        self._base = base
        consumed = base.pack.consumed if base.pack is not None else ()
        read = [p.name not in consumed for p in base.constants]
        self._keep = ([a for a, used in zip(arrays, read, strict=True) if used], packed)
        pointers = [x if used else 0 for x, used in zip(addresses, read, strict=True)]
        self._fixed = (*pointers, *(p.ctypes.data for p in packed))
        super().__init__(
            base.name,
            [p for p in base.params if not p.is_constant],
            [w for w in base.workspaces if not w.is_packed],
            base.loaded,
            symbol=base.symbol,
            sizes=base.sizes,
            script=base.script,
            schedule_source=base.schedule_source,
            device=base.device,
        )
        self._order = itemgetter(*self._places())

    @property
    def unbound(self) -> Function:
        """The function that takes all arrays."""
        return self._base

    def with_constants(self, constants: Mapping[str, Any]) -> Function:
        """The same function with other constants."""
        return self._base.with_constants(constants)

    def _callable(self) -> Any:
        return self._base.kernel

    def _arguments(self, given: Sequence[Any]) -> Sequence[Any]:
        return self._order((*given, *self._fixed))  # type: ignore[no-any-return]

    def _places(self) -> list[int]:
        """For each argument of the kernel its place among those of a call and, behind them, what is fixed."""
        given = iter(range(len(self.params) + len(self.sizes) + len(self.workspaces)))
        first = len(self.params) + len(self.sizes) + len(self.workspaces)
        fixed = iter(range(first, first + len(self._fixed)))
        base = self._base
        # Constants and packed workspaces come in the order of `_fixed`.
        places = [next(fixed if p.is_constant else given) for p in base.params]
        places += [next(given) for _ in base.sizes]
        return places + [next(fixed if w.is_packed else given) for w in base.workspaces]


def _copies(base: Function, constants: Mapping[str, Any]) -> list[Any]:
    """The constants in the order of the parameters, copied to aligned memory where they are arrays."""
    names = [p.name for p in base.constants]
    listed = ", ".join(map(repr, names)) or "none"
    if not isinstance(constants, Mapping):
        raise TypeError(f"{base.name}: constants are arrays by their names, got {type(constants).__name__}")
    for name in constants:
        if name not in names:
            raise ArgumentValueError(f"{base.name}: {name!r} is no constant; its constants are {listed}")
    missing = [name for name in names if name not in constants]
    if missing:
        raise ArgumentValueError(
            f"{base.name}: {', '.join(map(repr, missing))} must be given too; its constants are {listed}"
        )
    if base.device != CPU:
        raise CallError(f"{base.name}: constants can be bound on the CPU; the kernel runs on {base.device}")
    given = adopt(base.name, base.constants, [constants[name] for name in names], base.device)
    # Others are no arrays, which the check says.
    return [_copy(a) if type(a) in (np.ndarray, np.memmap) else a for a in given]


def _copy(array: Array) -> Array:
    copy: Array = aligned_bytes(array.nbytes).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy

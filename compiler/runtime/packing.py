"""What a kernel needs done before its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_void_p
from dataclasses import dataclass

from .arrays import aligned_bytes
from .params import ParamInfo


@dataclass(frozen=True, slots=True)
class PackInfo:
    """The function that fills a kernel's packed workspaces: its name in the code, the constants it reads, and
    the bytes of each workspace it writes. It takes pointers to the one and then to the other; the first
    workspaces are the packed ones of the kernel, in the kernel's order.

    consumed: the constants that the kernel itself does not read any more.
    """

    symbol: str
    params: tuple[ParamInfo, ...]
    workspaces: tuple[int, ...]
    consumed: tuple[str, ...] = ()


class Packer:
    """Calls such a function. constants: where the constants that it reads stand among those that it is
    given."""

    def __init__(self, info: PackInfo, address: int, constants: Sequence[int]) -> None:
        self._constants = tuple(constants)
        self._bytes = info.workspaces
        pointers = [c_void_p] * (len(info.params) + len(info.workspaces))
        self._function: Callable[..., None] = CFUNCTYPE(None, *pointers)(address)

    def __call__(self, addresses: Sequence[int], packed: Sequence[int]) -> None:
        """Fills memory at `packed` from constants at `addresses`."""
        more = [aligned_bytes(n) for n in self._bytes[len(packed) :]]
        given = [addresses[n] for n in self._constants]
        self._function(*given, *packed, *(block.ctypes.data for block in more))

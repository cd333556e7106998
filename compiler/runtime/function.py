"""A kernel that can be called with arrays."""

import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import CFUNCTYPE, c_int64, c_void_p
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..target import Target
from .adopt import adopt
from .arguments import ArgumentCheck, ParamInfo
from .arrays import aligned_bytes
from .device_api import Device, Memory
from .dims import Dim, evaluate
from .errors import ArgumentTypeError, CallError
from .ndarray import CPU, NDArray
from .packing import Packer, PackInfo

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class WorkspaceInfo:
    """Memory that a kernel is given at each call beside its arguments, aligned to 64 bytes, uninitialised.
    Its bytes may depend on the sizes of the call.

    is_packed: it was filled before the call, from constants, and the kernel only reads it.
    """

    bytes: Dim
    is_packed: bool = False


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """How a kernel's schedule was found: exact, same_family, transferred, default or scheduled, and why."""

    kind: str
    reason: str
    record: object | None = None


class LoadedCode(Protocol):
    """Machine code in this process: what a Function needs of a code generator's result."""

    @property
    def text(self) -> str: ...

    @property
    def target(self) -> Target: ...

    def address(self, name: str) -> int:
        """Where a function begins that takes the addresses of its parameters, its sizes as 64-bit integers
        and the addresses of its workspaces, in C's calling convention. Code that is not machine code gives
        the address of a ctypes callback.
        """

    def assembly(self) -> str: ...


class UnloadedCode:
    """Code for another machine: it can be looked at and exported, not called."""

    def __init__(self, text: str, target: Target, reason: str, assembly: Callable[[], str]) -> None:
        self.text = text
        self.target = target
        self.reason = reason
        self._assembly = assembly

    def address(self, name: str) -> int:
        """Raises CallError: no function of it has an address here."""
        raise CallError(f"{name}: {self.reason}; export it with module.export(path), and load it there")

    def assembly(self) -> str:
        """The machine code as assembly text."""
        return self._assembly()


class Function:
    """A compiled function: ``function(a, b, c)`` reads its inputs and writes its outputs in place.

    Arguments are NumPy arrays, NDArrays, or arrays of other libraries that speak DLPack, which are taken
    without a copy. They are checked at each call, and the error names the argument. An array with gaps is
    refused, not copied. Workspaces belong to the calling thread, so that threads may call one function at
    once, on different outputs. A call is done when it returns; streams take what `bind` gives.

    symbol: its name in the code, where that is another. sizes: the names of the sizes that a call reads off
    its arrays, in the order of the kernel's arguments. script: its scheduled program as text. device: where
    its arguments are.
    """

    def __init__(
        self,
        name: str,
        params: Sequence[ParamInfo],
        workspaces: Sequence[WorkspaceInfo],
        loaded: LoadedCode,
        *,
        symbol: str | None = None,
        sizes: Sequence[str] = (),
        script: str = "",
        schedule_source: SourceInfo = SourceInfo("scheduled", "built as it stands"),
        device: Device = CPU,
        pack: PackInfo | None = None,
    ) -> None:
        self.name = name
        self.symbol = symbol or name
        self.params = tuple(params)
        self.workspaces = tuple(workspaces)
        self.sizes = tuple(sizes)
        self.script = script
        self.schedule_source = schedule_source
        self.device = device
        self.pack = pack
        self._loaded = loaded
        self._check: Callable[[Sequence[Array]], list[int]] = ArgumentCheck(name, self.params, self.sizes)
        if device != CPU:
            self._check = self._check_on_device
        self._function = self._callable()
        self._packer = self._pack_callable()
        self._local = threading.local()

    def __call__(self, *arrays: Array) -> None:
        """Run the kernel. Raises ArgumentError, and CallError for code that cannot run here."""
        try:
            addresses = self._check(arrays)
        except ArgumentTypeError:
            if self.device != CPU:  # adopted already
                raise
            arrays = self._adopt(arrays)
            addresses = self._check(arrays)
        if self.workspaces:
            addresses += self._workspace_addresses(addresses[len(self.params) :])
        if self._packer is not None:
            self._pack_for(addresses)
        self._function(*self._arguments(addresses))

    def bind(self, *arrays: Array) -> Callable[[], None]:
        """The kernel on these arrays as a function of nothing, which checks nothing: for timing, and for
        streams.

        It keeps the arrays and workspaces of its own alive; one thread may run it at a time. Constants among
        the arrays are packed here and now. Raises ArgumentError, and CallError for code that cannot run here.
        """
        if isinstance(self._loaded, UnloadedCode):
            self._loaded.address(self.name)
        try:
            addresses = self._check(arrays)
        except ArgumentTypeError:
            if self.device != CPU:  # adopted already
                raise
            arrays = self._adopt(arrays)
            addresses = self._check(arrays)
        count, sizes = len(self.params), addresses[len(self.params) :]
        blocks = [self._new_workspace(n) for n in self._workspace_bytes(sizes)]
        if self._packer is not None:
            self._pack_for([*addresses, *(block.address for block in blocks)])
        pointers = [c_void_p(block.address) for block in blocks]
        given = (*map(c_void_p, addresses[:count]), *map(c_int64, sizes), *pointers)
        bound = partial(self._function, *self._arguments(given))
        bound.keep = (self, arrays, blocks)  # type: ignore[attr-defined]
        return bound

    def with_constants(self, constants: Mapping[str, Any]) -> "Function":
        """The function with its constants bound: a call takes the other arrays. Each constant is given by its
        parameter's name, as what a call takes; copies are made, and packed as the kernel reads them.

        Raises ArgumentError for a name that is no constant, for one that is missing, and for an array that
        does not fit, and CallError for code that cannot run here.
        """
        from .bound import BoundFunction

        return BoundFunction(self, constants)

    @property
    def constants(self) -> tuple[ParamInfo, ...]:
        """The parameters that `with_constants` takes."""
        return tuple(p for p in self.params if p.is_constant)

    @property
    def unbound(self) -> "Function":
        """The function that takes all arrays: this one."""
        return self

    @property
    def loaded(self) -> LoadedCode:
        """The code it runs."""
        return self._loaded

    @property
    def kernel(self) -> Callable[..., None]:
        """The code itself: a function of addresses and sizes, which checks nothing."""
        return self._function

    def pack_into(self, constants: Sequence[int], packed: Sequence[int]) -> None:
        """Fills memory at the addresses `packed` from all constants, at theirs. Raises CallError for code
        that cannot run here."""
        if isinstance(self._loaded, UnloadedCode):
            self._loaded.address(self.name)
        if self._packer is not None:
            self._packer(constants, packed)

    @property
    def target(self) -> Target:
        """The target it was compiled for."""
        return self._loaded.target

    def source(self) -> str:
        """The text that the code generator gave: LLVM's, C, or a plug-in's."""
        return self._loaded.text

    def assembly(self) -> str:
        """The machine code as assembly text."""
        return self._loaded.assembly()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.params))})"

    def __repr__(self) -> str:
        return f"Function({self}, {self.schedule_source.kind} schedule, {self.target})"

    def _callable(self) -> Callable[..., None]:
        if isinstance(self._loaded, UnloadedCode):
            return self._refuse
        pointers, sizes = [c_void_p] * len(self.params), [c_int64] * len(self.sizes)
        prototype = CFUNCTYPE(None, *pointers, *sizes, *[c_void_p] * len(self.workspaces))
        return prototype(self._loaded.address(self.symbol))

    def _pack_callable(self) -> Packer | None:
        if self.pack is None or isinstance(self._loaded, UnloadedCode):
            return None
        names = [p.name for p in self.constants]
        places = [names.index(p.name) for p in self.pack.params]
        return Packer(self.pack, self._loaded.address(self.pack.symbol), places)

    def _pack_for(self, addresses: Sequence[int]) -> None:
        """Fills the packed workspaces of one call, whose arguments these are."""
        constants = [x for p, x in zip(self.params, addresses, strict=False) if p.is_constant]
        first = len(self.params) + len(self.sizes)
        packed = [x for w, x in zip(self.workspaces, addresses[first:], strict=True) if w.is_packed]
        self.pack_into(constants, packed)

    def _arguments(self, given: Sequence[Any]) -> Sequence[Any]:
        """The kernel's arguments from those of a call: parameters, sizes, workspaces."""
        return given

    def _check_on_device(self, arrays: Sequence[Any]) -> list[int]:
        """As the other check, for arrays that are all on the kernel's device."""
        return ArgumentCheck(self.name, self.params, self.sizes)(self._adopt(arrays))

    def _refuse(self, *addresses: int) -> None:
        self._loaded.address(self.name)

    def _adopt(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        return adopt(self.name, self.params, arrays, self.device)

    def _workspace_bytes(self, sizes: Sequence[int]) -> list[int]:
        known = dict(zip(self.sizes, sizes, strict=True))
        return [evaluate(w.bytes, known) for w in self.workspaces]

    def _workspace_addresses(self, sizes: Sequence[int]) -> list[int]:
        """This thread's workspaces: kept from call to call, and made anew where a call needs larger ones."""
        local = self._local
        if not self.sizes and hasattr(local, "addresses"):
            return local.addresses  # type: ignore[no-any-return]
        needed = self._workspace_bytes(sizes)
        if not hasattr(local, "blocks"):
            local.blocks = [self._new_workspace(n) for n in needed]
        elif any(block.nbytes < n for block, n in zip(local.blocks, needed, strict=True)):
            local.blocks = [
                self._new_workspace(max(b.nbytes, n)) for b, n in zip(local.blocks, needed, strict=True)
            ]
        local.addresses = [block.address for block in local.blocks]
        return local.addresses  # type: ignore[no-any-return]

    def _new_workspace(self, nbytes: int) -> Memory:
        if self.device != CPU:
            return NDArray.empty((nbytes,), "uint8", self.device).memory
        block = aligned_bytes(nbytes)
        return Memory(CPU, block.ctypes.data, nbytes, block)

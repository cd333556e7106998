"""A kernel that can be called with NumPy arrays."""

import threading
from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int64, c_void_p
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..target import Target
from .arguments import ArgumentCheck, ParamInfo
from .arrays import aligned_bytes
from .dims import Dim, evaluate

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class WorkspaceInfo:
    """Memory that a kernel is given at each call beside its arguments, aligned to 64 bytes, uninitialised.
    Its bytes may depend on the sizes of the call."""

    bytes: Dim


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """How a kernel's schedule was found: exact, same_family, transferred, default or scheduled, and why."""

    kind: str
    reason: str
    record: object | None = None


class LoadedCode(Protocol):
    """Machine code in this process: what a Module needs of a code generator's result."""

    @property
    def text(self) -> str: ...

    @property
    def target(self) -> Target: ...

    def address(self, name: str) -> int: ...

    def assembly(self) -> str: ...


class Module:
    """A compiled function: ``module(a, b, c)`` reads its inputs and writes its outputs in place.

    Arrays are checked at each call, and the error names the argument. Workspaces belong to the calling
    thread, so that threads may call one module at once, on different outputs.
    """

    def __init__(
        self,
        name: str,
        params: Sequence[ParamInfo],
        workspaces: Sequence[WorkspaceInfo],
        loaded: LoadedCode,
        *,
        sizes: Sequence[str] = (),
        script: str = "",
        schedule_source: SourceInfo = SourceInfo("scheduled", "built as it stands"),
    ) -> None:
        self.func_name = name
        self.params = tuple(params)
        self.workspaces = tuple(workspaces)
        #: The names of the sizes that a call reads off its arrays, in the order of the kernel's arguments.
        self.sizes = tuple(sizes)
        self.script = script
        self.schedule_source = schedule_source
        self._loaded = loaded
        self._check = ArgumentCheck(name, self.params, self.sizes)
        prototype = CFUNCTYPE(
            None,
            *[c_void_p] * len(self.params),
            *[c_int64] * len(self.sizes),
            *[c_void_p] * len(self.workspaces),
        )
        self._function: Callable[..., None] = prototype(loaded.address(name))
        self._local = threading.local()

    def __call__(self, *arrays: Array) -> None:
        """Run the kernel. Raises ArgumentError."""
        addresses = self._check(arrays)
        if self.workspaces:
            addresses += self._workspace_addresses(addresses[len(self.params) :])
        self._function(*addresses)

    def bind(self, *arrays: Array) -> Callable[[], None]:
        """The kernel on these arrays as a function of nothing, which checks nothing: for timing.

        It keeps the arrays and workspaces of its own alive; one thread may run it at a time. Raises
        ArgumentError.
        """
        addresses = self._check(arrays)
        sizes = addresses[len(self.params) :]
        blocks = [aligned_bytes(n) for n in self._workspace_bytes(sizes)]
        pointers = [c_void_p(block.ctypes.data) for block in blocks]
        bound = partial(
            self._function,
            *map(c_void_p, addresses[: len(self.params)]),
            *map(c_int64, sizes),
            *pointers,
        )
        bound.keep = (self._loaded, arrays, blocks)  # type: ignore[attr-defined]
        return bound

    @property
    def target(self) -> Target:
        """The target it was compiled for."""
        return self._loaded.target

    def source(self) -> str:
        """The LLVM text."""
        return self._loaded.text

    def assembly(self) -> str:
        """The machine code as assembly text."""
        return self._loaded.assembly()

    def __repr__(self) -> str:
        params = ", ".join(map(str, self.params))
        return f"Module({self.func_name}({params}), {self.schedule_source.kind} schedule, {self.target})"

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
            local.blocks = [aligned_bytes(n) for n in needed]
        elif any(len(block) < n for block, n in zip(local.blocks, needed, strict=True)):
            local.blocks = [aligned_bytes(max(len(b), n)) for b, n in zip(local.blocks, needed, strict=True)]
        local.addresses = [block.ctypes.data for block in local.blocks]
        return local.addresses  # type: ignore[no-any-return]

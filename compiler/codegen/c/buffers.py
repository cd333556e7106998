"""The buffers of a kernel in C: parameters, workspaces and arrays on the stack."""

from __future__ import annotations

from ...arith import Atom
from ...ir import Buffer, PrimFunc
from ...ir.func import fresh
from ...runtime import ParamInfo, WorkspaceInfo
from ...target import Target
from ..dims import bytes_of, params_of, workspace_of
from .dtypes import memory_type
from .names import identifier

#: Local and register buffers of more bytes than this together are workspaces: threads' stacks are small.
MAX_STACK = 16 << 10
ALIGNMENT = 64


class Buffers:
    """Where each buffer of a program stands, and by which name.

    function: the kernel's name. sizes: the symbolic sizes' names. stack: the declarations of arrays.
    """

    def __init__(self, func: PrimFunc) -> None:
        self._func = func
        self.function = identifier(func.name or "kernel")
        self.names: dict[Buffer, str] = {}
        self.sizes: dict[Atom, str] = {}
        self.stack: list[str] = []
        self._workspaces: list[Buffer] = []
        taken = {self.function}
        for b in (*func.params, *func.allocs):
            self.names[b] = fresh(identifier(b.name), taken)
            taken.add(self.names[b])
        for size in func.sizes:
            self.sizes[size] = fresh(identifier(size.name), taken)
            taken.add(self.sizes[size])
        room = MAX_STACK
        for b in func.allocs:
            needed = bytes_of(b)
            if b.scope != "global" and isinstance(needed, int) and needed <= room:
                room -= -(-needed // ALIGNMENT) * ALIGNMENT
                count = max(1, needed // b.dtype.bytes)
                declaration = f"_Alignas({ALIGNMENT}) {memory_type(b.dtype)} {self.names[b]}[{count}];"
                self.stack.append(f"    {declaration} /* {b.scope} {_array(b)} */")
            else:
                self._workspaces.append(b)

    @property
    def params(self) -> tuple[ParamInfo, ...]:
        """What a caller must pass."""
        return params_of(self._func)

    @property
    def workspaces(self) -> tuple[WorkspaceInfo, ...]:
        """What it is given besides."""
        return tuple(map(workspace_of, self._workspaces))

    @property
    def signature(self) -> str:
        """The parameters, the sizes and the workspaces."""
        outputs = set(self._func.outputs)
        parts = [self._pointer(p, p in outputs) for p in self._func.params]
        parts += [f"int64_t {name}" for name in self.sizes.values()]
        written = {b.buffer for _, b in self._func.blocks()}
        parts += [self._pointer(b, b in written) for b in self._workspaces]
        return ", ".join(parts) or "void"

    def comment(self, target: Target) -> list[str]:
        """What the function takes, and for which target it was made."""
        outputs = set(self._func.outputs)
        rows = [(self.names[p], _array(p), "out" if p in outputs else "in") for p in self._func.params]
        rows += [(name, "int64", "size") for name in self.sizes.values()]
        packed = {True: "packed before", False: "workspace"}
        rows += [
            (self.names[b], _array(b), f"{packed[b.constant]}, {ALIGNMENT}-byte aligned")
            for b in self._workspaces
        ]
        wide = [max((len(r[n]) for r in rows), default=0) for n in (0, 1)]
        lines = [f"/* {self.function}", f" * for {target}", " *"]
        lines += [f" *   {a:{wide[0]}}  {b:{wide[1]}}  {c}" for a, b, c in rows]
        return [*lines, " */"]

    def _pointer(self, b: Buffer, is_written: bool) -> str:
        return f"{'' if is_written else 'const '}{memory_type(b.dtype)} *restrict {self.names[b]}"


def _array(b: Buffer) -> str:
    return f"{b.dtype}[{', '.join(map(repr, b.shape))}]"

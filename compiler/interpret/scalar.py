"""Any program, element by element, exactly in its dtypes: slow, simple, and right for every schedule.

The loops become Python source, since interpreting a tree for each element would be ten times slower. Loops of
every kind run in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arith import Atom, Fn, Poly, Var, proven_negative, substitute
from ..ir.dtype import DType
from ..ir.expr import Binary, Buffer, Cast, Compare, Const, Expr, InBounds, IndexValue, Load, Select, Unary
from ..ir.func import PrimFunc
from ..ir.stmt import Block, For, IterKind, Stmt
from ..passes.lower_init import LowerInit
from .inputs import Array, bound_to, check_arrays, poisoned
from .scalars import HELPERS, function

#: Python refuses more than 20 loops inside of each other; the body of every so many becomes a function of its
#: own.
NEST = 12


def run(func: PrimFunc, arrays: Sequence[Array]) -> None:
    """Interprets the program on one array for each parameter, in place. Sizes are read off the arrays. Raises
    OutOfBounds at the first access that leaves a buffer."""
    func = bound_to(func, arrays)
    check_arrays(func, arrays)
    if any(f.var.extent.const == 0 for path, _ in func.blocks() for f in path):
        # The init of a reduction without steps has no first step to come before.
        func = LowerInit().run(func)
    writer = _Writer(func)
    code = compile(writer.source(), f"<{func.name}>", "exec")
    scope: dict[str, Any] = dict(writer.constants)
    scope.update({writer.buffers[p]: a for p, a in zip(func.params, arrays, strict=True)})
    scope.update({writer.buffers[b]: poisoned(b) for b in func.allocs})
    exec(code, scope)
    with np.errstate(all="ignore"):
        scope["main"]()


_INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "floormod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class _Writer:
    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self.buffers: dict[Buffer, str] = {b: f"b{n}" for n, b in enumerate(func.params + func.allocs)}
        self.vars: dict[Atom, str] = {}
        self.constants: dict[str, Any] = dict(HELPERS)
        self.numbers = itertools.count()
        self.functions: list[str] = []

    def source(self) -> str:
        lines = ["def main():"]
        self.body(self.func.body, 1, 0, lines)
        return "\n\n".join([*self.functions, "\n".join(lines)]) + "\n"

    def constant(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{next(self.numbers)}"
        self.constants[name] = value
        return name

    def body(self, body: Sequence[Stmt], depth: int, loops: int, lines: list[str]) -> None:
        for s in body:
            if isinstance(s, For):
                self.loop(s, depth, loops, lines)
            else:
                self.block(s, depth, lines)

    def loop(self, s: For, depth: int, loops: int, lines: list[str]) -> None:
        pad = "    " * depth
        if loops == NEST:
            name, args = f"f{next(self.numbers)}", ", ".join(self.vars.values())
            inner = [f"def {name}({args}):"]
            self.loop(s, 1, 0, inner)
            self.functions.append("\n".join(inner))
            lines.append(f"{pad}{name}({args})")
            return
        self.vars[s.var] = f"v{next(self.numbers)}"
        lines.append(f"{pad}for {self.vars[s.var]} in range({self.index(s.var.extent)}):")
        self.body(s.body, depth + 1, loops + 1, lines)
        del self.vars[s.var]

    def block(self, b: Block, depth: int, lines: list[str]) -> None:
        m = b.binding
        if b.predicates:
            lines.append("    " * depth + f"if {self.conditions(b.predicates)}:")
            depth += 1
        target = self.access(b.buffer, b.indices, m)
        pad = "    " * depth
        if b.init is not None:
            steps = [
                p for p, k in zip(b.binds, b.kinds, strict=True) if k is IterKind.REDUCE and p.const != 0
            ]
            first = " and ".join(f"{self.index(p)} == 0" for p in steps) or "True"
            lines += [f"{pad}if {first}:", f"{pad}    {target} = {self.value(b.init, m)}"]
        lines.append(f"{pad}{target} = {self.value(b.value, m)}")

    def conditions(self, conditions: Sequence[Poly]) -> str:
        return " and ".join(f"{self.index(p)} < 0" for p in conditions) or "True"

    def access(self, buffer: Buffer, indices: Sequence[Poly], m: dict[Atom, Poly]) -> str:
        parts = []
        for d, (i, extent) in enumerate(zip(indices, buffer.shape, strict=True)):
            p = substitute(i, m)
            text = self.index(p)
            if not (proven_negative(p - extent) and proven_negative(-p - 1)):
                text = f"inside({text}, {self.index(extent)}, {buffer.name!r}, {d})"
            parts.append(text)
        return f"{self.buffers[buffer]}[{', '.join(parts) if parts else '()'}]"

    def index(self, p: Poly) -> str:
        terms = [" * ".join([str(c), *map(self.atom, mono)]) for mono, c in p.terms.items()]
        return f"({' + '.join(terms)})" if terms else "0"

    def atom(self, a: Atom) -> str:
        if isinstance(a, Fn):
            x, y = self.index(a.a), self.index(a.b)
            match a.op:
                case "floordiv":
                    return f"({x} // {y})"
                case "ceildiv":
                    return f"(-(-{x} // {y}))"
            return f"{a.op}({x}, {y})"
        if isinstance(a, Var) and a in self.vars:
            return self.vars[a]
        raise ValueError(
            f"{a!r} has no value in {self.func.name!r}: only programs without open knobs can run"
        )

    def dtype(self, dtype: DType) -> str:
        name = f"t_{dtype}"
        self.constants[name] = dtype
        return name

    def value(self, e: Expr, m: dict[Atom, Poly]) -> str:
        match e:
            case Const(value, dtype):
                return self.constant("c", dtype.numpy.type(value))
            case Load(buffer, indices):
                return self.access(buffer, indices, m)
            case Binary(op, a, b):
                x, y = self.value(a, m), self.value(b, m)
                return f"({x} {_INFIX[op]} {y})" if op in _INFIX else f"{op}_({x}, {y})"
            case Compare(op, a, b):
                return f"({self.value(a, m)} {_COMPARE[op]} {self.value(b, m)})"
            case Unary(op, a):
                name = f"u_{op}_{a.dtype}"
                self.constants[name] = function(op, a.dtype)
                return f"{name}({self.value(a, m)})"
            case Select(cond, a, b):
                return f"({self.value(a, m)} if {self.value(cond, m)} else {self.value(b, m)})"
            case InBounds(conditions):
                return f"({self.conditions([substitute(c, m) for c in conditions])})"
            case Cast(dtype, a):
                return f"cast({self.value(a, m)}, {self.dtype(dtype)})"
            case IndexValue(p, dtype):
                return f"cast({self.index(substitute(p, m))}, {self.dtype(dtype)})"
        raise TypeError(f"not an expression: {e!r}")

"""PrimFuncs as JSON and back; the canonical form; the workload key.

Variables, sizes and buffers are numbers, in the order in which they appear; immediates are a dtype and a
string; fields at their default are left out, so that a later field changes no key. Names are written for
people only and never enter the canonical form.
"""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785

from ..arith import Atom, Fn, Knob, Poly, Size, Var
from .expr import Binary, Buffer, Cast, Compare, Const, Expr, InBounds, IndexValue, Load, Select, Unary
from .func import PrimFunc
from .names import MAX_NAME, is_name, spoken
from .stmt import Block, For, IterKind, LoopKind, Stmt
from .visit import loads

#: Raised when the meaning of a field changes; a reader refuses what it does not know.
FORMAT = 1

Json = Any


def to_json(func: PrimFunc, *, names: bool = True) -> dict[str, Json]:
    """The program as plain JSON values."""
    return _Writer(names).func(func)


def canonical_json(func: PrimFunc) -> str:
    """RFC 8785 text without names: equal for programs that are equal up to names."""
    return rfc8785.dumps(to_json(func, names=False)).decode()


def workload_key(func: PrimFunc) -> str:
    """SHA-256 (hexadecimal) of the canonical JSON."""
    return hashlib.sha256(canonical_json(func).encode()).hexdigest()


def const_text(c: Const) -> str:
    """An immediate as a string: decimal, `float.hex()`, `inf`, `-inf`, `nan`, `true`, `false`."""
    if c.dtype.is_bool:
        return "true" if c.value else "false"
    return float(c.value).hex() if c.dtype.is_float else str(int(c.value))


class _Writer:
    def __init__(self, names: bool) -> None:
        self.names = names
        self.vars: dict[Atom, int] = {}
        self.sizes: dict[Atom, int] = {}
        self.buffers: dict[Buffer, int] = {}

    def func(self, f: PrimFunc) -> dict[str, Json]:
        self.sizes = {s: n for n, s in enumerate(f.sizes)}
        for b in f.params:
            self.buffers[b] = len(self.buffers)
        params = [self.buffer(b) for b in f.params]
        used = [b for b in _in_order_of_use(f) if b not in self.buffers]
        for b in used:
            self.buffers[b] = len(self.buffers)
        out: dict[str, Json] = {
            "tilewright": FORMAT,
            "params": params,
            "body": [self.stmt(s) for s in f.body],
        }
        if used:
            out["allocs"] = [self.buffer(b) for b in used]
        if self.sizes:
            out["sizes"] = [self.named({}, s.name) for s in f.sizes]
        return self.named(out, f.name)

    def named(self, out: dict[str, Json], name: str) -> dict[str, Json]:
        if self.names:
            # A block may be called anything in a text; readers of JSON take identifiers.
            out["name"] = name if is_name(name) else spoken(name)[:MAX_NAME]
        return out

    def buffer(self, b: Buffer) -> Json:
        out: dict[str, Json] = {"shape": [self.poly(p) for p in b.shape], "dtype": str(b.dtype)}
        if b.scope != "global":
            out["scope"] = b.scope
        if b.constant:
            out["constant"] = True
        return self.named(out, b.name)

    def declare(self, v: Var) -> Json:
        extent = self.poly(v.extent)
        self.vars[v] = len(self.vars)
        return self.named({"extent": extent}, v.name)

    def stmt(self, s: Stmt) -> Json:
        if type(s) is For:
            out = {"for": self.declare(s.var), "body": [self.stmt(x) for x in s.body]}
            if s.kind is not LoopKind.SERIAL:
                out["kind"] = s.kind.value
        else:
            assert type(s) is Block
            binds = [self.poly(b) for b in s.binds]
            predicates = [self.poly(p) for p in s.predicates]
            iters = [self.declare(v) for v in s.iters]
            for it, kind, bind in zip(iters, s.kinds, binds, strict=True):
                it["bind"] = bind
                if kind is not IterKind.SPATIAL:
                    it["kind"] = kind.value
            block = {
                "iters": iters,
                "buffer": self.buffers[s.buffer],
                "indices": [self.poly(i) for i in s.indices],
            }
            block["value"] = self.expr(s.value)
            if s.init is not None:
                block["init"] = self.expr(s.init)
            if predicates:
                block["predicates"] = predicates
            out = {"block": self.named(block, s.name)}
        if s.annotations:
            out["annotations"] = dict(s.annotations)
        return out

    def poly(self, p: Poly) -> Json:
        """A constant is an integer; anything else a list of [coefficient, atom, …], sorted by its text."""
        if p.const is not None:
            return _small(p.const)
        return sorted(
            ([_small(c), *sorted((self.atom(a) for a in m), key=_text)] for m, c in p.terms.items()),
            key=_text,
        )

    def atom(self, a: Atom) -> Json:
        if type(a) is Fn:
            return [a.op, self.poly(a.a), self.poly(a.b)]
        if type(a) is Knob:
            raise ValueError(
                f"a program with the open knob {a.name!r} has no JSON form; resolve its trace first"
            )
        if type(a) is Size:
            return ["size", self.sizes[a]]
        return self.vars[a]

    def expr(self, e: Expr) -> Json:
        match e:
            case Const(_, dtype):
                return ["const", str(dtype), const_text(e)]
            case IndexValue(p, dtype):
                return ["index", str(dtype), self.poly(p)]
            case Load(buffer, indices):
                return ["load", self.buffers[buffer], *(self.poly(i) for i in indices)]
            case Binary(op, a, b):
                return [op, self.expr(a), self.expr(b)]
            case Compare(op, a, b):
                return [op, self.expr(a), self.expr(b)]
            case Unary(op, a):
                return [op, self.expr(a)]
            case InBounds(conditions):
                return ["in_bounds", *(self.poly(c) for c in conditions)]
            case Select(cond, a, b):
                return ["select", self.expr(cond), self.expr(a), self.expr(b)]
            case Cast(dtype, a):
                return ["cast", str(dtype), self.expr(a)]


def _text(x: Json) -> str:
    return str(rfc8785.dumps(x).decode())


def _small(n: int) -> int:
    if abs(n) >= 2**53:
        raise ValueError(f"the integer {n} in an index is beyond 2**53 and has no JSON form")
    return n


def _in_order_of_use(f: PrimFunc) -> list[Buffer]:
    seen: list[Buffer] = []
    for _, b in f.blocks():
        read = [*loads(b.value), *(loads(b.init) if b.init is not None else ())]
        for buffer in (b.buffer, *(x.buffer for x in read)):
            if buffer not in seen:
                seen.append(buffer)
    return seen

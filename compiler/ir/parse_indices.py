"""Indices, conditions on them and elements of a printed program, from Python's syntax tree. Nothing is
evaluated."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import NoReturn

from ..arith import NotProvable, Poly, ceil_div, floor_div, floor_mod, maximum, minimum, poly, proven_negative
from .errors import ScriptError
from .expr import Buffer, Load
from .limits import MAX_FACTORS, MAX_INTEGER, MAX_TERMS

_INDEX_INFIX: dict[type[ast.operator], Callable[[Poly, Poly], Poly]] = {
    ast.Add: Poly.__add__,
    ast.Sub: Poly.__sub__,
    ast.Mult: Poly.__mul__,
    ast.FloorDiv: floor_div,
    ast.Mod: floor_mod,
}
_INDEX_CALLS: dict[str, Callable[[Poly, Poly], Poly]] = {
    "min": minimum,
    "max": maximum,
    "ceildiv": ceil_div,
}
_SURE = (floor_div, minimum, maximum)
#: Names that are numbers.
WORDS = {"inf": math.inf, "nan": math.nan}


def fail(message: str, node: ast.AST) -> NoReturn:
    """Raises a ScriptError at the node."""
    raise ScriptError(message, getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1)


def shown(node: ast.AST) -> str:
    """The node as text, shortened."""
    try:
        text = ast.unparse(node).splitlines()[0]
    except (RecursionError, ValueError):
        # A text nested too deep, or an integer of more digits than Python writes.
        return "..."
    return text if len(text) <= 40 else f"{text[:37]}..."


class Indices:
    """Reads indices, conditions on them and elements, over buffers and variables that bear names."""

    def __init__(
        self, buffers: Mapping[str, Buffer], variables: Mapping[str, Poly], *, trusted: bool = False
    ) -> None:
        """trusted: a printed program, whose divisions, minima and maxima are known to be of nothing negative
        also where that cannot be proved."""
        self.buffers = buffers
        self.variables = variables
        self.trusted = trusted

    def index(self, node: ast.expr) -> Poly:
        """An index: a polynomial over the variables in scope."""
        p = self._index(node)
        if len(p.terms) > MAX_TERMS:
            fail(f"an index has at most {MAX_TERMS} terms, got {len(p.terms)}", node)
        if any(len(m) > MAX_FACTORS for m in p.terms):
            fail(f"a term has at most {MAX_FACTORS} factors", node)
        if any(abs(c) >= MAX_INTEGER for c in p.terms.values()):
            fail("expected an integer below 2**53", node)
        return p

    def _index(self, node: ast.expr) -> Poly:
        match node:
            case ast.Constant(value=int(value)) if type(value) is int:
                return poly(value)
            case ast.Name(id=name):
                found = self.variables.get(name)
                return found if found is not None else self._unknown(name, node)
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return -self.index(a)
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _INDEX_INFIX:
                return self._made(_INDEX_INFIX[type(op)], a, b, node, isinstance(op, ast.FloorDiv | ast.Mod))
            case ast.Call(func=ast.Name(id=name), args=[a, b], keywords=[]) if name in _INDEX_CALLS:
                return self._made(_INDEX_CALLS[name], a, b, node, name == "ceildiv")
        fail(
            "expected an index of variables, integers, + - * // % and min, max, ceildiv, got " + shown(node),
            node,
        )

    def _unknown(self, name: str, node: ast.AST) -> NoReturn:
        known = ", ".join(self.variables) or "none"
        fail(f"no variable {name!r} is in scope here; known: {known}", node)

    def _made(
        self, f: Callable[[Poly, Poly], Poly], a: ast.expr, b: ast.expr, node: ast.AST, divides: bool
    ) -> Poly:
        x, y = self.index(a), self.index(b)
        if divides and (y.const == 0 or not (self.trusted or _divisor(y))):
            fail(f"a divisor must be positive, or of sizes, got {shown(b)}", b)
        try:
            return f(x, y)
        except NotProvable as e:
            if self.trusted and f in _SURE:
                return f(x, y, sure=True)
            fail(str(e), node)

    def indices(self, node: ast.expr) -> tuple[Poly, ...]:
        """What stands between brackets; `()` for none."""
        return tuple(self.index(x) for x in (node.elts if isinstance(node, ast.Tuple) else [node]))

    def conditions(self, node: ast.expr) -> tuple[Poly, ...]:
        """`a < b and c < d` as polynomials that are negative where it holds."""
        parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
        out: list[Poly] = []
        for part in parts:
            if not isinstance(part, ast.Compare):
                fail(f"expected a comparison of indices such as i < 4, got {shown(part)}", part)
            left = part.left
            for op, right in zip(part.ops, part.comparators, strict=True):
                a, b = self.index(left), self.index(right)
                match op:
                    case ast.Lt():
                        out.append(a - b)
                    case ast.Gt():
                        out.append(b - a)
                    case ast.LtE():
                        out.append(a - b - 1)
                    case ast.GtE():
                        out.append(b - a - 1)
                    case _:
                        fail("expected <, <=, > or >= between indices", part)
                left = right
        return tuple(out)

    def load(self, node: ast.expr) -> Load:
        """buffer[indices]"""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            fail(f"expected an element such as A[i, j], got {shown(node)}", node)
        buffer = self.buffers.get(node.value.id)
        if buffer is None:
            fail(f"no buffer {node.value.id!r} is declared; known: {', '.join(self.buffers)}", node)
        return Load(buffer, self.indices(node.slice))


def _divisor(p: Poly) -> bool:
    """Whether p has no variables and is never below 0; `verify` sees to it that it is not 0 where it is
    used."""
    return not p.vars() and proven_negative(-p - 1)


def is_index(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Name(id=name):
            return name not in WORDS
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return is_index(a)
        case ast.BinOp(left=a, op=op, right=b):
            return type(op) in _INDEX_INFIX and is_index(a) and is_index(b)
        case ast.Call(func=ast.Name(id=name), args=args):
            return name in _INDEX_CALLS and all(map(is_index, args))
    return False

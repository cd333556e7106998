"""Values, indices and conditions of a printed program, from Python's syntax tree. Nothing is evaluated."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import numpy as np

from ..arith import Fn, NotProvable, Poly, Var, ceil_div, floor_div, floor_mod, maximum, minimum, poly
from .dtype import BOOL, DType, TypeMismatch
from .errors import ScriptError
from .expr import (
    BINARY_OPS,
    UNARY_OPS,
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    InBounds,
    IndexValue,
    Load,
    Select,
    Unary,
)
from .rules import refused
from .verify import MAX_FACTORS, MAX_TERMS

_LIMIT = 2**53
_INFIX: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "floormod",
    ast.BitAnd: "and",
    ast.BitXor: "xor",
    ast.BitOr: "or",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
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
_UNARY = {"not_" if op == "not" else op: op for op in UNARY_OPS}
_BINARY = frozenset(BINARY_OPS) - set(_INFIX.values()) | {"truncdiv", "truncmod"}
_WORDS = {"inf": math.inf, "nan": math.nan}


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


class Values:
    """Reads expressions over buffers and variables that bear names."""

    def __init__(self, buffers: Mapping[str, Buffer], variables: Mapping[str, Poly]) -> None:
        self.buffers = buffers
        self.variables = variables

    def under(self, variables: Mapping[str, Poly]) -> Values:
        """The same buffers, other variables."""
        return Values(self.buffers, variables)

    # Indices

    def index(self, node: ast.expr) -> Poly:
        """An index: a polynomial over the variables in scope."""
        p = self._index(node)
        if len(p.terms) > MAX_TERMS:
            fail(f"an index has at most {MAX_TERMS} terms, got {len(p.terms)}", node)
        if any(len(m) > MAX_FACTORS for m in p.terms):
            fail(f"a term has at most {MAX_FACTORS} factors", node)
        if any(abs(c) >= _LIMIT for c in p.terms.values()):
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
        if divides and not _positive(y):
            fail(f"a divisor must be positive, got {shown(b)}", b)
        try:
            return f(x, y)
        except NotProvable as e:
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

    # Values

    def load(self, node: ast.expr) -> Load:
        """buffer[indices]"""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            fail(f"expected an element such as A[i, j], got {shown(node)}", node)
        buffer = self.buffers.get(node.value.id)
        if buffer is None:
            fail(f"no buffer {node.value.id!r} is declared; known: {', '.join(self.buffers)}", node)
        return Load(buffer, self.indices(node.slice))

    def value(self, node: ast.expr, known: DType | None) -> Expr:
        """A value. known: the dtype of a constant that names none."""
        match node:
            case ast.Constant() | ast.Name(id="inf" | "nan"):
                return _constant(node, node, False, known)
            case ast.UnaryOp(op=ast.USub(), operand=(ast.Constant() | ast.Name(id="inf" | "nan")) as a):
                return _constant(node, a, True, known)
            case ast.Subscript():
                return self.load(node)
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _INFIX:
                return self._binary(_INFIX[type(op)], a, b, node, known)
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return self._unary("neg", a, node, known)
            case ast.UnaryOp(op=ast.Invert(), operand=a):
                return self._unary("not", a, node, known)
            case ast.IfExp(test=test, body=a, orelse=b):
                inner = known or self.told(node)
                cond = self.value(test, BOOL)
                if not cond.dtype.is_bool:
                    fail(f"a condition must be a bool, got {cond.dtype}", test)
                x, y = self.value(a, inner), self.value(b, inner)
                self._same(x, y, node)
                return Select(cond, x, y)
            case ast.Compare() | ast.BoolOp():
                return self._comparison(node)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(name, args, node, known)
        if _is_index(node):
            fail(f"an index as a value names its dtype, such as int64({shown(node)})", node)
        fail(f"expected a value, got {shown(node)}", node)

    def _call(self, name: str, args: Sequence[ast.expr], node: ast.expr, known: DType | None) -> Expr:
        if name in _UNARY and len(args) == 1:
            return self._unary(_UNARY[name], args[0], node, known)
        if name in _BINARY and len(args) == 2:
            return self._binary(name, args[0], args[1], node, known)
        if name == "in_bounds" and not args:
            return InBounds(())
        dtype = _dtype(name)
        if dtype is None:
            known_names = ", ".join(sorted([*_UNARY, *_BINARY]))
            fail(f"no function {name!r} of {len(args)} values; known: a dtype, {known_names}", node)
        if len(args) != 1:
            fail(f"{name} converts one value, got {len(args)}", node)
        (a,) = args
        inner = a.operand if isinstance(a, ast.UnaryOp) and isinstance(a.op, ast.USub) else a
        is_number = isinstance(inner, ast.Constant) and type(inner.value) is not bool
        if is_number or (isinstance(inner, ast.Name) and inner.id in _WORDS):
            return _constant(a, inner, a is not inner, dtype)
        if isinstance(a, ast.Call) and isinstance(a.func, ast.Name) and a.func.id == "index":
            if len(a.args) != 1 or a.keywords:
                fail("index takes one index", a)
            return IndexValue(self.index(a.args[0]), self._number(dtype, node))
        if _is_index(a):
            return IndexValue(self.index(a), self._number(dtype, node))
        return Cast(dtype, self.value(a, self.told(a)))

    def _number(self, dtype: DType, node: ast.AST) -> DType:
        if dtype.is_bool:
            fail("an index is not a bool", node)
        return dtype

    def _comparison(self, node: ast.Compare | ast.BoolOp) -> Expr:
        if isinstance(node, ast.BoolOp) or (
            _is_index(node.left) and all(_is_index(x) for x in node.comparators)
        ):
            return InBounds(self.conditions(node))
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARE:
            fail("expected one comparison with ==, !=, <, <=, > or >=; join several with &", node)
        op, b = _COMPARE[type(node.ops[0])], node.comparators[0]
        inner = self.told(node.left) or self.told(b)
        x, y = self.value(node.left, inner), self.value(b, inner)
        self._same(x, y, node)
        self._allowed(op, x.dtype, node)
        return Compare(op, x, y)  # type: ignore[arg-type]

    def _binary(self, op: str, a: ast.expr, b: ast.expr, node: ast.expr, known: DType | None) -> Expr:
        inner = known or self.told(node)
        x, y = self.value(a, inner), self.value(b, inner)
        self._same(x, y, node)
        self._allowed(op, x.dtype, node)
        return Binary(op, x, y)  # type: ignore[arg-type]

    def _unary(self, op: str, a: ast.expr, node: ast.expr, known: DType | None) -> Expr:
        x = self.value(a, known or self.told(a))
        self._allowed(op, x.dtype, node)
        return Unary(op, x)  # type: ignore[arg-type]

    def _same(self, x: Expr, y: Expr, node: ast.AST) -> None:
        if x.dtype != y.dtype:
            fail(f"the operands differ in dtype: {x.dtype} and {y.dtype}", node)

    def _allowed(self, op: str, dtype: DType, node: ast.AST) -> None:
        reason = refused(op, dtype)
        if reason is not None:
            fail(reason, node)

    def told(self, node: ast.expr) -> DType | None:
        """The dtype that a text tells by itself; None for what is made of constants alone."""
        match node:
            case ast.Constant(value=bool()) | ast.Compare() | ast.BoolOp():
                return BOOL
            case ast.Subscript(value=ast.Name(id=name)):
                buffer = self.buffers.get(name)
                return buffer.dtype if buffer is not None else None
            case ast.BinOp(left=a, right=b) | ast.IfExp(body=a, orelse=b):
                return self.told(a) or self.told(b)
            case ast.UnaryOp(operand=a):
                return self.told(a)
            case ast.Call(func=ast.Name(id=name), args=args):
                if name == "in_bounds":
                    return BOOL
                return _dtype(name) or next((t for a in args if (t := self.told(a)) is not None), None)
        return None


def _dtype(name: str) -> DType | None:
    try:
        return DType.parse(name)
    except TypeMismatch:
        return None


def _positive(p: Poly) -> bool:
    """Whether p is a positive constant, or a product of sizes that are at least 1."""
    return p.const > 0 if p.const is not None else not any(type(a) in (Var, Fn) for a in p.atoms())


def _is_index(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return type(value) is int
        case ast.Name(id=name):
            return name not in _WORDS
        case ast.UnaryOp(op=ast.USub(), operand=a):
            return _is_index(a)
        case ast.BinOp(left=a, op=op, right=b):
            return type(op) in _INDEX_INFIX and _is_index(a) and _is_index(b)
        case ast.Call(func=ast.Name(id=name), args=args):
            return name in _INDEX_CALLS and all(map(_is_index, args))
    return False


def _constant(node: ast.expr, bare: ast.expr, negative: bool, dtype: DType | None) -> Const:
    """A literal as a value of the dtype; `bare` is the literal without its sign."""
    value = _WORDS[bare.id] if isinstance(bare, ast.Name) else getattr(bare, "value", None)
    if type(value) is bool and not negative and dtype in (None, BOOL):
        return Const(value, BOOL)
    if type(value) not in (int, float) or (dtype is not None and dtype.is_bool):
        fail(f"expected a {dtype or 'number'}, got {shown(node)}", node)
    if dtype is None:
        fail(f"the dtype of {shown(node)} is not told; write it as int32(...) or float32(...)", node)
    assert isinstance(value, int | float)
    try:
        number = value if dtype.is_int else float(value)
    except OverflowError:
        fail(f"{shown(node)} does not fit into {dtype}", node)
    number = -number if negative else number
    if dtype.is_int:
        low, high = dtype.limits
        if type(number) is not int or not low <= number <= high:
            fail(f"expected an {dtype} from {low} to {high}, got {shown(node)}", node)
        return Const(number, dtype)
    with np.errstate(all="ignore"):
        rounded = float(dtype.numpy.type(number))
    if math.isinf(rounded) and not math.isinf(number):
        fail(f"{shown(node)} does not fit into {dtype}", node)
    return Const(rounded, dtype)

"""Values of a printed program, from Python's syntax tree. Nothing is evaluated."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence

import numpy as np

from ..arith import Poly
from .dtype import BOOL, DType, TypeMismatch
from .expr import (
    BINARY_OPS,
    UNARY_OPS,
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    InBounds,
    IndexValue,
    Select,
    Unary,
)
from .parse_indices import WORDS, Indices, fail, is_index, shown
from .rules import refused

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
_UNARY = {"not_" if op == "not" else op: op for op in UNARY_OPS}
_BINARY = frozenset(BINARY_OPS) - set(_INFIX.values())


class Values(Indices):
    """Reads values, too."""

    def under(self, variables: Mapping[str, Poly]) -> Values:
        """The same buffers, other variables."""
        return Values(self.buffers, variables, trusted=self.trusted)

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
        if is_index(node):
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
        if is_number or (isinstance(inner, ast.Name) and inner.id in WORDS):
            return _constant(a, inner, a is not inner, dtype)
        if isinstance(a, ast.Call) and isinstance(a.func, ast.Name) and a.func.id == "index":
            if len(a.args) != 1 or a.keywords:
                fail("index takes one index", a)
            return IndexValue(self.index(a.args[0]), self._number(dtype, node))
        if is_index(a):
            return IndexValue(self.index(a), self._number(dtype, node))
        return Cast(dtype, self.value(a, self.told(a)))

    def _number(self, dtype: DType, node: ast.AST) -> DType:
        if dtype.is_bool:
            fail("an index is not a bool", node)
        return dtype

    def _comparison(self, node: ast.Compare | ast.BoolOp) -> Expr:
        if isinstance(node, ast.BoolOp) or (
            is_index(node.left) and all(is_index(x) for x in node.comparators)
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
        return DType.scalar(name)
    except TypeMismatch:
        return None


def _constant(node: ast.expr, bare: ast.expr, negative: bool, dtype: DType | None) -> Const:
    """A literal as a value of the dtype; `bare` is the literal without its sign."""
    value = WORDS[bare.id] if isinstance(bare, ast.Name) else getattr(bare, "value", None)
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

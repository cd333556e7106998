"""Values: what the elements of tensors are computed from.

Each wraps the IR expression it stands for. The parts it was made of are kept beside it, so that a mistake
which only the whole expression shows (a read out of range, a reduce axis outside of its reduction) is
reported at the line of the part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..arith import Var
from ..ir.dtype import BOOL, DType, TypeMismatch
from ..ir.expr import COMPARE_OPS, Binary, Buffer, Compare, Const, Expr, Load, Unary
from ..ir.limits import MAX_DEPTH, MAX_NODES
from ..ir.rules import refused
from ..ir.span import Span, user_span
from ..ir.visit import indices_of
from .errors import mismatch, second_operand, tensor_error
from .literal import is_literal, literal
from .logic import conjunction, disjunction, negation
from .symbolic import INFIX, SIGNS, Symbolic

if TYPE_CHECKING:
    from .tensor import Tensor

_ADVICE = {
    ("add", "bool"): "use `|`",
    ("mul", "bool"): "use `&`",
    ("sub", "bool"): "use `^`",
    ("neg", "bool"): "use `~`",
    ("max", "bool"): "use `|`",
    ("min", "bool"): "use `&`",
    ("truediv", "int"): "use `//` or te.truncdiv, or te.cast to a float first",
    ("floordiv", "float"): "use te.floor(a / b)",
    ("floormod", "float"): "use a - te.floor(a / b) * b",
    ("pow", "int"): "write the product, or te.cast to a float first",
    ("not", "float"): "use a comparison first",
}

#: Of one expression; a program's loops around it count towards MAX_DEPTH as well.
DEPTH = MAX_DEPTH - 20

#: Literal exponents that become products.
_PRODUCTS = range(1, 5)


class Value(Symbolic):
    """An element: an IR expression, the values it was made of, and where."""

    __slots__ = ("depth", "expr", "nodes", "parts")

    depth: int
    nodes: int

    def __init__(self, expr: Expr, parts: tuple[Value, ...] = (), span: Span | None = None) -> None:
        self.expr = expr
        self.parts = parts
        self.span = span or user_span()
        self.depth = 1 + max((p.depth for p in parts), default=0)
        self.nodes = 1 + sum(p.nodes for p in parts)
        if self.depth > DEPTH or self.nodes > MAX_NODES:
            size = f"nested {self.depth} deep" if self.depth > DEPTH else f"of {self.nodes} nodes"
            most = DEPTH if self.depth > DEPTH else MAX_NODES
            raise tensor_error(
                f"the expression is {size}; at most {most} are allowed: use te.sum and its like over an "
                "axis, or make a part of it a tensor of its own with te.compute",
                self.span,
            )

    @property
    def dtype(self) -> DType:
        return self.expr.dtype

    def __repr__(self) -> str:
        from ..ir.spelling import expr

        return expr(self.expr)

    def _binary(self, op: str, a: object, b: object) -> Value:
        return arithmetic(op, a, b)

    def _unary(self, op: str) -> Value:
        return unary(op, self)


class Read(Value):
    """tensor[indices]"""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor, load: Load) -> None:
        super().__init__(load)
        self.tensor = tensor


class Reduction(Value):
    """A reduction of `term` over `axes`. The IR expression is a stand-in until te.compute gives the reduction
    a block. Without a reducer and axes: `term` itself, which te.compute makes a tensor of its own, so that
    all who use it see the same number."""

    __slots__ = ("axes", "init", "op", "term", "word")

    def __init__(
        self,
        word: str,
        op: str | None,
        term: Value,
        axes: tuple[Var, ...] = (),
        init: Const | None = None,
    ) -> None:
        super().__init__(Load(Buffer(word, (), term.dtype), ()))
        self.word = word
        self.op = op
        self.term = term
        self.axes = axes
        self.init = init


def free_vars(value: Value) -> set[Var]:
    """The variables that `value` depends on, without the axes of the reductions in it."""
    found = {v for p in indices_of(value.expr) for v in p.vars()}
    for r in reductions(value):
        found |= free_vars(r.term) - set(r.axes)
    return found


def reductions(value: Value) -> list[Reduction]:
    """The reductions in `value`, each once, in order; those inside their terms are not entered."""
    if isinstance(value, Reduction):
        return [value]
    out: list[Reduction] = []
    for part in value.parts:
        for r in reductions(part):
            if not any(r is known for known in out):
                out.append(r)
    return out


def reduced(value: Value) -> dict[Var, str]:
    """The axes that reductions in `value`, and inside of their terms, run over, each with the name of one."""
    out: dict[Var, str] = {}
    for r in reductions(value):
        out.update(reduced(r.term))
        out.update((v, r.word) for v in r.axes)
    return out


def reads(value: Value) -> list[Read]:
    """The tensor reads in `value`, in order; not those inside of reductions."""
    if isinstance(value, Read):
        return [value]
    return [r for part in value.parts for r in reads(part)]


def as_value(x: object, what: str) -> Value:
    """`x`, which must be a value already. Raises TypeMismatch saying what was found."""
    if isinstance(x, Value):
        return x
    raise mismatch(f"{what} must be a value, got {found(x)}")


def found(x: object) -> str:
    """What a user handed in, in words, with advice where it is a common slip."""
    from .tensor import Tensor

    if isinstance(x, Tensor):
        return f"the tensor {x.name!r}, which must be indexed"
    if isinstance(x, Value):
        return f"a value of dtype {x.dtype}"
    if isinstance(x, Symbolic):
        return f"the index {x!r}; te.cast makes it a value"
    if is_literal(x):
        return f"the literal {x!r}, which has no dtype; te.const gives it one"
    return type(x).__name__


def same_dtype(op: str, a: object, b: object) -> tuple[Value, Value]:
    """Both operands as values of one dtype; a literal takes the dtype of the other one."""
    sign = SIGNS.get(op, f"te.{op}")
    if not isinstance(a, Value) and not isinstance(b, Value):
        raise mismatch(f"{sign}: the operands are {found(a)}, and {found(b)}")
    if not isinstance(a, Value):
        assert isinstance(b, Value)
        return _adopt(sign, a, b.dtype), b
    if not isinstance(b, Value):
        return a, _adopt(sign, b, a.dtype, second_operand(None) if op in INFIX else None)
    if a.dtype != b.dtype:
        reason = f"{sign}: the operands are {a.dtype} and {b.dtype}; te.cast one of them"
        raise mismatch(reason, second_operand(b.span))
    return a, b


def _adopt(sign: str, x: object, dtype: DType, at: Span | None = None) -> Value:
    if not is_literal(x):
        raise mismatch(f"{sign}: the other operand is {found(x)}", at)
    return Value(literal(x, dtype, at))


def check(op: str, dtype: DType) -> None:
    """TypeMismatch, with advice, when `op` does not take `dtype`."""
    reason = refused(op, dtype)
    if reason is None:
        return
    kind = "bool" if dtype.is_bool else "float" if dtype.is_float else "int"
    advice = _ADVICE.get((op, kind))
    raise mismatch(f"{reason}; {advice}" if advice else reason)


def arithmetic(op: str, a: object, b: object) -> Value:
    """A binary operation or a comparison of two values."""
    if op == "pow" and isinstance(a, Value) and type(b) is int and b in _PRODUCTS and not a.dtype.is_bool:
        return _product(a, b)
    if op in ("shl", "shr") and isinstance(a, Value):
        # A literal first: out of range it need not be a value of the dtype.
        by = b.expr.value if isinstance(b, Value) and type(b.expr) is Const else b
        if is_literal(by) and not 0 <= by < a.dtype.bits:  # type: ignore[operator]
            raise mismatch(
                f"{SIGNS[op]}: the shift {by} is not in [0, {a.dtype.bits}), the bits of {a.dtype}"
            )
    x, y = same_dtype(op, a, b)
    check(op, x.dtype)
    if op in ("floordiv", "floormod", "truncdiv", "truncmod") and type(y.expr) is Const and y.expr.value == 0:
        raise mismatch(f"{SIGNS.get(op, f'te.{op}')}: division by zero")
    if x.dtype == BOOL and op in ("and", "or"):
        return Value((conjunction if op == "and" else disjunction)(x.expr, y.expr), (x, y))
    if op in COMPARE_OPS:
        return Value(Compare(op, x.expr, y.expr), (x, y))  # type: ignore[arg-type]
    return Value(Binary(op, x.expr, y.expr), (x, y))  # type: ignore[arg-type]


def _product(x: Value, n: int) -> Value:
    out = x
    for _ in range(n - 1):
        out = Value(Binary("mul", out.expr, x.expr), (out, x))
    return out


def unary(op: str, a: object) -> Value:
    """A function of one value."""
    x = as_value(a, f"the operand of te.{op}" if op not in ("neg", "not") else "the operand")
    check(op, x.dtype)
    if op == "not" and x.dtype == BOOL:
        return Value(negation(x.expr), (x,))
    return Value(Unary(op, x.expr), (x,))  # type: ignore[arg-type]


__all__ = ["Read", "Reduction", "TypeMismatch", "Value"]

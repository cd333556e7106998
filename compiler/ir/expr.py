"""Value expressions. Indices are polynomials (arith.Poly); everything else is one of these nodes.

Nodes are immutable and compare by identity; `structural.structural_equal` compares what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..arith import Poly
from .dtype import BOOL, DType

Scope = Literal["global", "local", "register"]
SCOPES: tuple[Scope, ...] = ("global", "local", "register")

BinaryOp = Literal[
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "floormod",
    "truncdiv",
    "truncmod",
    "min",
    "max",
    "pow",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
]
CompareOp = Literal["eq", "ne", "lt", "le", "gt", "ge"]
UnaryOp = Literal[
    "neg",
    "abs",
    "not",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "erf",
    "gelu",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
]

BINARY_OPS: tuple[str, ...] = BinaryOp.__args__  # type: ignore[attr-defined]
COMPARE_OPS: tuple[str, ...] = CompareOp.__args__  # type: ignore[attr-defined]
UNARY_OPS: tuple[str, ...] = UnaryOp.__args__  # type: ignore[attr-defined]
#: Unary operations that exist for floats only.
FLOAT_UNARY_OPS = frozenset(UNARY_OPS) - {"neg", "abs", "not"}


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A dense, row-major array. Scope `global`: a parameter or shared workspace; `local`: stack; `register`:
    local, and constant-indexed once its loops are unrolled.

    constant: a parameter whose contents are known before the calls and are the same for many of them; in a
    lowered kernel also a workspace that was filled before the call.
    """

    name: str
    shape: tuple[Poly, ...]
    dtype: DType
    scope: Scope = "global"
    constant: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """An immediate. The value is an int, a float or a bool that `dtype` can hold."""

    value: int | float | bool
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class IndexValue:
    """An index used as a value (`te.cast(i, "float32")`): the polynomial, converted to `dtype` with
    wrap-around."""

    index: Poly
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """buffer[indices]"""

    buffer: Buffer
    indices: tuple[Poly, ...]

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Binary:
    """An operation on two values of one dtype. Integers wrap around, and give 0 for a division by 0; a shift
    by the width or more, or by less than 0, leaves what shifting one bit at a time would: 0, or -1 of a
    negative number to the right. `min` and `max` of floats hand on NaN, as NumPy does; `pow` follows C."""

    op: BinaryOp
    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Compare:
    """A comparison of two values of one dtype; a bool."""

    op: CompareOp
    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return BOOL


@dataclass(frozen=True, slots=True, eq=False)
class Unary:
    """A function of one value; see FLOAT_UNARY_OPS. `round` rounds half to even."""

    op: UnaryOp
    a: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class InBounds:
    """A bool: every polynomial is negative. What te makes of comparisons between indices; such a condition
    guards reads."""

    conditions: tuple[Poly, ...]

    @property
    def dtype(self) -> DType:
        return BOOL


@dataclass(frozen=True, slots=True, eq=False)
class Select:
    """a where cond, else b. When cond is an InBounds, the reads of `a` happen only where it holds."""

    cond: Expr
    a: Expr
    b: Expr

    @property
    def dtype(self) -> DType:
        return self.a.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Cast:
    """A conversion with NumPy's astype rules (floats to integers truncate towards zero; integers wrap
    around)."""

    dtype: DType
    a: Expr


Expr = Const | IndexValue | Load | Binary | Compare | Unary | InBounds | Select | Cast
EXPR_TYPES: tuple[type, ...] = (Const, IndexValue, Load, Binary, Compare, Unary, InBounds, Select, Cast)

"""Functions of values and indices: what te offers beside the operators."""

from __future__ import annotations

from ..arith import Size, poly
from ..ir.dtype import BOOL, DType
from ..ir.expr import Binary, Cast, Const, InBounds, IndexValue, Select
from ..ir.rules import identity
from .errors import mismatch, parse_dtype, tensor_error
from .guards import unproved
from .index import Index, index_arithmetic, is_index
from .literal import is_literal, literal
from .logic import opposite
from .symbolic import Symbolic
from .tensor import check_name
from .value import Value, arithmetic, found, same_dtype, unary


def const(value: int | float | bool, dtype: str | DType = "float32") -> Value:
    """A constant. TypeMismatch when `dtype` cannot represent it."""
    return Value(literal(value, parse_dtype(dtype)))


def max_value(dtype: str | DType) -> Value:
    """The largest value of `dtype`; infinity for floats."""
    return Value(identity("min", parse_dtype(dtype)))


def min_value(dtype: str | DType) -> Value:
    """The smallest value of `dtype`; minus infinity for floats."""
    return Value(identity("max", parse_dtype(dtype)))


def cast(x: object, dtype: str | DType) -> Value:
    """`x`, a value, an index or a literal, converted by NumPy's astype rules."""
    to = parse_dtype(dtype)
    if isinstance(x, Index):
        if to.is_bool:
            raise mismatch("te.cast: an index is not a bool; compare it")
        return Value(IndexValue(x.poly, to))
    if is_literal(x):
        return Value(literal(x, to))
    if not isinstance(x, Value):
        raise mismatch(f"te.cast: expected a value, got {found(x)}")
    return x if x.dtype == to else Value(Cast(to, x.expr), (x,))


def maximum(a: object, b: object) -> Value | Index:
    """The larger of two operands, which may be indices; NaN where one of them is NaN."""
    return _two("max", a, b)


def minimum(a: object, b: object) -> Value | Index:
    """The smaller of two operands, which may be indices; NaN where one of them is NaN."""
    return _two("min", a, b)


def clamp(x: object, low: object, high: object) -> Value | Index:
    """`x` brought into [low, high]: te.minimum(te.maximum(x, low), high). NaN stays NaN. `x` may be an index.
    Raises TensorError for literal bounds in the wrong order."""
    if is_literal(low) and is_literal(high) and low > high:  # type: ignore[operator]
        raise tensor_error(f"te.clamp: the lower bound {low!r} is above the upper bound {high!r}")
    return minimum(maximum(x, low), high)


#: NumPy's name of clamp.
clip = clamp


def floordiv(a: object, b: object) -> Value | Index:
    """a / b of integers, rounded down. 0 where b is 0."""
    return _two("floordiv", a, b)


def floormod(a: object, b: object) -> Value | Index:
    """a - floordiv(a, b) * b: of the sign of b. 0 where b is 0."""
    return _two("floormod", a, b)


def truncdiv(a: object, b: object) -> Value | Index:
    """a / b of integers, rounded towards 0. 0 where b is 0."""
    return _two("truncdiv", a, b)


def truncmod(a: object, b: object) -> Value | Index:
    """a - truncdiv(a, b) * b: of the sign of a. 0 where b is 0."""
    return _two("truncmod", a, b)


def _two(op: str, a: object, b: object) -> Value | Index:
    if is_index(a) and is_index(b) and (isinstance(a, Index) or isinstance(b, Index)):
        return index_arithmetic(op, a, b)
    if isinstance(a, Index) or isinstance(b, Index):
        return index_arithmetic(op, a, b)
    return arithmetic(op, a, b)


def pow(a: object, b: object) -> Value:
    """a to the power of b, of floats; literal exponents 1 to 4 become products, of integers too."""
    return arithmetic("pow", a, b)


def exp(x: object) -> Value:
    """e to the power of x."""
    return unary("exp", x)


def log(x: object) -> Value:
    """The natural logarithm."""
    return unary("log", x)


def sqrt(x: object) -> Value:
    """The square root."""
    return unary("sqrt", x)


def rsqrt(x: object) -> Value:
    """1 / sqrt(x)"""
    return unary("rsqrt", x)


def tanh(x: object) -> Value:
    """The hyperbolic tangent."""
    return unary("tanh", x)


def sigmoid(x: object) -> Value:
    """1 / (1 + exp(-x))"""
    return unary("sigmoid", x)


def erf(x: object) -> Value:
    """The error function."""
    return unary("erf", x)


def gelu(x: object) -> Value:
    """x·Φ(x), where Φ(x) = (1 + erf(x/√2))/2: exact to the last places for negative x too."""
    return unary("gelu", x)


def sin(x: object) -> Value:
    """The sine."""
    return unary("sin", x)


def cos(x: object) -> Value:
    """The cosine."""
    return unary("cos", x)


def floor(x: object) -> Value:
    """The largest whole number not above x."""
    return unary("floor", x)


def ceil(x: object) -> Value:
    """The smallest whole number not below x."""
    return unary("ceil", x)


def round(x: object) -> Value:
    """The nearest whole number; of two, the even one."""
    return unary("round", x)


def abs(x: object) -> Value:
    """The absolute value; that of the smallest integer wraps around to itself."""
    return unary("abs", x)


def condition(x: object, what: str) -> Value:
    """`x`, which must be a bool. Raises TypeMismatch that starts with `what`."""
    if not isinstance(x, Value):
        raise mismatch(f"{what}: a condition must be a comparison, got {found(x)}")
    if x.dtype != BOOL:
        raise mismatch(f"{what}: a condition must be a bool, got {x.dtype}")
    return x


def if_then_else(cond: object, a: object, b: object) -> Value:
    """`a` where the condition holds, else `b`. Conditions on indices guard: what is read in the branch not
    taken may lie out of bounds."""
    test = condition(cond, "te.if_then_else")
    for branch in (a, b):
        if isinstance(branch, Symbolic) and not isinstance(branch, Value):
            raise mismatch(f"te.if_then_else: a branch is {found(branch)}")
    then, other = same_dtype("if_then_else", a, b)
    return _select(test, then, other)


def _select(test: Value, a: Value, b: Value) -> Value:
    e = test.expr
    if type(e) is Const:
        return a if e.value else b
    if type(e) is not InBounds:
        swapped = opposite(e)
        if swapped is not None:
            return _select(Value(swapped), b, a)
        if type(e) is Binary and e.op == "and" and type(e.a) is InBounds:
            # The index conditions stand alone in the outer selection, where they guard the reads of `a`.
            rest = Value(e.b, (test,))
            inner = Value(Select(e.b, a.expr, b.expr), (rest, a, b))
            return _select(Value(e.a), inner, b)
    elif unproved(b) is not None:
        # The reads of `b` may need the opposite of the condition: a selection of their own guards them.
        other = opposite(e)
        if other is not None:
            nothing = Value(_zero(b.dtype))
            b = Value(Select(other, b.expr, nothing.expr), (Value(other), b, nothing))
    return Value(Select(e, a.expr, b.expr), (test, a, b))


def _zero(dtype: DType) -> Const:
    return Const(False if dtype.is_bool else 0.0 if dtype.is_float else 0, dtype)


def var(name: str = "n", dtype: str | DType = "int64") -> Index:
    """An integer of at least 0 that is known when the kernel is called: a size. It may stand in shapes, in
    the domains of reduce axes, in indices and conditions; te.cast makes it a value. The call reads it off the
    arrays, so that it must be a dimension of a parameter by itself. Each call of te.var makes another size.
    `dtype` is int32 or int64; whichever is named, kernels compute with 64 bits."""
    check_name(name, "te.var")
    if str(parse_dtype(dtype)) not in ("int32", "int64"):
        raise mismatch(f"te.var({name!r}): a size is int32 or int64, got {dtype}")
    return Index(poly(Size(name)))

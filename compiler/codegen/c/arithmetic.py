"""Operations on values of one dtype, defined for every operand.

Integers wrap around: those of 32 and 64 bits are computed in the unsigned type, since a signed overflow
means nothing in C; narrower ones in int, which holds every result, and converted back. A conversion to a
signed type, and a signed number shifted right, are what every compiler makes of them (C11 leaves both to
the implementation): modulo 2^n, and with the sign repeated. Division of integers by zero gives 0, and so
does the remainder; the lowest integer divided by -1 is itself. A shift by the width or more (or by less
than 0) leaves what shifting one bit at a time would. `min` and `max` hand on NaN. A 16-bit float is
computed with as a float and rounded after each operation.
"""

from __future__ import annotations

from ...ir import DType
from ...ir.expr import BinaryOp, CompareOp, UnaryOp
from ..errors import BuildError
from .dtypes import (
    AND,
    BITS,
    EQUAL,
    LESS,
    OR,
    PREFIX,
    PRIMARY,
    PRODUCT,
    SHIFT,
    SUM,
    TERNARY,
    Text,
    at_least,
    cast,
    is_narrow,
    short,
    unsigned_type,
    value_type,
)
from .helpers import Helpers

_INFIX = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "truediv": ("/", PRODUCT)}
_BITWISE = {"and": "&", "or": "|", "xor": "^"}
_LOGICAL = {"and": ("&&", AND), "min": ("&&", AND), "or": ("||", OR), "max": ("||", OR), "xor": ("!=", EQUAL)}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: Functions of the C library, or helpers; without the f of those of floats.
_LIBRARY = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "tanh": "tanh", "erf": "erf", "sin": "sin", "cos": "cos",
    "floor": "floor", "ceil": "ceil", "round": "nearbyint", "abs": "fabs",
}  # fmt: skip
#: Functions of a 16-bit float whose result is one already.
_EXACT = ("neg", "abs", "floor", "ceil", "round", "min", "max")


class Arithmetic:
    """Writes operations; what they need of helpers goes to `helpers`."""

    def __init__(self, helpers: Helpers) -> None:
        self._helpers = helpers

    def binary(self, op: BinaryOp, dtype: DType, a: Text, b: Text, constant: object = None) -> Text:
        """`constant` is the second operand where it is an immediate. Raises BuildError for what the dtype
        does not have.
        """
        if dtype.is_float and (op in _INFIX or op in ("min", "max", "pow")):
            return self._float(op, dtype, a, b)
        if dtype.is_bool and op in _LOGICAL:
            sign, level = _LOGICAL[op]
            return Text(f"{at_least(a, PREFIX)} {sign} {at_least(b, PREFIX)}", level)
        if dtype.is_int:
            if op in ("add", "sub", "mul"):
                return self._wrapping(op, dtype, a, b)
            if op in _BITWISE:
                return Text(f"{at_least(a, PREFIX)} {_BITWISE[op]} {at_least(b, PREFIX)}", BITS)
            if op in ("shl", "shr") and type(constant) is int and 0 <= constant < dtype.bits:
                return self._shift(op, dtype, a, constant)
            if op not in ("truediv", "pow"):
                return Text(f"{self._helpers.operation(op, dtype)}({a.text}, {b.text})")
        raise BuildError(f"no code for {op} of {dtype}")

    def compare(self, op: CompareOp, a: Text, b: Text) -> Text:
        """A condition."""
        level = EQUAL if op in ("eq", "ne") else LESS
        return Text(f"{at_least(a, SHIFT)} {_COMPARE[op]} {at_least(b, SHIFT)}", level)

    def unary(self, op: UnaryOp, dtype: DType, a: Text) -> Text:
        """Raises BuildError for what the dtype does not have."""
        if dtype.is_bool and op == "not":
            return Text(f"!{at_least(a, PREFIX)}", PREFIX)
        if dtype.is_int and op in ("neg", "abs", "not"):
            return self._integer(op, dtype, a)
        if not dtype.is_float or op == "not":
            raise BuildError(f"no code for {op} of {dtype}")
        if op == "neg":
            return Text(f"-{at_least(a, PRIMARY)}", PREFIX)
        if op in _LIBRARY:
            out = Text(f"{_LIBRARY[op]}{'' if dtype.bits == 64 else 'f'}({a.text})")
        else:
            wide = DType("float", max(dtype.bits, 32))
            out = Text(f"{self._helpers.operation(op, wide)}({a.text})")
        return out if op in _EXACT else self.rounded(dtype, out)

    def select(self, condition: Text, a: Text, b: Text) -> Text:
        """a where the condition holds, else b; only one of them is evaluated."""
        test, one, other = at_least(condition, OR), at_least(a, OR), at_least(b, TERNARY)
        return Text(f"{test} ? {one} : {other}", TERNARY)

    def rounded(self, dtype: DType, x: Text) -> Text:
        """A float as a value of the dtype it was computed for."""
        if not is_narrow(dtype):
            return x
        return Text(f"{self._helpers.narrow(f'round_{short(dtype)}')}({x.text})", PRIMARY, (x.text, x.level))

    def convert(self, x: Text, source: DType, target: DType) -> Text:
        """The value of one dtype as one of another, by NumPy's astype rules."""
        if source == target:
            return x
        if target.is_bool:
            return Text(f"{at_least(x, SHIFT)} != 0", EQUAL)
        if not target.is_float:
            return self._to_integer(x, source, target)
        if is_narrow(target) and (odd := _odd(source, target)):
            wide = x if source.bits == 64 else cast("double", x)
            return self.rounded(target, Text(f"{self._helpers.narrow(odd)}({wide.text})"))
        if not source.is_float or 64 in (source.bits, target.bits):
            x = cast(value_type(target), x)
        return self.rounded(target, Text(x.text, x.level))

    # ---- floats ----
    def _float(self, op: str, dtype: DType, a: Text, b: Text) -> Text:
        if op in ("min", "max"):
            wide = DType("float", max(dtype.bits, 32))
            return Text(f"{self._helpers.operation(op, wide)}({a.text}, {b.text})")
        if op == "pow":
            name = "pow" if dtype.bits == 64 else "powf"
            return self.rounded(dtype, Text(f"{name}({a.text}, {b.text})"))
        sign, level = _INFIX[op]
        return self.rounded(dtype, Text(f"{at_least(a, level)} {sign} {at_least(b, level + 1)}", level))

    # ---- integers ----
    def _wrapping(self, op: str, dtype: DType, a: Text, b: Text) -> Text:
        sign, level = _INFIX[op]
        if dtype.code == "uint" and dtype.bits >= 32:
            return Text(f"{at_least(a, level)} {sign} {at_least(b, level + 1)}", level)
        if dtype.bits >= 32 or (dtype == DType("uint", 16) and op == "mul"):
            a, b = self._unsigned(dtype, a), self._unsigned(dtype, b)
        text = f"{at_least(a, level)} {sign} {at_least(b, level + 1)}"
        bare = (text, level) if dtype.bits >= 32 else None
        return Text(f"({value_type(dtype)})({text})", PREFIX, bare)

    def _unsigned(self, dtype: DType, x: Text) -> Text:
        """The value in the unsigned type in which it wraps around."""
        if x.bare is not None:
            return Text(*x.bare)
        kind = unsigned_type(dtype)
        if x.text.isdecimal():
            return Text(f"{x.text}u") if dtype.bits < 64 else Text(f"UINT64_C({x.text})")
        return cast(kind, x)

    def _shift(self, op: str, dtype: DType, a: Text, by: int) -> Text:
        if op == "shr":
            return Text(f"{at_least(a, PREFIX)} >> {by}", SHIFT)
        return cast(value_type(dtype), Text(f"{cast(unsigned_type(dtype), a).text} << {by}", SHIFT))

    def _integer(self, op: str, dtype: DType, a: Text) -> Text:
        kind = value_type(dtype)
        if op == "abs":
            return a if dtype.code == "uint" else Text(f"{self._helpers.operation(op, dtype)}({a.text})")
        if op == "not":
            text = Text(f"~{at_least(a, PRIMARY)}", PREFIX)
            return cast(kind, text) if dtype.code == "uint" and dtype.bits < 32 else text
        if dtype.bits < 32:
            return cast(kind, Text(f"-{at_least(a, PRIMARY)}", PREFIX))
        if dtype.code == "uint":
            return Text(f"-{at_least(a, PRIMARY)}", PREFIX)
        minus = f"-{at_least(self._unsigned(dtype, a), PRIMARY)}"
        return Text(f"({kind}){minus}", PREFIX, (minus, PREFIX))

    def _to_integer(self, x: Text, source: DType, target: DType) -> Text:
        kind = value_type(target)
        if not source.is_float:
            return cast(kind, x)
        wide = DType("float", max(source.bits, 32))
        if target.code == "uint" and target.bits == 64:
            through = target
        elif target.bits < 32 or target == DType("int", 32):
            through = DType("int", 32)
        else:
            through = DType("int", 64)
        whole = Text(f"{self._helpers.whole(wide, through)}({x.text})")
        return whole if through == target else cast(kind, whole)


def _odd(source: DType, target: DType) -> str | None:
    """What makes a float of a value that a float need not hold, where the next rounding must be the only
    one: bfloat16 has the range of one, and what float16 holds of the integers float does.
    """
    if source == DType("float", 64) or (source.is_int and source.bits == 32 and target.code == "bfloat"):
        return "odd_f64"
    return f"odd_{short(source)}" if source.is_int and source.bits == 64 and target.code == "bfloat" else None

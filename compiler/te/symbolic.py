"""What operators are overloaded on: values and indices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..ir.span import Span
from .errors import mismatch

if TYPE_CHECKING:
    from .value import Value

#: Binary operations that are written between their operands.
INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "floormod": "%",
    "pow": "**",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}
#: Every binary operation whose name differs from what a user writes for it.
SIGNS = {**INFIX, "min": "te.minimum", "max": "te.maximum"}


class Symbolic:
    """An expression that has no value yet. `a == b` builds a comparison; hashing is by identity; bool() is an
    error."""

    __slots__ = ("span",)

    span: Span | None

    def _binary(self, op: str, a: object, b: object) -> Any:
        raise TypeError(f"{type(self).__name__} has no operators")

    def _unary(self, op: str) -> Any:
        raise TypeError(f"{type(self).__name__} has no operators")

    def __add__(self, other: object) -> Any:
        return self._binary("add", self, other)

    def __radd__(self, other: object) -> Any:
        return self._binary("add", other, self)

    def __sub__(self, other: object) -> Any:
        return self._binary("sub", self, other)

    def __rsub__(self, other: object) -> Any:
        return self._binary("sub", other, self)

    def __mul__(self, other: object) -> Any:
        return self._binary("mul", self, other)

    def __rmul__(self, other: object) -> Any:
        return self._binary("mul", other, self)

    def __truediv__(self, other: object) -> Any:
        return self._binary("truediv", self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self._binary("truediv", other, self)

    def __floordiv__(self, other: object) -> Any:
        return self._binary("floordiv", self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return self._binary("floordiv", other, self)

    def __mod__(self, other: object) -> Any:
        return self._binary("floormod", self, other)

    def __rmod__(self, other: object) -> Any:
        return self._binary("floormod", other, self)

    def __pow__(self, other: object) -> Any:
        return self._binary("pow", self, other)

    def __rpow__(self, other: object) -> Any:
        return self._binary("pow", other, self)

    def __and__(self, other: object) -> Any:
        return self._binary("and", self, other)

    def __rand__(self, other: object) -> Any:
        return self._binary("and", other, self)

    def __or__(self, other: object) -> Any:
        return self._binary("or", self, other)

    def __ror__(self, other: object) -> Any:
        return self._binary("or", other, self)

    def __xor__(self, other: object) -> Any:
        return self._binary("xor", self, other)

    def __rxor__(self, other: object) -> Any:
        return self._binary("xor", other, self)

    def __lshift__(self, other: object) -> Any:
        # By the width or more, or by less than 0: 0. A literal that is out of range is refused.
        return self._binary("shl", self, other)

    def __rlshift__(self, other: object) -> Any:
        return self._binary("shl", other, self)

    def __rshift__(self, other: object) -> Any:
        # By the width or more, or by less than 0: 0, and -1 of a negative number.
        return self._binary("shr", self, other)

    def __rrshift__(self, other: object) -> Any:
        return self._binary("shr", other, self)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return self._binary("eq", self, other)  # type: ignore[no-any-return]

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return self._binary("ne", self, other)  # type: ignore[no-any-return]

    def __lt__(self, other: object) -> Value:
        return self._binary("lt", self, other)  # type: ignore[no-any-return]

    def __le__(self, other: object) -> Value:
        return self._binary("le", self, other)  # type: ignore[no-any-return]

    def __gt__(self, other: object) -> Value:
        return self._binary("gt", self, other)  # type: ignore[no-any-return]

    def __ge__(self, other: object) -> Value:
        return self._binary("ge", self, other)  # type: ignore[no-any-return]

    def __neg__(self) -> Any:
        return self._unary("neg")

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._unary("abs")

    def __invert__(self) -> Any:
        return self._unary("not")

    __hash__ = object.__hash__

    #: NumPy scalars and arrays leave a binary operation to us instead of looking for elements.
    __array_ufunc__ = None

    def _number(self) -> NoReturn:
        raise mismatch(
            "a symbolic expression is no number while the program is written; te.cast changes its dtype, "
            "and te.exp and its like take the place of the functions of math"
        )

    __float__ = __int__ = _number

    def __bool__(self) -> NoReturn:
        raise mismatch(
            "the truth of a symbolic expression is not known while the program is written; "
            "use te.if_then_else instead of `if`, te.all or & instead of `and` and of a < b < c, "
            "te.any or | instead of `or`, ~ instead of `not`"
        )

"""What a user-made combine function does, read from what it returns for symbolic operands.

Only what is known to be associative and commutative is accepted, so that a schedule may take the steps of a
reduction in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from ..ir.dtype import DType
from ..ir.expr import Binary, Buffer, Compare, Expr, Load, Select, Unary
from ..ir.rules import REDUCERS
from ..ir.spelling import expr as printed
from .errors import mismatch, tensor_error
from .value import Value, found

Extreme = Literal["min", "max"]


@dataclass(frozen=True, slots=True)
class Plain:
    """x op y"""

    op: str


@dataclass(frozen=True, slots=True)
class Place:
    """That of the operand whose component `of` is the extreme one; of equal ones the least or the largest
    place, as `tie` says."""

    of: int
    op: Extreme
    tie: Extreme


Rule = Plain | Place

FORMS = (
    "x + y, x * y, x & y, x | y, x ^ y, te.minimum(x, y), te.maximum(x, y), "
    "or a selection of x or y by which is smaller"
)
#: Whether x is chosen, for each outcome (-1, 0, 1) of comparing the components with each other.
Order = dict[int, int]


def rules_of(
    fcombine: Callable[..., Any], dtypes: Sequence[DType], what: str, single: bool
) -> tuple[Rule, ...]:
    """How each component is combined. TensorError, at the line of the component, for what is not known to be
    associative and commutative; TypeMismatch for what the dtypes do not have."""
    operands = [
        tuple(
            Value(Load(Buffer(f"{side}{'' if single else f'[{n}]'}", (), d), ()))
            for n, d in enumerate(dtypes)
        )
        for side in ("x", "y")
    ]
    result = fcombine(operands[0][0], operands[1][0]) if single else fcombine(*operands)
    results = (result,) if single else result
    if not isinstance(results, tuple) or len(results) != len(dtypes):
        got = f"a tuple of {len(results)}" if isinstance(results, tuple) else found(results)
        raise tensor_error(f"{what}: the combine function must return a tuple of {len(dtypes)}, got {got}")
    for r in results:
        if not isinstance(r, Value):
            raise mismatch(f"{what}: the combine function must return a value, got {found(r)}")
    ids = {v.expr.buffer: n for side in operands for n, v in enumerate(side)}  # type: ignore[union-attr]
    reader = _Reader(operands[0], operands[1], ids, what)
    rules = tuple(reader.rule(n, r) for n, r in enumerate(results))
    for n, rule in enumerate(rules):
        if isinstance(rule, Place) and rules[rule.of] != Plain(rule.op):
            raise reader.refusal(
                n,
                results[n],
                f"it is chosen by the {rule.op}imum of component {rule.of}, "
                "which is not what becomes of that component",
            )
    return rules


@dataclass(frozen=True, slots=True)
class _Reader:
    x: tuple[Value, ...]
    y: tuple[Value, ...]
    ids: dict[Buffer, int]
    what: str

    def rule(self, n: int, r: Value) -> Rule:
        e = r.expr
        if r.dtype != self.x[n].dtype:
            raise self.refusal(n, r, f"it is {r.dtype}, and the operands are {self.x[n].dtype}")
        if type(e) is Binary and e.op in REDUCERS and self._own(n, e.a, e.b) is not None:
            return Plain(e.op)
        if type(e) is Select:
            own = self._own(n, e.a, e.b)
            if own is not None:
                return self._selection(n, r, e.cond, own)
        raise self.refusal(n, r, None)

    def _own(self, n: int, a: Expr, b: Expr) -> bool | None:
        """Whether a and b are components n of x and y, True, or of y and x, False; else None."""
        x, y = self.x[n].expr, self.y[n].expr
        if type(a) is not Load or type(b) is not Load:
            return None
        both = (a.buffer, b.buffer)
        assert type(x) is Load and type(y) is Load
        return True if both == (x.buffer, y.buffer) else False if both == (y.buffer, x.buffer) else None

    def _selection(self, n: int, r: Value, cond: Expr, straight: bool) -> Rule:
        compared = self._compared(cond)
        if compared is None:
            raise self.refusal(
                n, r, "its condition is more than comparisons of x with y, component by component"
            )

        def takes_x(order: Order) -> bool:
            return self._holds(cond, order) is straight

        others = sorted(compared - {n})
        if n in compared:
            # Whatever the other components say, the smaller (or the larger) one is taken.
            less, more = ({takes_x(o) for o in _orders(others, {n: sign})} for sign in (-1, 1))
            if len(less) == len(more) == 1 and less != more:
                return Plain("min" if True in less else "max")
        for of in others:
            if compared - {n, of}:
                continue
            less, more = ({takes_x(o) for o in _orders([n], {of: sign})} for sign in (-1, 1))
            if not (len(less) == len(more) == 1 and less != more):
                continue
            low, high = takes_x({of: 0, n: -1}), takes_x({of: 0, n: 1})
            if low == high:
                raise self.refusal(
                    n,
                    r,
                    f"where the components {of} are equal it depends on which operand comes first; "
                    f"let the smaller component {n} decide",
                )
            return Place(of, "min" if True in less else "max", "min" if low else "max")
        raise self.refusal(n, r, "its condition does not order the operands")

    def _compared(self, cond: Expr) -> set[int] | None:
        """The components that the condition compares; None when there is more in it."""
        match cond:
            case Compare(_, Load(a, ()), Load(b, ())):
                n = self.ids.get(a)
                return {n} if n is not None and a is not b and self.ids.get(b) == n else None
            case Binary("and" | "or", a, b):
                left, right = self._compared(a), self._compared(b)
                return None if left is None or right is None else left | right
            case Unary("not", a):
                return self._compared(a)
        return None

    def _holds(self, cond: Expr, order: Order) -> bool:
        match cond:
            case Compare(op, Load(a, ())):
                n = self.ids[a]
                x = self.x[n].expr
                assert type(x) is Load
                sign = order[n] if a is x.buffer else -order[n]
                return {
                    "lt": sign < 0,
                    "le": sign <= 0,
                    "gt": sign > 0,
                    "ge": sign >= 0,
                    "eq": sign == 0,
                    "ne": sign != 0,
                }[op]
            case Binary("and", a, b):
                return self._holds(a, order) and self._holds(b, order)
            case Binary("or", a, b):
                return self._holds(a, order) or self._holds(b, order)
            case Unary("not", a):
                return not self._holds(a, order)
        raise AssertionError(cond)

    def refusal(self, n: int, r: Value, why: str | None) -> Exception:
        component = "the result" if len(self.x) == 1 else f"component {n}"
        text = printed(r.expr).replace("[()]", "")
        reason = f"; {why}" if why else ""
        return tensor_error(
            f"{self.what}: {component} is {text}, which is not known to be associative and commutative"
            f"{reason}; known are {FORMS}",
            r.span,
        )


def _orders(free: Sequence[int], fixed: Order) -> list[Order]:
    return [
        {**fixed, **dict(zip(free, signs, strict=True))} for signs in product((-1, 0, 1), repeat=len(free))
    ]

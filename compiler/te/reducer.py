"""te.comm_reducer: reductions by a combine function of the user's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from ..ir.dtype import BOOL, FLOAT32, INT32, DType, TypeMismatch
from ..ir.expr import Const
from ..ir.rules import identity
from .combine import Plain, Rule, rules_of
from .errors import mismatch, tensor_error
from .extremum import extremum
from .literal import is_literal, literal
from .reduce import Axes, accumulate, axes_of, reduction, term_of
from .tensor import check_name
from .value import Value, found

#: Dtypes that stand in for those of a later call while the definition is checked.
_PROBES = (INT32, FLOAT32, BOOL)
#: With more components than this, all of them get the same stand-in.
_MIXED = 3


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> CommReducer:
    """A reduction by a combine function: `fcombine(x, y)` with two values, or two tuples of values, gives
    their combination; `fidentity(dtype, …)`, with the name of a dtype for each component, gives what changes
    nothing.

    The combine function is called with symbolic operands, and accepted when each component of its result is
    `x op y` of its own operands with + * & | ^ te.minimum te.maximum, or a selection of x or y by which of
    them is smaller, or by which has the smaller (larger) other component, where of equal ones the smaller (or
    the larger) one of its own wins. Everything else is refused with a TensorError at the line of the
    component, and so is an identity that is not that of the operation. Selections take NaN for more extreme
    than everything, as te.min, te.max and te.argmin do; sums and products accumulate as te.sum does.
    """
    check_name(name, "te.comm_reducer")
    what = f"te.comm_reducer {name!r}"
    for f, word in ((fcombine, "combine"), (fidentity, "identity")):
        if not callable(f):
            raise tensor_error(f"{what}: the {word} function is {type(f).__name__}")
    if _parameters(fcombine) != 2:
        raise tensor_error(f"{what}: the combine function must take 2 arguments, the operands")
    count = _parameters(fidentity)
    if count < 1:
        raise tensor_error(f"{what}: the identity function must take a dtype for each component, takes none")
    made = CommReducer(name, fcombine, fidentity, count)
    first: TypeMismatch | None = None
    mixed = product(_PROBES, repeat=count) if count <= _MIXED else ((d,) * count for d in _PROBES)
    for dtypes in mixed:
        try:
            made.rules(dtypes)
            return made
        except TypeMismatch as e:
            first = first or e
    assert first is not None
    raise first


def _parameters(f: Callable[..., Any]) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        return sum(p.kind in kinds and p.default is p.empty for p in inspect.signature(f).parameters.values())
    except ValueError:
        return 0


@dataclass(frozen=True, slots=True, eq=False)
class CommReducer:
    """A reduction that te.comm_reducer made; called as te.sum is, with a value, or a tuple of values when it
    has several components, and then gives a tuple."""

    name: str
    fcombine: Callable[..., Any]
    fidentity: Callable[..., Any]
    count: int

    def __call__(self, expr: object, axis: Axes) -> Any:
        what = f"te.comm_reducer {self.name!r}"
        given = (expr,) if self.count == 1 else expr
        if not isinstance(given, tuple) or len(given) != self.count:
            got = f"a tuple of {len(given)}" if isinstance(given, tuple) else found(given)
            raise tensor_error(f"{what} takes a tuple of {self.count} values, got {got}")
        terms = [self._term(x) for x in given]
        axes_of(self.name, axis, terms)
        rules = self.rules([t.dtype for t in terms])
        out: list[Value | None] = [
            self._plain(r.op, t, axis) if isinstance(r, Plain) else None
            for r, t in zip(rules, terms, strict=True)
        ]
        for n, r in enumerate(rules):
            if not isinstance(r, Plain):
                out[n], out[r.of] = extremum(self.name, r.op, r.tie, terms[r.of], terms[n], axis)
        return out[0] if self.count == 1 else tuple(out)

    def _term(self, x: object) -> Value:
        if not isinstance(x, Value):
            raise mismatch(f"te.comm_reducer {self.name!r}: expected a value, got {found(x)}")
        return x

    def _plain(self, op: str, term: Value, axis: Axes) -> Value:
        if op in ("add", "mul"):
            return accumulate(self.name, op, term_of(self.name, term), axis, None)
        return reduction(self.name, op, term, axis)

    def rules(self, dtypes: Sequence[DType]) -> tuple[Rule, ...]:
        """How each component of these dtypes is combined; the identity is checked as well."""
        what = f"te.comm_reducer {self.name!r}"
        rules = rules_of(self.fcombine, dtypes, what, self.count == 1)
        given = self.fidentity(*map(str, dtypes))
        values = (given,) if self.count == 1 else given
        if not isinstance(values, tuple) or len(values) != self.count:
            got = f"a tuple of {len(values)}" if isinstance(values, tuple) else found(values)
            raise tensor_error(
                f"{what}: the identity function must return a tuple of {self.count}, got {got}"
            )
        for n, (rule, value, dtype) in enumerate(zip(rules, values, dtypes, strict=True)):
            op = rule.op if isinstance(rule, Plain) else rule.tie
            right = identity(op, dtype)
            own = _constant(value, dtype, what)
            if own.value != right.value:
                of = "" if self.count == 1 else f" of component {n}"
                raise tensor_error(
                    f"{what}: the identity{of} is {own.value!r}; "
                    f"{_what(rule)} of {dtype} is left as it is by {right.value!r} only",
                    value.span if isinstance(value, Value) else None,
                )
        return rules


def _what(rule: Rule) -> str:
    if isinstance(rule, Plain):
        signs = {"add": "a sum", "mul": "a product", "min": "a minimum", "max": "a maximum"}
        return signs.get(rule.op, f"a reduction by {rule.op!r}")
    return f"the {'smallest' if rule.tie == 'min' else 'largest'} place"


def _constant(x: object, dtype: DType, what: str) -> Const:
    if is_literal(x):
        return literal(x, dtype)
    if isinstance(x, Value) and type(x.expr) is Const:
        if x.dtype != dtype:
            raise mismatch(f"{what}: the identity is {x.dtype}, and the operands are {dtype}")
        return x.expr
    raise mismatch(f"{what}: the identity must be a constant, got {found(x)}")

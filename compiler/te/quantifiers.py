"""all and any: of several conditions, or of one over reduce axes."""

from __future__ import annotations

from .errors import mismatch, tensor_error
from .functions import condition
from .logic import conjunction, disjunction
from .reduce import Axes, reduction
from .value import Value


def all(*conditions: object, axis: Axes | None = None) -> Value:
    """Whether every condition holds. Those on indices guard the reads of te.if_then_else. With `axis`:
    whether the one condition holds at every step of it."""
    return _fold("all", conditions, axis)


def any(*conditions: object, axis: Axes | None = None) -> Value:
    """Whether some condition holds. With `axis`: whether the one condition holds at some step of it."""
    return _fold("any", conditions, axis)


def _fold(name: str, conditions: tuple[object, ...], axis: Axes | None) -> Value:
    if not conditions:
        raise mismatch(f"te.{name} takes at least one condition")
    given = [condition(c, f"te.{name}") for c in conditions]
    if axis is not None:
        if len(given) > 1:
            raise tensor_error(f"te.{name}: one condition over `axis`, got {len(given)}")
        return reduction(name, "and" if name == "all" else "or", given[0], axis)
    join = conjunction if name == "all" else disjunction
    out = given[0]
    for right in given[1:]:
        out = Value(join(out.expr, right.expr), (out, right))
    return out

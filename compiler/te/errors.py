"""Errors of tensor expressions; each names the line where the user wrote the mistake."""

from __future__ import annotations

from ..ir.dtype import DType
from ..ir.dtype import TypeMismatch as TypeMismatch
from ..ir.span import Span, user_lines, user_span


class TensorError(ValueError):
    """A tensor expression that means nothing: a wrong shape, index, axis or parameter list."""


def located(message: str, span: Span | None = None) -> str:
    """`message` with the user's file and line below it: those of `span`, or of the call in progress."""
    at = span or user_span()
    return f"{message}\n  at {at}" if at is not None else message


def tensor_error(message: str, span: Span | None = None) -> TensorError:
    """A TensorError that knows where it happened."""
    return TensorError(located(message, span))


def mismatch(message: str, span: Span | None = None) -> TypeMismatch:
    """A TypeMismatch that knows where it happened."""
    return TypeMismatch(located(message, span))


def second_operand(span: Span | None) -> Span | None:
    """The line of the second operand of the operation that the user's program is at, whose own line is `span`
    (None for a literal, which has none). None where it stands elsewhere."""
    lines = user_lines()
    if lines is None:
        return None
    first, last = lines
    if span is None:
        return last
    return span if span.file == first.file and first.line <= span.line <= last.line else None


def parse_dtype(dtype: str | DType) -> DType:
    """The dtype of that name. TypeMismatch, with the user's line and the known names."""
    try:
        return DType.scalar(dtype)
    except TypeMismatch as e:
        raise mismatch(str(e)) from None

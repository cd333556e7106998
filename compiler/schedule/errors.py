"""Errors of scheduling."""

from __future__ import annotations

from ..ir import Block, PrimFunc, Span, Stmt, script


class ScheduleError(Exception):
    """A primitive that may not be applied: which one, why, and where. The text is made when it is asked
    for."""

    def __init__(
        self,
        primitive: str,
        reason: str,
        func: PrimFunc | None = None,
        at: Stmt | None = None,
        span: Span | None = None,
    ) -> None:
        super().__init__(primitive, reason, func, at, span)
        self.primitive = primitive
        self.reason = reason
        self.func = func
        self.at = at
        #: The user's line that asked for the primitive.
        self.span = span

    def __str__(self) -> str:
        lines = [f"{self.primitive}: {self.reason}"]
        if self.span is not None:
            lines.append(f"  at {self.span}")
        if self.func is not None and self.at is not None:
            what = "this block" if type(self.at) is Block else "this loop"
            lines += ["  " + line for line in script(self.func, self.at, what).rstrip("\n").split("\n")]
        return "\n".join(lines)


class TraceError(ValueError):
    """A trace that is not one: what was wrong and where, as a JSON pointer."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message, pointer)
        self.message = message
        self.pointer = pointer

    def __str__(self) -> str:
        return f"{self.message} (at {self.pointer})" if self.pointer else self.message

"""Errors of making machine code."""

from __future__ import annotations

from ..ir import Block, PrimFunc, Stmt, script
from .llvm.jit import BuildError

__all__ = ["BuildError", "LoweringError"]


class LoweringError(BuildError):
    """A scheduled program that cannot become instructions: which step refused it, why, and where. The text
    is made when asked for.
    """

    def __init__(self, step: str, reason: str, func: PrimFunc | None = None, at: Stmt | None = None) -> None:
        super().__init__(f"{step}: {reason}")
        self.args = (step, reason, func, at)  # all of them: it must survive pickling
        self.step = step
        self.reason = reason
        self.func = func
        self.at = at

    def __str__(self) -> str:
        lines = [self.message]
        if self.func is not None and self.at is not None:
            span = self.at.span if type(self.at) is Block else self.func.span
            if span is not None:
                lines.append(f"  at {span}")
            what = "this block" if type(self.at) is Block else "this loop"
            lines += ["  " + line for line in script(self.func, self.at, what).rstrip("\n").split("\n")]
        return "\n".join(lines)

"""Errors of the IR."""

from __future__ import annotations


class VerifyError(ValueError):
    """A program that may not be run. `pointer` is a JSON pointer into the document it came from, or empty."""

    def __init__(self, message: str, pointer: str = "") -> None:
        super().__init__(message, pointer)
        self.message = message
        self.pointer = pointer

    def __str__(self) -> str:
        return f"{self.message} (at {self.pointer})" if self.pointer else self.message


class ScriptError(VerifyError):
    """A text that is no program: what was expected, and the line and column (both from 1) where it was not
    found."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        # All of them: it must survive pickling.
        self.args = (message, line, column)
        self.line = line
        self.column = column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"

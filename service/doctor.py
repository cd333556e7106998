"""What is wrong with a worker here: the steps of attaching it, one after another, each with its own error.

A step that stands on one that failed is skipped. The exit code is the one that `worker run` would end with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Finding", "Status", "Step", "Trouble", "Warned", "examine", "exit_of_findings"]

Status = Literal["ok", "warning", "failed", "skipped"]


class Trouble(Exception):
    """A step failed, so that a worker would end with `code`."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message, code)
        self.message = message
        self.code = code

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class Warned:
    """What a step found that a worker can live with."""

    message: str


@dataclass(frozen=True, slots=True)
class Step:
    """`look` says what it found, or raises Trouble. `after`: steps that must not have failed."""

    name: str
    look: Callable[[], str | Warned]
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What a step came to; `exit` is the code that it would end a worker with."""

    name: str
    status: Status
    detail: str
    exit: int = 0

    def to_json(self) -> dict[str, Any]:
        return {"step": self.name, "status": self.status, "detail": self.detail, "exit": self.exit}


def examine(steps: list[Step]) -> Iterator[Finding]:
    """Each step's finding, as soon as it is there."""
    well: set[str] = set()
    for step in steps:
        missing = [name for name in step.after if name not in well]
        if missing:
            yield Finding(step.name, "skipped", f"it stands on: {', '.join(missing)}")
            continue
        try:
            found = step.look()
        except Trouble as trouble:
            yield Finding(step.name, "failed", str(trouble), trouble.code)
            continue
        well.add(step.name)
        if isinstance(found, Warned):
            yield Finding(step.name, "warning", found.message)
        else:
            yield Finding(step.name, "ok", found)


def exit_of_findings(findings: list[Finding]) -> int:
    """That of the first step that failed: what a worker does one after another; else 0."""
    return next((finding.exit for finding in findings if finding.status == "failed"), 0)

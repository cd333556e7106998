"""What a rule must not raise stays with the rule: one that fails costs a workload its structures and no more.

This is where rules meet the rest, so any exception is caught here, and told with the place it came from.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from ..ir import PrimFunc
from ..schedule import Schedule, ScheduleError
from ..target import Target
from .groups import Group
from .sketch import Constraint

__all__ = ["Broken", "RuleError", "contained", "guarded"]

P = ParamSpec("P")
T = TypeVar("T")


class RuleError(Exception):
    """A rule of the space raised what it must not. rule: the rule, or the structure that it proposed.
    workload: the name of the program. told: the exception, and where it was raised."""

    def __init__(self, rule: str, workload: str, told: str) -> None:
        super().__init__(rule, workload, told)
        self.rule = rule
        self.workload = workload
        self.told = told

    def __str__(self) -> str:
        return f"rule {self.rule!r} fails on {self.workload!r}: {self.told}"


@dataclass(frozen=True, slots=True)
class Broken:
    """Stands among a rule's structures where the rule failed; it cannot be made."""

    error: RuleError

    @property
    def name(self) -> str:
        return self.error.rule

    @property
    def fallback(self) -> bool:
        return False

    def apply(self, sch: Schedule, group: Group, target: Target, tag: str) -> list[Constraint]:
        """Raises the RuleError."""
        raise self.error


def contained(
    rule: Callable[[PrimFunc, Group, Target], Iterator[T]], func: PrimFunc, group: Group, target: Target
) -> Iterator[T | Broken]:
    """The rule's structures, with a Broken one at the end where it fails."""
    try:
        yield from rule(func, group, target)
    except Exception as error:
        yield Broken(error if isinstance(error, RuleError) else _error_of(rule.__name__, func, error))


def guarded(name: str, func: PrimFunc, make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """make(…) for the structure or step `name`. Raises ScheduleError and RuleError, and nothing else."""
    try:
        return make(*args, **kwargs)
    except (ScheduleError, RuleError):
        raise
    except Exception as error:
        raise _error_of(name, func, error) from error


def _error_of(rule: str, func: PrimFunc, error: Exception) -> RuleError:
    """A ScheduleError, too, is none of a rule's to raise while it looks for structures."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = str(error).split("\n", 1)[0]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    return RuleError(rule, func.name, f"{type(error).__name__}: {what} (at {where})")

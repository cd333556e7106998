"""What is measured, apart from how it is confined: the seam between the fork server and a candidate."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .messages import Failure, MeasureInput, MeasureResult

PREPARE_SECONDS = 120.0
"""The longest that preparing an item takes: the reference of a large layer takes seconds, and other jobs wait
for it."""


class Stage(Protocol):
    """Where a candidate stands, told to whoever watches over its limits."""

    def running(self) -> float | None:
        """The build is done. Returns when the candidate may run, with the seconds to beat, if there are any;
        from here on the run limit counts."""


Body = Callable[[Stage], MeasureResult]
"""Runs in the forked child. Its result's `build_seconds` and `wall_seconds` are filled in by the watcher."""

Build = Callable[[MeasureInput], "bytes | Failure"]


@dataclass(frozen=True, slots=True)
class Split:
    """A candidate that is built in another process than it runs in.

    `build` gives the code, or why there is none, in a forked child that builds several candidates in a row:
    it was perhaps forked for another one, so that it must be the same function for all of them, and take what
    it needs from the item. It runs nothing of the candidate. `run` is the body of a child of the candidate's
    own, given the code; what it does before it calls the stage is building, too.
    """

    build: Build
    run: Callable[[bytes, Stage], MeasureResult]


class Program(Protocol):
    """Made once in the fork server, where its module is imported, so that children find everything loaded."""

    def prepare(self, item: MeasureInput) -> Body | Split | Failure:
        """Called in the fork server before each fork: what the child will run, holding all that children can
        share, or the failure of an item that no child needs to be forked for. Must not start threads. What
        takes long or much memory belongs into a forked child of its own, within PREPARE_SECONDS."""


class ProgramError(ValueError):
    """The name of a program leads nowhere."""


def load(name: str) -> Program:
    """The program that "module:attribute" names: a class or function without arguments that makes it."""
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ProgramError(f"expected module:attribute, got {name!r}")
    make: Any = getattr(importlib.import_module(module), attribute, None)
    if make is None:
        raise ProgramError(f"module {module} has no {attribute}")
    program: Program = make()
    return program

"""Schedules compiled in one process and made callable in others of the same machine."""

from __future__ import annotations

from dataclasses import dataclass

from .build import function_of
from .codegen.errors import BuildError
from .codegen.lowered import Lowered
from .codegen.registry import Relocating, code_generator
from .runtime import Module, SourceInfo
from .schedule import Schedule
from .target import Target
from .target.registry import backend

__all__ = ["Prebuilt", "can_prebuild", "prebuild"]

_SOURCE = SourceInfo("scheduled", "built as it stands")


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """A kernel as machine code that is not loaded yet. It can be pickled; whoever unpickles or loads one
    trusts whoever made it, as it holds code that runs when it is called."""

    lowered: Lowered
    target: Target
    code: bytes

    def load(self) -> Module:
        """The module that `build` gives, but for its script and for saving it. Raises BuildError for code
        that cannot run on this machine."""
        generator = _generator(self.target)
        loaded = generator.load_compiled(self.lowered, self.target, self.code)
        name = self.lowered.name
        return Module({name: function_of(name, self.lowered, loaded, "", _SOURCE)})


def can_prebuild(target: Target) -> bool:
    """Whether this kind of target has code that can be handed on, for the CPU. Raises TargetError for a kind
    that has no code generator."""
    return backend(target.kind).device is None and isinstance(code_generator(target.kind), Relocating)


def prebuild(schedule: Schedule, target: Target) -> Prebuilt:
    """Lowers a schedule as it stands and compiles it. Raises BuildError for what has no code, and for a kind
    of target whose code cannot be handed on."""
    lowered = code_generator(target.kind).lower(schedule.func, target)
    return Prebuilt(lowered, target, _generator(target).compile(lowered, target))


def _generator(target: Target) -> Relocating:
    generator = code_generator(target.kind)
    if not isinstance(generator, Relocating):
        raise BuildError(f"code of the kind {target.kind!r} stays in the process that compiled it")
    return generator

"""Code generators by the kind of target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..ir import PrimFunc
from ..runtime import LoadedCode
from ..target import Target, TargetError
from ..target.registry import backend, known_kinds, resolve
from .errors import BuildError
from .lowered import Lowered


class CodeGenerator(Protocol):
    """From a scheduled program to code that runs in this process. One without state serves all calls."""

    def lower(self, func: PrimFunc, target: Target) -> Lowered:
        """The program as text. Raises BuildError for what has no code."""

    def load(self, lowered: Lowered, target: Target) -> LoadedCode:
        """The text as code whose function has an address. Raises BuildError."""


@runtime_checkable
class ObjectEmitter(Protocol):
    """What a CodeGenerator has beside that, where its modules can be saved and made for another machine."""

    def emit_object(self, lowered: Sequence[Lowered], target: Target, metadata: bytes) -> bytes:
        """One relocatable object that defines the functions, and holds `metadata` somewhere as it is.
        Raises BuildError.
        """

    def emit_assembly(self, text: str, target: Target) -> str:
        """The machine code of one function as text. Raises BuildError."""


@runtime_checkable
class Relocating(Protocol):
    """What a CodeGenerator has beside that, where code can be compiled in one process and loaded in others
    of this machine."""

    def compile(self, lowered: Lowered, target: Target) -> bytes:
        """The code of one function and nothing else. Raises BuildError."""

    def load_compiled(self, lowered: Lowered, target: Target, code: bytes) -> LoadedCode:
        """What `compile` gave, as code whose function has an address. Raises BuildError."""


def code_generator(kind: str) -> CodeGenerator:
    """The code generator of a kind of target. Raises TargetError for an unknown or broken one."""
    try:
        generator: CodeGenerator = resolve(backend(kind).generator)
    except (ImportError, AttributeError) as error:
        raise TargetError(f"the code generator of {kind!r} cannot be loaded: {error}") from error
    return generator


def savable_kinds() -> tuple[str, ...]:
    """The kinds of target whose modules can be saved, without those that are broken."""
    return tuple(kind for kind in known_kinds() if _saves(kind))


def _saves(kind: str) -> bool:
    try:
        return isinstance(code_generator(kind), ObjectEmitter)
    except TargetError:
        return False


def assembly_of(text: str, target: Target) -> str:
    """The machine code of a function's text, as text. Raises BuildError for a kind that has none."""
    generator = code_generator(target.kind)
    if not isinstance(generator, ObjectEmitter):
        raise BuildError(f"modules of the kind {target.kind!r} have no assembly")
    return generator.emit_assembly(text, target)

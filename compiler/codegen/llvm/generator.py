"""The code generator of the kind llvm."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import PrimFunc
from ...target import Target
from ...target.triple import system_of
from ..lower import lower
from ..lowered import Lowered
from .jit import LoadedObject, compile_ir, emit_assembly, emit_object, joined, load_object
from .pool import DECLARATION, exported_pool


class Generator:
    """Text LLVM IR, compiled by LLVM."""

    def lower(self, func: PrimFunc, target: Target) -> Lowered:
        return lower(func, target)

    def load(self, lowered: Lowered, target: Target) -> LoadedObject:
        return compile_ir(lowered.text, target, lowered.symbols)

    def compile(self, lowered: Lowered, target: Target) -> bytes:
        return emit_object(lowered.text, target)

    def load_compiled(self, lowered: Lowered, target: Target, code: bytes) -> LoadedObject:
        return load_object(lowered.text, target, lowered.symbols, code)

    def emit_object(self, lowered: Sequence[Lowered], target: Target, metadata: bytes) -> bytes:
        texts = [*(one.text for one in lowered), _constant(metadata, target.triple)]
        text = joined(texts)
        return emit_object(text, target, exported_pool(target) if DECLARATION in text else "")

    def emit_assembly(self, text: str, target: Target) -> str:
        return emit_assembly(text, target)


generator = Generator()


def _constant(data: bytes, triple: str) -> str:
    """The bytes in a section of their own, which no optimisation drops and no other object's clash with."""
    section = "__TEXT,__tilewright" if system_of(triple) == "darwin" else ".tilewright"
    kind = f"[{len(data)} x i8]"
    text = "".join(f"\\{byte:02x}" for byte in data)
    return (
        f'@tilewright.metadata = internal constant {kind} c"{text}", section "{section}", align 8\n'
        '@llvm.used = appending global [1 x ptr] [ptr @tilewright.metadata], section "llvm.metadata"\n'
    )

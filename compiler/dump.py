"""What lowering makes of a program, pass by pass."""

from __future__ import annotations

from .ir import PrimFunc
from .passes import lowering
from .schedule import Schedule
from .target import Target


def dump(program: PrimFunc | Schedule, target: str | dict[str, object] | Target = "llvm") -> str:
    """The program before lowering and after each pass, as text; for people who want to see what becomes of
    their schedule.

    program: taken as it stands; `build` schedules a PrimFunc first, this does not.
    target: what `build` takes; the passes depend on its vector registers.

    The text has a part for each pass, headed by `# ` and the pass with its options, such as
    `# LegalizeVectors(vector_bytes=32, unroll_limit=16)`, with the program after it, or `unchanged`:

        # rows
        def rows(A: float32[4, 8], S: float32[4]):
            ...

        # CheckConcrete(): unchanged

        # LowerInit()
        def rows(A: float32[4, 8], S: float32[4]):
            ...

    A pass that refuses the program ends the text, with its reason; BuildError is not raised. Raises
    TargetError for a target that is none, and TypeError for what is no program.
    """
    if not isinstance(program, PrimFunc | Schedule):
        raise TypeError(f"dump takes a PrimFunc or a Schedule, got {type(program).__name__}")
    func = program.func if isinstance(program, Schedule) else program
    return lowering(Target.parse(target)).dump(func)

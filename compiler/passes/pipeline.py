"""The passes in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..arith import NotProvable
from ..codegen.errors import BuildError
from ..ir import PrimFunc, script
from ..target import Target
from .align_storage import AlignStorage
from .base import Pass
from .check_ahead import CheckAhead
from .check_concrete import CheckConcrete
from .check_overlap import CheckOverlap
from .check_reads import CheckReads
from .check_registers import CheckRegisters
from .check_steps import CheckSteps
from .check_vectors import CheckVectors
from .compact import Compact
from .legalize_vectors import LegalizeVectors
from .lower_init import LowerInit
from .simplify import Simplify
from .split_ahead import split_ahead


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Passes that run one after the other. Printed, it names each with its options."""

    passes: tuple[Pass, ...]

    def run(self, func: PrimFunc) -> PrimFunc:
        """The program after the last pass. Raises BuildError."""
        for p in self.passes:
            func = p.run(func)
        return func

    def stages(self, func: PrimFunc) -> Iterator[tuple[Pass, PrimFunc]]:
        """Each pass with the program it gave, for people who want to look."""
        for p in self.passes:
            func = p.run(func)
            yield p, func

    def dump(self, func: PrimFunc) -> str:
        """The program, and what each pass makes of it, as text.

        Each part has a header line, `# ` and the pass with its options, and below it the program in the form
        that `parse_script(…, check=False)` reads; a pass that leaves the text as it was says `unchanged`
        instead. Where a pass refuses the program, the dump ends with that pass, `failed`, and its reason, all
        behind `# `; nothing is raised. Two parts more, `# before the calls` and `# at each call`, show what
        becomes of a program that makes something ahead.
        """
        text = script(func)
        parts = [f"# {func.name}\n{text}"]
        for p in self.passes:
            try:
                func = p.run(func)
            except (BuildError, NotProvable) as e:
                parts.append(f"# {p!r}: failed\n{_behind_hashes(e)}")
                return "\n".join(parts)
            before, text = text, script(func)
            parts.append(f"# {p!r}: unchanged\n" if text == before else f"# {p!r}\n{text}")
        try:
            kernel, packing = split_ahead(func)
        except BuildError as e:
            parts.append(f"# before the calls: failed\n{_behind_hashes(e)}")
            return "\n".join(parts)
        if packing is not None:
            parts += [f"# before the calls\n{script(packing)}", f"# at each call\n{script(kernel)}"]
        return "\n".join(parts)

    def __str__(self) -> str:
        return " -> ".join(map(repr, self.passes))


def _behind_hashes(error: Exception) -> str:
    return "".join(f"#   {line}".rstrip() + "\n" for line in str(error).splitlines())


def lowering(target: Target) -> Pipeline:
    """From a scheduled program to the loop nest that code is generated from."""
    return Pipeline(
        (
            CheckConcrete(),
            LowerInit(),
            LegalizeVectors(target.vector_bytes),
            # Other generators run parallel loops in order.
            Simplify(target.num_threads if target.kind == "llvm" else 1),
            CheckVectors(),
            CheckReads(),
            CheckSteps(),
            CheckOverlap(),
            CheckAhead(),
            Compact(),
            AlignStorage(),
            CheckRegisters(),
        )
    )

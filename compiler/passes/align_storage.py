"""Rows at aligned distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..arith import Poly, floor_div, poly
from ..codegen.errors import LoweringError
from ..ir import Block, Buffer, Load, PrimFunc, Stmt, map_loads
from ..ir.annotations import ALIGN, alignments


@dataclass(frozen=True, slots=True)
class AlignStorage:
    """Pads the rows of allocated buffers for which storage_align asked.

    before: `T: float32[4, 6, 5]` with axis 0 at `8+1`, `T[i, j, k]`
    after: `T: float32[4, 33]`, `T[i, j * 5 + k]`

    The dimensions inside of an aligned one become one dimension, as long as its pitch. Runs on compacted
    programs. Refused: annotations that storage_align does not make, or that differ between the writers.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        wanted: dict[Buffer, dict[int, tuple[int, int]]] = {}
        for _, b in func.blocks():
            if b.buffer in func.params or b.buffer.scope == "register":
                continue
            try:
                found = alignments(b)
            except ValueError as e:
                raise LoweringError("align_storage", str(e), func, b) from None
            if wanted.setdefault(b.buffer, found) != found and found:
                if wanted[b.buffer]:
                    reason = f"the writers of {b.buffer.name} ask for different alignments"
                    raise LoweringError("align_storage", reason, func, b)
                wanted[b.buffer] = found
        pitches = {b: _Pitched.of(b, axes) for b, axes in wanted.items() if axes}
        return _rewritten(func, pitches) if pitches else func


@dataclass(frozen=True, slots=True, eq=False)
class _Pitched:
    """A buffer as it will be. groups: for each new dimension the old ones in it, with their strides."""

    buffer: Buffer
    groups: tuple[tuple[tuple[int, Poly], ...], ...]

    @staticmethod
    def of(b: Buffer, axes: dict[int, tuple[int, int]]) -> _Pitched:
        # (dimension, stride) of the run that is being gathered, the innermost first.
        strides: list[tuple[int, Poly]] = []
        length = poly(1)
        for d in range(len(b.shape) - 1, min(axes), -1):
            strides.append((d, length))
            length = length * b.shape[d]
            if d - 1 in axes:
                factor, offset = axes[d - 1]
                # The next number that is `offset` more than a multiple; nothing divided is below 0.
                length = floor_div(length + (factor - 1 - offset), factor) * factor + offset
        first = min(axes)
        groups = [((d, poly(1)),) for d in range(first + 1)] + [tuple(strides)]
        return _Pitched(replace(b, shape=(*b.shape[: first + 1], length)), tuple(groups))

    def at(self, indices: Sequence[Poly]) -> tuple[Poly, ...]:
        out: list[Poly] = []
        for group in self.groups:
            total = poly(0)
            for d, stride in group:
                total = total + indices[d] * stride
            out.append(total)
        return tuple(out)


def _rewritten(func: PrimFunc, pitches: dict[Buffer, _Pitched]) -> PrimFunc:
    def put(x: Load) -> Load:
        p = pitches.get(x.buffer)
        return x if p is None else Load(p.buffer, p.at(x.indices))

    def visit(s: Stmt) -> Stmt:
        if type(s) is not Block:
            return s
        p, value = pitches.get(s.buffer), map_loads(s.value, put)
        if p is None:
            return replace(s, value=value)
        kept = tuple((k, v) for k, v in s.annotations if not k.startswith(ALIGN))
        return replace(s, buffer=p.buffer, indices=p.at(s.indices), value=value, annotations=kept)

    allocs = tuple(pitches[b].buffer if b in pitches else b for b in func.allocs)
    return replace(func.rewrite(visit), allocs=allocs)

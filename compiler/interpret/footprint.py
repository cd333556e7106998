"""How much memory the reference of a program takes, known before it is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ir.expr import Buffer
from ..ir.func import PrimFunc
from ..ir.stmt import Block
from .blocks import box_sizes, contraction_in, parts_of
from .inputs import shape_of

#: Arrays over a box that live at once: the values on the way through an expression, each with its bound.
_OVER_BOX = 12
#: For each factor of a contraction: its values, their magnitudes, their bounds, and copies laid out.
_OVER_FACTOR = 5
#: For the sums: values, magnitudes, bounds, and what they are joined with.
_OVER_SUMS = 6


@dataclass(frozen=True, slots=True)
class Footprint:
    """In bytes. kept: the arrays of all parameters with the expected outputs and their tolerances. working:
    what computing them takes beside that, at most."""

    kept: int
    working: int

    @property
    def total(self) -> int:
        return self.kept + self.working


def footprint(func: PrimFunc) -> Footprint:
    """What `random_inputs` and `expected` of an unscheduled program take. Computes nothing."""
    arrays = sum(_size(p) * p.dtype.numpy.itemsize for p in func.params)
    tolerances = sum(_size(o) * 8 for o in func.outputs)
    kept = arrays + tolerances + sum(_size(o) * _width(o) for o in func.outputs)
    written = {block.buffer for _, block in func.blocks()}
    values = sum(_size(b) * _width(b) for b in (*func.params, *func.allocs))
    bounds = sum(_size(b) * 8 for b in written)
    boxes = max((_box_bytes(block) for _, block in func.blocks()), default=0)
    return Footprint(kept, arrays + values + bounds + tolerances + boxes)


def _size(buffer: Buffer) -> int:
    return math.prod(shape_of(buffer))


def _width(buffer: Buffer) -> int:
    """Bytes of an element in the reference, which holds all floats in float64."""
    return 8 if buffer.dtype.is_float else buffer.dtype.numpy.itemsize


def _box_bytes(block: Block) -> int:
    c = contraction_in(block)
    sizes = box_sizes(block, c)
    if c is None:
        return 8 * _OVER_BOX * math.prod(sizes)
    a, b, sums = (math.prod(sizes[d] for d in dims) for dims in parts_of(block, c))
    return 8 * (_OVER_FACTOR * (a + b) + _OVER_SUMS * sums)

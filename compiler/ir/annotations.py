"""Annotations that mean something: steps of a schedule write them, and passes read them."""

from __future__ import annotations

from dataclasses import replace

from .expr import Buffer
from .func import PrimFunc
from .stmt import Block

#: Annotation of a loop that is taken as a whole, with all that stands inside: the unit's name.
UNIT = "unit"
#: Annotation of such a loop whose inside is the implementation of an intrinsic: the intrinsic's name.
INTRINSIC = "intrinsic"
#: A block annotation for each aligned axis of what the block writes: `align_AXIS` = "FACTOR+OFFSET".
ALIGN = "align_"
#: Annotation of a block whose result is made before the calls, out of constants.
AHEAD = "ahead"
#: Elements; a row is padded by less than this.
MAX_FACTOR = 4096


def with_alignment(b: Block, axis: int, factor: int, offset: int) -> Block:
    """The block with the annotation; an older one of the same axis is replaced."""
    kept = dict(b.annotations) | {f"{ALIGN}{axis}": f"{factor}+{offset}"}
    return replace(b, annotations=tuple(sorted(kept.items())))


def alignments(b: Block) -> dict[int, tuple[int, int]]:
    """axis -> (factor, offset) of the buffer that the block writes. Raises ValueError for an annotation that
    says nothing of the kind."""
    found: dict[int, tuple[int, int]] = {}
    for key, value in b.annotations:
        if not key.startswith(ALIGN):
            continue
        axis, (factor, plus, offset) = key[len(ALIGN) :], str(value).partition("+")
        if not plus or not all(x.isascii() and x.isdigit() and len(x) < 6 for x in (axis, factor, offset)):
            raise ValueError(f"{key}={value!r} is no alignment")
        if not int(offset) < int(factor) <= MAX_FACTOR or int(axis) >= len(b.buffer.shape) - 1:
            raise ValueError(f"{key}={value!r} is no alignment of {b.buffer.name}")
        found[int(axis)] = int(factor), int(offset)
    return found


def moved_alignments(
    annotations: tuple[tuple[str, str | int], ...], by: int
) -> tuple[tuple[str, str | int], ...]:
    """The annotations of a block before whose written dimensions `by` others come."""
    if not by:
        return annotations
    return tuple(
        (f"{ALIGN}{int(k[len(ALIGN) :]) + by}" if k.startswith(ALIGN) else k, v) for k, v in annotations
    )


def without_unit(annotations: tuple[tuple[str, str | int], ...]) -> tuple[tuple[str, str | int], ...]:
    """The annotations of a loop that is copied out of a unit."""
    return tuple((k, v) for k, v in annotations if k not in (UNIT, INTRINSIC))


def is_reserved(key: str) -> bool:
    """Whether only steps of their own may write the key."""
    return key in (UNIT, INTRINSIC, AHEAD) or key.startswith(ALIGN)


def is_ahead(b: Block) -> bool:
    """Whether what the block writes is to be made before the calls."""
    return any(k == AHEAD for k, _ in b.annotations)


def made_ahead(func: PrimFunc) -> frozenset[Buffer]:
    """The buffers that are made before the calls: one of their writers says so."""
    return frozenset(b.buffer for _, b in func.blocks() if b.annotations and is_ahead(b))

"""Annotations that mean something: steps of a schedule write them, and passes read them."""

from __future__ import annotations

from dataclasses import replace

from .stmt import Block

#: Annotation of a loop that is taken as a whole, with all that stands inside: the unit's name.
UNIT = "unit"
#: Annotation of such a loop whose inside is the implementation of an intrinsic: the intrinsic's name.
INTRINSIC = "intrinsic"
#: A block annotation for each aligned axis of what the block writes: `align_AXIS` = "FACTOR+OFFSET".
ALIGN = "align_"
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


def without_unit(annotations: tuple[tuple[str, str | int], ...]) -> tuple[tuple[str, str | int], ...]:
    """The annotations of a loop that is copied out of a unit."""
    return tuple((k, v) for k, v in annotations if k not in (UNIT, INTRINSIC))


def is_reserved(key: str) -> bool:
    """Whether only steps of their own may write the key."""
    return key in (UNIT, INTRINSIC) or key.startswith(ALIGN)

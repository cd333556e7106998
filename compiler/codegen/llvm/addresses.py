"""Where elements of buffers lie."""

from __future__ import annotations

from typing import NamedTuple

from ...arith import Poly, poly, proven_negative
from ...ir import Buffer
from .builder import Builder
from .conditions import Condition
from .dtypes import memory_type, vector_type
from .indices import Index, Indices, Terms
from .point import Point

Conjunction = tuple[Poly, ...]


class Access(NamedTuple):
    """The element's position in the flat buffer, and the conditions, not proved, for it to be inside."""

    flat: Poly
    guards: Conjunction
    element: str
    align: int


class Addresses:
    """Addresses at a point of the loops."""

    def __init__(
        self, builder: Builder, point: Point, indices: Indices, pointers: dict[Buffer, str],
        parameters: frozenset[Buffer],
    ) -> None:  # fmt: skip
        self._b = builder
        self._point = point
        self._indices = indices
        self._pointers = pointers
        self._parameters = parameters
        self._prepared: dict[tuple[int, Conjunction], Access] = {}

    def access(self, node: int, buffer: Buffer, indices: Conjunction, known: Conjunction) -> Access:
        """Prepared once for each node; without the guards that the conditions around it repeat."""
        key = node, known
        access = self._prepared.get(key)
        if access is None:
            flat, stride = poly(0), poly(1)
            for i, extent in zip(reversed(indices), reversed(buffer.shape), strict=True):
                flat, stride = flat + i * stride, stride * extent
            guards: Conjunction = ()
            if buffer in self._parameters:  # an allocated buffer holds every access since it was compacted
                sides = (g for i, e in zip(indices, buffer.shape, strict=True) for g in (i - e, -i - 1))
                guards = tuple(g for g in sides if g not in known and not proven_negative(g))
            element = memory_type(buffer.dtype)
            access = self._prepared[key] = Access(flat, guards, element, buffer.dtype.bytes)
        return access

    def pointer(self, buffer: Buffer, a: Access, terms: Terms, constant: int) -> str:
        """The address of the element `terms + constant`, counted from the first."""
        p, step = self._pointers[buffer], f"getelementptr {a.element}, ptr {{}}, i64 {{}}"
        if terms:
            p = self._b.pure(step, p, self._indices.total(terms))
        return self._b.pure(step, p, constant) if constant else p

    def scalar(self, buffer: Buffer, a: Access, index: Index, read: Condition) -> str:
        """The element's address, or the first element's where it is not to be read."""
        if read is True:
            return self.pointer(buffer, a, index.terms, index.constant)
        assert not isinstance(read, bool) and not read[1]
        at = self._indices.total(index.terms, index.constant)
        at = self._b.pure("select i1 {}, i64 {}, i64 0", read[0], at)
        return self._b.pure(f"getelementptr {a.element}, ptr {{}}, i64 {{}}", self._pointers[buffer], at)

    def mapped(self, buffer: Buffer, pointer: str, needed: str | None) -> str:
        """The pointer, or that of the first element where the bit is not set without which no lane is wanted.
        A mask that excludes every lane hides a fault on a page that is not there, but the processor takes
        hundreds of cycles to find that out."""
        if needed is None:
            return pointer
        return self._b.pure("select i1 {}, ptr {}, ptr {}", needed, pointer, self._pointers[buffer])

    def lanes(self, buffer: Buffer, a: Access, index: Index) -> str:
        """A vector of pointers, one for each lane."""
        lanes = self._point.lanes
        if index.lane_terms:
            steps, element = self._indices.vector(Index({}, 0, index.stride, index.lane_terms))
            p = self.pointer(buffer, a, index.terms, index.constant)
            step = f"getelementptr {a.element}, ptr {{}}, {vector_type(element, lanes)} {{}}"
            return self._b.pure(step, p, steps)
        steps = "<" + ", ".join(f"i64 {index.stride * n}" for n in range(lanes or 1)) + ">"
        p = self.pointer(buffer, a, index.terms, index.constant)
        return self._b.pure(f"getelementptr {a.element}, ptr {{}}, {vector_type('i64', lanes)} {steps}", p)

"""The elements of an unrolled loop's steps as one integer, where they lie next to each other in memory."""

from __future__ import annotations

from ...arith import Poly, Var
from ...ir import Block, Buffer, Load
from ...ir.proofs import follows
from .addresses import Access, Addresses
from .builder import Builder
from .conditions import Condition, Conditions, Value
from .indices import Index, Indices
from .memory import Memory
from .point import Point


class Words:
    """Loads and stores of such integers, one or one for each lane."""

    def __init__(
        self, builder: Builder, point: Point, indices: Indices, conditions: Conditions, memory: Memory,
        addresses: Addresses,
    ) -> None:  # fmt: skip
        self._b = builder
        self._point = point
        self._indices = indices
        self._conditions = conditions
        self._memory = memory
        self._addresses = addresses

    def load(self, x: Load, steps: Var, count: int) -> Value | None:
        """The `count` elements that the steps of an unrolled loop read, as one integer, or one for each lane.
        None where the elements do not lie next to each other in this order, or conditions tell the steps
        apart, or the lanes of one element. Where the conditions around the read do not hold, it is 0.
        """
        buffer, reading = x.buffer, self._memory.reading
        if buffer.scope == "register":
            return None
        access = self._addresses.access(id(x), buffer, x.indices, reading)
        index = self._place(access.flat, steps, count)
        if index is None or index.lane_terms:
            return None
        guards = access.guards
        if index.stride:
            # Each lane reads under its own conditions. What one element needs for all lanes follows from none
            # of these.
            guards = tuple(g for g in guards if not follows(g, reading))
        if any(steps in p.vars() for p in (*guards, *reading)):
            return None
        read = self._conditions.all_of((*reading, *guards))
        if not index.stride and not isinstance(read, bool) and read[1]:
            return None
        word = f"i{8 * access.align * count}"
        key = (
            word, buffer, self._memory.version(buffer), frozenset(index.terms.items()), index.constant,
            self._point.lanes if index.stride else None, index.stride, read,
        )  # fmt: skip
        known = self._b.scope.loads.get(key)
        if known is None:
            known = self._load(buffer, access, index, read, count)
            self._b.scope.loads[key] = known
        return known

    def store(self, b: Block, steps: Var, count: int, value: str, where: Condition) -> None:
        """Writes the block's elements of `count` steps, as one integer for each lane; only where
        `takes` says so."""
        access = self._addresses.access(id(b), b.buffer, b.indices, ())
        index = self._place(access.flat, steps, count)
        assert index is not None
        self._memory.wrote(b.buffer)
        self._memory.store_vector(b.buffer, access, index, value, where, f"i{8 * access.align * count}")

    def takes(self, b: Block, steps: Var, count: int) -> bool:
        """Whether the elements that steps and lanes write lie next to each other, the steps innermost."""
        access = self._addresses.access(id(b), b.buffer, b.indices, ())
        index = self._place(access.flat, steps, count)
        return index is not None and index.stride == count and not index.lane_terms

    def _place(self, flat: Poly, steps: Var, count: int) -> Index | None:
        """Where the first step's element lies, if those of the other steps lie behind it."""
        places: list[Index] = []
        for n in range(count):
            self._point.unrolled[steps] = n
            places.append(self._indices.at(flat))
        del self._point.unrolled[steps]
        first = places[0]
        behind = all(i == first._replace(constant=first.constant + n) for n, i in enumerate(places))
        return first if behind else None

    def _load(self, buffer: Buffer, a: Access, index: Index, read: Condition, count: int) -> Value:
        word = f"i{8 * a.align * count}"
        if not index.stride:
            if read is False:
                return "0", False
            p = self._addresses.scalar(buffer, a, index, read)
            return self._b.put(f"load {word}, ptr {p}, align {a.align}"), False
        if read is False:
            return "zeroinitializer", True
        if index.stride == count:
            return self._memory.load_vector(buffer, a, index, read, word), True
        return self._memory.gather(buffer, a, index, read, word), True

"""Register buffers as values: no memory, one value for each element or for each vector of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...ir import Buffer
from ..errors import BuildError
from .builder import Builder
from .conditions import Value
from .dtypes import value_type, vector_type
from .transpose import MIN_ROWS, ZERO, column

Key = tuple[Buffer, int]


class Cell(NamedTuple):
    """What a buffer holds from an element on: a scalar, or a vector with lanes `stride` elements apart."""

    value: str
    lanes: int | None
    stride: int

    def kind(self, buffer: Buffer) -> str:
        """The type of the value."""
        return vector_type(value_type(buffer.dtype), self.lanes)

    def elements(self, first: int) -> range:
        """The elements of a cell that starts at `first`."""
        return (
            range(first, first + 1)
            if self.lanes is None
            else range(first, first + self.lanes * self.stride, self.stride)
        )


class Registers:
    """The cells that hold values at the point where code is being emitted."""

    def __init__(self, builder: Builder) -> None:
        self._b = builder
        self.cells: dict[Key, Cell] = {}
        #: Element -> the cell that holds it.
        self._owners: dict[Key, Key] = {}

    def read(
        self,
        buffer: Buffer,
        element: int,
        stride: int,
        lanes: int | None,
        partial: Callable[[], bool],
        wanted: Callable[[], int],
    ) -> Value:
        """The value from `element` on: of each lane, or of all lanes where the stride is 0.

        `wanted`: how many of the first lanes are used, as far as that is known. Raises BuildError where there
        is none, unless `partial` says that a mask excludes some lanes: these are 0.
        """
        cell = self.cells.get((buffer, element))
        if lanes is None or not stride:
            if cell is not None and cell.lanes is None:
                return cell.value, False
            return self._element(buffer, element), False
        if cell is not None and cell.lanes == lanes and cell.stride == stride:
            return cell.value, True
        across = self._across(buffer, element, stride, lanes, wanted)
        if across is not None:
            return across, True
        kind, one = vector_type(value_type(buffer.dtype), lanes), value_type(buffer.dtype)
        there = [n for n in range(lanes) if (buffer, element + stride * n) in self._owners]
        # A mask excludes the last lanes, never all: where the first one is missing, a value is missing.
        tail = 0 < len(there) < lanes and there == list(range(len(there)))
        value = "zeroinitializer" if tail and partial() else "poison"
        for n in range(lanes) if value == "poison" else there:
            x = self._element(buffer, element + stride * n)
            value = self._b.shared(f"insertelement {kind} {value}, {one} {x}, i64 {n}")
        return value, True

    def _across(
        self, buffer: Buffer, element: int, stride: int, lanes: int, wanted: Callable[[], int]
    ) -> str | None:
        """The value, where it is the same lane of many vectors."""
        first = self._owners.get((buffer, element))
        if first is None or self.cells[first].lanes is None or lanes < MIN_ROWS:
            return None
        cell = self.cells[first]
        lane = (element - first[1]) // cell.stride
        rows: dict[Key, str] = {}
        for n in range(lanes):
            key = self._owners.get((buffer, element + stride * n))
            if key is None or key in rows:
                break
            row = self.cells[key]
            if row.lanes != cell.lanes or (element + stride * n - key[1]) // row.stride != lane:
                break
            rows[key] = row.value
        count = min(lanes, wanted())
        if count < MIN_ROWS or len(rows) < count:
            return None
        values = [*list(rows.values())[:count], *[ZERO] * (lanes - count)]
        return column(self._b, values, cell.lanes or 1, lane, value_type(buffer.dtype))

    def write(self, buffer: Buffer, element: int, stride: int, lanes: int | None, value: str) -> None:
        """Puts a scalar, or a vector with a lane for each of the elements."""
        key = (buffer, element)
        old = self.cells.get(key)
        if old is not None and old.lanes == lanes and (lanes is None or old.stride == stride):
            self.cells[key] = Cell(value, lanes, stride)
            return
        cell = Cell(value, lanes, stride)
        elements = cell.elements(element)
        if not any((buffer, e) in self._owners for e in elements):
            self.cells[key] = cell
            for e in elements:
                self._owners[buffer, e] = key
            return
        # Written in other pieces before: element by element into what is there.
        one = value_type(buffer.dtype)
        for n, e in enumerate(elements):
            x = value
            if lanes is not None:
                x = self._b.shared(f"extractelement {cell.kind(buffer)} {value}, i64 {n}")
            self._write_element(buffer, e, x, one)

    def holds(self, buffer: Buffer, element: int, stride: int, lanes: int | None) -> bool:
        """Whether each of these elements has a value."""
        return all((buffer, e) in self._owners for e in Cell("", lanes, stride).elements(element))

    def restore(self, cells: dict[Key, Cell]) -> None:
        """Goes back to cells that were there before: the same ones, with other values perhaps."""
        for key in self.cells.keys() - cells.keys():
            for e in self.cells[key].elements(key[1]):
                self._owners.pop((key[0], e), None)
        self.cells = dict(cells)

    def _element(self, buffer: Buffer, element: int) -> str:
        key = self._owners.get((buffer, element))
        if key is None:
            raise BuildError(
                f"element {element} of register buffer {buffer.name} is read where it has no value yet"
            )
        cell = self.cells[key]
        if cell.lanes is None:
            return cell.value
        lane = (element - key[1]) // cell.stride
        return self._b.shared(f"extractelement {cell.kind(buffer)} {cell.value}, i64 {lane}")

    def _write_element(self, buffer: Buffer, element: int, value: str, one: str) -> None:
        key = self._owners.get((buffer, element))
        if key is None or self.cells[key].lanes is None:
            key = (buffer, element) if key is None else key
            self.cells[key] = Cell(value, None, 0)
            self._owners[buffer, element] = key
            return
        cell = self.cells[key]
        lane = (element - key[1]) // cell.stride
        kind = cell.kind(buffer)
        put = self._b.shared(f"insertelement {kind} {cell.value}, {one} {value}, i64 {lane}")
        self.cells[key] = Cell(put, cell.lanes, cell.stride)

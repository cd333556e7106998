"""Expressions as C writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...arith import Poly, poly
from ...ir import (
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    DType,
    Expr,
    InBounds,
    IndexValue,
    Load,
    Select,
    Unary,
)  # fmt: skip
from .arithmetic import Arithmetic
from .dtypes import AND, EQUAL, PRIMARY, Text, cast, is_narrow, literal, short, value_type
from .helpers import Helpers
from .indices import Indices


class Values:
    """Writes expressions; `names` holds the buffers' names."""

    def __init__(self, helpers: Helpers, indices: Indices, names: Mapping[Buffer, str]) -> None:
        self._helpers = helpers
        self._indices = indices
        self._names = names
        self._arithmetic = Arithmetic(helpers)
        self._write: dict[type, Callable[[Any], Text]] = {
            Const: lambda e: literal(e.value, e.dtype),
            IndexValue: self._index,
            Load: self._load,
            Binary: self._binary,
            Compare: self._compare,
            Unary: self._unary,
            InBounds: self._in_bounds,
            Select: self._select,
            Cast: self._cast,
        }

    def value(self, e: Expr) -> Text:
        """The expression's value. Raises BuildError for what has no code."""
        return self._write[type(e)](e)

    def stored(self, e: Expr, dtype: DType) -> str:
        """The value as an element in memory: 16-bit floats as their bits."""
        x = self.value(e)
        if not is_narrow(dtype):
            return x.text
        # The rounding of the last operation is that of the conversion.
        text = x.text if x.bare is None else x.bare[0]
        return f"{self._helpers.narrow(f'{short(dtype)}_of_f32')}({text})"

    def element(self, buffer: Buffer, indices: tuple[Poly, ...]) -> str:
        """buffer[position], row-major."""
        flat, stride = poly(0), poly(1)
        for i, extent in zip(reversed(indices), reversed(buffer.shape), strict=True):
            flat, stride = flat + i * stride, stride * extent
        return f"{self._names[buffer]}[{self._indices.index(flat).text}]"

    # ---- one method for each type of expression ----
    def _load(self, e: Load) -> Text:
        text, dtype = self.element(e.buffer, e.indices), e.dtype
        if is_narrow(dtype):
            return Text(f"{self._helpers.narrow(f'f32_of_{short(dtype)}')}({text})")
        return Text(f"{text} != 0", EQUAL) if dtype.is_bool else Text(text)

    def _index(self, e: IndexValue) -> Text:
        index = self._indices.index(e.index)
        return self._arithmetic.rounded(e.dtype, cast(value_type(e.dtype), index))

    def _binary(self, e: Binary) -> Text:
        constant = e.b.value if type(e.b) is Const else None
        return self._arithmetic.binary(e.op, e.a.dtype, self.value(e.a), self.value(e.b), constant)

    def _compare(self, e: Compare) -> Text:
        return self._arithmetic.compare(e.op, self.value(e.a), self.value(e.b))

    def _unary(self, e: Unary) -> Text:
        return self._arithmetic.unary(e.op, e.a.dtype, self.value(e.a))

    def _in_bounds(self, e: InBounds) -> Text:
        return Text(self._indices.all_negative(e.conditions), AND if e.conditions else PRIMARY)

    def _select(self, e: Select) -> Text:
        # C evaluates only the side that is taken: this is what guards reads.
        return self._arithmetic.select(self.value(e.cond), self.value(e.a), self.value(e.b))

    def _cast(self, e: Cast) -> Text:
        return self._arithmetic.convert(self.value(e.a), e.a.dtype, e.dtype)

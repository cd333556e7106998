"""Conversions between dtypes, as NumPy's astype does them."""

from __future__ import annotations

from ...ir import FLOAT32, FLOAT64, DType
from .builder import Builder
from .dtypes import literal, value_type, vector_type
from .narrow import Narrow


class Casts:
    """Emits conversions of values with `lanes` elements (None: scalars).

    Integers wrap around. Floats become integers by truncation towards zero; below 32 bits by way of int32,
    so that what int32 holds wraps around. A float beyond the integer's range, or a NaN, gives an
    unspecified integer, as in NumPy. What is not 0 is True, NaN too. Whatever becomes a float16 or a bfloat16
    is rounded once.
    """

    def __init__(self, builder: Builder, lanes: int | None, narrow: Narrow) -> None:
        self._put = builder.shared if lanes is not None else builder.hoisted
        self._lanes = lanes
        self._narrow = narrow

    def cast(self, x: str, source: DType, target: DType) -> str:
        """The value of dtype `source` as one of dtype `target`."""
        if source == target:
            return x
        if target.is_bool:
            return self._truth(x, source)
        if target.is_narrow:
            return self._to_narrow(x, source, target)
        if source.is_narrow:
            return x if target == FLOAT32 else self.cast(x, FLOAT32, target)
        if source.is_float:
            return self._float(x, source, target) if target.is_float else self._to_integer(x, source, target)
        if target.is_float:
            return self._convert(
                "sitofp" if source.code == "int" else "uitofp", x, source, value_type(target)
            )
        if source.bits == target.bits and not source.is_bool:
            return x
        narrower = target.bits < source.bits and not source.is_bool
        name = "trunc" if narrower else "sext" if source.code == "int" else "zext"
        return self._convert(name, x, source, value_type(target))

    def _truth(self, x: str, source: DType) -> str:
        kind, name = self._kind(value_type(source)), "fcmp une" if source.is_float else "icmp ne"
        return self._put(f"{name} {kind} {x}, {self._const(literal(0, source), source)}")

    def _float(self, x: str, source: DType, target: DType) -> str:
        return self._convert(
            "fpext" if target.bits > source.bits else "fptrunc", x, source, value_type(target)
        )

    def _to_narrow(self, x: str, source: DType, target: DType) -> str:
        round_ = self._narrow.rounded
        if source == FLOAT64:
            return round_(self._narrow.odd(x), target, foreign=True)
        if source.is_float:
            return round_(x, target, foreign=True)
        if source.bits > 16 and target.code == "bfloat":
            # A float does not hold it, a double does: of 64 bits the part that can matter.
            x = self._sticky(x, source) if source.bits == 64 else x
            return self._to_narrow(self.cast(x, source, FLOAT64), FLOAT64, target)
        # What a float does not hold is beyond float16's range in any case.
        return round_(self.cast(x, source, FLOAT32), target)

    def _sticky(self, x: str, source: DType) -> str:
        """An integer of 64 bits as one of 53 that every shorter float is as far from: the last of the bits
        kept says whether some below were set.
        """
        ints = self._kind("i64")

        def const(value: int) -> str:
            return str(value) if self._lanes is None else f"splat (i64 {value})"

        low = self._put(f"and {ints} {x}, {const(0xFFF)}")
        some = self._put(f"icmp ne {ints} {low}, {const(0)}")
        last = self._put(f"select {self._kind('i1')} {some}, {ints} {const(0x800)}, {ints} {const(0)}")
        head = self._put(f"or {ints} {self._put(f'and {ints} {x}, {const(-0x1000)}')}, {last}")
        moved = self._put(f"add {ints} {x}, {const(2**52)}") if source.code == "int" else x
        small = self._put(f"icmp ult {ints} {moved}, {const(2**53)}")
        return self._put(f"select {self._kind('i1')} {small}, {ints} {x}, {ints} {head}")

    def _to_integer(self, x: str, source: DType, target: DType) -> str:
        if target.code == "uint" and target.bits == 64:
            return self._to_uint64(x, source)
        through = "i32" if target.bits < 32 or (target.code == "int" and target.bits == 32) else "i64"
        whole = self._frozen(self._convert("fptosi", x, source, through), through)
        element = value_type(target)
        if element == through:
            return whole
        return self._put(f"trunc {self._kind(through)} {whole} to {self._kind(element)}")

    def _to_uint64(self, x: str, source: DType) -> str:
        """By way of int64, minus 2^63 where that does not hold the number."""
        kind, ints = self._kind(value_type(source)), self._kind("i64")
        half = self._const(literal(2.0**63, source), source)
        large = self._put(f"fcmp oge {kind} {x}, {half}")
        near = self._put(f"fsub {kind} {x}, {half}")
        near = self._put(f"select {self._kind('i1')} {large}, {kind} {near}, {kind} {x}")
        whole = self._frozen(self._convert("fptosi", near, source, "i64"), "i64")
        top = literal(-(2**63), DType("int", 64))
        flip = f"splat (i64 {top})" if self._lanes is not None else top
        high = self._put(f"xor {ints} {whole}, {flip}")
        return self._put(f"select {self._kind('i1')} {large}, {ints} {high}, {ints} {whole}")

    def _frozen(self, x: str, element: str) -> str:
        """Any value instead of poison: what is out of range must not spread."""
        return self._put(f"freeze {self._kind(element)} {x}")

    def _convert(self, name: str, x: str, source: DType, target: str) -> str:
        return self._put(f"{name} {self._kind(value_type(source))} {x} to {self._kind(target)}")

    def _const(self, text: str, dtype: DType) -> str:
        return text if self._lanes is None else f"splat ({value_type(dtype)} {text})"

    def _kind(self, element: str) -> str:
        return vector_type(element, self._lanes)

"""Conversions between dtypes, as NumPy's astype does them."""

from __future__ import annotations

from ...ir import DType
from .builder import Builder
from .dtypes import literal, value_type, vector_type


class Casts:
    """Emits conversions of values with `lanes` elements (None: scalars).

    Integers wrap around. Floats become integers by truncation towards zero; below 32 bits by way of int32,
    so that what int32 holds wraps around. A float beyond the integer's range, or a NaN, gives an
    unspecified integer, as in NumPy. What is not 0 is True, NaN too.
    """

    def __init__(self, builder: Builder, lanes: int | None) -> None:
        self._put = builder.shared
        self._lanes = lanes

    def cast(self, x: str, source: DType, target: DType) -> str:
        """The value of dtype `source` as one of dtype `target`."""
        if source == target:
            return x
        if target.is_bool:
            return self._truth(x, source)
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

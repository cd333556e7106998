"""Functions of the module's own: their text, and sums of two doubles that stand for one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .math import MathEmitter

Pair = tuple[str, str]
"""A sum of two doubles, the second below the last place of the first."""


@dataclass(frozen=True, slots=True)
class Function:
    """symbol: the name to call. definitions: texts of the functions, tables and intrinsics that it takes."""

    symbol: str
    definitions: frozenset[str]


class Body:
    """The text of one function in the making."""

    def __init__(self, name: str, element: str, lanes: int | None, has_fma: bool) -> None:
        from .math import MathEmitter

        self.lines: list[str] = []
        self.element = element
        self.lanes = lanes
        self.has_fma = has_fma
        self.math: MathEmitter = MathEmitter(self.put, "double", lanes, has_fma=has_fma)
        self.type = self._vector(element)
        self.doubles = self._vector("double")
        self.ints = self._vector("i64")
        self.bits = self._vector("i1")
        self.suffix = ("f32" if element == "float" else "f64") if lanes is None else self._lane_suffix()
        self.symbol = f"tw.{name}.{self.suffix}"

    def put(self, text: str) -> str:
        """An instruction; its value's name."""
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    # ---- pairs ----
    def sum(self, a: str, b: str) -> Pair:
        """a + b exactly (Knuth)."""
        m = self.math
        s = m.add(a, b)
        t = m.sub(s, a)
        return s, m.add(m.sub(a, m.sub(s, t)), m.sub(b, t))

    def product(self, a: str, b: str) -> Pair:
        """a · b exactly."""
        return self.math.product(a, b)

    # ---- text ----
    def wide(self, name: str) -> str:
        """An argument as doubles."""
        return name if self.element == "double" else self.put(f"fpext {self.type} {name} to {self.doubles}")

    def function(self, arguments: tuple[str, ...], value: str, extra: set[str]) -> Function:
        if self.element == "float":
            value = self.put(f"fptrunc {self.doubles} {value} to {self.type}")
        given = ", ".join(f"{self.type} {a}" for a in arguments)
        head = f"define internal {self.type} @{self.symbol}({given}) nounwind {{\nentry:"
        text = "\n".join([head, *self.lines, f"  ret {self.type} {value}", "}"])
        return Function(self.symbol, frozenset({text, *extra, *self.math.declarations}))

    def select(self, bit: str, a: str, b: str) -> str:
        return self.put(f"select {self.bits} {bit}, {self.doubles} {a}, {self.doubles} {b}")

    def bits_of(self, x: str) -> str:
        return self.put(f"bitcast {self.doubles} {x} to {self.ints}")

    def double_of(self, x: str) -> str:
        return self.put(f"bitcast {self.ints} {x} to {self.doubles}")

    def int(self, value: int) -> str:
        return str(value) if self.lanes is None else f"splat (i64 {value})"

    def bit(self, value: bool) -> str:
        text = "true" if value else "false"
        return text if self.lanes is None else f"splat (i1 {text})"

    def _vector(self, element: str) -> str:
        return element if self.lanes is None else f"<{self.lanes} x {element}>"

    def _lane_suffix(self) -> str:
        return f"v{self.lanes}f{32 if self.element == 'float' else 64}"

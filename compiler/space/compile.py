"""Polynomials over knobs compiled to straight-line NumPy source, with common subexpressions shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ..arith import Atom, Fn, Knob, Poly

Evaluator = Callable[[np.ndarray, np.ndarray], np.ndarray]

_FN = {
    "ceildiv": "ceil({} / {})",
    "floordiv": "floor({} / {})",
    "min": "minimum({}, {})",
    "max": "maximum({}, {})",
}


class ColumnCompiler:
    """`emit` answers the name of a column; `compile` makes `f(knob columns (knobs, n), out (outputs, n)) ->
    out`."""

    def __init__(self, knobs: Sequence[Knob]) -> None:
        self._names: dict[Atom, str] = {k: f"k{n}" for n, k in enumerate(knobs)}
        self._source = [f"{v} = K[{n}]" for n, v in enumerate(self._names.values())]
        self._memo: dict[str, str] = {}

    def let(self, text: str) -> str:
        """The column of an expression over columns."""
        if text not in self._memo:
            name = f"v{len(self._memo)}"
            self._source.append(f"{name} = {text}")
            self._memo[text] = name
        return self._memo[text]

    def emit(self, p: Poly) -> str:
        """The column (or literal) of a polynomial over knobs."""
        total: str | None = None
        for m, c in sorted(p.terms.items(), key=lambda t: -len(t[0])):
            v: str | None = None
            for a in m:
                v = self._atom(a) if v is None else self.let(f"{v} * {self._atom(a)}")
            if v is None:
                v = repr(float(c))
            elif c != 1:
                v = self.let(f"{v} * {float(c)}")
            total = v if total is None else self.let(f"{total} + {v}")
        return total or "0.0"

    def _atom(self, a: Atom) -> str:
        if isinstance(a, Fn):
            return self.let(_FN[a.op].format(self.emit(a.a), self.emit(a.b)))
        return self._names[a]

    def product(self, columns: Iterable[str]) -> str:
        """The column of a product."""
        factors = [x for x in columns if x != "1.0"]
        total = factors[0] if factors else "1.0"
        for x in factors[1:]:
            total = self.let(f"{total} * {x}")
        return total

    def sum(self, columns: Iterable[str]) -> str:
        """The column of a sum; 0 for none."""
        total: str | None = None
        for x in columns:
            total = x if total is None else self.let(f"{total} + {x}")
        return total or "0.0"

    def compile(self, outputs: Sequence[str]) -> Evaluator:
        """The function that fills one row of `out` for each output."""
        lines = [*self._source, *(f"out[{n}] = {o}" for n, o in enumerate(outputs)), "return out"]
        names: dict[str, object] = {
            "ceil": np.ceil,
            "floor": np.floor,
            "minimum": np.minimum,
            "maximum": np.maximum,
        }
        exec("def evaluate(K, out):\n " + "\n ".join(lines), names)
        made = names["evaluate"]
        assert callable(made)
        return made

"""Polynomials over knobs as NumPy columns, with common subexpressions shared: evaluated step by step, and as
straight-line Python once it pays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from ..arith import Atom, Fn, Knob, Poly

_FN = {
    "ceildiv": "ceil({})",
    "floordiv": "floor({})",
    "min": "minimum({}, {})",
    "max": "maximum({}, {})",
}
_UFUNCS: dict[str, Callable[..., np.ndarray]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    ">=": np.greater_equal,
}
#: Evaluations after which Python code is worth making: that takes as long as several of them.
_STEPS_FIRST = 6

#: A step: the column it makes, the function, and what it takes: columns by name, or numbers.
_Step = tuple[str, Callable[..., np.ndarray], tuple[str | float, ...]]


class ColumnCompiler:
    """`emit` answers the name of a column; `compile` makes `f(knob columns (knobs, n), out (outputs, n)) ->
    out`."""

    def __init__(self, knobs: Sequence[Knob]) -> None:
        self._names: dict[Atom, str] = {k: f"k{n}" for n, k in enumerate(knobs)}
        self._memo: dict[str, str] = {}

    def let(self, text: str) -> str:
        """The column of an expression over columns and numbers: a chain of operators, taken from the left, or
        one function of such chains."""
        if text not in self._memo:
            self._memo[text] = f"v{len(self._memo)}"
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
            x, y = self.emit(a.a), self.emit(a.b)
            given = (x, y) if a.op in ("min", "max") else (f"{x} / {y}",)
            return self.let(_FN[a.op].format(*given))
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
        return Evaluator({name: text for text, name in self._memo.items()}, tuple(outputs))


class Evaluator:
    """Fills one row of `out` for each output, or for those chosen by number."""

    def __init__(self, texts: Mapping[str, str], outputs: tuple[str, ...]) -> None:
        self._texts = texts
        self._outputs = outputs
        self._steps: dict[tuple[int, ...] | None, list[_Step]] = {}
        self._calls = 0
        self._made: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None

    def __call__(
        self, columns: np.ndarray, out: np.ndarray, chosen: tuple[int, ...] | None = None
    ) -> np.ndarray:
        """columns: shape (knobs, n). out: shape (outputs or chosen, n)."""
        if chosen is None:
            self._calls += 1
            if self._calls > _STEPS_FIRST:
                if self._made is None:
                    self._made = self._code(len(columns))
                return self._made(columns, out)
        outputs = self._outputs if chosen is None else [self._outputs[n] for n in chosen]
        if chosen not in self._steps:
            self._steps[chosen] = self._needed(outputs)
        found: dict[str, np.ndarray] = {f"k{n}": column for n, column in enumerate(columns)}
        for name, function, given in self._steps[chosen]:
            found[name] = function(*[found[x] if type(x) is str else x for x in given])
        for row, o in zip(out, outputs, strict=True):
            row[:] = found[o] if o[0] in "kv" else float(o)
        return out

    def _needed(self, outputs: Sequence[str]) -> list[_Step]:
        """The steps that the outputs need, in order."""
        needed = set(outputs)
        out: list[_Step] = []
        for name, text in reversed(tuple(self._texts.items())):
            if name in needed:
                steps = _parsed(name, text)
                needed.update(x for _, _, given in steps for x in given if type(x) is str)
                out += reversed(steps)
        return out[::-1]

    def _code(self, knobs: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        lines = [f"k{n} = K[{n}]" for n in range(knobs)]
        lines += [f"{name} = {text}" for name, text in self._texts.items()]
        lines += [*(f"out[{n}] = {o}" for n, o in enumerate(self._outputs)), "return out"]
        names: dict[str, object] = dict(_UFUNCS)
        exec("def evaluate(K, out):\n " + "\n ".join(lines), names)
        made = names["evaluate"]
        assert callable(made)
        return made


def _parsed(name: str, text: str) -> list[_Step]:
    """The steps of one column."""
    if not text.endswith(")"):
        return _chain(name, text)
    function, _, inside = text[:-1].partition("(")
    steps: list[_Step] = []
    given: list[str | float] = []
    for n, part in enumerate(inside.split(", ")):
        if " " in part:
            given.append(f"{name}.{n}")
            steps += _chain(f"{name}.{n}", part)
        else:
            given.append(_operand(part))
    return [*steps, (name, _UFUNCS[function], tuple(given))]


def _chain(name: str, text: str) -> list[_Step]:
    """`x op y op z`, from the left."""
    words = text.split(" ")
    steps: list[_Step] = []
    left = _operand(words[0])
    for n in range(1, len(words), 2):
        last = n + 2 >= len(words)
        made = name if last else f"{name}.c{n}"
        steps.append((made, _UFUNCS[words[n]], (left, _operand(words[n + 1]))))
        left = made
    return steps


def _operand(word: str) -> str | float:
    return word if word[0] in "kv" else float(word)

"""Polynomials over knobs as NumPy columns: common subexpressions are shared, and each step writes into a row
that is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arith import Atom, Fn, Knob, Poly
from .accesses import LINE

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
        self._plans: dict[tuple[int, ...] | None, _Plan] = {}

    def __call__(
        self, columns: np.ndarray, out: np.ndarray, chosen: tuple[int, ...] | None = None
    ) -> np.ndarray:
        """columns: shape (knobs, n). out: shape (outputs or chosen, n), of the same floating-point type."""
        plan = self._plans.get(chosen)
        if plan is None:
            outputs = self._outputs if chosen is None else [self._outputs[n] for n in chosen]
            plan = self._plans[chosen] = _planned(self._texts, outputs, len(columns))
        n = out.shape[1]
        # Rows a power of two apart would be mistaken for each other while they are written and read.
        rooms = np.empty((plan.rooms, n + LINE // out.itemsize), out.dtype)[:, :n]
        values: list[Any] = [*columns, *out, *rooms, *plan.numbers]
        for function, given, made in plan.steps:
            if len(given) == 2:
                function(values[given[0]], values[given[1]], out=values[made])
            else:
                function(values[given[0]], out=values[made])
        for row, source in plan.copies:
            out[row] = values[source]
        return out


@dataclass(frozen=True, slots=True)
class _Plan:
    """Steps over values by number: the knobs' columns, the outputs, `rooms` for what is needed in between,
    and numbers. Then rows of the output that are copies of other values."""

    steps: tuple[tuple[Callable[..., np.ndarray], tuple[int, ...], int], ...]
    copies: tuple[tuple[int, int], ...]
    rooms: int
    numbers: tuple[float, ...]


def _planned(texts: Mapping[str, str], outputs: Sequence[str], knobs: int) -> _Plan:
    """Each column is computed where it is needed: in its row of the output, else in a room that is given to
    others after its last use."""
    steps, same = _shared(_needed(texts, outputs))
    wanted = [same.get(o, o) if o[0] in "kv" else float(o) for o in outputs]
    made = {name for name, _, _ in steps}
    places: dict[str | float, int] = {f"k{n}": n for n in range(knobs)}
    rows: dict[str, int] = {}
    copies: list[tuple[int, str | float]] = []
    for row, o in enumerate(wanted):
        if isinstance(o, str) and o in made and o not in rows:
            rows[o] = row
        else:
            copies.append((row, o))
    last = {x: at for at, (_, _, given) in enumerate(steps) for x in given}
    first_room = knobs + len(outputs)
    free: list[int] = []
    rooms = 0
    numbers: dict[float, None] = {}
    out: list[tuple[Callable[..., np.ndarray], tuple[str | float, ...], int]] = []
    at_step: list[tuple[int, ...]] = []
    for at, (name, function, given) in enumerate(steps):
        numbers.update(dict.fromkeys(x for x in given if isinstance(x, float)))
        at_step.append(tuple(places[x] if isinstance(x, str) else -1 for x in given))
        # What is used for the last time makes room for what is made of it.
        free += {places[x] for x in given if last[x] == at and isinstance(x, str) and places[x] >= first_room}
        if name in rows:
            places[name] = knobs + rows[name]
        else:
            if not free:
                free.append(first_room + rooms)
                rooms += 1
            places[name] = free.pop()
        out.append((function, given, places[name]))
    numbers.update(dict.fromkeys(o for _, o in copies if isinstance(o, float)))
    places |= {x: first_room + rooms + n for n, x in enumerate(numbers)}
    return _Plan(
        tuple(
            (f, tuple(places[x] if p < 0 else p for x, p in zip(given, known, strict=True)), to)
            for (f, given, to), known in zip(out, at_step, strict=True)
        ),
        tuple((row, places[o]) for row, o in copies),
        rooms,
        tuple(numbers),
    )


def _needed(texts: Mapping[str, str], outputs: Sequence[str]) -> list[_Step]:
    """The steps that the outputs need, in order."""
    needed = set(outputs)
    out: list[_Step] = []
    for name, text in reversed(tuple(texts.items())):
        if name in needed:
            steps = _parsed(name, text)
            needed.update(x for _, _, given in steps for x in given if type(x) is str)
            out += reversed(steps)
    return out[::-1]


def _shared(steps: Sequence[_Step]) -> tuple[list[_Step], dict[str, str | float]]:
    """The steps without those of numbers alone, those that change nothing, and those that were done before;
    and for each that was left out, what it is instead."""
    same: dict[str, str | float] = {}
    known: dict[tuple[Callable[..., np.ndarray], tuple[str | float, ...]], str] = {}
    out: list[_Step] = []
    for name, function, given in steps:
        now = tuple(same.get(x, x) if isinstance(x, str) else x for x in given)
        if not any(isinstance(x, str) for x in now):
            same[name] = float(function(*now))
        elif function in (np.multiply, np.divide) and now[1] == 1.0:
            same[name] = now[0]
        elif (function, now) in known:
            same[name] = known[function, now]
        else:
            known[function, now] = name
            out.append((name, function, now))
    return out, same


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

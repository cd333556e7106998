"""Indices as sums of digits: the parts into which divisions cut them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..arith import Fn, Poly, Var, ceil_div, poly


@dataclass(frozen=True, slots=True, eq=False)
class Digit:
    """(input // low) % size, a part of one input. `is_top`: nothing of the input lies above."""

    input: int
    low: int
    size: Poly
    is_top: bool


def _factors(inputs: Sequence[Var], p: Poly) -> list[tuple[int, int, int]] | None:
    """`p` as a sum of (coefficient, input, divisor), each coefficient * (input // divisor); None when it is
    more."""
    out: list[tuple[int, int, int]] = []
    for m, c in p.terms.items():
        if len(m) != 1:
            return None
        a = m[0]
        by = 1
        if type(a) is Fn:
            if a.op != "floordiv" or a.b.const is None or a.a.atom is None:
                return None
            by, x = a.b.const, a.a.atom
        else:
            x = a
        if not isinstance(x, Var):
            return None
        out.append((c, inputs.index(x), by))
    return out


def all_digits(inputs: Sequence[Var], outputs: Sequence[Poly], v: int) -> list[Digit] | None:
    """The parts into which the outputs cut one input; None where the cuts are no multiples of each other."""
    cuts = {1}
    for o in outputs:
        for _, n, by in _factors(inputs, o) or ():
            if n == v:
                cuts.add(by)
    chain = sorted(cuts)
    if any(b % a for a, b in pairwise(chain)):
        return None
    sizes = [poly(b // a) for a, b in pairwise(chain)]
    top = ceil_div(inputs[v].extent, chain[-1])
    return [Digit(v, low, size, low == chain[-1]) for low, size in zip(chain, [*sizes, top], strict=True)]


def digits_of(inputs: Sequence[Var], outputs: Sequence[Poly]) -> list[list[tuple[int, Digit]]] | None:
    """For each output the digits of the inputs in it with their weights, the lowest first; None where one is
    no sum of digits that rise with the inputs."""
    terms = [_factors(inputs, o) for o in outputs]
    cut = [all_digits(inputs, outputs, v) for v in range(len(inputs))]
    if any(t is None for t in terms) or any(c is None for c in cut):
        return None
    found: list[list[tuple[int, Digit]]] = []
    for output in terms:
        assert output is not None
        here: list[tuple[int, Digit]] = []
        for digits in cut:
            for d in digits or ():
                # input // divisor is the sum of its higher digits, each times its distance.
                weight = sum(c * (d.low // by) for c, v, by in output if v == d.input and d.low >= by)
                if weight < 0:
                    return None
                if weight and d.size.const != 1:
                    here.append((weight, d))
        found.append(sorted(here, key=lambda t: t[0]))
    return found


def spell_digit(inputs: Sequence[Var], d: Digit) -> str:
    """The digit as a person would write it."""
    name = inputs[d.input].name
    text = name if d.low == 1 else f"{name} // {d.low}"
    return text if d.is_top else f"{text} % {d.size!r}" if d.low == 1 else f"({text}) % {d.size!r}"

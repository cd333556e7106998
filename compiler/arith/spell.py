"""Polynomials as text in Python syntax, under names that the caller chooses."""

from __future__ import annotations

from collections.abc import Callable

from .poly import Atom, Fn, Poly, Var

Name = Callable[[Atom], str]
Position = Callable[[Atom], int]


def spelled(p: Poly, name: Name = repr, position: Position | None = None) -> str:
    """`p` as a person would write it: positive terms first, larger steps before smaller ones, constants last.

    name: what a variable, knob or size is called. position: where it is declared; terms that are alike stand
    in the order of their first variable, so that equal polynomials have one spelling. Without it they stand
    in the order in which they were added.
    """
    return _Speller(name, position).poly(p)


class _Speller:
    """Each part is spelled once: nested minima and maxima hold the same parts many times, and each is asked
    for where it stands and where it is sorted."""

    def __init__(self, name: Name, position: Position | None) -> None:
        self.name = name
        self.position = position
        self._polys: dict[Poly, str] = {}
        self._atoms: dict[Atom, str] = {}

    def poly(self, p: Poly) -> str:
        if (text := self._polys.get(p)) is None:
            text = self._polys[p] = self._poly(p)
        return text

    def _poly(self, p: Poly) -> str:
        if not p.terms:
            return "0"
        terms = list(p.terms.items())
        if self.position is not None:
            terms = [(tuple(sorted(m, key=self._rank)), c) for m, c in terms]
            terms.sort(key=lambda t: [self._rank(a) for a in t[0]])
        terms.sort(key=lambda t: (not t[0], t[1] < 0, -len(t[0]), -abs(t[1])))
        text = ""
        for m, c in terms:
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            # Minus binds closer than a division: -(x // 2) is not -x // 2.
            tight = len(m) > 1 or abs(c) != 1 or sign == "-"
            names = " * ".join(self._factor(a, tight) for a in m)
            size = str(abs(c)) if not m else ""
            times = "" if not m or abs(c) == 1 else f" * {abs(c)}"
            text += f"{sign}{size}{names}{times}"
        return text

    def _rank(self, a: Atom) -> tuple[int, bool, str]:
        assert self.position is not None
        if type(a) is Fn:
            return min((self.position(v) for v in a.vars), default=-1), True, self._atom(a)
        return self.position(a) if type(a) is Var else -1, False, self.name(a)

    def _factor(self, a: Atom, tight: bool) -> str:
        text = self._atom(a)
        return f"({text})" if tight and type(a) is Fn and a.op == "floordiv" else text

    def _atom(self, a: Atom) -> str:
        if type(a) is not Fn:
            return self.name(a)
        if (text := self._atoms.get(a)) is None:
            if a.op == "floordiv":
                text = f"{self._operand(a.a)} // {self._operand(a.b)}"
            else:
                text = f"{a.op}({self.poly(a.a)}, {self.poly(a.b)})"
            self._atoms[a] = text
        return text

    def _operand(self, p: Poly) -> str:
        """`p` beside a division sign: in brackets unless it is a plain name or number."""
        text = self.poly(p)
        atom = p.atom
        plain = (p.const or 0) > 0 or (atom is not None and not (type(atom) is Fn and atom.op == "floordiv"))
        return text if plain else f"({text})"

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
    if not p.terms:
        return "0"
    rank = None if position is None else _ranks(name, position)
    terms = [(m, c) if rank is None else (tuple(sorted(m, key=rank)), c) for m, c in p.terms.items()]
    if rank is not None:
        terms.sort(key=lambda t: [rank(a) for a in t[0]])
    terms.sort(key=lambda t: (not t[0], t[1] < 0, -len(t[0]), -abs(t[1])))
    text = ""
    for m, c in terms:
        sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
        # Minus binds closer than a division: -(x // 2) is not -x // 2.
        tight = len(m) > 1 or abs(c) != 1 or sign == "-"
        names = " * ".join(_atom(a, tight, name, position) for a in m)
        size = str(abs(c)) if not m else ""
        times = "" if not m or abs(c) == 1 else f" * {abs(c)}"
        text += f"{sign}{size}{names}{times}"
    return text


def _ranks(name: Name, position: Position) -> Callable[[Atom], tuple[int, bool, str]]:
    def rank(a: Atom) -> tuple[int, bool, str]:
        if type(a) is Fn:
            first = min((position(v) for v in a.vars), default=-1)
            return first, True, _atom(a, False, name, position)
        return position(a) if type(a) is Var else -1, False, name(a)

    return rank


def _atom(a: Atom, tight: bool, name: Name, position: Position | None) -> str:
    if type(a) is not Fn:
        return name(a)
    if a.op == "floordiv":
        text = f"{_operand(a.a, name, position)} // {_operand(a.b, name, position)}"
        return f"({text})" if tight else text
    return f"{a.op}({spelled(a.a, name, position)}, {spelled(a.b, name, position)})"


def _operand(p: Poly, name: Name, position: Position | None) -> str:
    """`p` beside a division sign: in brackets unless it is a plain name or number."""
    text = spelled(p, name, position)
    atom = p.atom
    plain = (p.const or 0) > 0 or (atom is not None and not (type(atom) is Fn and atom.op == "floordiv"))
    return text if plain else f"({text})"

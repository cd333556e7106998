"""Dimensions of arrays and workspaces as plain data: integers, or expressions over the sizes of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Dim = int | tuple[tuple[Any, ...], ...]
"""An integer, or a sum of terms. A term is (coefficient, atom, ...), a product; an atom is the name of a size
or ("floordiv" | "ceildiv" | "min" | "max", Dim, Dim). Strings and integers in tuples: JSON holds them as
lists."""


def freeze(data: Any) -> Dim:
    """A Dim from its JSON form."""
    return data if isinstance(data, int) else tuple(tuple(map(_freeze_atom, term)) for term in data)


def _freeze_atom(a: Any) -> Any:
    return a if isinstance(a, int | str) else (a[0], freeze(a[1]), freeze(a[2]))


def name_of(dim: Dim) -> str | None:
    """The size, where the dimension is just one."""
    if isinstance(dim, int) or len(dim) != 1 or len(dim[0]) != 2 or dim[0][0] != 1:
        return None
    return dim[0][1] if isinstance(dim[0][1], str) else None


def names_in(dim: Dim) -> set[str]:
    """The sizes that a dimension is made of."""
    if isinstance(dim, int):
        return set()
    found: set[str] = set()
    for term in dim:
        for a in term[1:]:
            found |= {a} if isinstance(a, str) else names_in(a[1]) | names_in(a[2])
    return found


def evaluate(dim: Dim, sizes: Mapping[str, int]) -> int:
    """The integer that the dimension is for these sizes, by name."""
    if isinstance(dim, int):
        return dim
    total = 0
    for term in dim:
        value: int = term[0]
        for atom in term[1:]:
            value *= sizes[atom] if isinstance(atom, str) else _function(atom, sizes)
        total += value
    return total


def _function(atom: tuple[str, Dim, Dim], sizes: Mapping[str, int]) -> int:
    op, a, b = atom[0], evaluate(atom[1], sizes), evaluate(atom[2], sizes)
    # As in the kernel: nothing of what a division by 0 measures is used.
    match op:
        case "floordiv":
            return a // max(b, 1)
        case "ceildiv":
            return -(-a // max(b, 1))
        case "min":
            return min(a, b)
    return max(a, b)


def text(dim: Dim) -> str:
    """As a person writes it: `n`, `n * 2 + 1`, `m * n`."""
    if isinstance(dim, int):
        return str(dim)
    out = ""
    for term in sorted(dim, key=lambda t: (len(t) == 1, t[0] < 0)):
        sign = ("-" if term[0] < 0 else "") if not out else (" - " if term[0] < 0 else " + ")
        factors = [_atom_text(a, len(term) > 2 or abs(term[0]) != 1) for a in term[1:]]
        if abs(term[0]) != 1 or not factors:
            factors.append(str(abs(term[0])))
        out += sign + " * ".join(factors)
    return out


def _atom_text(atom: Any, in_product: bool) -> str:
    if isinstance(atom, str):
        return atom
    if atom[0] != "floordiv":
        return f"{atom[0]}({text(atom[1])}, {text(atom[2])})"
    a, b = ((x if (x := text(d)).isalnum() else f"({x})") for d in atom[1:])
    return f"({a} // {b})" if in_product else f"{a} // {b}"

"""Where in the loops code is being emitted."""

from __future__ import annotations

from ...arith import Atom, Poly, Var


class Point:
    """The values of the loop variables: integers of unrolled loops, names of serial ones and of sizes; the
    vector loop."""

    __slots__ = ("_vars", "lane", "lanes", "names", "unrolled")

    def __init__(self) -> None:
        self.unrolled: dict[Var, int] = {}
        self.names: dict[Atom, str] = {}
        #: The variable of the vector loop around the point, if any.
        self.lane: Var | None = None
        #: Lanes of a vector; None outside of vector loops.
        self.lanes: int | None = None
        self._vars: dict[object, tuple[Var, ...]] = {}

    def unrolled_at(self, polynomials: tuple[Poly, ...]) -> tuple[int | None, ...]:
        """The unrolled loops' values that the polynomials see: with the scope it decides what they are."""
        variables = self._vars.get(polynomials)
        if variables is None:
            found = frozenset[Var]().union(*(p.vars() for p in polynomials))
            variables = self._vars[polynomials] = tuple(found)
        get = self.unrolled.get
        return tuple([get(v) for v in variables])

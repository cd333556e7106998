"""Where in the loops code is being emitted."""

from __future__ import annotations

from ...arith import Var


class Point:
    """The values of the loop variables: integers of unrolled loops, names of serial ones, and the vector
    loop.
    """

    __slots__ = ("lane", "lanes", "names", "unrolled")

    def __init__(self) -> None:
        self.unrolled: dict[Var, int] = {}
        self.names: dict[Var, str] = {}
        #: The variable of the vector loop around the point, if any.
        self.lane: Var | None = None
        #: Lanes of a vector; None outside of vector loops.
        self.lanes: int | None = None

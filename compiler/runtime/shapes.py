"""The check of arrays' shapes against shapes over sizes, which are read off the arrays."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dims import Dim, evaluate, name_of, names_in, text
from .params import ParamInfo

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Misfit:
    """An argument whose shape is wrong, and in which dimension; None: it has another number of them."""

    argument: int
    dimension: int | None


class ShapeCheck:
    """``check(arrays)`` gives the sizes, in the order of `sizes`, or what is wrong.

    A size is read off the first dimension that is the size by itself; every other dimension must fit. Raises
    ValueError when made for a size that no dimension tells.
    """

    def __init__(self, params: Sequence[ParamInfo], sizes: Sequence[str]) -> None:
        self._params = tuple(params)
        self._sizes = tuple(sizes)
        places = [(n, d, dim) for n, p in enumerate(params) for d, dim in enumerate(p.shape)]
        self._sources: list[tuple[int, int]] = []
        for s in sizes:
            source = next(((n, d) for n, d, dim in places if name_of(dim) == s), None)
            if source is None:
                raise ValueError(f"the size {s!r} is no dimension of a parameter by itself")
            self._sources.append(source)
        self._ranks = tuple(len(p.shape) for p in params)
        #: Dimensions that are a size told elsewhere, by its number.
        self._same: list[tuple[int, int, int]] = []
        self._other: list[tuple[int, int, Dim]] = []
        for n, d, dim in places:
            name = name_of(dim)
            if name is None:
                self._other.append((n, d, dim))
            elif (n, d) not in self._sources:
                self._same.append((n, d, self._sizes.index(name)))

    def __call__(self, arrays: Sequence[Array]) -> list[int] | Misfit:
        shapes = [a.shape for a in arrays]
        for n, rank in enumerate(self._ranks):
            if len(shapes[n]) != rank:
                return Misfit(n, None)
        values = [shapes[n][d] for n, d in self._sources]
        for n, d, k in self._same:
            if shapes[n][d] != values[k]:
                return Misfit(n, d)
        if self._other:
            sizes = dict(zip(self._sizes, values, strict=True))
            for n, d, dim in self._other:
                if shapes[n][d] != evaluate(dim, sizes):
                    return Misfit(n, d)
        return values

    def reason(self, misfit: Misfit, arrays: Sequence[Array]) -> str:
        """What is wrong with a dimension, and which arguments tell the sizes it depends on."""
        n, d = misfit.argument, misfit.dimension
        assert d is not None
        dim, head = self._params[n].shape[d], f"dimension {d} is {arrays[n].shape[d]}"
        if isinstance(dim, int):
            return f"{head}, expected {dim}"
        told = [
            f"{s!r} is {arrays[k].shape[e]} from argument {k + 1}, {self._params[k].name!r} dimension {e}"
            for s, (k, e) in zip(self._sizes, self._sources, strict=True)
            if s in names_in(dim)
        ]
        if name_of(dim) is not None:
            return f"{head}, but {told[0]}"
        sizes = {s: arrays[k].shape[e] for s, (k, e) in zip(self._sizes, self._sources, strict=True)}
        return f"{head}, but {text(dim)} is {evaluate(dim, sizes)}, since {' and '.join(told)}"

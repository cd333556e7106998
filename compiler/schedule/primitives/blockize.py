"""blockize: a nest that later steps take as a whole."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Poly, Var
from ...ir import Block, For, PrimFunc, Stmt
from ...ir.annotations import UNIT
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import blocks_under, find_loop, unit_of, units_of


def separated(p: Poly, inner: set[Var]) -> tuple[Poly, dict[Var, int]] | None:
    """`p` as a part over the other variables, and a constant multiple of each of `inner`; None where the two
    do not come apart."""
    rest, steps = p, dict[Var, int]()
    for m, c in p.terms.items():
        a = m[0] if len(m) == 1 else None
        if isinstance(a, Var) and a in inner:
            steps[a] = c
            rest = rest - Poly({m: c})
    return None if rest.vars() & inner else (rest, steps)


def check_blockize(func: PrimFunc, at: For, primitive: str) -> list[Block]:
    """The blocks under the loop: the loops around only shift what an inner iteration does, and every unit is
    whole."""
    under = list(blocks_under(at))
    inner = {f.var for path, _ in under for f in path}
    for path, b in under:
        for f in path:
            if unit_of(f) is not None:
                reason = f"loop {at.var.name!r} holds the unit {unit_of(f)!r} already"
                raise ScheduleError(primitive, reason, func, f)
            if f.var.extent.const is None:
                reason = f"loop {f.var.name!r} runs {f.var.extent!r} times; a unit has constant extents"
                raise ScheduleError(primitive, reason, func, f)
        for it, bind in zip(b.iters, b.binds, strict=True):
            if separated(bind, inner) is None:
                what = f"{b.name!r} takes {it.name!r} from {bind!r}"
                reason = f"{what}, in which the loops of the unit and those around it do not come apart"
                raise ScheduleError(primitive, reason, func, b)
        if any(p.vars() & inner for p in b.predicates):
            reason = f"a part of {b.name!r} is masked inside of the unit; split evenly, or pad it before"
            raise ScheduleError(primitive, reason, func, b)
    return [b for _, b in under]


def blockize(func: PrimFunc, loop: Var) -> tuple[PrimFunc, str]:
    """Makes a loop, with all that stands inside, a unit: later steps transform the loops around it, and
    refuse to take it apart.

    before: `for i_0: for i_1 in range(4): C[i_0 * 4 + i_1] = …`
    after `blockize(i_1)`: `for i_0: for i_1 in range(4, unit='C_o'): C[i_0 * 4 + i_1] = …`

    Legal where the inner loops have constant extents, bindings are a sum of a part over the loops around
    and a part over the inner ones, and no predicate decides inside. Returns the program and the unit's name.
    """
    at = find_loop(func, loop, "blockize")
    blocks = check_blockize(func, at, "blockize")
    taken = {b.name for _, b in func.blocks()} | {str(unit_of(f)) for _, f in units_of(func)}
    name = fresh(f"{blocks[-1].name}_o", taken)
    return mark(func, loop, (UNIT, name)), name


def mark(func: PrimFunc, loop: Var, *annotations: tuple[str, str | int]) -> PrimFunc:
    """The loop with more annotations."""

    def visit(s: Stmt) -> Stmt:
        if type(s) is not For or s.var is not loop:
            return s
        return replace(s, annotations=tuple(sorted({**dict(s.annotations), **dict(annotations)}.items())))

    return func.rewrite(visit)

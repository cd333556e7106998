"""add_unit_loop: a loop of one iteration around a loop or a block."""

from __future__ import annotations

from ...arith import Var
from ...ir import Block, For, PrimFunc, Stmt
from ...ir.func import fresh
from ..errors import ScheduleError
from ..find import find_block, find_loop, unit_of


def check_add_unit_loop(func: PrimFunc, at: Var | str) -> None:
    """The loop or the block is there, and belongs to no unit."""
    if not isinstance(at, str):
        find_loop(func, at, "add_unit_loop")
        return
    path, block = find_block(func, at, "add_unit_loop")
    unit = next((unit_of(f) for f in path if unit_of(f) is not None), None)
    if unit is not None:
        reason = f"{at!r} belongs to the unit {unit!r}, which is taken whole"
        raise ScheduleError("add_unit_loop", reason, func, block)


def add_unit_loop(func: PrimFunc, at: Var | str) -> tuple[PrimFunc, Var]:
    """Puts a serial loop of one iteration around a loop (its variable) or a block (its name).

    before: `for i in range(8): B[i] = …`
    after `add_unit_loop(i)`: `for u in range(1): for i in range(8): B[i] = …`
    Legal but inside of a unit that blockize made. Returns the program and the loop.
    """
    check_add_unit_loop(func, at)
    taken = {f.var.name for path, _ in func.blocks() for f in path}
    unit = Var(fresh("u", taken), 1)

    def visit(s: Stmt) -> Stmt:
        is_it = s.name == at if type(s) is Block else type(s) is For and s.var is at
        return For(unit, (s,)) if is_it else s

    return func.rewrite(visit), unit

"""add_unit_loop: a loop of one iteration around a loop or a block."""

from __future__ import annotations

from ...arith import Var
from ...ir import Block, For, PrimFunc, Stmt
from ...ir.func import fresh
from ..find import find_block, find_loop


def add_unit_loop(func: PrimFunc, at: Var | str) -> tuple[PrimFunc, Var]:
    """Puts a serial loop of one iteration around a loop (its variable) or a block (its name).

    before: `for i in range(8): B[i] = …`
    after `add_unit_loop(i)`: `for u in range(1): for i in range(8): B[i] = …`
    Always legal. Returns the program and the loop.
    """
    if isinstance(at, str):
        find_block(func, at, "add_unit_loop")
    else:
        find_loop(func, at, "add_unit_loop")
    taken = {f.var.name for path, _ in func.blocks() for f in path}
    unit = Var(fresh("u", taken), 1)

    def visit(s: Stmt) -> Stmt:
        is_it = s.name == at if type(s) is Block else type(s) is For and s.var is at
        return For(unit, (s,)) if is_it else s

    return func.rewrite(visit), unit

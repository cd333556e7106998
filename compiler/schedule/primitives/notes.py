"""annotate, unannotate: what stands at a loop or a block and changes nothing by itself."""

from __future__ import annotations

from dataclasses import replace

from ...arith import Var
from ...ir import Block, For, LoopKind, PrimFunc, Stmt
from ...ir.annotations import is_reserved
from ..errors import ScheduleError
from ..find import find_block, find_loop

Annotations = tuple[tuple[str, str | int], ...]
#: The annotation of a loop of kind THREAD that holds its axis.
AXIS = "axis"


def check_axis_stays(func: PrimFunc, at: For, key: str, primitive: str) -> None:
    """The axis of a bound loop is no note."""
    if at.kind is LoopKind.THREAD and key == AXIS:
        axis = dict(at.annotations).get(AXIS)
        reason = f"loop {at.var.name!r} is bound to {axis}, which {AXIS!r} says"
        raise ScheduleError(primitive, reason, func, at)


def annotate_loop(func: PrimFunc, loop: Var, key: str, value: str | int) -> PrimFunc:
    """Attaches a key and a value to a loop; the same key again replaces the value.

    before: `for i in range(4): …` after `annotate(i, "hint", 1)`: `for i in range(4, hint=1): …`
    """
    check_axis_stays(func, find_loop(func, loop, "annotate"), key, "annotate")

    def visit(s: Stmt) -> Stmt:
        return (
            replace(s, annotations=_with(s.annotations, key, value))
            if type(s) is For and s.var is loop
            else s
        )

    return func.rewrite(visit)


def annotate_block(func: PrimFunc, block: str, key: str, value: str | int) -> PrimFunc:
    """Attaches a key and a value to a block; the same key again replaces the value.

    before: `with block('B')` after `annotate(B, "hint", 1)`: the same block, with `hint=1`
    """
    find_block(func, block, "annotate")

    def visit(s: Stmt) -> Stmt:
        return (
            replace(s, annotations=_with(s.annotations, key, value))
            if type(s) is Block and s.name == block
            else s
        )

    return func.rewrite(visit)


def _with(old: Annotations, key: str, value: str | int) -> Annotations:
    return tuple(sorted({**dict(old), key: value}.items()))


def check_annotated(func: PrimFunc, at: Stmt, name: str, key: str) -> None:
    """The key is there, and no step of its own put it there."""
    if is_reserved(key):
        raise ScheduleError("unannotate", f"the key {key!r} belongs to a step of its own", func, at)
    keys = [k for k, _ in at.annotations]
    if key not in keys:
        known = f"; it has {', '.join(map(repr, keys))}" if keys else ""
        raise ScheduleError("unannotate", f"{name} has no annotation {key!r}{known}", func, at)


def unannotate_loop(func: PrimFunc, loop: Var, key: str) -> PrimFunc:
    """Takes an annotation off a loop.

    before: `for i in range(4, hint=1): …` after `unannotate(i, "hint")`: `for i in range(4): …`
    Refused: a key that is not there, and the axis of a bound loop.
    """
    at = find_loop(func, loop, "unannotate")
    check_annotated(func, at, f"loop {loop.name!r}", key)
    check_axis_stays(func, at, key, "unannotate")

    def visit(s: Stmt) -> Stmt:
        return replace(s, annotations=_without(s.annotations, key)) if type(s) is For and s.var is loop else s

    return func.rewrite(visit)


def unannotate_block(func: PrimFunc, block: str, key: str) -> PrimFunc:
    """Takes an annotation off a block.

    before: the block with `hint=1` after `unannotate(B, "hint")`: the block without it
    Refused: a key that is not there.
    """
    _, at = find_block(func, block, "unannotate")
    check_annotated(func, at, f"block {block!r}", key)

    def visit(s: Stmt) -> Stmt:
        return (
            replace(s, annotations=_without(s.annotations, key))
            if type(s) is Block and s.name == block
            else s
        )

    return func.rewrite(visit)


def _without(old: Annotations, key: str) -> Annotations:
    return tuple(a for a in old if a[0] != key)

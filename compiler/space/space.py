"""The search space of a workload: every structure that the rules know, each traced once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ..ir import LoopKind, PrimFunc, workload_key
from ..schedule import Schedule, ScheduleError
from ..target import Target
from .containment import RuleError, guarded
from .dot import summed
from .groups import Group, constants_first, groups_of, inline_elementwise
from .rows import worked
from .rules import Structure, structures
from .sketch import Constraint, SearchSpace, Sketch, points
from .threads import deal_out, share_out

#: Structures of one workload; the rules give 2-6 for the usual operators.
MAX_SKETCHES = 12


def space_of(func: PrimFunc, target: Target) -> SearchSpace:
    """The sketches for the heaviest group of blocks, each with the first structure that fits for every other
    group.

    A structure that cannot be made is left out, with its reason in `refused`, and so is what a rule that
    fails would have made, which `errors` tells; the program as written is the last resort, and all there is
    to one that is scheduled already. Raises ValueError for a program over sizes: what is fastest depends on
    them.
    """
    if func.sizes:
        names = ", ".join(map(repr, func.sizes))
        bound = ", ".join(f"{s.name!r}: 1024" for s in func.sizes)
        raise ValueError(
            f"{func.name!r} is over {names}, which only a call tells; to search, bind {names} or give sizes: "
            f"ir.bind_sizes(func, {{{bound}}})"
        )
    if _is_scheduled(func):
        return _as_written(func, _Omitted())
    omitted = _Omitted()
    try:
        base = guarded("inlining", func, _inlined, func, target)
        for by_rows in (True, False):
            groups = guarded("grouping", func, groups_of, base.func, by_rows=by_rows)
            heavy = max(groups, key=lambda g: points(base.func.block(g.main)[1]))
            sketches = _sketches(base, target, groups, heavy, omitted)
            if sketches:
                return SearchSpace(func, workload_key(func), tuple(sketches), omitted.refused, omitted.errors)
    except (ScheduleError, RuleError) as e:
        omitted.add("inlining", e)
    return _as_written(func, omitted)


@dataclass(frozen=True, slots=True)
class _Omitted:
    """What is not in a space: structures that cannot be made, and rules that fail, each with the reason."""

    refused: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def add(self, structure: str, error: ScheduleError | RuleError) -> None:
        if isinstance(error, RuleError):
            self.errors.setdefault(error.rule, str(error))
        else:
            self.refused[structure] = f"{error.primitive}: {error.reason}"


def _inlined(func: PrimFunc, target: Target) -> Schedule:
    base = Schedule(func)
    inline_elementwise(base)
    constants_first(base)
    if target.num_threads > 1 and target.math == "reassoc":
        deal_out(base, target.num_threads)
    return base


def _is_scheduled(func: PrimFunc) -> bool:
    """Whether a block stands in other loops than a serial one for each of its iteration variables."""
    return any(
        {p.atom for p in b.binds} != {f.var for f in path} or any(f.kind is not LoopKind.SERIAL for f in path)
        for path, b in func.blocks()
    )


def _as_written(func: PrimFunc, omitted: _Omitted) -> SearchSpace:
    sch = Schedule(func)
    heavy = max((b for _, b in func.blocks()), key=points)
    sketch = Sketch("as written", sch.func, sch.trace, (), (), heavy.name, 0)
    return SearchSpace(func, workload_key(func), (sketch,), omitted.refused, omitted.errors)


def _sketches(
    base: Schedule, target: Target, groups: list[Group], heavy: Group, omitted: _Omitted
) -> list[Sketch]:
    found: list[Sketch] = []
    func = base.func
    for structure in _by_promise(base.func, heavy, target):
        if len(found) >= MAX_SKETCHES or (structure.fallback and found):
            continue
        try:
            sketch = guarded(
                structure.name, func, _sketch, base, target, groups, heavy, structure, len(found), omitted
            )
            legal = guarded(structure.name, func, _has_config, sketch)
        except (ScheduleError, RuleError) as e:
            omitted.add(structure.name, e)
            continue
        if legal:
            found.append(sketch)
        else:
            omitted.refused[structure.name] = _why_empty(sketch)
    return found


def _has_config(sketch: Sketch) -> bool:
    return bool(len(sketch.columns.random(1, np.random.default_rng(0))))


def _why_empty(sketch: Sketch) -> str:
    labels = dict.fromkeys(sketch.columns.conflict())
    together = " together" if len(labels) > 1 else ""
    return f"no values of its knobs satisfy {' and '.join(map(repr, labels)) or 'its constraints'}{together}"


def _by_promise(func: PrimFunc, group: Group, target: Target) -> list[Structure]:
    """Every structure of the group; those that are only worth it without others come last."""
    return sorted(structures(func, group, target), key=lambda s: s.fallback)


def _sketch(
    base: Schedule,
    target: Target,
    groups: list[Group],
    heavy: Group,
    structure: Structure,
    index: int,
    omitted: _Omitted,
) -> Sketch:
    sch = base.copy()
    constraints: list[Constraint] = []
    mains: list[str] = []
    main = heavy.main
    for g in groups:
        tag = f"{g.main}_" if len(groups) > 1 else ""
        before = {b.name for _, b in sch.func.blocks()}
        if g is heavy:
            constraints += structure.apply(sch, g, target, tag)
        else:
            constraints += _apply_first(sch, g, target, tag, omitted)
        tiled = (worked(sch.func, g, before) if g.rows else []) or [summed(sch.func, g.main)]
        mains += tiled
        main = tiled[-1] if g is heavy else main
    busy = share_out(sch, target.num_threads) if target.num_threads > 1 else []
    knobs = tuple(sch.knobs.values())
    # What splits could neither prove nor refute is a constraint like any other.
    constraints += [Constraint("factors fit the loop", p, 0) for p in sch.constraints]
    sketch = Sketch(
        structure.name, sch.func, sch.trace, knobs, (*constraints, *busy), main, index, tuple(mains)
    )  # fmt: skip
    # Where the other constraints leave no config that keeps the threads busy, idle ones are better than none.
    if busy and not _has_config(sketch):
        return replace(sketch, constraints=tuple(constraints))
    return sketch


def _apply_first(
    sch: Schedule, group: Group, target: Target, tag: str, omitted: _Omitted
) -> list[Constraint]:
    """The first structure that fits a lighter group; its blocks stay as written when none does."""
    for structure in _by_promise(sch.func, group, target):
        trial = sch.copy()
        try:
            constraints = guarded(structure.name, sch.func, structure.apply, trial, group, target, tag)
        except ScheduleError:
            continue
        except RuleError as e:
            omitted.add(structure.name, e)
            continue
        sch.adopt(trial)
        return constraints
    if len(group.rows) < 2:
        return []
    apart = (g for g in groups_of(sch.func, by_rows=False) if g.main in group.rows)
    return [c for g in apart for c in _apply_first(sch, g, target, f"{tag}{g.main}_", omitted)]

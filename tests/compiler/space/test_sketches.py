"""Sketches: symbols and integers agree, constraints hold for what is proposed, and every candidate keeps the
meaning."""

from dataclasses import replace

import numpy as np

from tilewright.compiler import interpret, topi
from tilewright.compiler.arith import Atom, Poly, Var, evaluate, poly, proven_negative, substitute
from tilewright.compiler.ir import (
    Binary,
    Block,
    Buffer,
    Expr,
    For,
    InBounds,
    PrimFunc,
    Select,
    Stmt,
    map_expr,
    map_loads,
    structural_equal,
)
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.space import FEATURE_NAMES, Sketch, SketchColumns, default_schedule, space_of
from tilewright.compiler.target import Target


def configs(sketch: Sketch, n: int) -> np.ndarray:
    return sketch.columns.random(n, np.random.default_rng(1))


def substituted(func: PrimFunc, values: dict[Atom, Poly]) -> PrimFunc:
    """The program with integers for its knobs; predicates that became provable or equal are left out, and a
    loop of extent 1 is 0."""

    def at(p: Poly) -> Poly:
        return substitute(p, values)

    def new(v: Var) -> Var:
        fresh = Var(v.name, at(v.extent))
        values[v] = poly(0) if fresh.extent.const == 1 else poly(fresh)
        return fresh

    def stmt(s: Stmt) -> Stmt:
        if isinstance(s, For):
            var = new(s.var)
            return replace(s, var=var, body=tuple(stmt(x) for x in s.body))
        assert isinstance(s, Block)
        binds = tuple(at(b) for b in s.binds)
        predicates = needed([p for p in map(at, s.predicates) if not proven_negative(p)])
        iters = tuple(new(v) for v in s.iters)
        indices = tuple(at(i) for i in s.indices)
        value = map_loads(unguarded(map_expr(s.value, at)), lambda x: replace(x, buffer=sized(x.buffer)))
        return replace(
            s,
            iters=iters,
            binds=binds,
            predicates=predicates,
            indices=indices,
            value=value,
            buffer=sized(s.buffer),
        )

    allocs = {b: replace(b, shape=tuple(map(at, b.shape))) for b in func.allocs}

    def sized(b: Buffer) -> Buffer:
        return allocs.get(b, b)

    return replace(func, body=tuple(stmt(s) for s in func.body), allocs=tuple(allocs.values()))


def needed(predicates: list[Poly]) -> tuple[Poly, ...]:
    """Each once, without those that another one implies, as p < 0 follows from q < 0 where p is q - 1."""
    once = tuple(dict.fromkeys(predicates))
    return tuple(p for p in once if not any(((p - q).const or 0) < 0 for q in once))


def unguarded(e: Expr) -> Expr:
    """A step that contributes nothing past a tail, without conditions that hold everywhere."""
    if type(e) is not Binary or type(e.b) is not Select or type(e.b.cond) is not InBounds:
        return e
    left = tuple(p for p in e.b.cond.conditions if not proven_negative(p))
    return replace(e, b=replace(e.b, cond=InBounds(left)) if left else e.b.a)


def tiles_fit(sketch: Sketch, values: dict[Atom, int]) -> bool:
    """Whether no tile is larger than what it tiles; only then is a symbolic region as small as the concrete
    one."""
    extents = {
        f"{name}{it.name} beyond its extent": it.extent.const or 1
        for main in sketch.mains
        for it in sketch.func.block(main)[1].iters
        for name in ("", f"{main}_")
    }
    return all(evaluate(c.value, values) <= extents.get(c.label, 1 << 60) for c in sketch.constraints)


def fitting_configs(sketch: Sketch, n: int) -> np.ndarray:
    rows = configs(sketch, 60)
    fit = [tiles_fit(sketch, dict(zip(sketch.knobs, map(int, row), strict=True))) for row in rows]
    return rows[np.array(fit)][:n]


def test_integers_put_into_a_sketch_give_what_replaying_gives(workload: PrimFunc, target: Target) -> None:
    for sketch in space_of(workload, target).sketches:
        for row in fitting_configs(sketch, 2):
            values: dict[Atom, Poly] = {k: poly(int(v)) for k, v in zip(sketch.knobs, row, strict=True)}
            replayed = sketch.resolve(row).apply(workload).func
            assert structural_equal(substituted(sketch.func, values), substituted(replayed, {}))


def test_feature_columns_equal_the_features_of_the_concrete_program(
    workload: PrimFunc, target: Target
) -> None:
    for sketch in space_of(workload, target).sketches:
        population = fitting_configs(sketch, 3)
        rows = sketch.columns.features(population)
        for row, got in zip(population, rows, strict=True):
            concrete = sketch.resolve(row).apply(workload).func
            columns = SketchColumns(concrete, sketch.main, sketch.index, (), ())
            want = columns.features(np.empty((1, 0), np.int64))[0]
            same = np.isclose(got, want, rtol=1e-5)
            different = [n for n, ok in zip(FEATURE_NAMES, same, strict=True) if not ok]
            assert different == [], f"{sketch.name} {sketch.config(row)}"


def test_every_sketch_has_the_same_feature_layout(workload: PrimFunc, target: Target) -> None:
    for sketch in space_of(workload, target).sketches:
        assert sketch.columns.features(configs(sketch, 2)).shape == (2, len(FEATURE_NAMES))


def test_what_is_proposed_satisfies_the_constraints(workload: PrimFunc, target: Target) -> None:
    rng = np.random.default_rng(2)
    for sketch in space_of(workload, target).sketches:
        population = sketch.columns.random(200, rng)
        assert len(population), sketch.name
        assert sketch.columns.valid(population).all()
        assert sketch.columns.valid(sketch.columns.mutate(population, 500, rng)).all()


def test_the_register_budget_of_the_target_is_kept(target: Target) -> None:
    func = topi.create({"op": "matmul", "m": 64, "n": 128, "k": 32})
    for sketch in space_of(func, target).sketches:
        population = configs(sketch, 200)
        accumulators = sketch.columns.features(population)[:, FEATURE_NAMES.index("accumulators")]
        assert accumulators.max() <= target.vector_registers - 2


def test_tiles_may_fill_all_of_16_registers_and_leave_one_of_32(target: Target) -> None:
    func = topi.create({"op": "matmul", "m": 64, "n": 192, "k": 32})
    used = 0
    for sketch in space_of(func, target).sketches:
        every = sketch.columns.every(1 << 16)
        assert every is not None
        rows = every[:, [k.name for k in sketch.knobs].index("i_r")]
        vectors = every[:, [k.name for k in sketch.knobs].index("j_r")]
        used = max(used, int((rows * vectors + vectors + 1).max()))
    assert used == (16 if target.vector_registers == 16 else 31)


def test_candidates_keep_the_meaning(workload: PrimFunc) -> None:
    target = Target.parse("llvm -mcpu=x86-64-v3")
    before = interpret.random_inputs(workload, 3)
    interpret.run(workload, before)
    for sketch in space_of(workload, target).sketches:
        for row in configs(sketch, 1):
            after = interpret.random_inputs(workload, 3)
            interpret.run(sketch.resolve(row).apply(workload).func, after)
            np.testing.assert_allclose(after[-1], before[-1], rtol=1e-4, atol=1e-5, err_msg=sketch.name)


def test_the_default_schedule_is_the_same_every_time(workload: PrimFunc, target: Target) -> None:
    first, second = default_schedule(workload, target), default_schedule(workload, target)
    assert first.trace.canonical_json() == second.trace.canonical_json()


def test_a_user_schedule_with_knobs_traces_like_any_other(workload: PrimFunc) -> None:
    sch = Schedule(workload)
    loops = sch.get_loops(sch.get_block(0))
    knob = sch.sample_categorical([1, 2, 3])
    sch.split(loops[0], factors=[None, knob])
    assert sch.trace.knobs == ("k0",)
    assert sch.trace.resolve({"k0": 2}).knobs == ()

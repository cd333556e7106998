"""The fuzz finds what it is there to find: a wrong primitive, and accesses out of bounds."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.compiler import te
from tilewright.compiler.arith import Var, poly
from tilewright.compiler.codegen.c.compile import COMPILERS
from tilewright.compiler.ir import Block, For, PrimFunc, Stmt, rewrite
from tilewright.compiler.schedule import Schedule, Trace, primitives
from tilewright.compiler.schedule.primitives import kinds, merge
from tilewright.compiler.schedule.primitives.loops import add_predicate, reorder
from tilewright.compiler.schedule.steps import STEPS

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def beside_the_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("at_end", "offset"), [(True, 40), (False, -1)])
def test_an_access_beside_an_array_ends_the_process(at_end: bool, offset: int) -> None:
    code = (
        "import ctypes, numpy\n"
        "from guarded import Guarded\n"
        f"g = Guarded(numpy.zeros(10, 'float32'), at_end={at_end})\n"
        "print(len(ctypes.string_at(g.array.ctypes.data, 40)), flush=True)\n"
        f"ctypes.string_at(g.array.ctypes.data + {offset}, 1)\n"
    )
    done = run(code)
    assert (done.stdout, done.returncode) == ("40\n", -11)


def test_a_write_between_an_array_and_the_other_page_is_seen() -> None:
    import ctypes

    import numpy as np
    from guarded import Guarded

    g = Guarded(np.zeros(10, "float32"), at_end=True)
    before = g.untouched()
    ctypes.memset(g.array.ctypes.data - 1, 0, 1)
    after = g.untouched()
    g.free()
    assert (before, after) == (True, False)


def broken_reorder(func: PrimFunc, loops: Sequence[Var]) -> PrimFunc:
    """Reorders, and leaves the last iteration of the first loop out."""
    last = poly(loops[0]) - loops[0].extent + 1

    def below(s: Stmt) -> Stmt:
        return add_predicate(s, last) if type(s) is Block else s

    def visit(s: Stmt) -> Stmt:
        return replace(s, body=rewrite(s.body, below)) if type(s) is For and s.var is loops[0] else s

    return reorder(func, loops).rewrite(visit)


def test_a_wrong_primitive_is_found_and_the_reproduction_is_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    from draw import Walk
    from minimal import applies, minimal, without
    from trial import Failure, judge, program

    monkeypatch.setattr(primitives, "reorder", broken_reorder)
    lengths: list[int] = []

    def fails(t: Trace) -> bool:
        return isinstance(judge("matmul", t.apply(program("matmul")), "llvm"), Failure)

    for seed in range(16):
        walk = Walk(Schedule(program("matmul")), random.Random(seed))
        walk.run(6)
        verdict = judge("matmul", walk.sch, "llvm")
        if isinstance(verdict, Failure) and verdict.kind == "differs":
            small = list(minimal(walk.sch.trace, program("matmul"), fails).instructions)
            # A loop that an earlier step made cannot be reordered without that step.
            steps = [i.name for i in small if not i.name.startswith("get_")]
            assert "reorder" in steps
            for n in range(len(small)):
                fewer = without(small, n)
                assert not (applies(fewer, program("matmul")) and fails(Trace(tuple(fewer))))
            lengths.append(len(steps))
    assert len(lengths) >= 3 and min(lengths) == 1


def test_every_step_of_a_schedule_is_drawn() -> None:
    from draw import COVERED

    assert set(STEPS) == COVERED


def shifted(by: int) -> PrimFunc:
    """B and then C, which reads B one element before or behind its own."""
    a = te.placeholder((9,), "int32", name="A")
    b = te.compute((9,), lambda i: a[i] * 2, name="B")

    def value(i: te.Index) -> te.Value:
        return te.if_then_else(te.all(i + by >= 0, i + by < 9), b[i + by], te.const(0, "int32"))

    return te.create_prim_func([a, te.compute((9,), value, name="C")], name="shifted")


def merged(by: int, monkeypatch: pytest.MonkeyPatch) -> Schedule:
    """Both in one loop, by primitives that prove nothing."""
    from trial import program
    from workloads import WORKLOADS, Workload

    name = f"shifted by {by}"
    monkeypatch.setitem(WORKLOADS, name, Workload(lambda: shifted(by)))  # type: ignore[arg-type]
    monkeypatch.setattr(merge, "crossing", lambda first, second: None)
    monkeypatch.setattr(kinds, "check_independent", lambda func, at, primitive: None)
    sch = Schedule(program(name))
    sch.merge_loops(*(sch.get_loops(sch.get_block(b))[0] for b in ("B", "C")))
    return sch


def test_a_read_of_what_was_never_written_is_found_by_its_poison(monkeypatch: pytest.MonkeyPatch) -> None:
    from trial import Failure, judge

    verdict = judge("shifted by 1", merged(1, monkeypatch), "llvm")
    assert isinstance(verdict, Failure) and (verdict.kind, "got -1" in verdict.message) == ("differs", True)


def test_a_parallel_loop_that_needs_its_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from trial import Failure, judge

    sch = merged(-1, monkeypatch)
    in_order = judge("shifted by -1", sch, "llvm")
    sch.parallel(sch.get_loops(sch.get_block("B"))[0])
    verdict = judge("shifted by -1", sch, "llvm")
    assert in_order is None
    assert isinstance(verdict, Failure) and verdict.message.startswith("with parallel loops from their ends")


@pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="there is no C compiler")
def test_a_guarded_read_in_c_touches_nothing_behind_the_array() -> None:
    code = (
        "import tilewright\n"
        "from trial import judge, program\n"
        "sch = tilewright.Schedule(program('outputs read again'))\n"
        "sch.pad_einsum(sch.get_block('D'), [2, 4])\n"
        "print(judge('outputs read again', sch, 'c'))\n"
    )
    done = run(code)
    assert (done.stdout, done.returncode) == ("None\n", 0)

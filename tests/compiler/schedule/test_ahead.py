"""compute_ahead: what it makes of a program, and when it is refused."""

from collections.abc import Callable

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError

Steps = Callable[[Schedule], object]


@pytest.fixture
def weighted() -> PrimFunc:
    """C = A (2 W) + bias, W and bias constant: 5 x 7 x 6."""
    a = te.placeholder((5, 6), name="A")
    w, bias = te.placeholder((7, 6), name="W", constant=True), te.placeholder((7,), name="bias")
    k = te.reduce_axis((0, 6), name="k")
    t = te.compute((6, 7), lambda k, j: w[j, k] * 2, name="T")
    c = te.compute((5, 7), lambda i, j: te.sum(a[i, k] * t[k, j], axis=k), name="C")
    d = te.compute((5, 7), lambda i, j: c[i, j] + bias[j], name="D")
    return te.create_prim_func([a, w, bias, d], name="weighted")


def ahead_at_the_root(s: Schedule) -> None:
    s.compute_ahead(s.get_block("T"))


def ahead_under_a_tile(s: Schedule) -> None:
    t, c = s.get_block("T"), s.get_block("C")
    i, j, _ = s.get_loops(c)
    j0, _ = s.split(j, [None, 4])
    s.reorder(j0, i)
    s.compute_at(t, j0)
    s.compute_ahead(t)


def ahead_in_two_stages(s: Schedule) -> None:
    t, c = s.get_block("T"), s.get_block("C")
    copy = s.cache_read(c, 1, "local", order=[1, 0])
    s.compute_ahead(t)
    s.compute_ahead(copy)
    s.compute_at(copy, s.get_loops(c)[1])


@pytest.mark.parametrize(
    "steps", [ahead_at_the_root, ahead_under_a_tile, ahead_in_two_stages], ids=lambda s: s.__name__
)
def test_making_something_ahead_keeps_the_meaning(
    weighted: PrimFunc, steps: Steps, keeps_its_meaning: Callable[[PrimFunc, Steps], None]
) -> None:
    keeps_its_meaning(weighted, steps)


def in_registers(s: Schedule) -> None:
    t = s.get_block("T")
    s.set_scope(t, 0, "register")
    s.compute_ahead(t)


def of_a_call(s: Schedule) -> None:
    s.compute_ahead(s.get_block("C"))


def of_an_intermediate(s: Schedule) -> None:
    s.compute_ahead(s.cache_read(s.get_block("C"), 1, "local"))


REFUSALS = {
    (lambda s: s.compute_ahead(s.get_block("D"))): ("'D' writes the output D, which belongs to a call"),
    in_registers: "T is in registers, which hold nothing between calls",
    of_a_call: (
        "'C' reads A, which is no constant; "
        "declare it so with te.placeholder(…, constant=True) where it is one"
    ),
    of_an_intermediate: "'T_local' reads T, which 'T' makes at each call; compute 'T' ahead first",
}


@pytest.mark.parametrize("steps", REFUSALS, ids=lambda s: REFUSALS[s].split(",")[0])
def test_what_is_made_at_each_call_is_refused(weighted: PrimFunc, steps: Steps) -> None:
    with pytest.raises(ScheduleError) as caught:
        steps(Schedule(weighted))
    assert (caught.value.primitive, caught.value.reason) == ("compute_ahead", REFUSALS[steps])
    assert "test_ahead.py" in str(caught.value)


def test_loops_over_sizes_are_refused() -> None:
    n = te.var("n")
    a, w = te.placeholder((n,), name="A"), te.placeholder((4,), name="W", constant=True)
    t = te.compute((n,), lambda i: w[i % 4], name="T")
    func = te.create_prim_func([a, w, te.compute((n,), lambda i: a[i] + t[i], name="B")])
    sch = Schedule(func)
    with pytest.raises(ScheduleError) as caught:
        sch.compute_ahead(sch.get_block("T"))
    assert caught.value.reason == "it runs over the size 'n', which only a call tells"


def test_the_mark_is_no_note_of_the_users(weighted: PrimFunc) -> None:
    sch = Schedule(weighted)
    t = sch.get_block("T")
    sch.compute_ahead(t)
    with pytest.raises(ScheduleError, match="the key 'ahead' belongs to a step of its own"):
        sch.unannotate(t, "ahead")
    with pytest.raises(ScheduleError, match="'ahead'"):
        sch.annotate(sch.get_block("C"), "ahead", 1)

"""Traces: JSON and back, names left out, knobs resolved, and what is no trace."""

from typing import Any

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc, structural_equal, workload_key
from tilewright.compiler.schedule import Schedule, Trace, TraceError


def tiled(func: PrimFunc) -> Schedule:
    sch = Schedule(func)
    i, j, k = sch.get_loops(sch.get_block(0))
    width = sch.sample_categorical([2, 4], name="width")
    i0, i1 = sch.split(i, factors=[None, width])
    sch.reorder(i0, j, k, i1)
    return sch


def test_a_resolved_trace_equals_the_schedule_made_with_integers(matmul: PrimFunc) -> None:
    sketch = tiled(matmul)
    by_hand = Schedule(matmul)
    i, j, k = by_hand.get_loops(by_hand.get_block("C"))
    i0, i1 = by_hand.split(i, factors=[None, 4])
    by_hand.reorder(i0, j, k, i1)
    resolved = sketch.trace.resolve({"width": 4})
    assert resolved.canonical_json() == by_hand.trace.canonical_json()
    assert structural_equal(resolved.apply(matmul).func, by_hand.func)


def test_a_trace_applies_to_a_program_with_other_names(matmul: PrimFunc) -> None:
    x = te.placeholder((10, 8), "float32", name="left")
    y = te.placeholder((8, 6), "float32", name="right")
    z = te.placeholder((6,), "float32", name="shift")
    r = te.reduce_axis((0, 8), name="step")
    p = te.compute((10, 6), lambda a, b: te.sum(x[a, r] * y[r, b], axis=r), name="product")
    q = te.compute((10, 6), lambda a, b: te.maximum(p[a, b] + z[b], 0), name="out")
    other = te.create_prim_func([x, y, z, q], name="renamed")
    assert workload_key(other) == workload_key(matmul)
    trace = tiled(matmul).trace.resolve({"width": 2})
    assert structural_equal(trace.apply(other).func, trace.apply(matmul).func)
    assert trace.apply(other).trace.script() == (
        "product = sch.get_block('product')\n"
        "a, b, step = sch.get_loops(product)\n"
        "a_0, a_1 = sch.split(a, factors=[None, 2])\n"
        "sch.reorder(a_0, b, step, a_1)\n"
    )


def test_the_printed_python_does_what_the_trace_does(matmul: PrimFunc) -> None:
    trace = tiled(matmul).trace.resolve({"width": 4})
    sch = Schedule(matmul)
    exec(trace.script(), {"sch": sch})
    assert sch.trace.canonical_json() == trace.canonical_json()


def test_a_value_outside_of_the_domain_is_refused(matmul: PrimFunc) -> None:
    with pytest.raises(TraceError, match=r"^knob 'width' takes one of \[2, 4\], got 3$"):
        tiled(matmul).trace.resolve({"width": 3})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "a trace is an object with the fields 'version' and 'steps'"),
        ({"version": 2, "steps": []}, "version 2 is not known; this program reads 1 (at /version)"),
        ({"version": 1, "steps": [{"do": "split"}]}, "split lacks the argument 'loop' (at /steps/0)"),
        (
            {"version": 1, "steps": [{"do": "unroll", "loop": 3}]},
            "expected a loop's name, got 3 (at /steps/0/loop)",
        ),
        (
            {"version": 1, "steps": [{"do": "get_block", "block": 0, "out": ["b0"], "speed": 1}]},
            "get_block has no argument 'speed'; known: block (at /steps/0/speed)",
        ),
        (
            {"version": 1, "steps": [{"do": "get_blocks", "out": ["b0", "b0"]}]},
            "'b0' is given a second time (at /steps/0/out/1)",
        ),
        (
            {
                "version": 1,
                "steps": [
                    {"do": "get_block", "block": 0, "out": ["b0"]},
                    {"do": "sample_categorical", "candidates": [1, 2], "out": ["b0"]},
                ],
            },
            "'b0' is given a second time (at /steps/1/out/0)",
        ),
        (
            {"version": 1, "steps": [{"do": "annotate", "at": "b0", "key": "note", "value": 2**53}]},
            "expected an integer, got 9007199254740992 (at /steps/0/value)",
        ),
        *(
            (
                {
                    "version": 1,
                    "steps": [
                        {"do": "transform_layout", "block": "b0", "index": 0, "index_map": [[[1, 0]]]}
                        | {"pad_value": value}
                    ],
                },
                f"expected a number, got {value!r} (at /steps/0/pad_value)",
            )
            for value in (float("nan"), float("inf"), 2**53, "12", "-0", "٣", "9" * 30, "infinity", [], {})
        ),
    ],
)
def test_what_is_no_trace_is_refused_with_a_pointer(data: Any, text: str) -> None:
    with pytest.raises(TraceError) as caught:
        Trace.from_json(data)
    assert str(caught.value) == text


def test_a_name_that_no_step_gave_is_refused(matmul: PrimFunc) -> None:
    trace = Trace.from_json({"version": 1, "steps": [{"do": "unroll", "loop": "l7"}]})
    with pytest.raises(TraceError, match=r"^no earlier step gave 'l7' \(at /steps/0/loop\)$"):
        trace.apply(matmul)


def test_python_of_a_trace_uses_no_keyword_as_a_name(matmul: PrimFunc) -> None:
    steps = [
        {"do": "get_block", "block": 0, "out": ["b0"], "hints": ["class"]},
        {"do": "get_loops", "block": "b0", "out": ["l0", "l1", "l2"], "hints": ["float", "None", "k"]},
        {"do": "reorder", "loops": ["l1", "l0"]},
    ]
    assert Trace.from_json({"version": 1, "steps": steps}).script() == (
        "class_1 = sch.get_block('class')\n"
        "float_1, None_1, _ = sch.get_loops(class_1)\n"
        "sch.reorder(None_1, float_1)\n"
    )

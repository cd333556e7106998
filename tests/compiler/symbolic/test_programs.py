"""Programs over sizes as text and JSON, bound to numbers, and where only numbers will do."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te
from tilewright.compiler.ir import (
    PrimFunc,
    VerifyError,
    bind_sizes,
    canonical_json,
    flop_count,
    from_json,
    parse_script,
    script,
    sizes_from,
    structural_equal,
    to_json,
    workload_key,
)
from tilewright.compiler.space import default_schedule, space_of
from tilewright.compiler.target import Target


def product(m=None, n=None):
    """A matrix product with 6 steps, over two sizes or two numbers."""
    m, n = m or te.var("m"), n or te.var("n")
    a, b = te.placeholder((m, 6), "float32", "A"), te.placeholder((6, n), "float32", "B")
    k = te.reduce_axis((0, 6), "k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c], name="product")


def test_a_printed_program_names_its_sizes():
    assert script(product()) == (
        "def product(A: float32[m, 6], B: float32[6, n], C: float32[m, n]):\n"
        "    for i in range(m):\n"
        "        for j in range(n):\n"
        "            for k in range(6):\n"
        "                with block('C'):\n"
        "                    with init():\n"
        "                        C[i, j] = 0.0\n"
        "                    C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_a_program_comes_back_from_json(program: PrimFunc):
    again = from_json(json.loads(json.dumps(to_json(program))))
    assert structural_equal(again, program)
    assert script(again) == script(program)
    assert [s.name for s in again.sizes] == [s.name for s in program.sizes]


def test_a_printed_program_and_its_default_schedule_read_back(program: PrimFunc):
    for func in (program, default_schedule(program, Target.parse("llvm")).func):
        again = parse_script(script(func), check=False)
        assert structural_equal(again, func)
        assert script(again) == script(func)


def test_the_key_does_not_depend_on_the_names_of_sizes_nor_on_when_they_were_made():
    def flat(first: str, second: str, swap: bool):
        x, y = te.var(first), te.var(second)
        m, n = (y, x) if swap else (x, y)
        a = te.placeholder((m, n), "float32", "A")
        c = te.compute((m * n,), lambda i: a[i // n, i % n], name="C")
        return te.create_prim_func([a, c])

    assert workload_key(flat("m", "n", False)) == workload_key(flat("q", "p", True))
    assert canonical_json(flat("m", "n", False)).count('"sizes":[{},{}]') == 1
    assert workload_key(product()) != workload_key(product(4, 5))


def test_a_program_without_sizes_has_no_field_for_them():
    assert "sizes" not in to_json(product(4, 5))


def changed(path: str, value: object) -> dict:
    data = copy.deepcopy(to_json(product()))
    *way, last = path.split("/")
    at = data
    for step in way:
        at = at[int(step)] if isinstance(at, list) else at[step]
    at[int(last) if isinstance(at, list) else last] = value
    return data


BAD = {
    "sizes that are none": ("sizes", [], "a program without sizes leaves the field out", "/sizes"),
    "a size too many": (
        "sizes",
        [{"name": "m"}, {"name": "n"}, {"name": "k"}],
        "the sizes are listed in the order in which they first are a dimension of a parameter by themselves, "
        "each of them once",
        "/sizes",
    ),
    "an unknown field": (
        "sizes/0",
        {"nme": "m"},
        "unknown field 'nme'; known: name",
        "/sizes/0/nme",
    ),
    "a size that is not there": (
        "params/0/shape/0",
        [[1, ["size", 2]]],
        "there is no size 2; there are 2",
        "/params/0/shape/0/0/1/1",
    ),
    "a size without a number": (
        "params/0/shape/0",
        [[1, ["size"]]],
        "a size is written ['size', number]",
        "/params/0/shape/0/0/1",
    ),
    "an extent that may be below 0": (
        "params/0/shape/1",
        [[1, ["size", 0]], [-1]],
        "an extent of sizes must be at least 0 for all of them, got m - 1",
        "/params/0/shape/1",
    ),
    "a division by a size": (
        "params/0/shape/1",
        [[1, ["floordiv", [[1, ["size", 0]]], [[1, ["size", 1]]]]]],
        "buffer 'A' divides by n, which may be 0, in m // n",
        "",
    ),
    "two sizes of one name": ("sizes/1", {"name": "m"}, "two sizes are named 'm'", ""),
    "a loop over another size": (
        "body/0/for/extent",
        [[1, ["size", 1]]],
        "block 'C': the binding of 'i', i, may be above [0, m)",
        "",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_from_json_refuses(name: str):
    path, value, message, pointer = BAD[name]
    with pytest.raises(VerifyError) as e:
        from_json(changed(path, value))
    assert (e.value.message, e.value.pointer) == (message, pointer)


def test_from_json_refuses_a_division_by_a_size_that_may_be_0_where_the_block_runs():
    """A remainder by 0 is not below 0: the read would not lie in the empty array that it seems to fit."""
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n,), "float32", "A"), te.placeholder((m,), "float32", "B")
    func = te.create_prim_func([a, b, te.compute((n,), lambda i: a[i], name="C")])
    data = to_json(func)
    i, by_m = [1, 1], ["floordiv", [[1, 1]], [[1, ["size", 1]]]]
    data["body"][0]["body"][0]["block"]["value"] = ["load", 1, [i, [-1, by_m, ["size", 1]]]]
    with pytest.raises(VerifyError) as e:
        from_json(data)
    assert e.value.message == "block 'C' divides by m, which may be 0, in i - m * (i // m)"


def test_binding_gives_the_program_that_was_written_with_numbers():
    bound = bind_sizes(product(), {"m": 4, "n": np.int64(5)})
    assert canonical_json(bound) == canonical_json(product(4, 5))
    assert bind_sizes(bound, {}) is bound


@pytest.mark.parametrize(
    "sizes, message",
    [
        ({"m": 4}, "'product': the size 'n' has no value; its sizes are ['m', 'n']"),
        ({"m": 4, "n": 5, "k": 6}, "'product' has no size 'k'; its sizes are ['m', 'n']"),
        ({"m": 4, "n": -1}, "'product': the size 'n' must be at least 0, got -1"),
    ],
)
def test_binding_refuses_other_sizes(sizes: dict[str, int], message: str):
    with pytest.raises(ValueError) as e:
        bind_sizes(product(), sizes)
    assert str(e.value) == message


def test_sizes_are_read_off_shapes():
    assert sizes_from(product(), [(3, 6), (6, 8), (3, 8)]) == {"m": 3, "n": 8}


def test_the_interpreters_take_a_program_over_sizes(program: PrimFunc):
    for n in (0, 1, 5):
        bound = bind_sizes(program, {s.name: n + i for i, s in enumerate(program.sizes)})
        arrays = interpret.random_inputs(bound, 1)
        expected = interpret.expected(program, arrays)
        interpret.run(program, arrays)
        result = interpret.check(expected, arrays)
        assert result.ok, result.message


def test_operations_are_counted_for_numbers_only():
    with pytest.raises(ValueError, match="'product' has open sizes: m, n; bind them first"):
        flop_count(product())
    assert flop_count(bind_sizes(product(), {"m": 4, "n": 5})) == flop_count(product(4, 5))


def test_a_search_asks_for_numbers():
    with pytest.raises(ValueError) as e:
        space_of(product(), Target.parse("llvm"))
    assert str(e.value) == (
        "'product' is over m, n, which only a call tells; to search, bind m, n or give sizes: "
        "ir.bind_sizes(func, {'m': 1024, 'n': 1024})"
    )
    with pytest.raises(ValueError, match="bind m, n or give sizes"):
        tw.tune(product(), trials=1, progress=False)


def test_a_search_at_numbers_gives_a_schedule_for_these():
    bound = bind_sizes(product(), {"m": 4, "n": 5})
    assert space_of(bound, Target.parse("llvm")).sketches

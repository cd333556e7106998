"""Canonical JSON: round trips, and keys that never change."""

import json

import pytest

from tilewright.compiler import te, topi
from tilewright.compiler.ir import (
    canonical_json,
    from_json,
    parse_script,
    script,
    structural_equal,
    to_json,
    workload_key,
)
from tilewright.compiler.schedule import Schedule

from .workloads import GOLDEN_KEYS

OPERATORS = [request for request, _ in GOLDEN_KEYS]


@pytest.mark.parametrize(("request_", "key"), GOLDEN_KEYS)
def test_the_key_of_a_workload_is_the_one_it_has_always_had(request_, key):
    assert workload_key(topi.create(request_)) == key


@pytest.mark.parametrize("request_", OPERATORS)
def test_a_program_read_back_from_its_json_prints_the_same_script(request_):
    func = topi.create(request_)
    assert script(from_json(json.loads(json.dumps(to_json(func))))) == script(func)


@pytest.mark.parametrize("request_", OPERATORS)
def test_a_program_read_back_from_its_canonical_json_has_the_same_canonical_json(request_):
    text = canonical_json(topi.create(request_))
    assert canonical_json(from_json(json.loads(text))) == text


def test_every_kind_of_node_survives_the_round_trip(every_node):
    assert canonical_json(from_json(to_json(every_node))) == canonical_json(every_node)


def test_a_scheduled_program_survives_the_round_trip():
    sch = Schedule(topi.create({"op": "matmul", "m": 10, "n": 12, "k": 8}))
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, factors=[None, 4])
    sch.reorder(i0, j, k, i1)
    sch.vectorize(i1)
    sch.decompose_reduction(sch.get_block("C"), k)
    assert script(from_json(to_json(sch.func))) == script(sch.func)


def test_the_longest_names_of_a_user_survive_with_what_is_made_of_them():
    a = te.placeholder((4, 8), "float32", name="A" * 100)
    k = te.reduce_axis((0, 8), "k" * 100)
    func = te.create_prim_func(
        [a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k) * 2.0, name="C" * 100)], name="f" * 100
    )
    assert script(from_json(to_json(func))) == script(func)
    assert script(parse_script(script(func))) == script(func)


@pytest.mark.parametrize(
    ("name", "known_as"), [("a b", "a_b"), ("", "_"), ("3", "_3"), ("x" * 2000, "x" * 1000)]
)
def test_a_block_that_a_text_calls_anything_has_an_identifier_in_json(name, known_as):
    func = parse_script(
        "def f(A: float32[4]):\n"
        "    for i in range(4):\n"
        f"        with block({name!r}):\n"
        "            A[i] = 1.0\n"
    )
    read = from_json(to_json(func))
    assert structural_equal(read, func)
    assert [b.name for _, b in read.blocks()] == [known_as]


def test_the_canonical_form_of_a_small_program(row_sums):
    assert json.loads(canonical_json(row_sums)) == {
        "tilewright": 1,
        "params": [{"dtype": "float32", "shape": [2, 3]}, {"dtype": "float32", "shape": [2]}],
        "body": [
            {
                "for": {"extent": 2},
                "body": [
                    {
                        "for": {"extent": 3},
                        "body": [
                            {
                                "block": {
                                    "iters": [
                                        {"bind": [[1, 0]], "extent": 2},
                                        {"bind": [[1, 1]], "extent": 3, "kind": "reduce"},
                                    ],
                                    "buffer": 1,
                                    "indices": [[[1, 2]]],
                                    "value": [
                                        "add",
                                        ["load", 1, [[1, 2]]],
                                        ["load", 0, [[1, 2]], [[1, 3]]],
                                    ],
                                    "init": ["const", "float32", "0x0.0p+0"],
                                }
                            }
                        ],
                    }
                ],
            }
        ],
    }


def _scaled(names, factor=2.0, dtype="float32"):
    a = te.placeholder((4,), dtype, name=names[0])
    return te.create_prim_func([a, te.compute((4,), lambda i: a[i] * factor, name=names[1])], name=names[2])


def test_programs_that_differ_in_names_only_are_equal():
    assert structural_equal(_scaled(["A", "B", "f"]), _scaled(["x", "y", "g"]))


def test_programs_that_differ_in_a_constant_are_not_equal():
    assert not structural_equal(_scaled(["A", "B", "f"]), _scaled(["A", "B", "f"], factor=3.0))


def test_programs_that_differ_in_a_dtype_are_not_equal():
    assert not structural_equal(_scaled(["A", "B", "f"]), _scaled(["A", "B", "f"], dtype="float64"))


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), -0.0, 0.1, 1e-45])
def test_immediates_that_json_has_no_number_for_survive(value):
    func = _scaled(["A", "B", "f"], factor=value)
    assert script(from_json(json.loads(canonical_json(func)))).splitlines()[-1] == (
        script(func).splitlines()[-1].replace("B", "p1").replace("A", "p0").replace("[i]", "[v0]")
    )


def test_not_a_number_survives():
    func = _scaled(["A", "B", "f"], factor=float("nan"))
    assert '["const","float32","nan"]' in canonical_json(from_json(json.loads(canonical_json(func))))

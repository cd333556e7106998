"""A program from a stranger becomes native code, so that none is taken that might reach outside its arrays,
call anything, or keep its reader busy."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hostile_programs import ZERO, doubling, guarded, nest, reading

from tilewright.compiler.ir import VerifyError, from_json
from tilewright.compiler.space import default_schedule, space_of
from tilewright.compiler.target import Target
from tilewright.service.wiring import CompilerParser
from tilewright.service.workloads import SpecError

Json = Any
ROW, COLUMN = [1, 2], [1, 3]  # of the block in a nest of two loops over 4 and 10
B30 = 2**30


def refusal(program: Json) -> str:
    with pytest.raises(VerifyError) as caught:
        from_json(program)
    return caught.value.message


def reads(what: str) -> str:
    return f"block 'p1' reads 'p0' at {what} in dimension 0, which may leave [0, 16)"


OUT_OF_BOUNDS: dict[str, tuple[Json, str]] = {
    "a negative index": (reading([ROW, [-1]]), reads("v2 - 1")),
    "a negative step": (reading([[-1, 3], [8]]), reads("-v3 + 8")),
    "an index beyond the end": (reading([[2, 3]]), reads("v3 * 2")),
    "a product": (reading([[1, 2, 3]]), reads("v2 * v3")),
    "a product that may be negative": (reading([[-1, 2, 3], [3]]), reads("-v2 * v3 + 3")),
    "a quotient of what may be negative": (
        reading([[1, ["floordiv", [ROW, [-1, 3]], 4]]]),
        reads("(v3 * 3 + v2) // 4 - v3"),
    ),
    "a quotient rounded up of what may be negative": (
        reading([[1, ["ceildiv", [ROW, [-1, 3]], 4]]]),
        reads("ceildiv(v3 * 3 + v2, 4) - v3"),
    ),
    "a minimum with what may be negative": (
        reading([[1, ["min", [[1, ["max", [COLUMN, [-5]], 0]], [-1]], 3]]]),
        reads("max(v3 - 5, 0) - 1"),
    ),
    "a maximum of two that may both be negative": (
        reading([[1, ["max", [ROW, [-1, 3]], [COLUMN, [-1, 2]]]]]),
        "cannot prove that max(v2 - v3, v3 - v2) is not negative",
    ),
    "a size that may be 0": (
        reading([[1, ["size", 0]], [-1]], extent=[[1, ["size", 0]]], sizes=1),
        "block 'p1' reads 'p0' at s0 - 1 in dimension 0, which may leave [0, s0)",
    ),
    "a quotient of a negative number by a size": (
        reading([[1, ["min", [[1, ["ceildiv", [ROW, [-1, 3]], [[1, ["size", 0]], [1]]]]], 5]]], sizes=1),
        "cannot prove that v2 - v3 is not negative in a ceiling division by s0 + 1",
    ),
    "a size as the extent of another array": (
        reading([COLUMN], extent=[[1, ["size", 0]]], sizes=1),
        "block 'p1' reads 'p0' at v3 in dimension 0, which may leave [0, s0)",
    ),
    "a division by a size that may be 0": (
        reading([[1, ["floordiv", [ROW], [[1, ["size", 0]]]]]], sizes=1),
        reads("v2 // s0"),
    ),
    "a guard that is too weak": (guarded([[2, 3], [-17]], [[2, 3]]), reads("v3 * 2")),
    "a guard of another variable": (guarded([ROW, [-3]], [[2, 3]]), reads("v3 * 2")),
    "a guard that bounds from above only": (guarded([COLUMN, [-3]], [COLUMN, [-5]]), reads("v3 - 5")),
    "a guard that is always true": (guarded([[-1]], [[2, 3]]), reads("v3 * 2")),
    "a guard of the other branch": (
        reading(None, value=["select", ["in_bounds", [[2, 3], [-16]]], ZERO, ["load", 0, [[2, 3]]]]),
        reads("v3 * 2"),
    ),
    "a guard that is only a value": (
        reading(
            None,
            value=[
                "select",
                ["lt", ["index", "int32", [[2, 3]]], ["const", "int32", "16"]],
                ["load", 0, [[2, 3]]],
                ZERO,
            ],
        ),
        reads("v3 * 2"),
    ),
    "a guard that passes through more than 64 bits": (
        guarded([[2**52, 3, 3, 3, 3, 3], [-1]], [COLUMN]),
        "block 'p1': the index v3 * v3 * v3 * v3 * v3 * 4503599627370496 - 1 may need more than 64 bits",
    ),
    "an index of more than 64 bits that wraps to a small one": (
        reading([[2**52, 3, 3, 3, 3, 3]]),
        "block 'p1': the place in 'p0' may need more than 64 bits",
    ),
    "an extent of more than 53 bits": (
        reading([ROW], loops=(2**53, 10)),
        f"expected an integer below 2**53, got {2**53}",
    ),
    "a loop of no iterations": (reading([ROW], loops=(0, 10)), "an extent must be at least 1, got 0"),
    "a loop of a negative extent": (reading([ROW], loops=(-4, 10)), "an extent must be at least 1, got -4"),
}


@pytest.mark.parametrize("name", OUT_OF_BOUNDS)
def test_a_read_that_may_leave_its_array_is_refused(name: str) -> None:
    program, message = OUT_OF_BOUNDS[name]
    assert refusal(program) == message


def test_a_place_that_is_small_only_in_the_end_is_refused() -> None:
    """2**30 * (x - y) + z is below 2**10 by its predicates; its product with 2**13 is not held by 64 bits."""
    inside = [[B30, 0], [-B30, 1], [1, 2]]
    block = {
        "iters": [{"extent": 2**10, "bind": inside}],
        "predicates": [[*inside, [-(2**10)]], [[-c, v] for c, v in inside] + [[-1]]],
        "buffer": 1,
        "indices": [[[2**13, 3]]],
        "value": ["load", 0, [[2**13, 3]]],
    }
    program = nest((2**31, 2**31, 2**10), block, [2**23], [2**23])
    assert refusal(program) == "block 'p1': the place in 'p1' may need more than 64 bits"


def test_a_write_at_a_place_that_may_leave_its_array_is_refused() -> None:
    program = reading([ROW])
    program["params"][1]["shape"] = [4, 9]
    expected = "block 'p1' writes 'p1' at v3 in dimension 1, which may leave [0, 9)"
    assert refusal(program) == expected


def test_a_block_whose_variable_is_given_more_values_than_it_says_is_refused() -> None:
    program = reading([ROW])
    program["body"][0]["for"]["extent"] = 5
    assert refusal(program) == "block 'p1': the binding of 'v2', v0, may be above [0, 4)"


def test_an_array_of_another_element_type_is_not_read_in_place() -> None:
    """There is no reinterpretation: every buffer has one dtype, and what is read is converted by value."""
    program = reading(None, value=["load", 0, [ROW]])
    program["params"][0]["dtype"] = "int8"
    assert refusal(program) == "block 'p1': the value is int8, but 'p1' is float32"


@pytest.mark.parametrize(
    "value",
    [
        ["call", "system", ZERO],
        ["call_extern", "system", ZERO],
        ["asm", "syscall"],
        ["reinterpret", "float32", ZERO],
        ["address_of", 0],
        ["system", ZERO],
        ["add", ZERO, ["llvm.memcpy", ZERO]],
    ],
)
def test_there_is_no_call(value: Json) -> None:
    """Neither of a function outside nor of an intrinsic that is not listed."""
    word = value[2][0] if value[0] == "add" else value[0]
    assert refusal(reading(None, value=value)).startswith(f"unknown operation {word!r}; known: abs, add, and")


@pytest.mark.parametrize(
    "name",
    ["x\n", "x y", 'x"', "x;system()", "x\0", "../x", "/etc/x", "%x", "@x", "x\u202e", "", "1x", "x" * 1001],
)
def test_a_name_that_would_be_more_than_a_name_is_refused(name: str) -> None:
    """Names stand in the text of C, of LLVM and of error messages."""
    for place in ("name", "params", "for"):
        program = reading([ROW])
        at = {"name": program, "params": program["params"][0], "for": program["body"][0]["for"]}[place]
        at["name"] = name
        assert refusal(program) == f"a name must be an identifier of at most 1000 characters, got {name!r}"


def test_arrays_do_not_share_memory() -> None:
    program = reading([ROW])
    program["params"][0]["name"] = program["params"][1]["name"] = "A"
    assert refusal(program) == "two buffers are named 'A'"


def test_memory_is_bounded() -> None:
    assert refusal(reading([ROW], extent=2**40)) == (
        f"the buffers hold {2**42 + 160} bytes; at most {2**34} are allowed"
    )
    program = reading([ROW])
    program["allocs"] = [{"shape": [2**52], "dtype": "float64"}] * 100
    assert refusal(program).startswith("the buffers hold 3602879701896397024 bytes")


def test_the_numbers_of_nodes_of_blocks_and_of_levels_are_bounded() -> None:
    deep: Json = ZERO
    for _ in range(200):
        deep = ["neg", deep]
    many: Json = ZERO
    for _ in range(15):
        many = ["add", many, many]
    nested = nest([1] * 200, {"iters": [], "buffer": 0, "indices": [0], "value": ZERO}, [1])
    assert [refusal(reading(None, value=deep)), refusal(reading(None, value=many)), refusal(nested)] == [
        "nested deeper than 100",
        "more than 20000 nodes",
        "nested deeper than 100",
    ]
    assert refusal(doubling(65)) == "the program has 65 blocks; at most 64 are allowed"


def _minima(count: int) -> Json:
    """One index that is a sum of minima: each may be either of two."""
    loops = [3] * 2 * count
    n = len(loops)
    return reading(
        [[1, ["min", [[1, n + 2 * k]], [[1, n + 2 * k + 1]]]] for k in range(count)], loops, extent=count
    )


def _quotients(depth: int) -> Json:
    index: Json = [ROW]
    for _ in range(depth):
        index = [[1, ["floordiv", [*index, COLUMN, [1]], 2]], [1, ["min", index, [COLUMN]]]]
    return reading(index)


SLOW = {
    "minima": _minima(9),
    "nested quotients": _quotients(8),
    "conditions": reading(
        None,
        value=[
            "select",
            ["in_bounds", *[[[7, 2], [-k, 3], [-1]] for k in range(1, 900)]],
            ["load", 0, [[2, 3], [1, 2]]],
            ZERO,
        ],
    ),
    "many indices": reading(
        None,
        value=[
            "max",
            *[["select", ["in_bounds", [[1, 2], [-k]]], ["load", 0, [[2, 3]]], ZERO] for k in (1, 2)],
        ],
    ),
}


@pytest.mark.parametrize("name", SLOW)
def test_a_program_that_is_hard_to_prove_is_given_up(name: str) -> None:
    begun = time.process_time()
    refusal(SLOW[name])
    assert time.process_time() - begun < 8


def test_a_proof_that_has_no_end_says_so() -> None:
    assert refusal(_minima(8)) == "the indices of the program take too long to prove in bounds"


def test_values_do_not_double_without_end_when_they_are_inlined() -> None:
    """Neither in the schedules of the compiler's own, nor in those that a search makes."""
    func, target = from_json(doubling(40)), Target.parse("llvm")
    begun = time.process_time()
    blocks = len([*default_schedule(func, target).func.blocks()])
    space_of(func, target)
    assert blocks > 1
    assert time.process_time() - begun < 30


# ---- traces ----


def suggestion(steps: list[Json], spec: Json = None) -> str:
    parser = CompilerParser()
    workload = parser.workload(spec or {"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"})
    with pytest.raises(SpecError) as caught:
        parser.suggestion(workload, {"version": 1, "steps": steps})
    return str(caught.value).splitlines()[0]


BLOCK = {"do": "get_block", "block": 0, "out": ["b"]}
NOT_APPLIED = "the trace does not apply to"
LOOPS = {"do": "get_loops", "block": "b", "out": ["l0", "l1", "l2"]}


def test_a_trace_cannot_nest_loops_without_end() -> None:
    steps = [BLOCK, LOOPS]
    steps += [
        {"do": "split", "loop": f"x{n}" if n else "l0", "factors": [None, 1], "out": [f"x{n + 1}", f"y{n}"]}
        for n in range(990)
    ]
    assert suggestion(steps) == "after this step loops are nested 101 deep; at most 100 may be"


def test_a_trace_cannot_inline_without_end() -> None:
    steps: list[Json] = []
    for n in range(30):
        steps += [{**BLOCK, "out": [f"b{n}"]}, {"do": "compute_inline", "block": f"b{n}"}]
    expected = "compute_inline: the value of "
    said = suggestion(steps, doubling(40))
    assert expected in said and said.endswith("nodes; at most 20000 are allowed")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"do": "eval", "code": "1"}, "unknown step 'eval'; known: "),
        ({"do": "__class__"}, "unknown step '__class__'; known: get_block"),
        ({"do": "split", "loop": "l0", "factors": [-1, 4], "out": ["x", "y"]}, NOT_APPLIED),
        ({"do": "split", "loop": "l0", "factors": [2**40, 4], "out": ["x", "y"]}, NOT_APPLIED),
        ({"do": "split", "loop": "../l0", "factors": [4, 4], "out": ["x", "y"]}, "no earlier step gave"),
        ({"do": "cache_read", "block": "b", "index": 9, "scope": "local", "out": ["c"]}, NOT_APPLIED),
        ({"do": "cache_read", "block": "b", "index": 0, "scope": "x", "out": ["c"]}, "unknown scope 'x'; "),
        ({"do": "tensorize", "loop": "l2", "intrin": "system"}, "tensorize has no argument"),
        ({"do": "annotate", "at": "l0", "key": "k" * 101, "value": 1}, "expected a text's name, got"),
    ],
)  # fmt: skip
def test_a_step_that_is_none_is_refused_where_it_stands(step: Json, message: str) -> None:
    assert suggestion([BLOCK, LOOPS, step]).startswith(message)


def test_a_trace_has_no_more_than_1000_steps() -> None:
    assert suggestion([BLOCK] * 1001) == "steps must be an array of at most 1000"


def test_json_that_is_nested_deeper_than_python_recurses_is_refused() -> None:
    value: Json = 1
    for _ in range(900):
        value = [value]
    assert refusal(reading(value)).startswith("expected an integer, got an array")
    assert json.dumps(reading([ROW]))  # what is sent is JSON

"""What may not be run, by the whole text of the refusal."""

import itertools
import random
from dataclasses import replace

import pytest

from tilewright.compiler import te
from tilewright.compiler.arith import Var, evaluate, floor_div, maximum, minimum, poly
from tilewright.compiler.ir import Buffer, Const, Load, VerifyError, parse_script, verify
from tilewright.compiler.ir.proofs import follows


def refusal(func):
    with pytest.raises(VerifyError) as e:
        verify(func)
    return str(e.value)


def block_of(func):
    ((_, block),) = func.blocks()
    return block


def change(func, **fields):
    """The program of one block with that block changed."""
    block = block_of(func)
    return func.rewrite(lambda s: replace(s, **fields) if s is block else s)


def test_two_buffers_of_one_name(row_sums):
    a = row_sums.params[0]
    assert refusal(replace(row_sums, allocs=(Buffer("A", a.shape, a.dtype),))) == "two buffers are named 'A'"


def test_two_blocks_of_one_name(row_sums):
    assert refusal(replace(row_sums, body=row_sums.body * 2)) == "two blocks are named 'S'"


def test_a_program_without_an_output(row_sums):
    a, s = row_sums.params
    assert refusal(replace(row_sums, params=(a,), allocs=(s,))) == (
        "no block writes a parameter: the program has no output"
    )


def test_a_buffer_that_is_not_declared(row_sums):
    assert refusal(replace(row_sums, params=row_sums.params[1:])) == (
        "block 'S' uses a buffer that is neither a parameter nor allocated"
    )


def test_a_block_outside_of_its_loops(row_sums):
    block = block_of(row_sums)
    assert refusal(replace(row_sums, body=(block,))) == "block 'S' binds to 'i', which is no loop around it"


def test_a_variable_of_another_block(row_sums):
    block = block_of(row_sums)
    stray = block.binds[0]
    assert refusal(change(row_sums, indices=(stray,))) == (
        "block 'S' reads 'S', which it writes, at another place than the one it writes"
    )


def test_a_buffer_that_is_read_before_it_is_written(row_sums):
    a = row_sums.params[0]
    t = Buffer("T", a.shape, a.dtype)
    block = block_of(row_sums)
    load = Load(t, tuple(map(poly, block.iters)))
    moved = change(row_sums, value=replace(block.value, b=load))
    assert refusal(replace(moved, allocs=(t,))) == "block 'S' reads 'T' before any block wrote it"


def test_a_reduction_without_an_init_needs_its_accumulator_written_before(row_sums):
    assert refusal(change(row_sums, init=None)) == "block 'S' reads 'S' before any block wrote it"


def test_a_value_of_another_dtype_than_the_buffer():
    a = te.placeholder((4,), "float32", name="A")
    func = te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="B")])
    other = Const(1, te.const(1, "int8").dtype)
    assert refusal(change(func, value=other)) == "block 'B': the value is int8, but 'B' is float32"


def test_a_write_at_a_reduce_variable(row_sums):
    block = block_of(row_sums)
    i = poly(block.iters[1])
    s = block.buffer
    value = replace(block.value, a=Load(s, (i,)))
    assert (
        refusal(change(row_sums, indices=(i,), value=value))
        == "block 'S' writes 'S' at the reduce variable 'k'"
    )


def test_a_guard_that_is_too_weak():
    a = te.placeholder((4,), "float32", name="A")
    func = te.create_prim_func(
        [a, te.compute((9,), lambda i: te.if_then_else(te.all(i >= 2, i < 6), a[i - 2], 0.0), name="B")]
    )
    verify(func)
    value = block_of(func).value
    weak = replace(value, a=Load(a.buffer, (value.a.indices[0] - 1,)))
    assert (
        refusal(change(func, value=weak))
        == "block 'B' reads 'A' at i - 3 in dimension 0, which may leave [0, 4)"
    )


def tiles(bind: str, condition: str, loops: str = "3 4") -> str:
    """A program that writes B[i] for i = bind over x in range(3) and y in range(4) under a condition."""
    n, m = loops.split()
    return (
        f"def f(B: int8[10]):\n    for x in range({n}):\n        for y in range({m}):\n"
        f"            with block('B', i=spatial({bind}, 10)):\n"
        f"                if {condition}:\n                    B[i] = 1\n"
    )


@pytest.mark.parametrize(
    ("bind", "condition", "loops"),
    [
        ("x * 4 + y", "x * 4 + y < 10", "3 4"),
        # The bounds of what the binding is more than the condition.
        ("x * 4 + y", "x < 2", "3 4"),
        ("x * 5 + y", "x < 1", "3 10"),
        # A multiple of the condition.
        ("x * 4 + y * 2", "x * 2 + y < 5", "3 4"),
        ("x * 4 + y * 2", "x * 2 + y < 4", "9 4"),
        # A quotient of what the condition bounds.
        ("(x * 4 + y) // 3", "x * 4 + y < 30", "30 4"),
        ("(x * 4 + y) // 3 + x // 99", "x * 4 + y < 30", "30 4"),
    ],
)
def test_a_binding_that_a_predicate_keeps_inside_is_accepted(bind, condition, loops):
    parse_script(tiles(bind, condition, loops))


@pytest.mark.parametrize(
    ("bind", "condition", "loops"),
    [
        ("x * 4 + y", "x * 4 + y < 11", "3 4"),
        ("x * 4 + y", "x < 3", "4 4"),
        ("x * 5 + y", "x < 2", "3 10"),
        ("x * 4 + y * 2", "x * 2 + y < 6", "4 4"),
        ("(x * 4 + y) // 3", "x * 4 + y < 31", "30 4"),
        ("x * 4 + y", "x - y < 1", "3 4"),
    ],
)
def test_a_binding_that_a_predicate_does_not_keep_inside_is_refused(bind, condition, loops):
    with pytest.raises(VerifyError, match=r"^block 'B': the binding of 'i', .*, may be above \[0, 10\)$"):
        parse_script(tiles(bind, condition, loops))


def test_what_follows_from_a_condition_holds_wherever_the_condition_does():
    rng = random.Random(0)
    variables = [Var("x", 3), Var("y", 4), Var("z", 2)]
    every = [dict(zip(variables, at, strict=True)) for at in itertools.product(range(3), range(4), range(2))]
    proved = 0
    for _ in range(4000):
        p, k = (
            sum((poly(v) * rng.choice([-2, -1, 0, 1, 2, 3, 4]) for v in variables), poly(rng.randint(-9, 3)))
            for _ in range(2)
        )
        if rng.random() < 0.5:
            p = (
                floor_div(p + 40, rng.choice([2, 3, 5]))
                + poly(variables[2]) * rng.randint(-1, 1)
                - rng.randint(5, 25)
            )
        elif rng.random() < 0.4:
            other = sum((poly(v) * rng.choice([-1, 0, 1, 2]) for v in variables), poly(rng.randint(-9, 3)))
            either = rng.choice([minimum, maximum])(p + 40, other + 40)
            p = either - rng.randint(36, 50) if rng.random() < 0.5 else rng.randint(25, 44) - either
        if follows(p, [k]):
            proved += 1
            assert all(evaluate(p, at) < 0 for at in every if evaluate(k, at) < 0), (p, k)
    assert proved > 400


def test_an_index_that_needs_more_than_64_bits():
    text = (
        "def f(C: int64[2048, 2048]):\n"
        "    for i in range(2048):\n"
        "        for j in range(2048):\n"
        "            C[i, j] = int64((i * j * 4503599627370495) // 4503599627370496)\n"
    )
    with pytest.raises(VerifyError) as e:
        parse_script(text)
    assert str(e.value) == (
        "block 'C': the index (i * j * 4503599627370495) // 4503599627370496 may need more than 64 bits"
    )
    assert parse_script(text.replace("2048", "1024").replace("4503599627370", "4398046511"))


@pytest.mark.parametrize(
    ("init", "reason"),
    [
        ("A[i, k]", "the init uses the reduce variable 'k'"),
        ("float32(k)", "the init uses the reduce variable 'k'"),
        ("S[i] * 2.0", "the init reads 'S', which it is the first to write"),
    ],
)
def test_an_init_starts_from_what_is_there_before_the_steps(init, reason):
    text = (
        "def f(A: float32[4, 8], S: float32[4]):\n"
        "    for i in range(4):\n"
        "        for k in range(8):\n"
        "            with block('S'):\n"
        "                with init():\n"
        f"                    S[i] = {init}\n"
        "                S[i] += A[i, k]\n"
    )
    with pytest.raises(VerifyError) as e:
        parse_script(text)
    assert str(e.value) == f"block 'S': {reason}"


@pytest.mark.parametrize("step", ["1", "k // 2", "7 - k"])
def test_a_reduction_begins_in_the_first_iteration_of_its_loops_and_in_no_other(step: str) -> None:
    text = (
        "def main(A: float32[4, 8], C: float32[4]):\n"
        "    for i in range(4):\n"
        "        for k in range(8):\n"
        f"            with block('C', i=spatial(i), k=reduce({step}, 8)):\n"
        "                with init():\n"
        "                    C[i] = 0.0\n"
        "                C[i] += A[i, k]\n"
    )
    with pytest.raises(VerifyError, match="must be 0 in the first iteration of their loops") as caught:
        parse_script(text)
    assert "block 'C': the steps 'k'" in str(caught.value)

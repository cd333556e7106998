"""What te makes of what a user writes, by the whole printed program."""

import inspect

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import Span, script


def body(*params):
    """The lines of the program, without its header."""
    return script(te.create_prim_func(list(params), name="f")).splitlines()[1:]


def last(*params):
    """The last line of the program: the assignment of its last block."""
    return body(*params)[-1].strip()


@pytest.fixture
def a():
    return te.placeholder((4, 6), "float32", name="A")


@pytest.fixture
def n():
    return te.placeholder((4, 6), "int32", name="N")


def test_the_readme_matmul():
    A = te.placeholder((128, 768), "float32", name="A")
    B = te.placeholder((768, 3072), "float32", name="B")
    k = te.reduce_axis((0, 768), name="k")
    C = te.compute((128, 3072), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    func = te.create_prim_func([A, B, C], name="matmul")
    assert script(func) == (
        "def matmul(A: float32[128, 768], B: float32[768, 3072], C: float32[128, 3072]):\n"
        "    for i in range(128):\n"
        "        for j in range(3072):\n"
        "            for k in range(768):\n"
        "                with block('C'):\n"
        "                    with init():\n"
        "                        C[i, j] = 0.0\n"
        "                    C[i, j] += A[i, k] * B[k, j]\n"
    )


def test_blocks_and_programs_remember_the_lines_of_the_user():
    A = te.placeholder((4,), "float32", name="A")
    line = inspect.currentframe().f_lineno
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    func = te.create_prim_func([A, B], name="f")
    assert func.block("B")[1].span == Span(__file__, line + 1)
    assert func.span == Span(__file__, line + 2)


def test_a_reduction_inside_of_a_larger_expression_becomes_a_block_of_its_own(a):
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((4, 6), lambda i, j: te.exp(a[i, j]) / te.sum(te.exp(a[i, k]), axis=k), name="C")
    assert body(a, c) == [
        "    C_sum = alloc(float32[4])",
        "    for i in range(4):",
        "        for k in range(6):",
        "            with block('C_sum'):",
        "                with init():",
        "                    C_sum[i] = 0.0",
        "                C_sum[i] += exp(A[i, k])",
        "    for i in range(4):",
        "        for j in range(6):",
        "            C[i, j] = exp(A[i, j]) / C_sum[i]",
    ]


def test_a_reduction_inside_of_a_reduction_becomes_a_block_before_it(a):
    k, m = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 4), name="m")
    total = te.compute((), lambda: te.sum(te.max(a[m, k], axis=k) * 2, axis=m), name="total")
    assert body(a, total) == [
        "    total_max = alloc(float32[4])",
        "    for m in range(4):",
        "        for k in range(6):",
        "            with block('total_max'):",
        "                with init():",
        "                    total_max[m] = -inf",
        "                total_max[m] = max(total_max[m], A[m, k])",
        "    for m in range(4):",
        "        with block('total'):",
        "            with init():",
        "                total[()] = 0.0",
        "            total[()] += total_max[m] * 2.0",
    ]


def test_one_reduction_used_twice_is_computed_once(a):
    k = te.reduce_axis((0, 6), name="k")

    def element(i):
        s = te.sum(a[i, k], axis=k)
        return s * s

    c = te.compute((4,), element, name="C")
    assert last(a, c) == "C[i] = C_sum[i] * C_sum[i]"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_narrow_floats_accumulate_in_float32_and_are_rounded_once(dtype):
    h = te.placeholder((4,), dtype, name="H")
    k = te.reduce_axis((0, 4), name="k")
    s = te.compute((), lambda: te.sum(h[k], axis=k), name="S")
    assert body(h, s) == [
        "    S_sum = alloc(float32[()])",
        "    for k in range(4):",
        "        with block('S_sum'):",
        "            with init():",
        "                S_sum[()] = 0.0",
        "            S_sum[()] += float32(H[k])",
        f"    S[()] = {dtype}(S_sum[()])",
    ]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_products_of_narrow_integers_accumulate_in_int32_and_wrap_once(dtype):
    h = te.placeholder((4,), dtype, name="H")
    k = te.reduce_axis((0, 4), name="k")
    s = te.compute((), lambda: te.prod(h[k], axis=k), name="S")
    assert body(h, s)[0] == "    S_prod = alloc(int32[()])"
    assert last(h, s) == f"S[()] = {dtype}(S_prod[()])"


def test_a_given_dtype_is_what_a_sum_accumulates_in_and_returns():
    h = te.placeholder((4,), "int8", name="H")
    k = te.reduce_axis((0, 4), name="k")
    s = te.compute((), lambda: te.sum(h[k], axis=k, dtype="int64"), name="S")
    assert (str(s.dtype), body(h, s)[-1].strip()) == ("int64", "S[()] += int64(H[k])")


@pytest.mark.parametrize(
    ("reducer", "dtype", "init"),
    [
        (te.sum, "float32", "0.0"),
        (te.prod, "float32", "1.0"),
        (te.max, "float32", "-inf"),
        (te.min, "float32", "inf"),
        (te.sum, "int32", "0"),
        (te.prod, "uint64", "1"),
        (te.max, "int8", "-128"),
        (te.min, "uint16", "65535"),
        (te.max, "float16", "-inf"),
    ],
)
def test_a_reduction_starts_from_the_value_that_changes_nothing(reducer, dtype, init):
    x = te.placeholder((4,), dtype, name="X")
    k = te.reduce_axis((0, 4), name="k")
    s = te.compute((), lambda: reducer(x[k], axis=k), name="S")
    func = te.create_prim_func([x, s])
    assert next(line for line in script(func).splitlines() if " = " in line and "()" in line).endswith(
        f"= {init}"
    )


def test_a_reduction_over_several_axes_has_a_loop_for_each(a):
    k, m = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 4), name="m")
    s = te.compute((1,), lambda i: te.sum(a[m, k], axis=[m, k]), name="S")
    assert body(a, s)[:3] == [
        "    for i in range(1):",
        "        for m in range(4):",
        "            for k in range(6):",
    ]


def test_a_reduce_axis_that_starts_above_zero_is_shifted(a):
    k = te.reduce_axis((2, 5), name="k")
    s = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="S")
    assert [body(a, s)[1], last(a, s)] == ["        for k in range(3):", "S[i] += A[i, k + 2]"]


def test_one_reduce_axis_may_serve_two_stages(a):
    k = te.reduce_axis((0, 6), name="k")
    s = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="S")
    t = te.compute((4,), lambda i: te.max(a[i, k] - s[i], axis=k), name="T")
    func = te.create_prim_func([a, t])
    loops = [f.var for path, _ in func.blocks() for f in path]
    assert len(loops) == len(set(loops)) == 4


def test_one_tensor_may_stand_in_two_programs(a):
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1, name="B")
    one, two = te.create_prim_func([a, b]), te.create_prim_func([a, b])
    assert script(one) == script(two)
    assert not {f.var for path, _ in one.blocks() for f in path} & {
        f.var for path, _ in two.blocks() for f in path
    }


def test_stages_come_in_an_order_in_which_what_is_read_was_written(a):
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((4, 6), lambda i, j: a[i, j] + 2, name="C")
    d = te.compute((4, 6), lambda i, j: c[i, j] * b[i, j], name="D")
    func = te.create_prim_func([a, d])
    assert [block.name for _, block in func.blocks()] == ["C", "B", "D"]
    assert [x.name for x in func.allocs] == ["C", "B"]


def test_an_output_that_another_output_reads_is_a_parameter(a):
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((4, 6), lambda i, j: b[i, j] * 2, name="C")
    func = te.create_prim_func([c, a, b])
    assert [[x.name for x in y] for y in (func.inputs, func.outputs, func.allocs)] == [["A"], ["C", "B"], []]


def test_names_that_are_taken_get_a_number():
    x = te.placeholder((4,), "float32", name="x")
    y = te.placeholder((4,), "float32", name="x")
    z = te.compute((4,), lambda i: x[i] + y[i], name="x")
    w = te.compute((4,), lambda i: z[i] * 2, name="w")
    func = te.create_prim_func([x, y, w])
    assert [b.name for b in func.params + func.allocs] == ["x", "x_1", "w", "x_2"]


def test_a_reduce_axis_named_as_a_variable_gets_a_number(a):
    i2 = te.reduce_axis((0, 6), name="i")
    s = te.compute((4,), lambda i: te.sum(a[i, i2], axis=i2), name="S")
    assert last(a, s) == "S[i] += A[i, i_1]"


def test_a_function_of_any_number_of_indices_is_called_with_all_of_them(a):
    assert last(a, te.compute((4, 6), lambda *i: a[i] + 1, name="B")) == "B[i0, i1] = A[i0, i1] + 1.0"


def test_arguments_with_a_default_are_not_indices(a):
    assert last(a, te.compute((4,), lambda i, j=2: a[i, j], name="B")) == "B[i] = A[i, 2]"


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (lambda a, i, j: a[i, j] + 2, "A[i, j] + 2.0"),
        (lambda a, i, j: 2 - a[i, j], "2.0 - A[i, j]"),
        (lambda a, i, j: np.float32(0.5) * a[i, j], "0.5 * A[i, j]"),
        (lambda a, i, j: -a[i, j] / 3, "-A[i, j] / 3.0"),
        (lambda a, i, j: a[i, j] ** 3, "A[i, j] * A[i, j] * A[i, j]"),
        (lambda a, i, j: a[i, j] ** 0.5, "pow(A[i, j], 0.5)"),
        (lambda a, i, j: abs(a[i, j]), "abs(A[i, j])"),
        (lambda a, i, j: te.maximum(te.minimum(a[i, j], 6), 0), "max(min(A[i, j], 6.0), 0.0)"),
        (lambda a, i, j: te.sigmoid(te.tanh(te.erf(a[i, j]))), "sigmoid(tanh(erf(A[i, j])))"),
        (lambda a, i, j: te.cast(te.round(a[i, j]), "int8"), "int8(round(A[i, j]))"),
        (lambda a, i, j: te.cast(a[i, j], "float32"), "A[i, j]"),
        (lambda a, i, j: te.cast(i * 6 + j, "int64"), "int64(i * 6 + j)"),
        (lambda a, i, j: a[3 - i, (j + 1) % 6], "A[-i + 3, j - ((j + 1) // 6) * 6 + 1]"),
        (lambda a, i, j: a[(i * 6 + j) // 6, (i * 6 + j) % 6], "A[i, j]"),
        (lambda a, i, j: a[te.minimum(i, 2), te.maximum(j, 1)], "A[min(i, 2), max(j, 1)]"),
        (lambda a, i, j: a[te.truncdiv(i, 2), te.truncmod(j, 2)], "A[i // 2, j - (j // 2) * 2]"),
        (lambda a, i, j: te.if_then_else(a[i, j] > 0, a[i, j], 0), "(A[i, j] if (A[i, j] > 0.0) else 0.0)"),
        (
            lambda a, i, j: te.if_then_else((a[i, j] > 0) & (a[i, j] < 1), a[i, j], 0),
            "(A[i, j] if (A[i, j] > 0.0) & (A[i, j] < 1.0) else 0.0)",
        ),
        (lambda a, i, j: te.const(1, "int8") + te.max_value("int8"), "1 + 127"),
        (lambda a, i, j: te.min_value("float32") * a[i, j], "-inf * A[i, j]"),
    ],
)
def test_an_element_becomes(a, element, text):
    b = te.compute((4, 6), lambda i, j: element(a, i, j), name="B")
    assert last(a, b) == f"B[i, j] = {text}"


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (lambda n, i, j: n[i, j] // 3, "N[i, j] // 3"),
        (lambda n, i, j: 7 % n[i, j], "7 % N[i, j]"),
        (lambda n, i, j: te.truncdiv(n[i, j], -2), "truncdiv(N[i, j], -2)"),
        (lambda n, i, j: te.truncmod(n[i, j], 2), "truncmod(N[i, j], 2)"),
        (lambda n, i, j: te.floordiv(n[i, j], 2) + te.floormod(n[i, j], 2), "N[i, j] // 2 + N[i, j] % 2"),
        (lambda n, i, j: ~n[i, j] & 255 | n[i, j] ^ 1, "not_(N[i, j]) & 255 | N[i, j] ^ 1"),
        (lambda n, i, j: 1 << n[i, j], "1 << N[i, j]"),
        (lambda n, i, j: n[i, j] >> 3, "N[i, j] >> 3"),
        (lambda n, i, j: te.cast(n[i, j] != 0, "int32"), "int32((N[i, j] != 0))"),
    ],
)
def test_an_element_of_integers_becomes(n, element, text):
    b = te.compute((4, 6), lambda i, j: element(n, i, j), name="B")
    assert last(n, b) == f"B[i, j] = {text}"


@pytest.mark.parametrize(
    ("cond", "text"),
    [
        (lambda i, j: i < 2, "i < 2"),
        (lambda i, j: i <= 2, "i < 3"),
        (lambda i, j: i > 2, "2 < i"),
        (lambda i, j: i >= 1, "0 < i"),
        (lambda i, j: i == j, "i < j + 1 and j < i + 1"),
        (lambda i, j: te.all(i < 2, j < 3), "i < 2 and j < 3"),
        (lambda i, j: (i < 2) & (j < 3), "i < 2 and j < 3"),
        (lambda i, j: te.all(i < 2, i < 2, j < 9), "i < 2"),
        (lambda i, j: ~(i < 2), "i > 1"),
        (lambda i, j: i < 2, "i < 2"),
    ],
)
def test_a_condition_on_indices_becomes(a, cond, text):
    b = te.compute((4, 6), lambda i, j: te.if_then_else(cond(i, j), a[i, j], 0.0), name="B")
    assert last(a, b) == f"B[i, j] = (A[i, j] if ({text}) else 0.0)"


def test_unequal_indices_swap_the_branches(a):
    b = te.compute((4, 6), lambda i, j: te.if_then_else(i != j, a[i, j], 1.0), name="B")
    assert last(a, b) == "B[i, j] = (1.0 if (i < j + 1 and j < i + 1) else A[i, j])"


def test_a_condition_that_always_holds_vanishes(a):
    b = te.compute((4, 6), lambda i, j: te.if_then_else(te.all(i >= 0, j < 6), a[i, j], 1.0), name="B")
    assert last(a, b) == "B[i, j] = A[i, j]"


def test_a_condition_that_never_holds_leaves_the_other_branch(a):
    b = te.compute((4, 6), lambda i, j: te.if_then_else(i > 3, 1.0, a[i, j]), name="B")
    assert last(a, b) == "B[i, j] = A[i, j]"


def test_padding_guards_its_reads(a):
    b = te.compute((6, 6), lambda i, j: te.if_then_else(te.all(i >= 1, i < 5), a[i - 1, j], 0.0), name="B")
    assert last(a, b) == "B[i, j] = (A[i - 1, j] if (0 < i and i < 5) else 0.0)"


def test_padding_written_the_other_way_round_guards_its_reads_too(a):
    b = te.compute((6, 6), lambda i, j: te.if_then_else(te.any(i < 1, i >= 5), 0.0, a[i - 1, j]), name="B")
    assert last(a, b) == "B[i, j] = (A[i - 1, j] if (0 < i and i < 5) else 0.0)"


def test_the_other_branch_of_a_concatenation_is_guarded_by_the_opposite(a):
    b = te.compute((8, 6), lambda i, j: te.if_then_else(i < 4, a[i, j], a[i - 4, j]), name="B")
    assert last(a, b) == "B[i, j] = (A[i, j] if (i < 4) else (A[i - 4, j] if (3 < i) else 0.0))"


def test_index_conditions_guard_also_beside_conditions_on_values(a):
    b = te.compute(
        (6, 6),
        lambda i, j: te.if_then_else(te.all(te.const(1.0) > 0.5, i >= 1, i < 5), a[i - 1, j], 0.0),
        name="B",
    )
    assert (
        last(a, b)
        == "B[i, j] = ((A[i - 1, j] if (float32(1.0) > float32(0.5)) else 0.0) if (0 < i and i < 5) else 0.0)"
    )


def test_expressions_compare_to_comparisons_and_hash_by_identity(a):
    seen = []
    te.compute((4, 6), lambda i, j: (seen.append((i, j, a[i, j], a[i, j])), a[i, j])[1], name="B")
    i, j, x, y = seen[0]
    assert str((x == y).dtype) == str((i == j).dtype) == "bool"
    assert len({i, j, x, y}) == 4

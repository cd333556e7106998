"""What may not be done is refused, by the whole text."""

import pickle
from pathlib import Path

import pytest

from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import Schedule, ScheduleError

from .refusing import reason_of


def test_an_error_names_the_line_and_marks_the_loop(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, _, k = sch.get_loops(sch.get_block("C"))
    with pytest.raises(ScheduleError) as caught:
        sch.vectorize(k)
    line = caught.value.span.line if caught.value.span else 0
    assert Path(__file__).read_text().split("\n")[line - 1].strip() == "sch.vectorize(k)"
    assert str(caught.value) == (
        "vectorize: loop 'k' carries a reduction into C and cannot be a vector loop\n"
        f"  at test_refusals.py:{line}\n"
        "  def matmul(A: float32[10, 8], B: float32[8, 6], bias: float32[6], D: float32[10, 6]):\n"
        "      C = alloc(float32[10, 6])\n"
        "      for i in range(10):\n"
        "          for j in range(6):\n"
        "              for k in range(8):\n"
        "              ^^^^^^^^^^^^^^^^^^ this loop\n"
        "                  with block('C'):\n"
        "                      with init():\n"
        "                          C[i, j] = 0.0\n"
        "                      C[i, j] += A[i, k] * B[k, j]\n"
        "      for i in range(10):\n"
        "          for j in range(6):\n"
        "              D[i, j] = max(C[i, j] + bias[j], 0.0)"
    )


def test_an_error_survives_pickling(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, _, k = sch.get_loops(sch.get_block("C"))
    with pytest.raises(ScheduleError) as caught:
        sch.parallel(k)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_refused_step_leaves_program_and_trace_alone(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, _, k = sch.get_loops(sch.get_block("C"))
    before = (sch.func, sch.trace)
    reason_of(lambda: sch.vectorize(k))
    assert (sch.func, sch.trace) == before


def test_an_unknown_block_lists_the_known_ones(matmul: PrimFunc) -> None:
    assert reason_of(lambda: Schedule(matmul).get_block("E")) == (
        "get_block: there is no block 'E'; the blocks are C, D"
    )


def test_factors_must_cover_the_loop(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = sch.get_loops(sch.get_block("C"))
    assert (
        reason_of(lambda: sch.split(i, factors=[2, 4]))
        == "split: the factors [2, 4] cover 8 of 10 iterations"
    )


@pytest.mark.parametrize("factors", [[0, None], [2.5, None], ["4", None], [True, None], [10**30, None]])
def test_a_factor_is_a_positive_integer(chain: PrimFunc, factors: list[object]) -> None:
    sch = Schedule(chain)
    i, _ = sch.get_loops(sch.get_block("C"))
    assert reason_of(lambda: sch.split(i, factors=factors)) == (  # type: ignore[arg-type]
        f"split: a factor is an integer from 1 to 2**31, a knob or None, got {factors[0]!r}"
    )


def test_only_one_factor_is_inferred(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = sch.get_loops(sch.get_block("C"))
    assert reason_of(lambda: sch.split(i, factors=[None, None])) == "split: at most one factor may be None"


def test_a_consumed_loop_is_named(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = sch.get_loops(sch.get_block("C"))
    sch.split(i, factors=[None, 4])
    assert reason_of(lambda: sch.unroll(i)) == (
        "unroll: loop 'i' is no longer in the program: an earlier step consumed it"
    )


def test_a_handle_of_the_wrong_kind_is_named(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    block = sch.get_block("C")
    assert reason_of(lambda: sch.unroll(block)) == (  # type: ignore[arg-type]
        "unroll: expected a loop of this schedule, got <block C>"
    )


def test_a_vector_loop_is_not_split_again(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    _, j = sch.get_loops(sch.get_block("C"))
    sch.vectorize(j)
    assert reason_of(lambda: sch.split(j, factors=[None, 2])) == (
        "split: loop 'j' is vectorized already; split it first"
    )


def test_an_overlapped_reduction_is_refused(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, _, k = sch.get_loops(sch.get_block("C"))
    assert reason_of(lambda: sch.split(k, factors=[None, 3], overlap=1)) == (
        "split: loop 'k' carries the reduction of 'C'; overlapped steps would be added twice"
    )


def test_only_perfectly_nested_loops_are_fused(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i, _, k = sch.get_loops(sch.get_block("C"))
    assert reason_of(lambda: sch.fuse(i, k)) == "fuse: loop 'k' is not directly and alone inside 'i'"


def test_loops_of_different_blocks_are_not_reordered(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i, _, _ = sch.get_loops(sch.get_block("C"))
    _, j = sch.get_loops(sch.get_block("D"))
    assert reason_of(lambda: sch.reorder(i, j)) == "reorder: the loops do not stand around one block"


def test_a_reduction_is_not_inlined(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    assert reason_of(lambda: sch.compute_inline(sch.get_block("C"))) == (
        "compute_inline: 'C' is a reduction; only elementwise blocks can be inlined"
    )


def test_an_output_is_not_inlined(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    assert reason_of(lambda: sch.compute_inline(sch.get_block("C"))) == (
        "compute_inline: 'C' writes the output C, which must stay"
    )


def test_a_consumer_is_not_inlined_into_a_reduction(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    assert reason_of(lambda: sch.reverse_compute_inline(sch.get_block("D"))) == (
        "reverse_compute_inline: C is made by a reduction, whose steps must be over before its value is used"
    )


def test_an_output_is_not_moved_under_a_loop(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = sch.get_loops(sch.get_block("B"))
    assert reason_of(lambda: sch.compute_at(sch.get_block("C"), i)) == (
        "compute_at: 'C' writes the output C, which is needed outside of the loop"
    )


def test_a_consumer_waits_for_the_whole_reduction(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, _, k = sch.get_loops(sch.get_block("C"))
    assert reason_of(lambda: sch.reverse_compute_at(sch.get_block("D"), k)) == (
        "reverse_compute_at: loop 'k' carries the reduction of 'C', which is not complete under it"
    )


def test_a_stencil_is_not_moved_under_its_producer() -> None:
    a = te.placeholder((12,), "float32", name="A")
    b = te.compute((12,), lambda i: a[i] * 2, name="B")
    c = te.compute((11,), lambda i: b[i] + b[i + 1], name="C")
    sch = Schedule(te.create_prim_func([a, c], name="stencil"))
    (i,) = sch.get_loops(sch.get_block("B"))
    assert reason_of(lambda: sch.reverse_compute_at(sch.get_block("C"), i)) == (
        "reverse_compute_at: 'C' reads B at more than one place"
    )


def test_an_init_is_decomposed_outside_of_the_reduction(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    sch.reorder(k, i, j)
    assert reason_of(lambda: sch.decompose_reduction(c, j)) == (
        "decompose_reduction: loop 'k', outside of 'j', carries the reduction; "
        "the init would run in the middle of it"
    )


def test_an_init_is_decomposed_once(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    k = sch.get_loops(c)[2]
    sch.decompose_reduction(c, k)
    assert reason_of(lambda: sch.decompose_reduction(c, k)) == (
        "decompose_reduction: 'C' has no init; it was decomposed already"
    )


def test_a_buffer_that_is_not_read_is_not_cached(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    assert reason_of(lambda: sch.cache_read(sch.get_block("C"), 2, "local")) == (
        "cache_read: 'C' has no read buffer 2; it reads 0: A, 1: B"
    )


def test_accesses_that_a_block_does_not_make_are_not_cached(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    for accesses in ([1], [], [0, 0]):
        assert reason_of(lambda a=accesses: sch.cache_read(sch.get_block("C"), 0, "local", accesses=a)) == (
            f"cache_read: accesses is a list of some of 0: A[i, k], each once, got {accesses}"
        )


def test_an_unknown_scope_lists_the_known_ones(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    assert reason_of(lambda: sch.cache_write(sch.get_block("C"), 0, "shared")) == (  # type: ignore[arg-type]
        "cache_write: unknown scope 'shared'; known: global, local, register"
    )


def test_a_parameter_keeps_its_scope(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    assert reason_of(lambda: sch.set_scope(sch.get_block("D"), 0, "register")) == (
        "set_scope: D is a parameter and stays in global memory"
    )


def test_iterations_that_write_the_same_elements_are_not_parallel(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    _, j, _ = sch.get_loops(c)
    sch.compute_at(sch.cache_read(c, 0, "global"), j)
    assert reason_of(lambda: sch.vectorize(j)) == (
        "vectorize: all lanes of loop 'j' would write one element of A_global"
    )


def test_a_strided_loop_takes_no_consumer_since_its_writes_have_gaps() -> None:
    a = te.placeholder((16,), "float32", name="A")
    b = te.compute((16,), lambda i: a[i] + 1, name="B")
    c = te.compute((16,), lambda i: b[i] * 2, name="C")
    sch = Schedule(te.create_prim_func([a, c], name="two"))
    (i,) = sch.get_loops(sch.get_block("B"))
    outer, inner = sch.split(i, factors=[None, 8])
    sch.reorder(inner, outer)
    assert reason_of(lambda: sch.reverse_compute_at(sch.get_block("C"), inner)) == (
        "reverse_compute_at: what an iteration of loop 'i_1' writes of B is not a box without gaps"
    )


@pytest.mark.parametrize("kind", ["vectorize", "parallel"])
def test_overlapped_tiles_do_not_run_side_by_side(matmul: PrimFunc, kind: str) -> None:
    sch = Schedule(matmul)
    _, j, _ = sch.get_loops(sch.get_block("C"))
    outer, _ = sch.split(j, factors=[None, 4], overlap=1)
    assert reason_of(lambda: getattr(sch, kind)(outer)) == f"{kind}: iterations of loop 'j_0' overlap in C"


def test_spatial_and_reduction_loops_are_fused_after_the_init_is_decomposed(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    assert reason_of(lambda: sch.fuse(j, k)) == (
        "fuse: the loops mix spatial and reduction steps of 'C'; decompose its init first"
    )
    sch.decompose_reduction(c, i)
    sch.fuse(j, k)


def test_a_loop_of_another_schedule_is_not_taken(chain: PrimFunc) -> None:
    one, other = Schedule(chain), Schedule(chain)
    i, _ = one.get_loops(one.get_block("C"))
    assert reason_of(lambda: other.unroll(i)) == "unroll: expected a loop of this schedule, got <loop i>"


@pytest.mark.parametrize("factors", [4, "4", None])
def test_factors_are_a_list(chain: PrimFunc, factors: object) -> None:
    sch = Schedule(chain)
    i, _ = sch.get_loops(sch.get_block("C"))
    assert reason_of(lambda: sch.split(i, factors=factors)) == (  # type: ignore[arg-type]
        f"split: factors are a list such as [None, 4], got {factors!r}"
    )


def test_a_reduction_is_not_moved_outside_of_an_overlapped_tile(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i, j, k = sch.get_loops(sch.get_block("C"))
    i0, i1 = sch.split(i, factors=[None, 4], overlap=1)
    assert reason_of(lambda: sch.reorder(k, i0, i1, j)) == (
        "reorder: loop 'i_0' moves an overlapped tile of 'C' inside of loop 'k', which carries the "
        "reduction; some steps would be added twice"
    )


def test_an_init_stays_inside_of_an_overlapped_tile(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    i, _, _ = sch.get_loops(c)
    sch.decompose_reduction(c, i)
    assert reason_of(lambda: sch.split(i, factors=[None, 4], overlap=1)) == (
        "split: loop 'i_0' moves an overlapped tile of 'C', whose init 'C_init' stands outside; "
        "some steps would be added twice"
    )


def test_a_consumer_does_not_pass_what_fills_its_padding() -> None:
    a = te.placeholder((10,), "float32", name="A")
    b = te.compute((10,), lambda i: a[i] + 1, name="B")
    c = te.compute((10,), lambda i: b[i] * 2, name="C")
    d = te.compute((10,), lambda i: c[i] + 3, name="D")
    sch = Schedule(te.create_prim_func([a, d], name="padded"))
    c_block = sch.get_block("C")
    sch.transform_layout(c_block, 0, lambda i: (i // 4, i % 4), pad_value=0)
    (i,) = sch.get_loops(sch.get_block("B"))
    assert reason_of(lambda: sch.reverse_compute_at(c_block, i)) == (
        "reverse_compute_at: 'C_pad' writes C as well, and would do so after 'C' instead of before"
    )


def test_a_block_of_another_schedule_is_refused(chain: PrimFunc) -> None:
    one, other = Schedule(chain), Schedule(chain)
    block, theirs = one.get_block("B"), other.get_block("B")
    assert reason_of(lambda: one.get_loops(theirs)) == (
        "get_loops: expected a block of this schedule, got <block B>"
    )
    assert [x.var.name for x in one.copy().get_loops(block)] == ["i", "j"]


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("x" * 101, 1, f"a key is an identifier of at most 100 characters, got {'x' * 101!r}"),
        ("a key", 1, "a key is an identifier of at most 100 characters, got 'a key'"),
        ("key", 2**53, "a value is a string or an integer below 2**53, got 9007199254740992"),
        ("key", True, "a value is a string or an integer below 2**53, got True"),
        ("key", "\ud800", "a value is a string or an integer below 2**53, got '\\ud800'"),
    ],
)
def test_an_annotation_that_json_does_not_have_is_refused(
    chain: PrimFunc, key: str, value: str | int, text: str
) -> None:
    sch = Schedule(chain)
    block = sch.get_block("B")
    assert reason_of(lambda: sch.annotate(block, key, value)) == f"annotate: {text}"


def test_a_split_into_very_many_loops_is_refused(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, _ = sch.get_loops(sch.get_block("B"))
    assert reason_of(lambda: sch.split(i, [1] * 40)) == (
        "split: at most 32 new loops are made, got 40 factors"
    )


def test_a_consumer_takes_no_tile_whose_end_another_iteration_writes(chain: PrimFunc) -> None:
    """A loop that was split twice runs past the tile: six iterations of which four write."""
    sch = Schedule(chain)
    b = sch.get_block("B")
    i, _ = sch.get_loops(b)
    outer, inner = sch.split(i, [None, 4])
    sch.split(inner, [None, 3])
    assert reason_of(lambda: sch.reverse_compute_at(sch.get_block("C"), outer)) == (
        "reverse_compute_at: what an iteration of loop 'i_0' writes of B is not a box without gaps"
    )

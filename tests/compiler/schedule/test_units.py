"""blockize and tensorize: units that stay whole, and nests replaced by intrinsics; what is refused."""

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import interpret, te
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.schedule import (
    IntrinsicError,
    Schedule,
    ScheduleError,
    TensorIntrin,
    Trace,
    accumulating,
    intrinsics,
    register_tensor_intrin,
)

from .refusing import reason_of

Keeps = Callable[[PrimFunc, Callable[[Schedule], object]], None]
DOT = "dot_16x4_i8i8i32"


def mixed_matmul(
    m: int, n: int, k: int, left: str = "int8", right: str = "int8", to: str = "int32"
) -> PrimFunc:
    """C = A B, of converted operands."""
    a = te.placeholder((m, k), left, name="A")
    b = te.placeholder((k, n), right, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(te.cast(a[i, r], to) * te.cast(b[r, j], to), axis=r), name="C")
    return te.create_prim_func([a, b, c], name="matmul")


def packed_dots(s: Schedule, intrinsic: str = DOT) -> None:
    """Weights packed in groups of 16 columns and 4 steps, padded, and the dots in place of the inner nest."""
    c = s.get_block("C")
    s.pad_einsum(c, [1, 16, 4])
    try:
        packed = s.get_block("B_pad")
    except ScheduleError:
        packed = s.cache_read(c, 1, "global")
    for step in (lambda f: s.transform_layout(packed, 0, f), lambda f: s.transform_block_layout(packed, f)):
        step(lambda k, j: (j // 16, k // 4, j % 16, k % 4))
    _, j, k = s.get_loops(c)
    s.split(j, [None, 16])
    s.split(k, [None, 4])
    i, j0, j1, k0, k1 = s.get_loops(c)
    s.reorder(i, j0, k0, j1, k1)
    s.decompose_reduction(c, k0)
    s.tensorize(j1, intrinsic)


def blockize_a_tile(s: Schedule) -> None:
    c = s.get_block("C")
    i, j = s.get_loops(c)
    i0, i1 = s.split(i, [5, 2])
    j0, j1 = s.split(j, [2, 3])
    s.reorder(i0, j0, i1, j1)
    unit = s.blockize(i1)
    outer = s.get_loops(unit)
    s.parallel(s.fuse(*outer))


def tensorize_a_packed_matmul(s: Schedule) -> None:
    packed_dots(s)


def tensorize_a_unit(s: Schedule) -> None:
    c = s.get_block("C")
    _, j, _ = s.get_loops(c)
    s.decompose_reduction(c, j)
    unit = s.blockize(j)
    s.tensorize(unit, DOT)
    (i,) = s.get_loops(unit)
    s.unroll(i)


def test_a_unit_under_fused_loops(chain: PrimFunc, keeps_its_meaning: Keeps) -> None:
    keeps_its_meaning(chain, blockize_a_tile)


def test_a_packed_matmul_of_dots(keeps_its_meaning: Keeps) -> None:
    keeps_its_meaning(mixed_matmul(5, 35, 10), tensorize_a_packed_matmul)


def test_a_unit_of_dots(keeps_its_meaning: Keeps) -> None:
    a = te.placeholder((3, 4), "int8", name="A")
    b = te.placeholder((16, 4), "int8", name="B")
    k = te.reduce_axis((0, 4), name="k")

    def dot(i: te.Index, j: te.Index) -> te.Value:
        return te.sum(te.cast(b[j, k], "int32") * te.cast(a[i, k], "int32"), axis=k)

    keeps_its_meaning(
        te.create_prim_func([a, b, te.compute((3, 16), dot, name="C")], name="f"), tensorize_a_unit
    )


@pytest.mark.parametrize("shape", [(1, 16, 4), (3, 17, 5), (7, 48, 64)])
@pytest.mark.parametrize(
    ("left", "right", "to", "intrinsic"),
    [
        ("int8", "int8", "int32", "dot_16x4_i8i8i32"),
        ("uint8", "int8", "int32", "dot_16x4_u8i8i32"),
        ("float32", "float32", "float32", "dot_16x4_f32"),
    ],
)
def test_a_tensorized_matmul_equals_numpy(
    shape: tuple[int, int, int], left: str, right: str, to: str, intrinsic: str
) -> None:
    sch = Schedule(mixed_matmul(*shape, left, right, to))
    packed_dots(sch, intrinsic)
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = (
        rng.integers(0 if d == "uint8" else -127, 128, s).astype(d)
        for d, s in ((left, (m, k)), (right, (k, n)))
    )
    for target in ("llvm", "llvm -mcpu=x86-64-v3"):
        out = np.empty((m, n), to)
        tw.build(sch, target=target)(a, b, out)
        np.testing.assert_array_equal(out, a.astype(to) @ b.astype(to))


def test_every_intrinsic_that_comes_along_computes_its_description() -> None:
    for name in intrinsics.known_intrinsics():
        intrinsics.check_intrinsic(intrinsics.tensor_intrin(name))


# ---- intrinsics of one's own ----


def scaled_tile(factor: float) -> PrimFunc:
    a = te.placeholder((4, 3), "float32", name="X")
    y = te.compute((4, 3), lambda i, j: a[i, j] * factor, name="Y")
    return te.create_prim_func([a, y], name="scale")


def doubled_by_a_temporary() -> PrimFunc:
    a = te.placeholder((4, 3), "float32", name="X")
    t = te.compute((3, 4), lambda j, i: a[i, j], name="T")
    y = te.compute((4, 3), lambda i, j: t[j, i] + t[j, i], name="Y")
    return te.create_prim_func([a, y], name="double")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intrinsics that are registered in a test are known in that test only."""
    monkeypatch.setattr(intrinsics, "_registered", {})


@pytest.mark.usefixtures("registry")
def test_an_intrinsic_with_a_temporary_stands_in_a_strided_place() -> None:
    register_tensor_intrin(TensorIntrin("double_4x3", scaled_tile(2.0), doubled_by_a_temporary()))
    a = te.placeholder((8, 2, 3), "float32", name="A")
    b = te.compute((2, 8, 3), lambda p, i, j: a[i, p, j] * 2, name="B")
    func = te.create_prim_func([a, b], name="f")
    sch = Schedule(func)
    block = sch.get_block("B")
    _, i, _ = sch.get_loops(block)
    _, inner = sch.split(i, [None, 4])
    sch.tensorize(inner, "double_4x3")
    assert str(sch) == (
        "def f(A: float32[8, 2, 3], B: float32[2, 8, 3]):\n"
        "    B_T = alloc(float32[3, 4])\n"
        "    for p in range(2):\n"
        "        for i_0 in range(2):\n"
        "            for unit in range(1, intrinsic='double_4x3', unit='B_o'):\n"
        "                for j in range(3):\n"
        "                    for i in range(4):\n"
        "                        with block('B_T', p=spatial(p), i_0=spatial(i_0), "
        "j=spatial(j), i=spatial(i)):\n"
        "                            B_T[j, i] = A[i_0 * 4 + i, p, j]\n"
        "                for i in range(4):\n"
        "                    for j in range(3):\n"
        "                        with block('B', p=spatial(p), i_0=spatial(i_0), "
        "i=spatial(i), j=spatial(j)):\n"
        "                            B[p, i_0 * 4 + i, j] = B_T[j, i] + B_T[j, i]\n"
    )
    x = np.random.default_rng(0).standard_normal((8, 2, 3)).astype("float32")
    for run in (lambda *arrays: interpret.run(sch.func, arrays), tw.build(sch)):
        out = np.empty((2, 8, 3), "float32")
        run(x, out)
        np.testing.assert_array_equal(out, x.transpose(1, 0, 2) * 2)
    again = Trace.from_json(sch.trace.to_json()).apply(func)
    assert str(again) == str(sch)


def rejected(make: Callable[[], TensorIntrin]) -> str:
    with pytest.raises(IntrinsicError) as caught:
        register_tensor_intrin(make())
    return str(caught.value)


@pytest.mark.usefixtures("registry")
def test_what_is_no_intrinsic_is_not_registered() -> None:
    tile, double = scaled_tile(2.0), doubled_by_a_temporary()
    register_tensor_intrin(TensorIntrin("double_4x3", tile, double))
    assert rejected(lambda: TensorIntrin("double_4x3", tile, double)) == (
        "an intrinsic named 'double_4x3' exists already"
    )
    assert rejected(lambda: TensorIntrin(DOT, tile, double)) == f"an intrinsic named {DOT!r} exists already"
    assert rejected(lambda: TensorIntrin("a b", tile, double)) == (
        "the name of an intrinsic is an identifier, got 'a b'"
    )
    assert rejected(lambda: TensorIntrin("triple", scaled_tile(3.0), double)) == (
        "desc and impl make different things of Y for random inputs"
    )
    assert rejected(lambda: TensorIntrin("d", double, tile)) == "a description is one block in a perfect nest"
    other = mixed_matmul(4, 3, 2)
    assert rejected(lambda: TensorIntrin("d", tile, other)) == (
        "desc and impl differ in their parameters: (X: float32[4, 3], Y: float32[4, 3]) and "
        "(A: int8[4, 2], B: int8[2, 3], C: int32[4, 3])"
    )
    a = te.placeholder((8,), "float32", name="X")
    strided = te.create_prim_func([a, te.compute((4,), lambda i: a[i * 2], name="Y")], name="f")
    assert rejected(lambda: TensorIntrin("d", strided, strided)) == (
        "a description indexes X by some of its loops, each alone"
    )


# ---- refusals ----


def test_an_intrinsic_is_named_by_a_string(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, j, _ = sch.get_loops(sch.get_block("C"))
    assert reason_of(lambda: sch.tensorize(j, ["dot_16x4_f32"])) == (  # type: ignore[arg-type]
        "tensorize: an intrinsic is named by a string, got ['dot_16x4_f32']"
    )


def test_an_unknown_intrinsic_lists_the_known_ones(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    _, j, _ = sch.get_loops(sch.get_block("C"))
    reason = "unknown intrinsic 'dot'; known: dot_16x4_f32, dot_16x4_i8i8i32, dot_16x4_u8i8i32"
    assert reason_of(lambda: sch.tensorize(j, "dot")) == f"tensorize: {reason}"
    steps = [
        {"do": "get_block", "block": 0, "out": ["b0"]},
        {"do": "get_loops", "block": "b0", "out": ["l0", "l1", "l2"]},
        {"do": "tensorize", "at": "l1", "intrinsic": "dot"},
    ]
    trace = Trace.from_json({"version": 1, "steps": steps})
    assert reason_of(lambda: trace.apply(matmul)) == f"tensorize: {reason}"


def dots(n: int = 16, k: int = 4, left: str = "int8", init: bool = False, **changes: object) -> Schedule:
    """16 dots of 4 elements, or nearly so."""
    a = te.placeholder((n, k), left, name="A")
    b = te.placeholder((n, k), "int8", name="B")
    r = te.reduce_axis((0, k), name="k")

    def value(i: te.Index) -> te.Value:
        x, y = te.cast(a[i, r], "int32"), te.cast(b[i, r], "int32")
        if "op" in changes:
            return te.max(x * y, axis=r)
        return te.sum(x + y if "plus" in changes else x * y, axis=r)

    sch = Schedule(te.create_prim_func([a, b, te.compute((n,), value, name="C")], name="dots"))
    block = sch.get_block("C")
    i, k_ = sch.get_loops(block)
    if "swapped" in changes:
        sch.reorder(k_, i)
    if not init:
        sch.decompose_reduction(block, sch.get_loops(block)[0])
    if "vector" in changes:
        sch.vectorize(i)
    return sch


@pytest.mark.parametrize(
    ("sch", "reason"),
    [
        (
            lambda: dots(init=True),
            "'C' has its init, and the description adds to what is there; decompose_reduction first",
        ),
        (lambda: dots(n=8), "loop 'i' runs 8 times, 'i' of the description 16 times"),
        (lambda: dots(k=5), "loop 'k' runs 5 times, 'k' of the description 4 times"),
        (lambda: dots(left="int16"), "A holds int16, A of the description int8"),
        (
            lambda: dots(plus=True),
            "the block computes int32(A[i, k]) + int32(B[i, k]), where the description computes "
            "int32(A[i, k]) * int32(B[i, k])",
        ),
        (
            lambda: dots(op="max"),
            "the block computes max(C[i], int32(A[i, k]) * int32(B[i, k])), where the description computes "
            "C[i] + int32(A[i, k]) * int32(B[i, k])",
        ),
        (lambda: dots(n=4, k=16, swapped=True), "loop 'k' reduces, 'i' of the description does not"),
        (lambda: dots(vector=True), "loop 'i' is vectorized already"),
    ],
)
def test_the_first_difference_is_named(sch: Callable[[], Schedule], reason: str) -> None:
    s = sch()
    loop = s.get_loops(s.get_block("C"))[0]
    assert reason_of(lambda: s.tensorize(loop, DOT)) == f"tensorize: this is not {DOT!r}: {reason}"


def test_a_masked_tile_is_no_unit(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    i, _, _ = sch.get_loops(sch.get_block("C"))
    _, i1 = sch.split(i, [None, 4])
    assert reason_of(lambda: sch.blockize(i1)) == (
        "blockize: a part of 'C' is masked inside of the unit; split evenly, or pad it before"
    )


def test_loops_that_do_not_come_apart_are_no_unit(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    i, j = sch.get_loops(sch.get_block("C"))
    _, inner = sch.split(sch.fuse(i, j), [15, 4])
    assert reason_of(lambda: sch.blockize(inner)) == (
        "blockize: 'C' takes 'i' from (i_j_0 * 4 + i_j_1) // 6, in which the loops of the unit and those "
        "around it do not come apart"
    )


def test_a_unit_is_not_taken_apart(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c, d = sch.get_block("C"), sch.get_block("D")
    i, j, k = sch.get_loops(c)
    unit = sch.blockize(j)
    whole = "belongs to the unit 'C_o', which is taken whole"
    assert reason_of(lambda: sch.split(k, [2, 4])) == f"split: loop 'k' {whole}"
    assert reason_of(lambda: sch.reorder(k, j)) == f"reorder: loop 'k' {whole}"
    assert reason_of(lambda: sch.fuse(i, j)) == f"fuse: loop 'j' {whole}"
    assert reason_of(lambda: sch.unroll(j)) == f"unroll: loop 'j' {whole}"
    assert reason_of(lambda: sch.rfactor(k)) == f"rfactor: loop 'k' {whole}"
    assert reason_of(lambda: sch.blockize(k)) == f"blockize: loop 'k' {whole}"
    assert reason_of(lambda: sch.reverse_compute_at(d, j)) == f"reverse_compute_at: loop 'j' {whole}"
    assert reason_of(lambda: sch.compute_at(c, sch.get_loops(d)[0])) == f"compute_at: 'C' {whole}"
    assert reason_of(lambda: sch.pad_einsum(c, [4, 4, 4])) == f"pad_einsum: 'C' {whole}"
    assert reason_of(lambda: sch.blockize(i)) == "blockize: loop 'i' holds the unit 'C_o' already"
    assert reason_of(lambda: sch.vectorize(i)) == (
        "vectorize: loop 'i' stands around the unit 'C_o', which is no lane"
    )
    assert reason_of(lambda: sch.set_scope(unit, 0, "local")) == (
        "set_scope: 'C_o' is a unit, which is taken whole; this step takes one of its blocks"
    )
    assert reason_of(lambda: sch.tensorize(c, DOT)) == (
        "tensorize: 'C' is a block; name the loop around what is to be a unit, or blockize it"
    )
    assert [x.var for x in sch.get_loops(unit)] == [i.var]


def test_the_init_of_a_unit_is_decomposed_outside(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    c = sch.get_block("C")
    i, j, k = sch.get_loops(c)
    k0, k1 = sch.split(k, [2, 4])
    sch.reorder(i, k0, j, k1)
    sch.blockize(j)
    sch.decompose_reduction(c, k0)
    assert str(sch).count("unit='C_o'") == 1
    expected = interpret.expected(matmul, interpret.random_inputs(matmul, 0))
    arrays = interpret.random_inputs(matmul, 0)
    tw.build(sch)(*arrays)
    assert interpret.check(expected, arrays).ok


def test_a_description_that_sets_its_output_does_not_stand_in_a_reduction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intrinsics, "_registered", {})
    a = te.placeholder((4,), "float32", name="X")
    k = te.reduce_axis((0, 4), name="k")
    total = te.create_prim_func([a, te.compute((), lambda: te.sum(a[k], axis=k), name="Y")], name="total")
    register_tensor_intrin(TensorIntrin("total_4", total, total))
    register_tensor_intrin(TensorIntrin("add_4", accumulating(total), accumulating(total)))
    x = te.placeholder((3, 8), "float32", name="A")
    r = te.reduce_axis((0, 8), name="k")
    func = te.create_prim_func(
        [x, te.compute((3,), lambda i: te.sum(x[i, r], axis=r), name="S")], name="rows"
    )
    sch = Schedule(func)
    block = sch.get_block("S")
    _, k0 = sch.get_loops(block)
    outer, inner = sch.split(k0, [2, 4])
    assert reason_of(lambda: sch.tensorize(inner, "total_4")) == (
        "tensorize: 'S' would begin anew in each iteration of the loops that carry its reduction; "
        "decompose_reduction first"
    )
    sch.decompose_reduction(block, outer)
    assert reason_of(lambda: sch.tensorize(inner, "total_4")) == (
        "tensorize: this is not 'total_4': the description begins with an init, "
        "and that of 'S' was decomposed"
    )
    sch.tensorize(inner, "add_4")
    arrays = interpret.random_inputs(func, 0)
    tw.build(sch)(*arrays)
    np.testing.assert_allclose(arrays[1], arrays[0].sum(axis=1), rtol=1e-5)

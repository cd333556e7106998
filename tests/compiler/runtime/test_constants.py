"""Constants bound to kernels: packed once, by either code generator, saved and loaded."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from packed_kernels import affine, blank, inputs, packed
from saved_kernels import SUFFIXES

import tilewright as tw
from tilewright import te, topi
from tilewright.compiler.ir import IRModule

NEEDS_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
TARGETS = ["llvm", pytest.param("c", marks=NEEDS_CC)]


@pytest.fixture(scope="module", params=TARGETS)
def module(request: pytest.FixtureRequest) -> tw.Module:
    return tw.build(packed(affine()), request.param)


def test_a_call_takes_all_arrays_where_nothing_is_bound(module: tw.Module) -> None:
    for seed in (0, 1):
        x, w, b, y = inputs(seed=seed)
        out = blank(y)
        module(x, w, b, out)
        np.testing.assert_array_equal(out, y)
    assert [str(p) for p in module.constants] == ["W: float32[7, 13] constant", "B: float32[13] constant"]


def test_a_bound_module_takes_the_other_arrays(module: tw.Module) -> None:
    x, w, b, y = inputs()
    bound, out = module.with_constants({"B": b, "W": w}), blank(y)
    bound(x, out)
    np.testing.assert_array_equal(out, y)
    assert (str(bound["affine"]), bound.constants) == (
        "affine(X: float32[5, 7], Y: float32[5, 13] out)",
        (),
    )


def test_build_binds_constants() -> None:
    x, w, b, y = inputs()
    kernel, out = tw.build(affine(), constants={"W": w, "B": b}), blank(y)
    kernel(x, out)
    np.testing.assert_array_equal(out, y)


def test_what_becomes_of_the_arrays_later_does_not_matter(module: tw.Module) -> None:
    x, w, b, y = inputs()
    bound, out = module.with_constants({"W": w, "B": b}), blank(y)
    w[...], b[...] = 50, 60
    bound(x, out)
    np.testing.assert_array_equal(out, y)


def test_other_constants_make_another_module(module: tw.Module) -> None:
    x, w, b, y = inputs()
    first = module.with_constants({"W": w, "B": b})
    second = first.with_constants({"W": -w, "B": -b})
    for bound, want in ((first, y), (second, -y), (first, y)):
        out = blank(y)
        bound(x, out)
        np.testing.assert_array_equal(out, want)


def test_bind_packs_the_constants_it_is_given(module: tw.Module) -> None:
    x, w, b, y = inputs()
    out = blank(y)
    call = module.bind(x, w, b, out)
    w[...] = 50
    call()
    np.testing.assert_array_equal(out, y)


def test_bind_of_a_bound_module(module: tw.Module) -> None:
    x, w, b, y = inputs()
    out = blank(y)
    call = module.with_constants({"W": w, "B": b}).bind(x, out)
    call()
    np.testing.assert_array_equal(out, y)


def test_threads_share_a_bound_module(module: tw.Module) -> None:
    _, w, b, _ = inputs()
    bound = module.with_constants({"W": w, "B": b})
    wrong: list[int] = []

    def work(seed: int) -> None:
        x, _, _, y = inputs(seed=seed)
        want, out = x @ w + b, blank(y)
        for _ in range(200):
            out[...] = 99
            bound(x, out)
            if not np.array_equal(out, want):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


class Exporter:
    """An array of another library, which speaks DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_constants_come_as_anything_that_a_call_takes(module: tw.Module) -> None:
    x, w, b, y = inputs()
    out = blank(y)
    module.with_constants({"W": Exporter(w), "B": tw.NDArray.from_numpy(b)})(x, out)
    np.testing.assert_array_equal(out, y)


def test_a_constant_may_have_gaps(module: tw.Module) -> None:
    x, w, b, y = inputs()
    out = blank(y)
    module.with_constants({"W": np.asfortranarray(w), "B": np.repeat(b, 2)[::2]})(x, out)
    np.testing.assert_array_equal(out, y)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, ValueError, "affine: 'W', 'B' must be given too; its constants are 'W', 'B'"),
        ({"W": 1}, ValueError, "affine: 'B' must be given too; its constants are 'W', 'B'"),
        ({"X": 1}, ValueError, "affine: 'X' is no constant; its constants are 'W', 'B'"),
        ([1, 2], TypeError, "affine: constants are arrays by their names, got list"),
        (
            {"W": np.zeros((7, 13)), "B": np.zeros(13, "f4")},
            TypeError,
            "affine: constant 1, 'W': expected dtype float32, got float64",
        ),
        (
            {"W": np.zeros((7, 13), "f4"), "B": np.zeros(12, "f4")},
            ValueError,
            "affine: constant 2, 'B': expected shape (13,), got (12,)",
        ),
        (
            {"W": [[1.0]], "B": np.zeros(13, "f4")},
            TypeError,
            "affine: constant 1, 'W': expected a numpy.ndarray, got builtins.list",
        ),
    ],
    ids=["none", "one of two", "an input", "a list", "dtype", "shape", "no array"],
)
def test_constants_that_do_not_fit_are_refused(
    module: tw.Module, given: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        module.with_constants(given)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_a_call_of_a_bound_module_checks_its_arguments(module: tw.Module) -> None:
    x, w, b, y = inputs()
    bound = module.with_constants({"W": w, "B": b})
    with pytest.raises(TypeError, match=r"^affine: takes 2 arrays \(X, Y\), got 4$"):
        bound(x, w, b, y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "uint8", "float64", "int32"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 4, 8), (2, 17, 3)], ids=str)
def test_every_dtype_is_packed(dtype: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, w, b, y = inputs(m, n, k, dtype)
    if dtype == "uint8":
        x, w, b = (abs(a.astype("i4")).astype("u1") for a in (x, w, b))
        y = x @ w + b
    out = blank(y)
    tw.build(packed(affine(m, n, k, dtype)), constants={"W": w, "B": b})(x, out)
    np.testing.assert_array_equal(out, y)


def test_a_constant_that_two_blocks_read_is_packed_for_each() -> None:
    x, w = te.placeholder((6, 6), name="X"), te.placeholder((6, 6), name="W", constant=True)
    k, m = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 6), name="m")
    c = te.compute((6, 6), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="C")
    d = te.compute((6, 6), lambda i, j: te.sum(c[i, m] * w[j, m], axis=m), name="D")
    sch = tw.Schedule(te.create_prim_func([x, w, d], name="twice"))
    for name, order in (("C", [0, 1]), ("D", [1, 0])):
        copy = sch.cache_read(sch.get_block(name), 1, "local", order=order)
        sch.compute_ahead(copy)
    values, weights, _, _ = inputs(6, 6, 6)
    kernel, out = tw.build(sch, constants={"W": weights}), np.empty((6, 6), "f4")
    kernel(values, out)
    np.testing.assert_array_equal(out, values @ weights @ weights.T)
    assert sorted(w.is_packed for w in kernel["twice"].unbound.workspaces) == [False, True, True]


def test_parallel_loops_share_what_was_packed() -> None:
    func = affine(16, 32, 8)
    sch = packed(func)
    sch.parallel(sch.get_loops(sch.get_block("C"))[0])
    x, w, b, y = inputs(16, 32, 8)
    kernel, out = tw.build(sch, "llvm -num-threads=2", constants={"W": w, "B": b}), blank(y)
    kernel(x, out)
    np.testing.assert_array_equal(out, y)


def test_what_is_made_ahead_of_intermediates_only_is_not_passed_to_the_kernel() -> None:
    x, w = te.placeholder((4, 3), name="X"), te.placeholder((5, 3), name="W", constant=True)
    k = te.reduce_axis((0, 3), name="k")
    t = te.compute((3, 5), lambda i, j: w[j, i] * 2, name="T")
    u = te.compute((3, 5), lambda i, j: t[i, j] + 1, name="U")
    c = te.compute((4, 5), lambda i, j: te.sum(x[i, k] * u[k, j], axis=k), name="C")
    sch = tw.Schedule(te.create_prim_func([x, w, c], name="staged"))
    sch.compute_ahead(sch.get_block("T"))
    sch.compute_ahead(sch.get_block("U"))
    module = tw.build(sch)
    a, weights, _, _ = inputs(4, 3, 3)
    weights = np.arange(15, dtype="f4").reshape(5, 3)
    for kernel, given in ((module, (a, weights)), (module.with_constants({"W": weights}), (a,))):
        out = np.empty((4, 5), "f4")
        kernel(*given, out)
        np.testing.assert_array_equal(out, a @ (weights.T * 2 + 1))
    pack = module["staged"].pack
    assert pack is not None
    assert (len(module.workspaces), pack.workspaces, pack.consumed) == (1, (60, 60), ("W",))


# ---- sizes ----
def test_rows_known_at_the_call_go_through_packed_weights() -> None:
    n = te.var("n")
    x, w = te.placeholder((n, 7), name="X"), te.placeholder((7, 13), name="W", constant=True)
    k = te.reduce_axis((0, 7), name="k")
    c = te.compute((n, 13), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="C")
    sch = tw.Schedule(te.create_prim_func([x, w, c], name="rows"))
    block = sch.get_block("C")
    copy = sch.cache_read(block, 1, "local")
    i, j, _ = sch.get_loops(block)
    j0, _ = sch.split(j, [None, 4])
    sch.reorder(j0, i)
    sch.compute_at(copy, j0)
    sch.compute_ahead(copy)
    _, weights, _, _ = inputs()
    kernel = tw.build(sch, constants={"W": weights})
    for rows in (0, 1, 6):
        a = np.arange(rows * 7, dtype="f4").reshape(rows, 7)
        out = np.full((rows, 13), 99, "f4")
        kernel(a, out)
        np.testing.assert_array_equal(out, a @ weights)
    assert kernel.sizes == ("n",)


@pytest.mark.parametrize("order", ["kn", "nk"])
def test_the_default_for_any_number_of_rows_packs_weights(order: Literal["kn", "nk"]) -> None:
    n = te.var("n")
    x = te.placeholder((n, 7), name="X")
    w = te.placeholder((7, 13) if order == "kn" else (13, 7), name="W", constant=True)
    module = tw.build(te.create_prim_func([x, w, topi.dense(x, w, weights=order)], name="rows"))
    _, weights, _, _ = inputs()
    kernel = module.with_constants({"W": weights if order == "kn" else weights.T})
    for rows in (0, 1, 9):
        a, out = np.arange(rows * 7, dtype="f4").reshape(rows, 7), np.full((rows, 13), 99, "f4")
        kernel(a, out)
        np.testing.assert_array_equal(out, a @ weights)
    pack = module["rows"].pack
    assert pack is not None and pack.consumed == ("W",)


# ---- several functions ----
def test_the_functions_of_a_module_are_bound_one_by_one() -> None:
    x, w, b, y = inputs()
    two = IRModule({"left": affine(name="left"), "right": affine(name="right")})
    module = tw.build(two, constants={"left": {"W": w, "B": b}})
    for name, given in (("left", (x,)), ("right", (x, w, b))):
        out = blank(y)
        module[name](*given, out)
        np.testing.assert_array_equal(out, y)
    with pytest.raises(KeyError, match="there is no function 'middle'"):
        module.with_constants({"middle": {}})
    with pytest.raises(TypeError, match=r"^constants of several functions \(left, right\) are a mapping"):
        module.with_constants([1])  # type: ignore[arg-type]


def test_two_functions_that_would_share_a_symbol_are_refused() -> None:
    with pytest.raises(tw.BuildError, match="would both be 'f_pack' in the code"):
        tw.build({"f": packed(affine(name="f")), "f_pack": affine(name="f_pack")})


# ---- saved and loaded ----
@pytest.mark.parametrize(
    ("target", "suffix"),
    [*(("llvm", s) for s in SUFFIXES), pytest.param("c", ".o", marks=NEEDS_CC)],
)
def test_a_loaded_module_is_bound_in_another_process(tmp_path: Path, target: str, suffix: str) -> None:
    x, w, b, y = inputs()
    bound = tw.build(packed(affine()), target, constants={"W": w, "B": b})
    path = bound.export(tmp_path / f"k{suffix}")
    np.savez(tmp_path / "arrays.npz", x=x, w=w, b=b, y=y)
    code = f"""
import numpy as np, tilewright as tw
a = np.load({str(tmp_path / "arrays.npz")!r})
loaded = tw.load_module({str(path)!r})
out = np.full_like(a["y"], 99)
loaded(a["x"], a["w"], a["b"], out)
np.testing.assert_array_equal(out, a["y"])
bound = loaded.with_constants({{"W": a["w"], "B": a["b"]}})
out[...] = 99
bound(a["x"], out)
np.testing.assert_array_equal(out, a["y"])
print([p.name for p in loaded.constants], len(bound.params))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['W', 'B'] 2\n", "")


def test_a_loaded_module_says_what_the_saved_one_does(tmp_path: Path) -> None:
    module = tw.build({"affine": packed(affine()), "plain": affine(name="plain")})
    loaded = tw.load_module(module.export(tmp_path / "k.o"))
    for name in module:
        a, b = module[name], loaded[name]
        assert (b.params, b.workspaces, b.pack) == (a.params, a.workspaces, a.pack)
    assert loaded.header() == module.header()


HEADER = """
/* affine_pack
 * W: float32[7, 13]
 * packed0: 448 bytes, aligned to 64, written
 */
void affine_pack(const float *W, void *packed0);

/* affine
 * X: float32[5, 7]
 * W: float32[7, 13], packed before and not read here
 * B: float32[13]
 * Y: float32[5, 13], written
 * workspace0: 448 bytes that affine_pack filled
 */
void affine(const float *X, const float *W, const float *B, float *Y, const void *workspace0);
"""


def test_the_header_declares_both_functions(module: tw.Module) -> None:
    assert HEADER in module.header()


def test_constants_are_not_bound_to_code_for_another_machine() -> None:
    module = tw.build(packed(affine()), "llvm -mcpu=cortex-a72 -mtriple=aarch64-linux-gnu")
    _, w, b, _ = inputs()
    with pytest.raises(tw.CallError, match="export it with module"):
        module.with_constants({"W": w, "B": b})

"""Every reduction gives NumPy's result: interpreted, built as it stands, and by its default schedule."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.compiler import te

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
RNG = np.random.default_rng(7)


def integers(shape, dtype):
    """Over the whole range of the dtype."""
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def rows(x, reduce, **options):
    """[X, Y] with Y[i] reduced over row i."""
    X = te.placeholder(x.shape, str(x.dtype), name="X")
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return [X, te.compute((x.shape[0],), lambda i: reduce(X[i, k], axis=k, **options), name="Y")]


def columns(x, reduce):
    """[X, Y] with Y[j] reduced over column j."""
    X = te.placeholder(x.shape, str(x.dtype), name="X")
    k = te.reduce_axis((0, x.shape[0]), name="k")
    return [X, te.compute((x.shape[1],), lambda j: reduce(X[k, j], axis=k), name="Y")]


BITS = {
    "and": (te.reduce_and, np.bitwise_and),
    "or": (te.reduce_or, np.bitwise_or),
    "xor": (te.reduce_xor, np.bitwise_xor),
}


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("op", BITS)
def test_reductions_of_bits(everywhere, op, dtype):
    reduce, numpy = BITS[op]
    x = RNG.random((17, 23)) < 0.93 if dtype == "bool" else integers((17, 23), dtype)
    got = everywhere(columns(x, reduce), x)[0]
    assert got.dtype == x.dtype and np.array_equal(got, numpy.reduce(x, axis=0))


@pytest.mark.parametrize("op", BITS)
@pytest.mark.parametrize("dtype", ["uint8", "bool"])
def test_reductions_of_bits_along_the_rows(everywhere, op, dtype):
    reduce, numpy = BITS[op]
    x = RNG.random((7, 13)) < 0.9 if dtype == "bool" else integers((7, 13), dtype)
    assert np.array_equal(everywhere(rows(x, reduce), x)[0], numpy.reduce(x, axis=1))


@pytest.mark.parametrize(("reduce", "numpy"), [(te.all, np.all), (te.any, np.any)])
def test_a_condition_over_an_axis(everywhere, reduce, numpy):
    x = RNG.standard_normal((9, 5)).astype("float32")
    X = te.placeholder(x.shape, "float32", name="X")
    k = te.reduce_axis((0, 5), name="k")
    y = te.compute((9,), lambda i: reduce(X[i, k] > -1.0, axis=k), name="Y")
    assert np.array_equal(everywhere([X, y], x)[0], numpy(x > -1, axis=1))


def test_a_condition_on_indices_over_an_axis(everywhere):
    X = te.placeholder((5,), "int32", name="X")
    k = te.reduce_axis((0, 5), name="k")
    y = te.compute((5,), lambda i: te.any(te.all(k < i, X[k] > 2), axis=k), name="Y")
    x = np.array([1, 3, 0, 9, 9], "int32")
    assert everywhere([X, y], x)[0].tolist() == [False, False, True, True, True]


def test_a_reduction_to_one_bool(everywhere):
    x = np.ones((37,), bool)
    x[36] = False
    X = te.placeholder((37,), "bool", name="X")
    k = te.reduce_axis((0, 37), name="k")
    y = te.compute((), lambda: te.all(X[k], axis=k), name="Y")
    assert not everywhere([X, y], x)[0]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("reduce", ["sum", "prod", "min", "max"])
def test_reductions_of_integers_wrap_as_numpy_does(everywhere, reduce, dtype):
    x = integers((13, 19), dtype)
    got = everywhere(columns(x, getattr(te, reduce)), x)[0]
    options = {"dtype": dtype} if reduce in ("sum", "prod") else {}
    assert got.dtype == x.dtype and np.array_equal(got, getattr(np, reduce)(x, axis=0, **options))


SPECIAL = np.array(
    [
        [1.0, np.nan, 2.0],
        [np.inf, 1.0, -np.inf],
        [np.inf, 0.0, 1.0],
        [-np.inf, -np.inf, -np.inf],
        [np.inf, np.inf, np.inf],
        [-0.0, 0.0, -0.0],
        [np.nan, np.nan, np.nan],
        [3.0, -2.0, 5.0],
    ]
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reduce", ["sum", "prod", "min", "max", "argmin", "argmax"])
def test_reductions_of_nan_and_infinity(everywhere, reduce, dtype):
    x = SPECIAL.astype(dtype)
    got = everywhere(rows(x, getattr(te, reduce)), x)[0]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, getattr(np, reduce)(x, axis=1))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("reduce", ["min", "max", "argmin", "argmax"])
def test_extremes_of_narrow_floats(everywhere, reduce, dtype):
    x = SPECIAL.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    got = everywhere(rows(x, getattr(te, reduce)), x)[0]
    want = getattr(np, reduce)(x.astype("float32"), axis=1)
    np.testing.assert_array_equal(got.astype("float32"), want.astype("float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_of_floats(everywhere, dtype):
    x = RNG.standard_normal((11, 31)).astype(dtype)
    got = everywhere(rows(x, te.prod), x)[0]
    np.testing.assert_allclose(got, x.astype("float64").prod(axis=1), rtol=1e-4)


def test_products_that_leave_the_range_of_float32(everywhere):
    x = np.array([[1e30, 1e30, 1e-30], [1e-30, 1e-30, 1.0], [1e-30, 1e-30, 1e30]], "float32")
    got = everywhere(rows(x, te.prod), x)[0]
    assert got[0] in (np.inf, np.float32(1e30)) and got[1] == 0


def repeated(shape, dtype):
    """Few different values, so that extremes stand in several places."""
    if dtype.startswith("float"):
        return RNG.integers(-3, 4, shape).astype(dtype)
    info = np.iinfo(dtype)
    return RNG.choice(np.array([info.min, info.max, 1, 5], dtype), shape)


@pytest.mark.parametrize("dtype", ["float32", "float64", *INTEGERS])
@pytest.mark.parametrize("op", ["argmin", "argmax"])
def test_the_place_of_an_extreme_value_is_that_of_the_first(everywhere, op, dtype):
    x = repeated((11, 17), dtype)
    got = everywhere(rows(x, getattr(te, op)), x)[0]
    assert got.dtype == np.int32 and np.array_equal(got, getattr(np, op)(x, axis=1))


@pytest.mark.parametrize("op", ["argmin", "argmax"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 64), (64, 5), (3, 131)])
def test_places_along_both_axes_of_many_shapes(everywhere, op, shape):
    x = RNG.standard_normal(shape).astype("float32")
    x[RNG.random(shape) < 0.02] = np.nan
    reduce = getattr(te, op)
    assert np.array_equal(everywhere(rows(x, reduce), x)[0], getattr(np, op)(x, axis=1))
    assert np.array_equal(everywhere(columns(x, reduce), x)[0], getattr(np, op)(x, axis=0))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "int16"])
def test_the_dtype_of_a_place_is_what_is_asked_for(everywhere, dtype):
    x = RNG.standard_normal((4, 9)).astype("float32")
    got = everywhere(rows(x, te.argmax, dtype=dtype), x)[0]
    assert str(got.dtype) == dtype and np.array_equal(got, x.argmax(1))


def test_the_place_among_several_axes_counts_all_steps(everywhere):
    x = RNG.integers(0, 4, (3, 4, 5)).astype("int32")
    X = te.placeholder(x.shape, "int32", name="X")
    k, m = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 5), name="m")
    y = te.compute((3,), lambda i: te.argmin(X[i, k, m], axis=[k, m]), name="Y")
    assert np.array_equal(everywhere([X, y], x)[0], x.reshape(3, -1).argmin(1))


def test_the_place_on_an_axis_that_starts_above_zero_is_its_value(everywhere):
    x = np.array([0, 9, 1, 9, 9], "int32")
    X = te.placeholder((5,), "int32", name="X")
    k = te.reduce_axis((2, 5), name="k")
    y = te.compute((), lambda: te.argmax(X[k], axis=k), name="Y")
    assert everywhere([X, y], x)[0] == 3


def test_the_place_of_a_computed_value_reads_it_from_a_tensor_of_its_own(everywhere):
    X = te.placeholder((6, 8), "float32", name="X")
    k = te.reduce_axis((0, 8), name="k")
    y = te.compute((6,), lambda i: te.argmin(X[i, k] * X[i, k] - X[i, k], axis=k), name="Y")
    func = te.create_prim_func([X, y])
    assert [b.name for _, b in func.blocks()] == ["Y_value", "Y_min", "Y"]
    x = RNG.standard_normal((6, 8)).astype("float32")
    assert np.array_equal(everywhere([X, y], x)[0], (x * x - x).argmin(1))


def test_a_place_inside_of_a_larger_expression(everywhere):
    X = te.placeholder((6, 8), "int32", name="X")
    k = te.reduce_axis((0, 8), name="k")
    y = te.compute((6,), lambda i: te.argmax(X[i, k], axis=k) * 10 + te.max(X[i, k], axis=k), name="Y")
    x = RNG.integers(-9, 9, (6, 8)).astype("int32")
    assert np.array_equal(everywhere([X, y], x)[0], x.argmax(1) * 10 + x.max(1))


def test_a_guarded_read_is_guarded_in_both_passes(everywhere):
    X = te.placeholder((5,), "float32", name="X")
    k = te.reduce_axis((0, 8), name="k")
    y = te.compute((), lambda: te.argmin(te.if_then_else(k < 5, X[k], 9.0), axis=k), name="Y")
    x = np.array([3, 2, 1, 1, 4], "float32")
    assert everywhere([X, y], x)[0] == 2

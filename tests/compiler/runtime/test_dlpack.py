"""Arrays of other libraries, and our own, as arguments and as views of each other."""

import gc
import re
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright
from tilewright import NDArray, te
from tilewright.compiler.runtime import ArgumentTypeError, ArgumentValueError, Function
from tilewright.compiler.runtime.dlpack import from_dlpack

Array = np.ndarray[Any, Any]

DTYPES = [
    np.dtype(name)
    for name in (
        "bool",
        "int8",
        "uint8",
        "int16",
        "int32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    )
] + [np.dtype(ml_dtypes.bfloat16)]


class Modern:
    """An array of another library, which speaks version 1 of the protocol and nothing else."""

    def __init__(self, array: Array) -> None:
        self._array = NDArray.from_dlpack(array) if array.dtype == ml_dtypes.bfloat16 else array

    def __dlpack__(self, **options: Any) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Old(Modern):
    """The same from before version 1."""

    def __dlpack__(self, stream: object = None) -> object:
        return self._array.__dlpack__()


class Elsewhere(Modern):
    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1


def added(n: int = 4, m: int = 6) -> Function:
    a, b = te.placeholder((n, m), "float32", name="A"), te.placeholder((n, m), "float32", name="B")
    c = te.compute((n, m), lambda i, j: a[i, j] + b[i, j], name="C")
    return tilewright.build(te.create_prim_func([a, b, c], name="added"))["added"]


def counted(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# ---- as arguments ----
@pytest.mark.parametrize("kind", [Modern, Old, NDArray.from_numpy, NDArray.from_dlpack])
def test_inputs_and_outputs_of_other_libraries_are_used_in_place(kind: Any) -> None:
    a, b, c = counted(4, 6), counted(4, 6) * 10, np.full((4, 6), np.nan, np.float32)
    out = kind(c)
    added()(kind(a), kind(b), out)
    written = out.numpy() if isinstance(out, NDArray) else c
    np.testing.assert_array_equal(written, a + b)


def test_kinds_of_arrays_may_be_mixed() -> None:
    a, b, c = counted(4, 6), counted(4, 6) * 10, np.full((4, 6), np.nan, np.float32)
    added().bind(Modern(a), NDArray.from_numpy(b), c)()
    np.testing.assert_array_equal(c, a + b)


def test_a_bound_call_keeps_arrays_of_other_libraries_alive() -> None:
    a, c = counted(4, 6), np.full((4, 6), np.nan, np.float32)
    alive = weakref.ref(a)
    bound = added().bind(Modern(a), Old(a), c)
    expected = a + a
    del a
    gc.collect()
    bound()
    assert alive() is not None
    np.testing.assert_array_equal(c, expected)
    del bound
    gc.collect()
    assert alive() is None


def test_an_argument_on_another_device_is_refused_by_name() -> None:
    a = counted(4, 6)
    with pytest.raises(ArgumentTypeError) as caught:
        added()(a, Elsewhere(a), a)
    assert str(caught.value) == (
        "added: argument 2, 'B': the array is on device 1 (CUDA); copy it to the CPU"
    )


def test_an_output_that_the_other_library_forbids_to_write_is_refused() -> None:
    a, c = counted(4, 6), counted(4, 6)
    c.flags.writeable = False
    with pytest.raises(ArgumentValueError, match=r"'C': is an output and the array is read-only$"):
        added()(Modern(a), a, Modern(c))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (counted(4, 6).astype("f8"), "argument 1, 'A': expected dtype float32, got float64"),
        (counted(6, 4), "argument 1, 'A': expected shape (4, 6), got (6, 4)"),
        (
            np.array(1, np.float32),
            "argument 1, 'A': expected 2 dimensions, shape (4, 6), got 0, shape ()",
        ),
    ],
)
@pytest.mark.parametrize("kind", [Modern, Old, NDArray.from_dlpack])
def test_an_array_of_another_library_is_checked_as_our_own(kind: Any, array: Array, message: str) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError)) as caught:
        added()(kind(array), counted(4, 6), counted(4, 6))
    assert str(caught.value) == f"added: {message}"


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"expected a numpy.ndarray, got builtins.list$"):
        added()([1.0], counted(4, 6), counted(4, 6))


def test_a_masked_array_is_refused_since_its_mask_would_be_lost() -> None:
    a = np.ma.masked_array(counted(4, 6), mask=True)
    with pytest.raises(ArgumentTypeError, match=r"'A': expected a numpy.ndarray, got numpy.ma"):
        added()(a, counted(4, 6), counted(4, 6))


def test_too_many_arrays_are_counted_whatever_they_are() -> None:
    a = Modern(counted(4, 6))
    with pytest.raises(ArgumentTypeError, match=r"^added: takes 3 arrays \(A, B, C\), got 4$"):
        added()(a, a, a, a)


# ---- arrays with gaps, and small ones ----
GAPS = {
    "transposed": (counted(6, 4).T, "(4, 16)"),
    "every second row": (counted(8, 6)[::2], "(48, 4)"),
    "one row for all": (np.broadcast_to(counted(6), (4, 6)), "(0, 4)"),
    "backwards": (counted(4, 6)[::-1], "(-24, 4)"),
}


@pytest.mark.parametrize("name", GAPS)
@pytest.mark.parametrize("kind", [np.asarray, Modern])
def test_an_input_with_gaps_is_refused_with_the_remedy(name: str, kind: Any) -> None:
    array, strides = GAPS[name]
    with pytest.raises(ArgumentValueError) as caught:
        added()(kind(array), counted(4, 6), counted(4, 6))
    assert str(caught.value) == (
        "added: argument 1, 'A': expected an array in C order without gaps, "
        f"got strides {strides} for shape (4, 6); pass numpy.ascontiguousarray(A)"
    )


@pytest.mark.parametrize("name", GAPS)
def test_the_remedy_works(name: str) -> None:
    array, _ = GAPS[name]
    c = np.full((4, 6), np.nan, np.float32)
    added()(np.ascontiguousarray(array), counted(4, 6), c)
    np.testing.assert_array_equal(c, array + counted(4, 6))


@pytest.mark.parametrize("shape", [(0, 6), (4, 0), (0, 0)])
@pytest.mark.parametrize("kind", [np.asarray, Modern, Old, NDArray.from_numpy, NDArray.from_dlpack])
def test_an_empty_array_of_another_shape_is_refused(kind: Any, shape: tuple[int, int]) -> None:
    with pytest.raises(ArgumentValueError, match=r"'A': expected shape \(4, 6\), got "):
        added()(kind(np.zeros(shape, np.float32)), counted(4, 6), counted(4, 6))


@pytest.mark.parametrize("kind", [np.asarray, Modern, Old, NDArray.from_dlpack])
def test_a_dimension_of_one_has_no_gaps_whatever_its_stride(kind: Any) -> None:
    column, c = counted(5, 6)[2:3, ::1], np.full((1, 6), np.nan, np.float32)
    added(1, 6)(kind(column), column, c)
    np.testing.assert_array_equal(c, column * 2)


@pytest.mark.parametrize("kind", [np.asarray, Modern, Old, NDArray.from_dlpack])
def test_an_array_without_dimensions_is_an_array(kind: Any) -> None:
    a = te.placeholder((), "float32", name="A")
    func = te.create_prim_func([a, te.compute((), lambda: a[()] + 1.0, name="B")])
    out = np.zeros((), np.float32)
    tilewright.build(func)(kind(np.array(2.5, np.float32)), out)
    assert out[()] == 3.5


@pytest.mark.parametrize("kind", [np.asarray, Modern, Old, NDArray.from_numpy, NDArray.from_dlpack])
def test_an_array_without_elements_is_left_as_it_is(kind: Any) -> None:
    n = te.var("n")
    a = te.placeholder((n, 3), "float32", name="A")
    func = te.create_prim_func([a, te.compute((n, 3), lambda i, j: a[i, j] + 1.0, name="B")])
    empty = np.zeros((0, 3), np.float32)
    tilewright.build(func)(kind(empty), kind(empty.copy()))
    assert empty.shape == (0, 3)


# ---- NDArray ----
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (2, 3, 5)])
def test_every_dtype_and_shape_comes_back(dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    array = (np.arange(np.prod(shape)) % 2).reshape(shape).astype(dtype)
    ours = NDArray.from_numpy(array)
    np.testing.assert_array_equal(ours.numpy(), array)
    assert (ours.shape, ours.dtype, ours.nbytes, ours.ndim, ours.numpy().dtype) == (
        *(shape, dtype.name, array.nbytes, len(shape)),
        dtype,
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", [Modern, Old])
def test_dlpack_shares_the_memory_both_ways(kind: Any, dtype: np.dtype[Any]) -> None:
    ours = NDArray.from_numpy(np.zeros((2, 3), dtype))
    theirs = from_dlpack(kind(ours.numpy()))
    theirs[1, 2] = 1
    assert (ours.numpy()[1, 2], NDArray.from_dlpack(ours).numpy()[1, 2], theirs.dtype) == (1, 1, dtype)


def test_memory_lives_as_long_as_a_view_of_it() -> None:
    ours = NDArray.from_numpy(counted(2, 3))
    views = [ours.numpy(), from_dlpack(ours), NDArray.from_dlpack(ours).numpy()]
    del ours
    gc.collect()
    others = [np.full((2, 3), -1, np.float32) for _ in range(50)]
    for view in views:
        np.testing.assert_array_equal(view, counted(2, 3))
    assert len(others) == 50


def test_memory_is_aligned_to_cache_lines() -> None:
    assert [NDArray.empty((n,), "int8").numpy().ctypes.data % 64 for n in (1, 7, 100)] == [0, 0, 0]


def test_numpy_reads_our_arrays() -> None:
    np.testing.assert_array_equal(np.from_dlpack(NDArray.from_numpy(counted(2, 3))), counted(2, 3))


def test_elements_are_taken_over_from_an_array_of_the_same_kind() -> None:
    ours = NDArray.empty((6, 4), "float32")
    ours.copy_from(counted(4, 6).T)
    np.testing.assert_array_equal(ours.numpy(), counted(4, 6).T)


@pytest.mark.parametrize("array", [counted(3, 2), counted(2, 3).astype("f8")])
def test_elements_of_another_kind_are_refused(array: Array) -> None:
    with pytest.raises(ValueError, match=r"^cannot copy float\d\d\[\d, \d\] into float32\[2, 3\]: "):
        NDArray.empty((2, 3), "float32").copy_from(array)


def test_an_array_with_gaps_is_not_wrapped() -> None:
    with pytest.raises(
        BufferError, match=r"^the array has gaps: strides \(4, 12\) for shape \(3, 2\); copy it$"
    ):
        NDArray.from_dlpack(counted(2, 3).T)


def test_elements_in_foreign_byte_order_are_turned_around() -> None:
    foreign = counted(2, 3).astype(np.dtype("f4").newbyteorder("S"))
    ours = NDArray.empty((2, 3), "float32")
    ours.copy_from(foreign)
    np.testing.assert_array_equal([NDArray.from_numpy(foreign).numpy(), ours.numpy()], [foreign, foreign])


@pytest.mark.parametrize(
    "dtype", ["float33", "object", "S5", "f4", "datetime64[D]", "finfo", "__name__", None]
)
def test_an_unknown_dtype_is_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match=f"^unknown dtype {re.escape(repr(dtype))}$"):
        NDArray.empty((2,), dtype)


def test_an_array_of_objects_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^unknown dtype 'object'$"):
        NDArray.from_numpy(np.array([object()]))


def test_a_class_of_arrays_is_no_array() -> None:
    a = counted(2, 3)
    with pytest.raises(TypeError, match=r"argument 1, '\w+': expected a numpy\.ndarray, got builtins\.type$"):
        added()(np.ndarray, a, a.copy())


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the sizes of an array are not negative: \(2, -1\)$"):
        NDArray.empty((2, -1), "float32")


def test_an_array_says_what_it_is() -> None:
    assert repr(NDArray.empty((2, 3), "bfloat16")) == "NDArray(bfloat16[2, 3] on cpu(0))"

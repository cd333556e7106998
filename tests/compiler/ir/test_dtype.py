"""Data types as text and as DLPack's triple, with lanes and without."""

import numpy as np
import pytest

from tilewright.compiler import te
from tilewright.compiler.arith import poly
from tilewright.compiler.ir import (
    Buffer,
    DType,
    PrimFunc,
    ScriptError,
    TypeMismatch,
    VerifyError,
    from_json,
    parse_script,
    to_json,
    verify,
)

#: DLDataTypeCode of the DLPack standard, header version 1.0.
DLPACK = {
    "int8": (0, 8), "int16": (0, 16), "int32": (0, 32), "int64": (0, 64),
    "uint8": (1, 8), "uint16": (1, 16), "uint32": (1, 32), "uint64": (1, 64),
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "bfloat16": (4, 16), "bool": (6, 8),
}  # fmt: skip


@pytest.mark.parametrize("name", DLPACK)
@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 16, 65_535])
def test_a_dtype_goes_through_text_and_dlpack_and_back(name: str, lanes: int) -> None:
    text = name if lanes == 1 else f"{name}x{lanes}"
    dtype = DType.parse(text)
    assert (str(dtype), dtype.dlpack) == (text, (*DLPACK[name], lanes))
    assert DType.from_dlpack(*dtype.dlpack) == dtype == DType.parse(dtype)
    assert (dtype.element, dtype.lanes) == (DType.parse(name), lanes)
    assert dtype.bytes == dtype.numpy.itemsize == DLPACK[name][1] // 8 * lanes


@pytest.mark.parametrize("name", [n for n in DLPACK if n not in ("bfloat16", "bool")])
def test_the_triple_is_the_one_that_numpy_hands_out(name: str) -> None:
    array = np.zeros(3, name)
    assert np.from_dlpack(array).dtype == DType.from_dlpack(*DType.parse(name).dlpack).numpy


NO_LANES = ["x", "x0", "x1", "x04", "x-4", "x+4", "x65536", "x999999", "x4x4", "x٤", "x4.0"]


@pytest.mark.parametrize("text", [f"float32{lanes}" for lanes in NO_LANES])
def test_lanes_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(TypeMismatch) as e:
        DType.parse(text)
    assert str(e.value) == f"unknown dtype {text!r}: a vector of float32 is float32x2 to float32x65535"


KNOWN = (
    "known: 0 (int) with 8, 16, 32, 64 bits; 1 (uint) with 8, 16, 32, 64 bits; "
    "2 (float) with 16, 32, 64 bits; 4 (bfloat) with 16 bits; 6 (bool) with 8 bits"
)


@pytest.mark.parametrize(("code", "bits"), [(5, 64), (2, 8), (0, 128), (6, 1), (-1, 8), (4, 32), (7, 8)])
def test_a_triple_that_is_no_dtype_lists_the_known_ones(code: int, bits: int) -> None:
    with pytest.raises(TypeMismatch) as e:
        DType.from_dlpack(code, bits)
    assert str(e.value) == f"no dtype has the DLPack code {code} with {bits} bits; {KNOWN}"


@pytest.mark.parametrize("lanes", [0, -1, 65_536])
def test_a_triple_with_lanes_that_are_none_is_refused(lanes: int) -> None:
    with pytest.raises(TypeMismatch, match=f"^a DLPack dtype has 1 to 65535 lanes, got {lanes}$"):
        DType.from_dlpack(2, 32, lanes)


ADVICE = (
    "float32x4 has 4 lanes, but buffers and values hold single elements; "
    "use float32 and make vectors with Schedule.vectorize"
)


def test_buffers_and_values_with_lanes_are_refused_with_advice() -> None:
    a = te.placeholder((4,), "float32", name="A")
    with pytest.raises(TypeMismatch) as e:
        te.placeholder((4,), "float32x4", name="A")
    assert ADVICE in str(e.value)
    with pytest.raises(TypeMismatch) as e:
        te.compute((4,), lambda i: te.cast(a[i], "float32x4"), name="B")
    assert ADVICE in str(e.value)
    with pytest.raises(ScriptError) as caught:
        parse_script("def f(A: float32x4[4]):\n    A[0] = 1.0\n")
    assert caught.value.message == ADVICE


def test_a_program_with_lanes_is_refused() -> None:
    a = te.placeholder((4,), "float32", name="A")
    func = te.create_prim_func([a, te.compute((4,), lambda i: a[i], name="B")], name="f")
    document = to_json(func)
    document["params"][0]["dtype"] = "float32x4"
    with pytest.raises(VerifyError) as e:
        from_json(document)
    assert (e.value.message, e.value.pointer) == (ADVICE, "/params/0/dtype")
    wide = Buffer("W", (poly(4),), DType.parse("float32x4"))
    with pytest.raises(VerifyError, match=r"^buffer 'W' is of float32x4, but buffers hold single elements$"):
        verify(PrimFunc("f", (*func.params, wide), (), func.body))

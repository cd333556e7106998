"""Parameters that are declared constant: in te, printed, in JSON, and what a program may not do with them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tilewright.compiler import te, topi
from tilewright.compiler.ir import (
    PrimFunc,
    VerifyError,
    from_json,
    parse_script,
    structural_equal,
    to_json,
    verify,
    workload_key,
)


def product(*, constant: bool = True) -> PrimFunc:
    a, w = te.placeholder((2, 3), name="A"), te.placeholder((3, 4), name="W", constant=constant)
    k = te.reduce_axis((0, 3), name="k")
    c = te.compute((2, 4), lambda i, j: te.sum(a[i, k] * w[k, j], axis=k), name="C")
    return te.create_prim_func([a, w, c], name="product")


def test_a_constant_is_printed_and_read_back() -> None:
    func = product()
    assert str(func).splitlines()[0] == (
        "def product(A: float32[2, 3], W: constant(float32[3, 4]), C: float32[2, 4]):"
    )
    read = parse_script(str(func))
    assert ([p.name for p in read.constants], str(read), structural_equal(read, func)) == (
        ["W"],
        str(func),
        True,
    )


def test_a_constant_goes_through_json() -> None:
    func = product()
    data = to_json(func)
    assert data["params"] == [
        {"shape": [2, 3], "dtype": "float32", "name": "A"},
        {"shape": [3, 4], "dtype": "float32", "constant": True, "name": "W"},
        {"shape": [2, 4], "dtype": "float32", "name": "C"},
    ]
    assert structural_equal(from_json(data), func)


def test_a_constant_makes_another_workload() -> None:
    assert workload_key(product()) != workload_key(product(constant=False))
    assert "constant" not in str(to_json(product(constant=False)))


def test_a_constant_keeps_its_name_apart() -> None:
    a, w = te.placeholder((4,), name="A"), te.placeholder((4,), name="A", constant=True)
    func = te.create_prim_func([a, w, te.compute((4,), lambda i: a[i] + w[i], name="C")])
    assert [(p.name, p.constant) for p in func.params] == [("A", False), ("A_1", True), ("C", False)]


@pytest.mark.parametrize("value", [False, 1, "yes", None])
def test_json_says_constant_by_true_alone(value: object) -> None:
    data = to_json(product())
    data["params"][1]["constant"] = value
    with pytest.raises(VerifyError, match=r"^'constant' is true or left out, got .*/params/1/constant"):
        from_json(data)


def test_a_constant_is_not_written() -> None:
    data = to_json(product())
    data["params"][2]["constant"] = True
    with pytest.raises(VerifyError, match=r"^the parameter 'C' is constant, but a block writes it$"):
        from_json(data)


def test_an_intermediate_is_no_constant() -> None:
    a = te.placeholder((4,), name="A")
    t = te.compute((4,), lambda i: a[i] * 2, name="T")
    func = te.create_prim_func([a, te.compute((4,), lambda i: t[i] + 1, name="C")])
    with pytest.raises(VerifyError, match=r"^buffer 'T' is constant, but only parameters may be$"):
        verify(replace(func, allocs=tuple(replace(b, constant=True) for b in func.allocs)))


def test_a_constant_has_a_shape_of_integers() -> None:
    n = te.var("n")
    with pytest.raises(
        te.TensorError, match=r"^te.placeholder 'W': the extents of a constant are integers, got n"
    ):
        te.placeholder((n, 4), name="W", constant=True)
    with pytest.raises(VerifyError, match=r"^the constant 'A' has a shape that only a call tells"):
        parse_script(
            "def f(A: constant(float32[n]), B: float32[n]):\n    for i in range(n):\n        B[i] = A[i]\n"
        )


@pytest.mark.parametrize(
    ("given", "got"),
    [
        (np.ones((4, 4)), "ndarray; build(constants=…) takes the contents"),
        ("no", "str"),
        (1, "int"),
        (None, "NoneType"),
    ],
    ids=["array", "string", "int", "None"],
)
def test_whether_a_placeholder_is_constant_is_a_bool(given: object, got: str) -> None:
    message = f"te.placeholder 'W': constant is True or False, got {got}\n"
    with pytest.raises(te.TensorError, match=f"^{re.escape(message)}"):
        te.placeholder((4, 4), name="W", constant=given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "dense", "m": 3, "n": 4, "k": 5},
        {"op": "conv1d", "ci": 2, "w": 8, "co": 4, "kw": 3},
        {"op": "conv2d", "ci": 2, "h": 6, "w": 6, "co": 4, "kh": 3, "kw": 3},
        {"op": "conv3d", "ci": 2, "d": 4, "h": 4, "w": 4, "co": 4, "kd": 3, "kh": 3, "kw": 3},
        {"op": "depthwise_conv2d", "c": 4, "h": 6, "w": 6, "kh": 3, "kw": 3},
        {"op": "conv2d_transpose", "ci": 2, "h": 4, "w": 4, "co": 4, "kh": 3, "kw": 3},
    ],
    ids=lambda r: r["op"],
)
def test_operators_take_constant_weights(request_: dict[str, object]) -> None:
    func = topi.create({**request_, "bias": True, "constant_weights": True})
    assert [p.name for p in func.constants] == ["W", "B"]
    assert topi.create({**request_, "constant_weights": False}).constants == ()

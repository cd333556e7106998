"""What is no compute, no result or no program is refused where the user wrote it."""

import pytest
from te_mistakes import N2, A, B, check_refusal, over

from tilewright.compiler import te
from tilewright.compiler.ir import TypeMismatch

MISTAKES = {
    "too few arguments": (
        over(lambda i, j: A[i, j]),
        te.TensorError,
        "te.compute 'C': the function takes 2 arguments, but the shape has 1 dimension; expected 1, got 2",
    ),
    "too many arguments": (
        over(lambda i: A[i, 0], (4, 3)),
        te.TensorError,
        "te.compute 'C': the function takes 1 argument, but the shape has 2 dimensions; expected 2, got 1",
    ),
    "no function": (
        lambda: te.compute((4,), A, name="C"),
        te.TensorError,
        "te.compute 'C': expected a function of 1 index, got Tensor",
    ),
    "an index as the result": (
        over(lambda i: i),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got the index i; te.cast makes it a value",
    ),
    "a number as the result": (
        over(lambda i: 1.0),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got the literal 1.0, which has no dtype; "
        "te.const gives it one",
    ),
    "a tensor as the result": (
        over(lambda i: B),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got the tensor 'B', which must be indexed",
    ),
    "nothing as the result": (
        over(lambda i: None),
        TypeMismatch,
        "te.compute 'C': the function must return a value, got NoneType",
    ),
    "no results": (
        over(lambda i: ()),
        te.TensorError,
        "te.compute 'C': the function must return a value, got an empty tuple",
    ),
    "a literal among the results": (
        over(lambda i: (A[i, 0], 1)),
        TypeMismatch,
        "te.compute 'C': entry 1 of the tuple must be a value, got the literal 1, which has no dtype; "
        "te.const gives it one",
    ),
    "an extent that JSON does not hold": (
        lambda: te.reduce_axis((0, 2**53), name="k"),
        te.TensorError,
        "te.reduce_axis 'k': the extent of the domain must be below 2**53, got 9007199254740992",
    ),
    "a shape of floats": (
        lambda: te.placeholder((4, 2.5), name="A"),
        TypeMismatch,
        "te.placeholder 'A': the extent of dimension 1 must be an integer expression of the variables, "
        "got the literal 2.5, which has no dtype; te.const gives it one",
    ),
    "an empty dimension": (
        lambda: te.placeholder((4, 0), name="A"),
        te.TensorError,
        "te.placeholder 'A': the extent of dimension 1 must be at least 1, got 0",
    ),
    "an unknown dtype of a placeholder": (
        lambda: te.placeholder((4,), "half", name="A"),
        TypeMismatch,
        "unknown dtype 'half'; known: int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, "
        "float32, float64, bfloat16, bool",
    ),
    "a name that is no identifier": (
        lambda: te.placeholder((4,), name="my tensor"),
        te.TensorError,
        "te.placeholder: a name must be an identifier of at most 100 characters, got 'my tensor'",
    ),
    "a placeholder that is not among the parameters": (
        lambda: te.create_prim_func([te.compute((4,), lambda i: A[i, 0] + N2[i], name="C"), A], name="f"),
        te.TensorError,
        "te.create_prim_func 'f': the placeholder 'N2' is used but is not among the parameters",
    ),
    "a program without an output": (
        lambda: te.create_prim_func([A, B]),
        te.TensorError,
        "te.create_prim_func 'main': no parameter is the result of te.compute, so that there is no output",
    ),
    "a parameter given twice": (
        lambda: te.create_prim_func([A, A]),
        te.TensorError,
        "te.create_prim_func 'main': the parameter 'A' is given twice",
    ),
    "several outputs as one parameter": (
        lambda: te.create_prim_func([A, te.compute((4,), lambda i: (A[i, 0], A[i, 1]), name="C")]),
        te.TensorError,
        "te.create_prim_func 'main': the parameters must be tensors, got tuple; a function with several "
        "results gives several: [A, *outputs]",
    ),
    "a parameter that is no tensor": (
        lambda: te.create_prim_func([A, 3]),
        te.TensorError,
        "te.create_prim_func 'main': the parameters must be tensors, got int",
    ),
    "buffers beyond every memory": (
        lambda: te.create_prim_func([B, te.compute((2**20, 2**20), lambda i, j: B[0], name="C")]),
        te.TensorError,
        f"te.create_prim_func 'main': the buffers hold {2**42 + 12} bytes; at most {2**34} are allowed",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_refusal_of(name):
    mistake, error, _ = MISTAKES[name]
    with pytest.raises(error) as e:
        mistake()
    check_refusal(MISTAKES[name], e, __file__)

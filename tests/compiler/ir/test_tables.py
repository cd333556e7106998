"""Every kind of expression is in every table that dispatches on it, and every operation has its rule."""

import typing

import pytest

from tilewright.compiler.ir import DType, TypeMismatch, children, map_expr, walk_expr
from tilewright.compiler.ir.expr import BINARY_OPS, COMPARE_OPS, EXPR_TYPES, UNARY_OPS, Expr
from tilewright.compiler.ir.rules import refused
from tilewright.compiler.ir.visit import _CHILDREN

DTYPES = ("int8", "int64", "uint8", "uint64", "float16", "bfloat16", "float32", "float64", "bool")


def test_the_children_of_every_expression_are_known():
    assert set(_CHILDREN) == set(EXPR_TYPES) == set(typing.get_args(Expr))


def test_mapping_by_the_identity_keeps_every_node(every_node):
    ((_, block),) = every_node.blocks()
    mapped = map_expr(block.value, lambda p: p)
    assert [type(e) for e in walk_expr(mapped)] == [type(e) for e in walk_expr(block.value)]


def test_a_leaf_has_no_children(every_node):
    ((_, block),) = every_node.blocks()
    leaves = {type(e).__name__ for e in walk_expr(block.value) if not children(e)}
    assert leaves == {"Const", "IndexValue", "Load", "InBounds"}


@pytest.mark.parametrize(
    ("dtype", "missing"),
    [
        (
            "float32",
            {"floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr", "and", "or", "xor", "not"},
        ),
        (
            "int32",
            {
                "truediv",
                "pow",
                "exp",
                "log",
                "sqrt",
                "rsqrt",
                "tanh",
                "sigmoid",
                "erf",
                "gelu",
                "sin",
                "cos",
                "floor",
                "ceil",
                "round",
            },
        ),
    ],
)
def test_the_operations_that_a_dtype_does_not_have(dtype, missing):
    every = BINARY_OPS + COMPARE_OPS + UNARY_OPS
    assert {op for op in every if refused(op, DType.parse(dtype))} == missing


def test_booleans_have_logic_and_equality_only():
    every = BINARY_OPS + COMPARE_OPS + UNARY_OPS
    assert {op for op in every if not refused(op, DType.parse("bool"))} == {
        "and",
        "or",
        "xor",
        "not",
        "eq",
        "ne",
    }


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_prints_as_it_is_written(name):
    assert str(DType.parse(name)) == name


def test_an_unknown_dtype_lists_the_known_ones():
    with pytest.raises(TypeMismatch) as e:
        DType.parse("double")
    assert str(e.value) == (
        "unknown dtype 'double'; known: int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, "
        "float32, "
        "float64, bfloat16, bool"
    )

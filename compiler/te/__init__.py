"""Tensor expressions: how a user writes what a kernel computes."""

from .compute import compute
from .create import create_prim_func
from .errors import TensorError, TypeMismatch
from .functions import (
    abs,
    all,
    any,
    cast,
    ceil,
    const,
    cos,
    erf,
    exp,
    floor,
    floordiv,
    floormod,
    if_then_else,
    log,
    max_value,
    maximum,
    min_value,
    minimum,
    pow,
    round,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    tanh,
    truncdiv,
    truncmod,
    var,
)
from .index import Index
from .reduce import max, min, prod, reduce_axis, sum
from .tensor import Tensor, placeholder
from .value import Value

__all__ = [
    "Index", "Tensor", "TensorError", "TypeMismatch", "Value", "abs", "all", "any", "cast", "ceil", "compute", "const", "cos", "create_prim_func", "erf",
    "exp", "floor", "floordiv", "floormod", "if_then_else", "log", "max", "max_value", "maximum", "min", "min_value", "minimum",
    "placeholder", "pow", "prod", "reduce_axis", "round", "rsqrt", "sigmoid", "sin", "sqrt", "sum", "tanh", "truncdiv", "truncmod", "var",
]  # fmt: skip

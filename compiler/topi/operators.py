"""From requests for operators to programs."""

from __future__ import annotations

from .. import te
from ..ir.dtype import DType, TypeMismatch
from ..ir.func import PrimFunc
from .activation import INTEGER_ACTIVATIONS
from .makers import Arguments
from .operator import Operator
from .parameters import Json, OperatorError
from .table import OPERATORS

__all__ = ["OPERATORS", "Operator", "create", "schemas"]


def create(request: Json, *, at: str = "") -> PrimFunc:
    """The program of {"op": name, …}. Raises OperatorError, with a JSON pointer that starts with `at`."""
    if not isinstance(request, dict):
        raise OperatorError(f"expected an object with 'op', got {type(request).__name__}", at)
    name = request.get("op")
    if not isinstance(name, str) or name not in OPERATORS:
        what = "the field 'op' is missing" if name is None else f"unknown operator {name!r}"
        raise OperatorError(f"{what}; known: {', '.join(OPERATORS)}", f"{at}/op" if name is not None else at)
    operator = OPERATORS[name]
    arguments = operator.read(request, at)
    _check_dtypes(arguments, at)
    try:
        return te.create_prim_func(operator.make(arguments), name=name)
    except OperatorError as e:
        raise OperatorError(e.message, at + e.pointer) from None
    except (te.TensorError, TypeMismatch) as e:
        raise OperatorError(str(e).partition("\n")[0], at) from None


def _check_dtypes(p: Arguments, at: str) -> None:
    activation = p.get("activation", "none")
    if not DType.parse(p["dtype"]).is_float and activation not in INTEGER_ACTIVATIONS:
        raise OperatorError(f"{activation!r} needs floats; the dtype is {p['dtype']}", f"{at}/activation")
    out = p.get("out_dtype")
    if out is not None and DType.parse(out).is_float != DType.parse(p["dtype"]).is_float:
        raise OperatorError(
            f"'out_dtype' must be a float exactly where 'dtype' is: got {out} for {p['dtype']}",
            f"{at}/out_dtype",
        )


def schemas() -> dict[str, dict[str, Json]]:
    """The JSON schema of each operator's request, by name."""
    return {name: o.schema() for name, o in OPERATORS.items()}

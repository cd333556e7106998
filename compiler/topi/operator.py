"""An operator that a workload may name: its parameters, and what makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import te
from .makers import Arguments
from .parameters import Json, OperatorError, Parameter, escaped


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: `make` gives its parameter tensors, the output last."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    make: Callable[[Arguments], list[te.Tensor]]

    def schema(self) -> dict[str, Json]:
        """The JSON schema of a request, `op` included."""
        properties = {"op": {"const": self.name}, **{p.name: p.schema() for p in self.parameters}}
        required = ["op", *(p.name for p in self.parameters if p.required)]
        return {
            "type": "object",
            "description": self.doc,
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def read(self, request: Json, at: str) -> Arguments:
        """The arguments of a request, defaults filled in. Raises OperatorError."""
        known = {p.name for p in self.parameters}
        for key in request:
            if key != "op" and key not in known:
                names = ", ".join(p.name for p in self.parameters)
                raise OperatorError(
                    f"{self.name!r} has no parameter {key!r}; it has: {names}", f"{at}/{escaped(key)}"
                )
        for p in self.parameters:
            if p.required and p.name not in request:
                raise OperatorError(f"{self.name!r} needs the parameter {p.name!r}: {p.doc}", at)
        return {
            p.name: p.read(request.get(p.name, p.default), f"{at}/{p.name}")
            if p.name in request or p.default is not None
            else None
            for p in self.parameters
        }

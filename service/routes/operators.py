"""The operators of the library, which a job's workload may name."""

from __future__ import annotations

from fastapi import APIRouter

from ..auth import CanReadJobs
from ..context import Ctx
from ..views import OperatorsView, OperatorView

router = APIRouter(prefix="/v1/operators", tags=["operators"])


@router.get("", response_model_by_alias=True)
def list_operators(context: Ctx, _: CanReadJobs) -> OperatorsView:
    """Every operator with the JSON Schema of its arguments."""
    schemas = context.parser.operators()
    return OperatorsView(
        operators=[
            OperatorView(name=name, doc=str(schema.get("description", "")), schema=dict(schema))
            for name, schema in sorted(schemas.items())
        ]
    )

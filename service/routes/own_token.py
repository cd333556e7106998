"""What the token of a request is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from ...db.words import SCOPES
from ..auth import Principal, Requires
from ..context import Ctx
from ..presenter import token_view
from ..views import OwnTokenView

router = APIRouter(prefix="/v1/token", tags=["tokens"])

HasToken = Annotated[Principal, Depends(Requires(*SCOPES))]


@router.get("")
def read_own_token(request: Request, context: Ctx, _: HasToken) -> OwnTokenView:
    """The token of this request, without its value, and the server's time: what it may do, and until when."""
    secret = request.headers["authorization"].partition(" ")[2].strip()
    token = context.store.token_by_secret(secret)
    return OwnTokenView(token=None if token is None else token_view(token), now=context.store.now())

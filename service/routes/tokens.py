"""Bearer tokens. A token's value is in the answer that makes it, and nowhere else."""

from __future__ import annotations

from fastapi import APIRouter

from ..auth import IsAdmin
from ..context import Ctx
from ..presenter import token_view
from ..requests import TokenRequest
from ..views import NewTokenView, TokensView, TokenView

router = APIRouter(prefix="/v1/tokens", tags=["tokens"])


@router.post("", status_code=201)
def create_token(body: TokenRequest, context: Ctx, _: IsAdmin) -> NewTokenView:
    """Make a token and show its value, this once."""
    token, value = context.store.create_token(body.name, body.scopes, body.pool, body.expires_seconds)
    return NewTokenView(token=token_view(token), value=value)


@router.get("")
def list_tokens(context: Ctx, _: IsAdmin) -> TokensView:
    """All tokens without their values, revoked and expired ones included."""
    return TokensView(tokens=[token_view(token) for token in context.store.tokens()])


@router.post("/{token_id}:revoke")
def revoke_token(token_id: str, context: Ctx, _: IsAdmin) -> TokenView:
    """From now on the token's value opens nothing. May be repeated."""
    return token_view(context.store.revoke_token(token_id))

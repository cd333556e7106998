"""Bearer tokens. A token's value is in the answer that makes it, and nowhere else."""

from __future__ import annotations

from fastapi import APIRouter

from ...db.records import TokenLimits
from .. import paging
from ..auth import IsAdmin
from ..change_route import ChangeRoute
from ..changes import answer_is_secret
from ..context import Ctx
from ..presenter import token_view
from ..requests import TokenRequest
from ..views import NewTokenView, TokensView, TokenView

router = APIRouter(prefix="/v1/tokens", tags=["tokens"], route_class=ChangeRoute)


@router.post("", status_code=201)
def create_token(body: TokenRequest, context: Ctx, _: IsAdmin) -> NewTokenView:
    """Make a token and show its value, this once: the same Idempotency-Key again is 409 `shown-once`."""
    limits = TokenLimits(body.max_jobs, body.max_trials, body.rate)
    made = context.store.create_token(body.name, body.scopes, body.pool, body.expires_seconds, limits)
    token, value = made
    answer_is_secret(f"token {token.id}")
    return NewTokenView(token=token_view(token), value=value)


@router.get("")
def list_tokens(
    context: Ctx, _: IsAdmin, page_size: paging.PageSize = 100, page_token: paging.PageToken = None
) -> TokensView:
    """All tokens without their values, revoked and expired ones included, the oldest first."""
    page = context.store.tokens_page(paging.decode("tokens", page_token), page_size)
    return TokensView(
        tokens=[token_view(token) for token in page.items],
        next_page_token=paging.encode("tokens", page.next),
    )


@router.post("/{token_id}:revoke")
def revoke_token(token_id: str, context: Ctx, _: IsAdmin) -> TokenView:
    """From now on the token's value opens nothing. May be repeated."""
    return token_view(context.store.revoke_token(token_id))

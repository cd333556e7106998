"""The audit log: who changed what."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from .. import paging
from ..auth import IsAdmin
from ..context import Ctx
from ..views import AuditEntryView, AuditView

router = APIRouter(prefix="/v1/audit", tags=["tokens"])


@router.get("")
def list_audit(
    context: Ctx,
    _: IsAdmin,
    actor: Annotated[
        str | None, Query(max_length=100, description="a token's id, or anonymous, or command line")
    ] = None,
    page_size: paging.PageSize = 100,
    page_token: paging.PageToken = None,
) -> AuditView:
    """Who did what, the newest first."""
    listing = f"audit:{actor or ''}"
    after = paging.decode_number(listing, page_token)
    page = context.store.audit(actor, after, page_size)
    return AuditView(
        entries=[AuditEntryView(**asdict(entry)) for entry in page.items],
        next_page_token=paging.encode(listing, page.next),
    )

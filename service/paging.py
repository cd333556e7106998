"""Page tokens: where the next page begins, opaque to the client and bound to the list they were made for."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Annotated

from fastapi import Query

from .errors import InvalidRequest

# What lists go on after: ids and numbers.
_IS_PLACE = re.compile(r"[A-Za-z0-9_]{1,256}")

PageSize = Annotated[int, Query(ge=1, le=500, description="entries of one page")]
PageToken = Annotated[str | None, Query(max_length=1000, description="next_page_token of the page before")]


def encode(listing: str, after: str | None) -> str | None:
    """The token of the page after `after` of `listing`; None where there is none."""
    if after is None:
        return None
    return base64.urlsafe_b64encode(json.dumps([listing, after]).encode()).decode().rstrip("=")


def decode(listing: str, token: str | None) -> str | None:
    """Where the page begins. Raises InvalidRequest for a token that is not of this listing."""
    if token is None:
        return None
    try:
        said = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError):
        said = None
    match said:
        case [str(found), str(after)] if found == listing and _IS_PLACE.fullmatch(after):
            return after
        case _:
            raise InvalidRequest.parameter(
                "page_token",
                "page_token is not one of this list; take next_page_token of the page before, "
                "with the same filters",
            )


def decode_number(listing: str, token: str | None) -> int | None:
    """The same, of a list that is by number."""
    after = decode(listing, token)
    if after is None:
        return None
    if not (after.isdecimal() and len(after) < 16):
        raise InvalidRequest.parameter("page_token", "page_token is not one of this list")
    return int(after)

"""Headers of which a request has one: whoever reads the first of two and whoever reads the last disagree."""

from __future__ import annotations

from starlette.datastructures import Headers

from .errors import InvalidRequest


def single_header(headers: Headers, name: str) -> str | None:
    """The value of the header, None without one. Raises InvalidRequest that names one that stands twice."""
    values = headers.getlist(name)
    if len(values) > 1:
        detail = f"the header {name} stands {len(values)} times in the request; send it once"
        raise InvalidRequest.parameter(name, detail)
    return values[0] if values else None

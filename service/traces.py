"""Trace ids as W3C Trace Context writes them."""

from __future__ import annotations

import re
import secrets

# A later version may have more after a dash; version 00 has not, and ff is none.
_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


def trace_id_of(traceparent: str) -> str | None:
    """The trace that a `traceparent` names; None where it is none. All zeros is "no trace"."""
    given = _TRACEPARENT.fullmatch(traceparent)
    if given is None or (given[1] == "00" and given[4]):
        return None
    return given[2] if given[2].strip("0") and given[3].strip("0") else None


def traceparent(trace_id: str) -> str | None:
    """A `traceparent` for a new span of a trace, None without one."""
    return f"00-{trace_id}-{secrets.token_hex(8)}-01" if trace_id else None

"""Tells a settlement that is posted again from another one."""

import hashlib
import json
from dataclasses import asdict

from ..records import Settlement


def digest_of(settlement: Settlement) -> str:
    """SHA-256 of its fields; JSON writes a float so that it reads back exactly.

    A field that came after the first schema is left out at its default, so that what was settled before
    keeps its digest.
    """
    said = asdict(settlement)
    for later in ("disturbed", "calls", "cache", "baseline", "disturbance"):
        if not said[later]:
            del said[later]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def sha256_of(data: bytes) -> str:
    """In hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()

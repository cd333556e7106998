"""Tells a settlement that is posted again from another one."""

import hashlib
import json
from dataclasses import asdict

from ..records import Settlement


def digest_of(settlement: Settlement) -> str:
    """SHA-256 of all its fields; JSON writes a float so that it reads back exactly."""
    return hashlib.sha256(json.dumps(asdict(settlement), sort_keys=True).encode()).hexdigest()

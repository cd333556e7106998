"""The log of a worker, with the base install alone: lines for a person, or JSON lines like a server's.

What a worker says to a person is its log at level info; at level debug, each candidate that it starts and
settles is an entry with the ids of its job's request (the trace), of the lease and of the trial.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

log = logging.getLogger("tilewright.worker")

_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(
    format: Literal["json", "text"], level: str, stream: TextIO | None = None
) -> Callable[[str], None]:
    """Log so from now on; what takes the lines that a worker says."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_Json() if format == "json" else _Text())
    for old in log.handlers[:]:
        log.removeHandler(old)
    log.addHandler(handler)
    log.setLevel(level.upper())
    log.propagate = False
    return log.info


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _OWN}


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "event": record.getMessage(),
            **_fields(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        }
        return json.dumps(entry, default=str)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The line as it was said; what is not printable in a field is escaped."""
        more = "".join(f" {name}={json.dumps(value, default=str)}" for name, value in _fields(record).items())
        return record.getMessage() + more

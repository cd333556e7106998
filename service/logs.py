"""The log of a server: one line for each entry, as JSON or as text, on stderr.

What comes from outside cannot forge an entry: JSON escapes whatever is not printable ASCII, text whatever is
not printable. Ids in a message become fields of their own, and secrets stars.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import structlog

LogFormat = Literal["json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]

_IDS = re.compile(r"\b(job|lease|worker|token)_[0-9a-f]{12}\b")
_SECRETS = (
    (re.compile(r"\btw[a-z]?_[A-Za-z0-9_-]{16,}"), "tw_********"),
    (re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]+"), r"\1********"),
    (re.compile(r"(://[^:/@\s]*:)[^@\s]+@"), r"\1********@"),
)
_TOLD_ALREADY = ("Exception in ASGI application", "Invalid HTTP request received")
"""What the web server says of an error that `problems`, and of a request that `http_protocol`, has logged
with its trace."""
_NOISY = ("alembic", "procrastinate", "httpx", "uvicorn.error")

Entry = MutableMapping[str, Any]


def configure(format: LogFormat, level: LogLevel, stream: TextIO | None = None) -> None:
    """Log so from now on: everything that goes through Python's `logging`, of this process."""
    rendered: list[Any] = (
        [structlog.processors.JSONRenderer(ensure_ascii=True)]
        if format == "json"
        else [_printable, structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, sort_keys=False)]
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            _in_the_queues_words,
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            _name_ids,
            _without_secrets,
            *rendered,
        ],
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_TOLD_ALREADY)


def _in_the_queues_words(logger: Any, method: str, entry: Entry) -> Entry:
    """One line for what the library of the queue of searches fails on: a database that is away, or the end of
    a search that another runner was given meanwhile. Both are expected, and its traces name only itself."""
    _, error, _ = entry.get("exc_info") or (None, None, None)
    if error is not None and type(error).__module__.startswith("procrastinate."):
        said = str(error.__cause__ or error).strip()
        entry["event"] = f"the queue of searches: {said.partition(chr(10))[0] or type(error).__name__}"
        entry["level"] = "warning"
        for key in ("exc_info", "worker", "job"):
            entry.pop(key, None)
    return entry


def _name_ids(logger: Any, method: str, entry: Entry) -> Entry:
    """The first id of each noun in the message as a field."""
    for found in _IDS.finditer(str(entry.get("event", ""))):
        entry.setdefault(found[1], found[0])
    return entry


def _without_secrets(logger: Any, method: str, entry: Entry) -> Entry:
    for key, value in entry.items():
        if isinstance(value, str):
            for pattern, stars in _SECRETS:
                value = pattern.sub(stars, value)
            entry[key] = value
    return entry


def _printable(logger: Any, method: str, entry: Entry) -> Entry:
    for key, value in entry.items():
        if isinstance(value, str):
            # A traceback has lines; each is marked, so that none looks like an entry.
            lines = value.split("\n") if key == "exception" else [value]
            entry[key] = "\n  | ".join(map(escaped, lines))
    return entry


def escaped(text: str) -> str:
    """The text with everything that is not printable, line ends among it, as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

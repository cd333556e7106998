"""Reading server-sent events (the WHATWG format), as far as the API writes them: id, event and data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from .views import EventView


def read_events(lines: Iterable[str]) -> Iterator[EventView]:
    """The events of a stream's lines. An event that the stream breaks off in is not given: it comes again."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields and "id" in fields:
                yield EventView(
                    seq=int(fields["id"]),
                    kind=fields.get("event", "message"),
                    data=json.loads(fields["data"]),
                )
            fields = {}
            continue
        name, _, value = line.partition(":")
        if name:
            value = value.removeprefix(" ")
            fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value

"""Reading server-sent events (the WHATWG format), as far as the API writes them: id, event and data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from .views import EventView


class EventReader:
    """Takes the lines of a stream one by one. An event that the stream breaks off in is not given: it comes
    again; one without an id is about the stream, and not of the job."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def line(self, line: str) -> EventView | None:
        """The event that this line ends, if it ends one."""
        fields = self._fields
        if line:
            name, _, value = line.partition(":")
            if name:
                value = value.removeprefix(" ")
                fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
            return None
        self._fields = {}
        if "data" not in fields or "id" not in fields:
            return None
        return EventView(
            seq=int(fields["id"]), kind=fields.get("event", "message"), data=json.loads(fields["data"])
        )


def read_events(lines: Iterable[str]) -> Iterator[EventView]:
    """The events of a stream's lines."""
    reader = EventReader()
    for line in lines:
        if (event := reader.line(line)) is not None:
            yield event

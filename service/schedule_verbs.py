"""What a client can ask of a server's best-known schedules beside looking one up; for both clients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from . import best_lookup
from .best_lookup import RemoteSchedule, soon
from .calls import Call, Flow, Pages, change, get
from .exchange import ApiError
from .schedule_views import (
    NEXT_PAGE_HEADER,
    ChangedKeyView,
    ChangesView,
    ExplanationView,
    FreezesView,
    FreezeView,
    ImportView,
    NearbysView,
    PinsView,
    PinView,
    ReportView,
    SchedulesView,
    ScheduleView,
)
from .verbs import segment

_PATH = "/v1/schedules"
_LINES = 100
_BYTES = 1 << 20
_IMPORT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class RemoteNearby:
    """A schedule of another key as the compiler takes it."""

    schedule: RemoteSchedule
    program: str
    description: str
    facts: str


def nearby(workload: str, structure: str, limit: int = 32) -> Flow[list[RemoteNearby]]:
    """Best-known schedules of other keys that might do, for a build that is allowed to take them. Answers
    within a second or raises ConnectionError."""
    params = {"workload": workload, "structure": structure, "limit": limit}
    call = Call("GET", f"{_PATH}/nearby", params=params, within=best_lookup.BEST_SECONDS, retry=False)
    found = NearbysView.model_validate((yield from soon(call, "the server")).json()).schedules
    return [
        RemoteNearby(RemoteSchedule.of(one.schedule), one.program, one.description, one.facts)
        for one in found
    ]


def report(trial: str, reason: str) -> Flow[str]:
    """Say that a schedule does not replay here; the server looks for itself. What became of it. Answers
    within a second or raises ConnectionError."""
    path = f"{_PATH}/{segment(trial)}:report"
    call = Call("POST", path, {"reason": reason[:16_000]}, within=best_lookup.BEST_SECONDS, retry=False)
    try:
        answer = yield from soon(call, "the server")
    except ApiError as error:
        return f"kept: {error}"
    view = ReportView.model_validate(answer.json())
    return view.outcome if view.outcome == "retired" else f"{view.outcome}: {view.reason}"


def schedules() -> Pages[ScheduleView]:
    """All best-known schedules in the order of their keys, page by page."""

    def read(said: Any) -> tuple[list[ScheduleView], str | None]:
        page = SchedulesView.model_validate(said)
        return page.schedules, page.next_page_token

    return Pages(lambda token: get(_PATH, {"page_token": token}), read)


def explain(workload: str, target: str, hardware: str) -> Flow[ExplanationView]:
    """Why a lookup answers what it answers."""
    key = {"workload": workload, "target": target, "hardware": hardware}
    return ExplanationView.model_validate((yield get(f"{_PATH}/explain", key)).json())


def pin(workload: str, target: str, hardware: str, trial: str | None, note: str = "") -> Flow[PinView]:
    """Serve this trial's schedule for the key, or with None the default schedule."""
    body = {"workload": workload, "target": target, "hardware": hardware, "trial": trial, "note": note}
    answer = yield Call("PUT", f"{_PATH}/pins", body, idempotent=True)
    return PinView.model_validate(answer.json())


def unpin(workload: str, target: str, hardware: str) -> Flow[bool]:
    """End the pin of a key; whether there was one."""
    key = {"workload": workload, "target": target, "hardware": hardware}
    return (yield from _delete(f"{_PATH}/pins", key))


def pins() -> Flow[list[PinView]]:
    """All pins, oldest first."""
    return PinsView.model_validate((yield get(f"{_PATH}/pins")).json()).pins


def freeze(name: str, note: str = "") -> Flow[FreezeView]:
    """Remember under a name which schedule is served for every key now."""
    answer = yield change(f"{_PATH}/freezes", {"name": name, "note": note})
    return FreezeView.model_validate(answer.json())


def unfreeze(name: str) -> Flow[bool]:
    """Forget a freeze; whether there was one."""
    return (yield from _delete(f"{_PATH}/freezes/{segment(name)}", {}))


def freezes() -> Flow[list[FreezeView]]:
    """All freezes, oldest first."""
    return FreezesView.model_validate((yield get(f"{_PATH}/freezes")).json()).freezes


def changed_since(name: str) -> Flow[list[ChangedKeyView]]:
    """Keys whose best-known schedule is another than the frozen one."""
    answer = yield get(f"{_PATH}/freezes/{segment(name)}/changes")
    return ChangesView.model_validate(answer.json()).changed


def retire(trial: str, reason: str) -> Flow[ReportView]:
    """Never serve this trial's schedule again."""
    answer = yield change(f"{_PATH}/{segment(trial)}:retire", {"reason": reason})
    return ReportView.model_validate(answer.json())


def export_lines() -> Pages[str]:
    """All best-known schedules, a record a line, page by page."""

    def page(answer: httpx.Response) -> tuple[list[str], str | None]:
        return [line for line in answer.text.split("\n") if line], answer.headers.get(NEXT_PAGE_HEADER)

    def call(token: str | None) -> Call:
        return get(f"{_PATH}/export", {"page_size": _LINES, "page_token": token}, 60.0)

    return Pages(call, page, said=lambda answer: answer)


def import_lines(lines: Iterable[str]) -> Flow[ImportView]:
    """Take records of another store in, some at a time; bad lines are named by their number."""
    total = ImportView()
    for first, chunk in _chunks(lines):
        answer = yield change(f"{_PATH}:import", {"lines": chunk}, extra=_IMPORT_SECONDS)
        got = ImportView.model_validate(answer.json())
        bad = [one.model_copy(update={"number": one.number + first}) for one in got.refused]
        counts = {
            name: getattr(total, name) + getattr(got, name)
            for name in ("best", "challenger", "slower", "known")
        }
        total = ImportView(refused=[*total.refused, *bad], **counts)
    return total


def _delete(path: str, params: Mapping[str, Any]) -> Flow[bool]:
    try:
        yield Call("DELETE", path, params=params, idempotent=True)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


def _chunks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines in bodies that a server takes, each with the number of lines before it."""
    chunk: list[str] = []
    size = first = 0
    for line in lines:
        if chunk and (len(chunk) == _LINES or size + len(line) > _BYTES):
            yield first, chunk
            first, chunk, size = first + len(chunk), [], 0
        chunk.append(line)
        size += len(line)
    if chunk:
        yield first, chunk

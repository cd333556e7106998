"""Best-known schedules as lines of text, from one store to another.

Each line is one record: canonical JSON (RFC 8785), complete in itself, with its digest, the SHA-256 of the
line without it. The same store writes the same lines in the same order.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol

import rfc8785

from ..db.best_records import ForeignRecord, KeptSchedule, SearchState
from ..db.checks import refuse_constant
from ..db.errors import InvalidValue
from ..db.schedule_store import ScheduleStore
from ..db.words import FINAL_JOB_STATES
from .schedule_views import BadLineView, ImportView
from .workloads import CheckedRecord, SpecError

FORMAT = 1
"""Raised when the meaning of a field changes. A reader takes what it knows and refuses the rest by name."""

_FIELD = "tilewright_schedule"
_PAGE = 200
_PAGE_BYTES = 4 << 20


class RecordReader(Protocol):
    """The part of the compiler that reads records (WorkloadParser)."""

    def record(
        self,
        program: Mapping[str, Any],
        target: Mapping[str, Any],
        facts: Mapping[str, Any],
        trace: Mapping[str, Any],
        codegen: str,
    ) -> CheckedRecord: ...


class BadLine(Exception):
    """Why a line is no record that can be taken."""


def export_lines(store: ScheduleStore) -> Iterator[str]:
    """All best-known schedules, page by page in the order of their keys. An imported record is given as it
    came; one that is damaged is left out, as lookups do."""
    after: str | None = None
    while True:
        lines, after = export_page(store, after, _PAGE)
        yield from lines
        if after is None:
            return


def export_page(store: ScheduleStore, after: str | None, most: int) -> tuple[list[str], str | None]:
    """The lines of at most so many schedules behind a key, as `ScheduleStore.kept` gives it, and the key of
    the last where there are more. It ends after 4 MiB, so that a reader knows what to expect."""
    page = store.kept(after, most)
    lines: list[str] = []
    size = 0
    for kept in page.items:
        if size >= _PAGE_BYTES:
            return lines, after
        line = line_of(kept)
        if line is not None:
            lines.append(line)
            size += len(line)
        after = json.dumps([kept.schedule.workload, kept.schedule.target, kept.schedule.hardware])
    return lines, page.next


def line_of(kept: KeptSchedule) -> str | None:
    """The line of a record; None where its texts are damaged."""
    if kept.line is not None:
        return kept.line
    best = kept.schedule
    try:
        said: dict[str, Any] = {
            _FIELD: FORMAT,
            "workload": {"key": best.workload, "program": json.loads(kept.program)},
            "target": {"key": best.target, "description": json.loads(kept.description)},
            "hardware": {"key": best.hardware, "facts": json.loads(kept.facts)},
            "schedule": {
                "trace": json.loads(best.trace),
                "seconds": best.seconds,
                "samples": list(best.samples),
                "error": best.error,
                "codegen": best.codegen_version,
                "measured_at": best.measured_at,
                "search": {"done": best.search.done, "asked": best.search.asked, "state": best.search.state},
            },
            "provenance": {
                "trial": best.trial,
                "job": best.job,
                "worker": best.worker,
                "versions": json.loads(best.versions),
            },
        }
        return rfc8785.dumps(said | {"digest": digest_of(said)}).decode()
    except (ValueError, RecursionError, rfc8785.CanonicalizationError):
        return None


def digest_of(said: Mapping[str, Any]) -> str:
    """The SHA-256 of a record without its digest, in hexadecimal digits."""
    rest = {name: value for name, value in said.items() if name != "digest"}
    return hashlib.sha256(rfc8785.dumps(rest)).hexdigest()


_READ_AHEAD = 1000
"""So many lines are read, which takes long, before they are stored: a request stores them in one transaction,
in which nobody else writes."""


def import_lines(store: ScheduleStore, reader: RecordReader, lines: Iterable[str]) -> ImportView:
    """Take records in. A bad line is named and skipped; one that is here already has no effect."""
    counts: Counter[str] = Counter()
    refused = []
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    while part := list(islice(numbered, _READ_AHEAD)):
        found = []
        for number, line in part:
            try:
                found.append((number, read_line(line, reader)))
            except (BadLine, InvalidValue) as error:
                refused.append(BadLineView(number=number, reason=str(error)))
        for number, record in found:
            try:
                counts[store.import_record(record)] += 1
            except InvalidValue as error:
                refused.append(BadLineView(number=number, reason=str(error)))
    return ImportView(refused=sorted(refused, key=lambda line: line.number), **counts)


def read_line(line: str, reader: RecordReader) -> ForeignRecord:
    """The record of a line, its program verified, its keys made anew, its trace replayed. Fields that are not
    known are kept with the line. Raises BadLine."""
    said = _object(line)
    version = said.get(_FIELD)
    if type(version) is not int or version != FORMAT:
        raise BadLine(f"version {version!r} of {_FIELD} is not known; this program reads {FORMAT}")
    try:
        found, digest = said.get("digest"), digest_of(said)
    except (RecursionError, rfc8785.CanonicalizationError) as error:
        raise BadLine(f"is no plain JSON: {error}") from None
    if found != digest:
        raise BadLine(f"digest: the line is another than was written: expected {digest}, found {found}")
    parts = {part: _part(said, part) for part in ("workload", "target", "hardware", "schedule", "provenance")}
    schedule, search = parts["schedule"], _part(parts["schedule"], "search", "schedule.")
    codegen = _text(schedule, "codegen", "schedule.")
    try:
        record = reader.record(
            _part(parts["workload"], "program", "workload."),
            _part(parts["target"], "description", "target."),
            _part(parts["hardware"], "facts", "hardware."),
            _part(schedule, "trace", "schedule."),
            codegen,
        )
    except SpecError as error:
        raise BadLine(f"{error.pointer.removeprefix('/').replace('/', '.')}: {error}") from None
    for part in ("workload", "target", "hardware"):
        if (was := parts[part].get("key")) != (key := getattr(record, part)):
            raise BadLine(f"{part}.key: this program makes it {key}, and the line says {was}")
    state = _text(search, "state", "schedule.search.")
    return ForeignRecord(
        digest=digest,
        line=line.rstrip("\n"),
        workload=record.workload,
        name=record.name,
        program=record.program,
        script=record.script,
        structure=record.structure,
        target=record.target,
        description=record.description,
        hardware=record.hardware,
        facts=rfc8785.dumps(parts["hardware"]["facts"]).decode(),
        trial=_text(parts["provenance"], "trial", "provenance."),
        candidate_key=record.candidate,
        sketch="imported",
        trace=record.trace,
        seconds=_need(schedule, "seconds", "schedule."),
        samples=tuple(_list(schedule, "samples", "schedule.")),
        error=_need(schedule, "error", "schedule."),
        codegen_version=codegen,
        measured_at=_need(schedule, "measured_at", "schedule."),
        search=SearchState(
            done=_count(search, "done"),
            asked=_count(search, "asked"),
            # A search that was under way there is over here.
            state=state if state in FINAL_JOB_STATES else "cancelled",
        ),
    )


def _object(line: str) -> dict[str, Any]:
    try:
        said = json.loads(line, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BadLine(f"is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise BadLine("is no JSON object")
    return said


def _need(said: Mapping[str, Any], name: str, at: str = "") -> Any:
    if name not in said:
        raise BadLine(f"{at}{name} is missing")
    return said[name]


def _part(said: Mapping[str, Any], name: str, at: str = "") -> dict[str, Any]:
    value = _need(said, name, at)
    if not isinstance(value, dict):
        raise BadLine(f"{at}{name} must be an object")
    return value


def _list(said: Mapping[str, Any], name: str, at: str) -> list[Any]:
    value = _need(said, name, at)
    if not isinstance(value, list):
        raise BadLine(f"{at}{name} must be an array")
    return value


def _text(said: Mapping[str, Any], name: str, at: str) -> str:
    value = _need(said, name, at)
    if not isinstance(value, str):
        raise BadLine(f"{at}{name} must be a string")
    return value


def _count(said: Mapping[str, Any], name: str) -> int:
    value = _need(said, name, "schedule.search.")
    if type(value) is not int:
        raise BadLine(f"schedule.search.{name} must be an integer")
    return value

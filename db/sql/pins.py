"""Pins and freezes: what people have fixed."""

from typing import Any

from sqlalchemy import Connection, Row, Select, case, delete, func, insert, literal, select

from ..best_records import ChangedKey, Freeze, Pin
from ..checks import check_text
from ..errors import Conflict, InvalidValue, NotFound
from .best_rows import Key, of_key, same_key
from .catalog import require
from .clock import now_of
from .offers import evidence, key_of, servable
from .part import Part, upsert
from .tables import freezes, frozen, pins, schedules, targets, trials, workloads
from .tables import hardware as kinds

_NOTE = 4096
_PIN = (
    pins.c.workload,
    pins.c.target,
    pins.c.hardware,
    pins.c.trial,
    pins.c.note,
    pins.c.pinned_by,
    pins.c.pinned_at,
)


class PinPart(Part):
    def pin(
        self, workload: str, target: str, hardware: str, trial: str | None, note: str = "", by: str = ""
    ) -> Pin:
        check_text("note", note, _NOTE, empty=True)
        check_text("by", by, empty=True)
        key = workload, target, hardware
        with self._database.write() as conn:
            require(conn, workloads, "workload", workload)
            require(conn, targets, "target", target)
            require(conn, kinds, "hardware", hardware)
            if trial is not None:
                _check_pinnable(conn, trial, key)
            now = now_of(conn)
            values = {"trial": trial, "note": note, "pinned_by": by, "pinned_at": now}
            whose = {"workload": workload, "target": target, "hardware": hardware}
            statement = upsert(conn, pins).values(**whose, **values)
            conn.execute(statement.on_conflict_do_update(index_elements=list(whose), set_=values))
            return Pin(*key, trial, note, by, now)

    def unpin(self, workload: str, target: str, hardware: str) -> bool:
        with self._database.write() as conn:
            return bool(
                conn.execute(delete(pins).where(*of_key(pins, (workload, target, hardware)))).rowcount
            )

    def pins(self) -> list[Pin]:
        with self._database.read() as conn:
            rows = conn.execute(select(*_PIN).order_by(pins.c.pinned_at, *_PIN[:3]))
            return [Pin(*row) for row in rows]

    def freeze(self, name: str, note: str = "", by: str = "") -> Freeze:
        check_text("name", name)
        check_text("note", note, _NOTE, empty=True)
        check_text("by", by, empty=True)
        with self._database.write() as conn:
            if conn.execute(select(freezes.c.name).where(freezes.c.name == name)).one_or_none() is not None:
                raise Conflict(f"there is a freeze {name!r} already: delete it first, or take another name")
            now = now_of(conn)
            conn.execute(insert(freezes).values(name=name, note=note, frozen_by=by, frozen_at=now))
            # A key whose default schedule is pinned has none to freeze.
            served = func.coalesce(pins.c.trial, schedules.c.trial)
            current = (
                select(
                    literal(name),
                    schedules.c.workload,
                    schedules.c.target,
                    schedules.c.hardware,
                    served,
                )
                .join_from(schedules, pins, same_key(pins, schedules), isouter=True)
                .where(pins.c.workload.is_(None) | pins.c.trial.is_not(None))
            )
            conn.execute(
                insert(frozen).from_select(["freeze", "workload", "target", "hardware", "trial"], current)
            )
            return _freeze_of(require_freeze(conn, name))

    def unfreeze(self, name: str) -> Freeze:
        with self._database.write() as conn:
            gone = _freeze_of(require_freeze(conn, name))
            conn.execute(delete(frozen).where(frozen.c.freeze == name))
            conn.execute(delete(freezes).where(freezes.c.name == name))
            return gone

    def freezes(self) -> list[Freeze]:
        with self._database.read() as conn:
            rows = conn.execute(_freezes().order_by(freezes.c.frozen_at, freezes.c.name))
            return [_freeze_of(row) for row in rows]

    def changed_since(self, name: str) -> list[ChangedKey]:
        was, now = trials.alias("was"), trials.alias("now")
        # A pin to the default schedule names no trial, and what is best-known is not served beside it.
        served = case((pins.c.workload.is_not(None), pins.c.trial), else_=schedules.c.trial)
        columns = frozen.c.workload, frozen.c.target, frozen.c.hardware
        query = (
            select(*columns, frozen.c.trial, served.label("now"))
            .join_from(frozen, was, was.c.id == frozen.c.trial)
            .outerjoin(schedules, same_key(schedules, frozen))
            .outerjoin(pins, same_key(pins, frozen))
            .outerjoin(now, now.c.id == served)
            .where(frozen.c.freeze == name)
            .where(now.c.candidate_key.is_(None) | (now.c.candidate_key != was.c.candidate_key))
            .order_by(*columns)
        )
        with self._database.read() as conn:
            require_freeze(conn, name)
            return [ChangedKey(*row) for row in conn.execute(query)]


def require_freeze(conn: Connection, name: str) -> Row[Any]:
    row = conn.execute(_freezes().where(freezes.c.name == name)).one_or_none()
    if row is None:
        raise NotFound("freeze", name)
    return row


def _freezes() -> Select[Any]:
    held = select(func.count()).where(frozen.c.freeze == freezes.c.name).scalar_subquery()
    return select(freezes, held.label("held"))


def _freeze_of(row: Row[Any]) -> Freeze:
    return Freeze(row.name, row.note, row.frozen_by, row.frozen_at, row.held)


def _check_pinnable(conn: Connection, trial: str, key: Key) -> None:
    row = evidence(conn, trial)
    if row is None:
        raise NotFound("trial", trial)
    if key_of(row) != key:
        raise InvalidValue("trial", f"{trial} was measured for another workload, target or hardware")
    if servable(conn, trial) is None:
        raise InvalidValue("trial", f"{trial} may not be served: it was retired, or has no checked time")

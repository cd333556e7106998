"""Workloads, targets and kinds of hardware."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, Table, select, update

from ..checks import check_json, check_text, check_workload
from ..errors import Conflict, NotFound
from ..records import Hardware, Target, Workload
from .clock import now_of
from .part import Part, upsert
from .tables import hardware, targets, workloads


class CatalogPart(Part):
    def put_workload(self, key: str, name: str, program: str, script: str) -> Workload:
        check_workload(key, name, program, script)
        with self._database.write() as conn:
            values = {"key": key, "name": name, "program": program, "script": script}
            row = _put(conn, workloads, values)
            return Workload(**row._mapping)

    def workload(self, key: str) -> Workload:
        with self._database.read() as conn:
            return Workload(**require(conn, workloads, "workload", key)._mapping)

    def workloads(self, keys: Collection[str]) -> list[Workload]:
        with self._database.read() as conn:
            rows = conn.execute(select(workloads).where(workloads.c.key.in_(keys)).order_by(workloads.c.key))
            return [Workload(**row._mapping) for row in rows]

    def put_target(self, key: str, description: str) -> Target:
        check_text("key", key)
        check_json("description", description)
        with self._database.write() as conn:
            row = _put(conn, targets, {"key": key, "description": description})
            if row.description != description:
                raise Conflict(
                    f"target {key} is stored with another description: the key is not that of its text"
                )
            return Target(**row._mapping)

    def target(self, key: str) -> Target:
        with self._database.read() as conn:
            return Target(**require(conn, targets, "target", key)._mapping)

    def targets(self, keys: Collection[str]) -> list[Target]:
        with self._database.read() as conn:
            rows = conn.execute(select(targets).where(targets.c.key.in_(keys)).order_by(targets.c.key))
            return [Target(**row._mapping) for row in rows]

    def put_hardware(self, key: str, facts: str) -> Hardware:
        check_text("key", key)
        check_json("facts", facts)
        with self._database.write() as conn:
            row = _put(conn, hardware, {"key": key, "facts": facts})
            if row.facts != facts:
                conn.execute(update(hardware).where(hardware.c.key == key).values(facts=facts))
            return Hardware(key=key, facts=facts, created_at=row.created_at)

    def hardware(self, key: str) -> Hardware:
        with self._database.read() as conn:
            return Hardware(**require(conn, hardware, "hardware", key)._mapping)

    def hardwares(self) -> list[Hardware]:
        with self._database.read() as conn:
            rows = conn.execute(select(hardware).order_by(hardware.c.created_at, hardware.c.key))
            return [Hardware(**row._mapping) for row in rows]


def require(conn: Connection, table: Table, noun: str, key: str) -> Row[Any]:
    """The row of a table that is keyed by `key`; NotFound where there is none."""
    row = _find(conn, table, key)
    if row is None:
        raise NotFound(noun, key)
    return row


def require_hardware(conn: Connection, key: str) -> None:
    """NotFound unless this kind of hardware was put."""
    require(conn, hardware, "hardware", key)


def _find(conn: Connection, table: Table, key: str) -> Row[Any] | None:
    return conn.execute(select(table).where(table.c.key == key)).one_or_none()


def _put(conn: Connection, table: Table, values: dict[str, str]) -> Row[Any]:
    """The row of a key: the one that is known, else a new one; also where two are first at once."""
    known = _find(conn, table, values["key"])
    if known is None:
        added = upsert(conn, table).values(created_at=now_of(conn), **values)
        conn.execute(added.on_conflict_do_nothing(index_elements=["key"]))
        known = _find(conn, table, values["key"])
    assert known is not None
    return known

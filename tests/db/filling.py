"""Rows in every table: by using the store, and made up for the tables that this leaves empty."""

from typing import Any

from sqlalchemy import Boolean, Column, Connection, Double, Integer, LargeBinary, Table, func, select

from tilewright.db.records import Settlement
from tilewright.db.sql.tables import metadata


def fill(scene: Any) -> None:
    """Use the store as a service does, then put one row into each table that has none."""
    store = scene.store
    job = scene.searched(6)
    store.put_structure("w", "matmul")
    store.put_warm_start(job.id, 1, '{"a": 1}')
    rig = scene.worker()
    lease = scene.claim(rig, 4)
    for item in lease.items[:3]:
        store.start(lease.id, item.trial, item.attempt)
        seconds = 1.0 + item.number / 3
        store.settle(lease.id, [Settlement(item.trial, item.attempt, seconds, (seconds,), error=0.25)])
    store.time_again(job.id, 1, 0, [f"{job.id}.0", f"{job.id}.1"])
    store.retire(f"{job.id}.1", "does not replay")
    scene.lose(scene.worker("lost"), started=0)
    store.sweep()
    outside = scene.searched(2, origin="outside", tag="o")
    store.hand_out(outside.id, "me")
    store.create_token("lab", ["worker"])
    with store._database.write() as conn:
        for table in metadata.sorted_tables:
            if count_of(conn, table) == 0:
                conn.execute(table.insert().values(**made_up(conn, table)))


def count_of(conn: Connection, table: Table) -> int:
    return int(conn.execute(select(func.count()).select_from(table)).scalar_one())


def made_up(conn: Connection, table: Table) -> dict[str, Any]:
    """A value for each column that needs one; a reference is to a row that is there."""
    return {
        column.name: _value(conn, column)
        for column in table.columns
        if not column.nullable and not column.server_default and column.autoincrement is not True
    }


def _value(conn: Connection, column: Column[Any]) -> Any:
    for key in column.foreign_keys:
        return conn.execute(select(key.column).order_by(key.column).limit(1)).scalar_one()
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, Integer):
        return 3
    if isinstance(column.type, Double):
        return 0.1
    return b"\x00\xff" if isinstance(column.type, LargeBinary) else f"{column.name} ü"


def rows_of(conn: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, in the order of their keys."""
    return {
        table.name: sorted((tuple(row) for row in conn.execute(select(table))), key=repr)
        for table in metadata.sorted_tables
    }

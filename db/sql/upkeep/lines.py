"""A backup as JSON lines: a header, each table's columns and rows, and an end that proves it is whole.

    {"tilewright_backup": 1, "schema": "0010"}
    {"table": "targets", "columns": ["key", "description", "created_at"]}
    ["llvm-1", "{}", 1753000000.0]
    {"end": 1, "sha256": "…"}

Bytes are `{"base64": "…"}`; a number is written so that it reads back exactly. The digest is that of all
lines before the last.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ...errors import InvalidValue

FORMAT = 1
Row = list[Any]
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class TableLines:
    """One table of a backup; `rows` can be read once, before the next table."""

    name: str
    columns: tuple[str, ...]
    rows: Iterator[Row]


def write_lines(file: IO[bytes], schema: str, tables: Iterable[TableLines]) -> tuple[int, int]:
    """How many tables and rows were written."""
    digest, count, rows = hashlib.sha256(), 0, 0

    def put(value: Any) -> None:
        line = json.dumps(value, default=_plain, separators=(",", ":")).encode() + b"\n"
        digest.update(line)
        file.write(line)

    put({"tilewright_backup": FORMAT, "schema": schema})
    for table in tables:
        count += 1
        put({"table": table.name, "columns": list(table.columns)})
        for row in table.rows:
            rows += 1
            put(row)
    end = {"end": rows, "sha256": digest.hexdigest()}
    file.write(json.dumps(end).encode() + b"\n")
    return count, rows


class BackupLines:
    """A backup that is being read. Raises InvalidValue wherever it is not whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._digest = hashlib.sha256()
        self._rows = 0
        try:
            self.schema = self._header()
            self._pending = self._next()
        except BaseException:
            self.close()
            raise

    def _header(self) -> str:
        head = self._next()
        if not isinstance(head, dict) or head.get("tilewright_backup") != FORMAT:
            raise self._refuse("is no backup of tilewright that this program reads")
        return str(head.get("schema"))

    def tables(self) -> Iterator[TableLines]:
        """Each table in turn; the end is checked once the last one was read."""
        while isinstance(self._pending, dict) and "table" in self._pending:
            head = self._pending
            yield TableLines(str(head["table"]), tuple(head["columns"]), self._rows_of(len(head["columns"])))
        end = self._pending
        if not isinstance(end, dict) or end.get("end") != self._rows:
            raise self._refuse("ends before its end: it is not whole")
        if end.get("sha256") != self._before_end:
            raise self._refuse("was changed since it was written: its digest differs")

    def close(self) -> None:
        self._file.close()

    def _rows_of(self, width: int) -> Iterator[Row]:
        self._pending = self._next()
        while isinstance(self._pending, list):
            if len(self._pending) != width:
                raise self._refuse(f"has a row of {len(self._pending)} values in a table of {width} columns")
            self._rows += 1
            yield [_bytes(value) if isinstance(value, dict) else value for value in self._pending]
            self._pending = self._next()

    def _next(self) -> Any:
        self._before_end = self._digest.hexdigest()
        try:
            line = self._file.readline()
            self._digest.update(line)
            return json.loads(line) if line.endswith(b"\n") else None
        except (ValueError, OSError, EOFError, RecursionError):
            raise self._refuse("is no backup of tilewright, or a damaged one") from None

    def _refuse(self, why: str) -> InvalidValue:
        return InvalidValue("backup", f"{self._path} {why}")


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"base64": base64.b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} has no place in a backup")


def _bytes(value: dict[str, str]) -> bytes:
    return base64.b64decode(value["base64"])

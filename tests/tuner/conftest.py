"""What the tests of the tuner share: the folder is put on the path for its synthetic spaces."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.db import Store, open_store
from tilewright.db.sql import sqlite_database
from tilewright.tuner import job_log

sys.path.insert(0, str(Path(__file__).parent))

from lab import Lab


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/t.db") as store:
        yield store


@pytest.fixture
def lab(store: Store) -> Lab:
    return Lab(store)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing then depends on what is on the disk when the machine loses its power, nor on how long a search
    takes: the same search writes the same, and as often."""
    monkeypatch.setattr(sqlite_database, "_SYNCHRONOUS", "OFF")
    monkeypatch.setattr(job_log, "PROGRESS_SECONDS", math.inf)

"""The cases of docs/cases.md that no other test covers. The service's harness is theirs too."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.db import Store, open_store

sys.path.insert(0, str(Path(__file__).parents[1] / "measure"))
sys.path.insert(0, str(Path(__file__).parents[1] / "service"))

from service_harness import Api, serving


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/tilewright.db") as opened:
        yield opened


@pytest.fixture
def api(store: Store) -> Iterator[Api]:
    with serving(store) as running:
        yield running

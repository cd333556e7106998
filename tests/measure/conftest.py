"""What the tests of measuring share. The folder is put on the path: fork servers import its programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from own_processes import own_children

from tilewright.measure.messages import Limits, MeasureInput
from tilewright.measure.runner import Runner

sys.path.insert(0, str(Path(__file__).parent))

from run_only_device import Device, FakeServer, device_of, served


@pytest.fixture
def item() -> Callable[..., MeasureInput]:
    """Makes an item whose candidate behaves as named; keyword arguments go to its trace, or to its limits."""

    def make(behaviour: str, *, name: str = "trial_1", **more: Any) -> MeasureInput:
        limits = {k: more.pop(k) for k in ("build_seconds", "run_seconds", "memory_bytes") if k in more}
        best = more.pop("best_seconds", None)
        trace = {"behaviour": behaviour, **more}
        return MeasureInput(name, 1, {}, {}, trace, 0, Limits(**limits), best)

    return make


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    """One fork server for all the tests of a module: each test shows that it outlived the one before."""
    with Runner("misbehaving:behaves") as runner:
        yield runner
    assert own_children(recursive=True) == []


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """What a device that only runs talks to."""
    with served() as fake:
        yield fake


@pytest.fixture
def device(server: FakeServer) -> Iterator[Device]:
    """A device that only runs."""
    with device_of(server) as made:
        yield made

"""What the tests that measure for real share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import psutil
from own_processes import own_children

from tilewright.measure.messages import Failure, MeasureInput, MeasureResult

MakeItem = Callable[..., MeasureInput]


def failure_of(result: MeasureResult) -> Failure:
    """The failure without what differs from run to run."""
    assert result.failure is not None
    return replace(result.failure, elapsed=None, last_words="")


def servers() -> list[psutil.Process]:
    """The fork servers of this process, in the order of their start."""
    return own_children()

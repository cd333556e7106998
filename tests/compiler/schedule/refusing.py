"""Why a primitive refuses, as the tests of refusals compare it."""

from collections.abc import Callable
from typing import Any

import pytest

from tilewright.compiler.schedule import LoopRV, Schedule, ScheduleError


def reason_of(f: Callable[[], Any]) -> str:
    """The primitive and its reason; the line that is named is of the file in which `f` is written."""
    with pytest.raises(ScheduleError) as caught:
        f()
    assert caught.value.span is not None
    assert caught.value.span.file == f.__code__.co_filename
    return f"{caught.value.primitive}: {caught.value.reason}"


def loops_of(s: Schedule, block: str) -> list[LoopRV]:
    return s.get_loops(s.get_block(block))

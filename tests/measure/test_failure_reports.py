"""Every failure is typed, and says its limit, how long it took, and the last lines that the child wrote."""

from __future__ import annotations

import pytest
from measuring import MakeItem

from tilewright.measure.messages import FAILURE_KINDS
from tilewright.measure.runner import Runner

LIMITS = {"build_seconds": 0.5, "run_seconds": 0.5, "memory_bytes": 128 << 20}
CASES = [
    ("hang_in_build", "build_timeout", 0.5, "building forever"),
    ("hang_in_run", "run_timeout", 0.5, ""),
    ("allocate_without_end", "run_error", float(128 << 20), ""),
    ("allocate_without_end_in_build", "build_error", float(128 << 20), ""),
    ("raise_in_build", "build_error", None, "Error"),
    ("raise_in_run", "run_error", None, "Error"),
    ("crash_in_build", "build_error", None, "Segmentation fault"),
    ("crash_in_run", "run_error", None, "Segmentation fault"),
    ("exit_quietly", "run_error", None, ""),
    ("kill_itself", "run_error", None, ""),
]


@pytest.mark.parametrize(("behaviour", "kind", "limit", "words"), CASES, ids=[case[0] for case in CASES])
def test_property_15_a_failure_is_typed_with_its_limit_its_time_and_its_last_words(
    item: MakeItem, behaviour: str, kind: str, limit: float | None, words: str
) -> None:
    with Runner("misbehaving:behaves") as runner:
        failure = runner.measure(item(behaviour, **LIMITS)).failure
    assert failure is not None
    assert (failure.kind, failure.limit) == (kind, limit), failure
    assert failure.elapsed is not None and 0 <= failure.elapsed < 10
    assert failure.message and words in failure.last_words
    assert failure.kind in FAILURE_KINDS

"""Budgets that are none."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tilewright.tuner.budget import Budget


@pytest.mark.parametrize("name", ["trials", "patience"])
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (2.5, "a whole number"),
        (math.nan, "a whole number"),
        (True, "a whole number"),
        ("8", "a whole number"),
        (0, "at least 1"),
        (-3, "at least 1"),
        (2**53, r"below 2\*\*53"),
    ],
)
def test_a_count_that_is_none_is_refused_by_name(name: str, value: Any, wanted: str) -> None:
    limits: dict[str, Any] = {"trials": 8, name: value}
    with pytest.raises(ValueError, match=f"^a budget's {name} is {wanted}, not {value!r}$"):
        Budget(**limits)


def test_a_search_without_a_count_of_trials_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^a budget's trials is a whole number, not None$"):
        Budget(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["seconds", "target_seconds"])
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("3", "a number"),
        (True, "a number"),
        (0, "finite and above 0"),
        (-1.0, "finite and above 0"),
        (math.nan, "finite and above 0"),
        (math.inf, "finite and above 0"),
        (10**400, "finite and above 0"),
    ],
)
def test_seconds_that_are_none_are_refused_by_name(name: str, value: Any, wanted: str) -> None:
    limits: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=f"^a budget's {name} is {wanted}, not "):
        Budget(8, **limits)

"""A share of a search space as a budget."""

from __future__ import annotations

from .space import TuningSpace

__all__ = ["LARGEST", "trials_of_share"]

LARGEST = 1 << 20
"""A structure of more legal schedules than this is not counted."""


def trials_of_share(space: TuningSpace, share: float) -> int:
    """How many trials measure this share (above 0, at most 1) of a space's legal schedules: at least one.

    Raises ValueError for a share that is none, and for a space too large to be counted.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise ValueError(f"a share of a space is a number above 0 and at most 1, not {share!r}")
    count = 0
    for sketch in space.sketches:
        every = sketch.columns.every(LARGEST)
        if every is None:
            raise ValueError(
                f"structure {sketch.name!r} has too many schedules to be counted, so a share of the space is "
                "no budget: give a number of trials"
            )
        count += len(every)
    return max(1, round(share * count))

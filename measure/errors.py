"""What goes wrong with measuring itself, as opposed to with a candidate."""

from __future__ import annotations


class MeasureError(Exception):
    """Nothing can be measured here. The message carries the failing process's own last words."""

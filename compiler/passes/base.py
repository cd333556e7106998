"""What a pass is."""

from __future__ import annotations

from typing import Protocol

from ..ir import PrimFunc


class Pass(Protocol):
    """A step from a scheduled program towards instructions. Passes are frozen dataclasses; their fields are
    their options.
    """

    def run(self, func: PrimFunc) -> PrimFunc:
        """The program after the step; the one given is left as it was. Raises BuildError with the step's
        name and its reason.
        """

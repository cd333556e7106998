"""What the search chooses."""

from __future__ import annotations

from collections.abc import Sequence

from ..arith import Knob
from ..ir import user_span
from .errors import ScheduleError
from .recorder import Recorder
from .trace import Instruction


class Sample(Recorder):
    """Steps that leave a choice open."""

    def sample_categorical(self, candidates: Sequence[int], name: str | None = None) -> Knob:
        """A knob: an integer that the search chooses. With it in a split, the schedule is that of a
        sketch."""
        chosen = name or f"k{len(self._knobs)}"
        if chosen in self._knobs or not chosen.isidentifier():
            raise ScheduleError(
                "sample_categorical", f"{chosen!r} is taken, or no identifier", span=user_span()
            )
        try:
            knob = Knob(chosen, candidates)
        except ValueError as e:
            raise ScheduleError("sample_categorical", str(e), span=user_span()) from None
        self._knobs[chosen] = knob
        self._instructions.append(
            Instruction("sample_categorical", {"candidates": knob.domain}, (chosen,), (chosen,))
        )
        return knob

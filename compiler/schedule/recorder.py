"""What every step of a schedule needs: the program as it is now, handles, the recorded trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from ..arith import Knob, NotProvable, Poly, Var
from ..ir import PrimFunc, user_span
from .choose import Chooser, First
from .errors import ScheduleError
from .handles import BlockRV, LoopRV
from .trace import Instruction, Trace

T = TypeVar("T")


class Recorder:
    """Holds the current program, hands out handles, and records the trace. The families of steps build on
    it."""

    def __init__(self, func: PrimFunc, chooser: Chooser | None = None) -> None:
        if not isinstance(func, PrimFunc):
            raise TypeError(f"Schedule takes a PrimFunc, got {type(func).__name__}")
        #: The program that was given, unscheduled.
        self.original = func
        #: The program as it is now.
        self.func = func
        #: Polynomials over knobs that must stay at most 0: what a step could neither prove nor refute.
        self.constraints: list[Poly] = []
        self._instructions: list[Instruction] = []
        self._counts = {"b": 0, "l": 0}
        self._knobs: dict[str, Knob] = {}
        self._chooser: Chooser = chooser or First()
        #: id -> the loop variable or the handle of a block that this schedule gave out under it.
        self._given: dict[str, Var | BlockRV] = {}

    @property
    def trace(self) -> Trace:
        """What was done so far."""
        return Trace(tuple(self._instructions))

    def __str__(self) -> str:
        return str(self.func)

    @property
    def knobs(self) -> dict[str, Knob]:
        """The open knobs, by name, in the order in which they were sampled."""
        return dict(self._knobs)

    def copy(self) -> Self:
        """A schedule with the same program and trace, which goes its own way from here. Handles are good for
        both."""
        other = type(self)(self.original, self._chooser)
        other.adopt(self)
        return other

    def adopt(self, other: Self) -> None:
        """Takes over the program and the trace of a copy of this schedule."""
        if other.original is not self.original:
            raise ValueError("only a copy of the same schedule can be adopted")
        self.func, self.constraints = other.func, list(other.constraints)
        self._given = dict(other._given)
        self._instructions, self._counts, self._knobs = (
            list(other._instructions),
            dict(other._counts),
            dict(other._knobs),
        )

    # ---- recording
    def _is_mine(self, handle: object) -> bool:
        if isinstance(handle, LoopRV):
            return self._given.get(handle.id) is handle.var
        return isinstance(handle, BlockRV) and self._given.get(handle.id) is handle

    def _own(self, primitive: str, handle: object, kind: type) -> None:
        """Refuses what is no handle of the right kind that this schedule gave out."""
        for h in handle if isinstance(handle, tuple) else (handle,):
            if not isinstance(h, kind) or not self._is_mine(h):
                what = "loop" if kind is LoopRV else "block"
                raise ScheduleError(
                    primitive, f"expected a {what} of this schedule, got {h!r}", span=user_span()
                )

    def _do(self, primitive: str, f: Callable[[], T]) -> T:
        try:
            return f()
        except ScheduleError as e:
            raise ScheduleError(e.primitive, e.reason, e.func, e.at, e.span or user_span()) from None
        except NotProvable as e:
            raise ScheduleError(primitive, str(e), span=user_span()) from None

    def _apply(self, primitive: str, f: Callable[[], tuple[PrimFunc, T]]) -> T:
        self.func, answer = self._do(primitive, f)
        return answer

    def _record(
        self, name: str, args: dict[str, Any], outputs: Sequence[str] = (), hints: Sequence[str] = ()
    ) -> None:
        self._instructions.append(Instruction(name, args, tuple(outputs), tuple(hints)))

    def _id(self, letter: str) -> str:
        n = self._counts[letter]
        self._counts[letter] = n + 1
        return f"{letter}{n}"

    def _block(self, step: str, args: dict[str, Any], name: str) -> BlockRV:
        handle = BlockRV(self._id("b"), name)
        self._given[handle.id] = handle
        self._record(step, args, [handle.id], [name])
        return handle

    def _blocks(self, step: str, args: dict[str, Any], names: Sequence[str]) -> list[BlockRV]:
        handles = [BlockRV(self._id("b"), n) for n in names]
        self._given |= {h.id: h for h in handles}
        self._record(step, args, [h.id for h in handles], names)
        return handles

    def _loops(self, step: str, args: dict[str, Any], variables: Sequence[Var]) -> list[LoopRV]:
        handles = [LoopRV(self._id("l"), v) for v in variables]
        self._given |= {h.id: h.var for h in handles}
        self._record(step, args, [h.id for h in handles], [v.name for v in variables])
        return handles

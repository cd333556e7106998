"""Steps on loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..arith import Knob, Poly, Var
from ..ir import PrimFunc, user_span
from ..ir.annotations import is_reserved
from . import primitives
from .errors import ScheduleError
from .handles import BlockRV, LoopRV
from .pad_number import MAX_INTEGER
from .primitives import Factor, Point, Tail
from .recorder import Recorder
from .trace import MAX_TEXT

T = TypeVar("T")


class LoopSteps(Recorder):
    """Steps that restructure loops or change their kind."""

    def split(
        self, loop: LoopRV, factors: Sequence[Factor], overlap: int = 0, tail: Tail = "mask"
    ) -> list[LoopRV]:
        """See `primitives.split`: the new loops, outermost first; of a partition, those of the whole tiles.
        One factor may be None."""
        self._own("split", loop, LoopRV)
        self._own_knobs("split", factors)
        if tail == "overlap" and isinstance(factors, Sequence) and factors:
            # One spelling for what is one step: traces that do the same are equal.
            overlap, tail = overlap or len(factors) - 1, "mask"
        new = self._apply_open("split", lambda: primitives.split(self.func, loop.var, factors, overlap, tail))
        args = {"loop": loop.id, "factors": _plain(factors), "overlap": overlap, "tail": tail}
        return self._loops("split", args, new)

    def loop_partition(self, loop: LoopRV, points: Sequence[Point]) -> list[LoopRV]:
        """See `primitives.loop_partition`: the loops in order."""
        self._own("loop_partition", loop, LoopRV)
        self._own_knobs("loop_partition", points)
        new = self._apply_open(
            "loop_partition", lambda: primitives.loop_partition(self.func, loop.var, points)
        )
        return self._loops("loop_partition", {"loop": loop.id, "points": _plain(points)}, new)

    def _own_knobs(self, primitive: str, values: object) -> None:
        """Refuses knobs of another schedule."""
        for x in values if isinstance(values, Sequence) else ():
            if isinstance(x, Knob) and self._knobs.get(x.name) is not x:
                reason = f"the knob {x.name!r} was not sampled from this schedule"
                raise ScheduleError(primitive, reason, span=user_span())

    def _apply_open(self, primitive: str, f: Callable[[], tuple[PrimFunc, T, list[Poly]]]) -> T:
        """Applies a primitive that also answers what must hold of the knobs."""

        def pair() -> tuple[PrimFunc, tuple[T, list[Poly]]]:
            func, answer, open_ = f()
            return func, (answer, open_)

        answer, open_ = self._apply(primitive, pair)
        self.constraints += [p for p in open_ if p not in self.constraints]
        return answer

    def fuse(self, *loops: LoopRV) -> LoopRV:
        """See `primitives.fuse`."""
        self._own("fuse", loops, LoopRV)
        var = self._apply("fuse", lambda: primitives.fuse(self.func, [x.var for x in loops]))
        return self._loops("fuse", {"loops": tuple(x.id for x in loops)}, [var])[0]

    def reorder(self, *loops: LoopRV) -> None:
        """See `primitives.reorder`."""
        self._own("reorder", loops, LoopRV)
        self._apply("reorder", lambda: (primitives.reorder(self.func, [x.var for x in loops]), None))
        self._record("reorder", {"loops": tuple(x.id for x in loops)})

    def merge_loops(self, *loops: LoopRV) -> LoopRV:
        """See `primitives.merge_loops`."""
        self._own("merge_loops", loops, LoopRV)
        var = self._apply("merge_loops", lambda: primitives.merge_loops(self.func, [x.var for x in loops]))
        return self._loops("merge_loops", {"loops": tuple(x.id for x in loops)}, [var])[0]

    def add_unit_loop(self, at: LoopRV | BlockRV) -> LoopRV:
        """See `primitives.add_unit_loop`: the new loop around a loop or a block."""
        self._own_target("add_unit_loop", at)
        place = at.var if isinstance(at, LoopRV) else at.name
        var = self._apply("add_unit_loop", lambda: primitives.add_unit_loop(self.func, place))
        return self._loops("add_unit_loop", {"at": at.id}, [var])[0]

    def parallel(self, loop: LoopRV) -> None:
        """See `primitives.parallel`."""
        self._kind("parallel", loop, primitives.parallel)

    def vectorize(self, loop: LoopRV) -> None:
        """See `primitives.vectorize`."""
        self._kind("vectorize", loop, primitives.vectorize)

    def unroll(self, loop: LoopRV) -> None:
        """See `primitives.unroll`."""
        self._kind("unroll", loop, primitives.unroll)

    def bind(self, loop: LoopRV, axis: str) -> None:
        """See `primitives.bind`."""
        self._own("bind", loop, LoopRV)

        def bound() -> tuple[PrimFunc, None, list[Poly]]:
            func, open_ = primitives.bind(self.func, loop.var, axis)
            return func, None, open_

        self._apply_open("bind", bound)
        self._record("bind", {"loop": loop.id, "axis": axis})

    def _kind(self, name: str, loop: LoopRV, primitive: Callable[[PrimFunc, Var], PrimFunc]) -> None:
        self._own(name, loop, LoopRV)
        self._apply(name, lambda: (primitive(self.func, loop.var), None))
        self._record(name, {"loop": loop.id})

    def annotate(self, at: LoopRV | BlockRV, key: str, value: str | int) -> None:
        """Attaches a key and a value to a loop or a block; they are kept and printed, and change nothing by
        themselves."""
        self._own_target("annotate", at)
        if not isinstance(key, str) or not key.isidentifier() or len(key) > MAX_TEXT:
            reason = f"a key is an identifier of at most {MAX_TEXT} characters, got {key!r}"
            raise ScheduleError("annotate", reason, span=user_span())
        if not _is_note(value):
            reason = f"a value is a string or an integer below 2**53, got {value!r}"
            raise ScheduleError("annotate", reason, span=user_span())
        self._check_free_key("annotate", key)
        if isinstance(at, LoopRV):
            self._apply("annotate", lambda: (primitives.annotate_loop(self.func, at.var, key, value), None))
        else:
            self._apply("annotate", lambda: (primitives.annotate_block(self.func, at.name, key, value), None))
        self._record("annotate", {"at": at.id, "key": key, "value": value})

    def unannotate(self, at: LoopRV | BlockRV, key: str) -> None:
        """See `primitives.unannotate_loop`; also of a block."""
        self._own_target("unannotate", at)
        self._check_free_key("unannotate", key)
        if isinstance(at, LoopRV):
            self._apply("unannotate", lambda: (primitives.unannotate_loop(self.func, at.var, key), None))
        else:
            self._apply("unannotate", lambda: (primitives.unannotate_block(self.func, at.name, key), None))
        self._record("unannotate", {"at": at.id, "key": key})

    def _check_free_key(self, primitive: str, key: str) -> None:
        if isinstance(key, str) and is_reserved(key):
            reason = f"the key {key!r} belongs to a step of its own"
            raise ScheduleError(primitive, reason, span=user_span())

    def _own_target(self, primitive: str, at: object) -> None:
        if not isinstance(at, LoopRV | BlockRV):
            reason = f"expected a loop or a block of this schedule, got {at!r}"
            raise ScheduleError(primitive, reason, span=user_span())
        self._own(primitive, at, type(at))


def _is_note(value: object) -> bool:
    """Whether JSON has the value, as text or as an integer."""
    if isinstance(value, str):
        return all(not "\ud800" <= c <= "\udfff" for c in value)
    return type(value) is int and abs(value) < MAX_INTEGER


def _plain(values: Sequence[int | Knob | None]) -> tuple[int | str | None, ...]:
    """As a trace holds them: knobs by name."""
    return tuple(x.name if isinstance(x, Knob) else x for x in values)

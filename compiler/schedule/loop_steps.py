"""Steps on loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..arith import Knob, Poly, Var
from ..ir import PrimFunc, user_span
from ..ir.annotations import is_reserved
from . import primitives
from .errors import ScheduleError
from .handles import BlockRV, LoopRV
from .primitives import Factor
from .recorder import Recorder


class LoopSteps(Recorder):
    """Steps that restructure loops or change their kind."""

    def split(self, loop: LoopRV, factors: Sequence[Factor], overlap: int = 0) -> list[LoopRV]:
        """See `primitives.split`: the new loops, outermost first. One factor may be None; a tail is masked,
        or overlapped."""
        self._own("split", loop, LoopRV)
        for f in factors if isinstance(factors, Sequence) else ():
            if isinstance(f, Knob) and self._knobs.get(f.name) is not f:
                raise ScheduleError(
                    "split", f"the knob {f.name!r} was not sampled from this schedule", span=user_span()
                )
        new, short = self._apply(
            "split", lambda: _pair(primitives.split(self.func, loop.var, factors, overlap))
        )
        if short is not None:
            self.constraints.append(short)
        plain = tuple(f.name if isinstance(f, Knob) else f for f in factors)
        return self._loops("split", {"loop": loop.id, "factors": plain, "overlap": overlap}, new)

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

    def parallel(self, loop: LoopRV) -> None:
        """See `primitives.parallel`."""
        self._kind("parallel", loop, primitives.parallel)

    def vectorize(self, loop: LoopRV) -> None:
        """See `primitives.vectorize`."""
        self._kind("vectorize", loop, primitives.vectorize)

    def unroll(self, loop: LoopRV) -> None:
        """See `primitives.unroll`."""
        self._kind("unroll", loop, primitives.unroll)

    def _kind(self, name: str, loop: LoopRV, primitive: Callable[[PrimFunc, Var], PrimFunc]) -> None:
        self._own(name, loop, LoopRV)
        self._apply(name, lambda: (primitive(self.func, loop.var), None))
        self._record(name, {"loop": loop.id})

    def annotate(self, at: LoopRV | BlockRV, key: str, value: str | int) -> None:
        """Attaches a key and a value to a loop or a block; they are kept and printed, and change nothing by
        themselves."""
        if not isinstance(at, LoopRV | BlockRV):
            raise ScheduleError(
                "annotate", f"expected a loop or a block of this schedule, got {at!r}", span=user_span()
            )
        self._own("annotate", at, type(at))
        if not isinstance(key, str) or not key.isidentifier() or type(value) not in (str, int):
            raise ScheduleError(
                "annotate",
                f"a key is an identifier and a value a string or an integer, got {key!r}, {value!r}",
                span=user_span(),
            )
        if is_reserved(key):
            reason = f"the key {key!r} belongs to a step of its own"
            raise ScheduleError("annotate", reason, span=user_span())
        if isinstance(at, LoopRV):
            self._apply("annotate", lambda: (primitives.annotate_loop(self.func, at.var, key, value), None))
        else:
            self._apply("annotate", lambda: (primitives.annotate_block(self.func, at.name, key, value), None))
        self._record("annotate", {"at": at.id, "key": key, "value": value})


def _pair(r: tuple[PrimFunc, list[Var], Poly | None]) -> tuple[PrimFunc, tuple[list[Var], Poly | None]]:
    return r[0], (r[1], r[2])

"""The façade: holds the current program, hands out handles that survive later steps, and records the
trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ..arith import Knob, NotProvable, Poly, Var
from ..ir import PrimFunc, Scope, user_span
from . import primitives
from .errors import ScheduleError
from .find import find_block
from .primitives import Factor
from .trace import Instruction, Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class LoopRV:
    """A loop of a schedule. Stays valid until a step consumes the loop (split, fuse, a move of its block)."""

    id: str
    var: Var

    def __repr__(self) -> str:
        return f"<loop {self.var.name}>"


@dataclass(frozen=True, slots=True, eq=False)
class BlockRV:
    """A block of a schedule. Stays valid until the block is inlined away."""

    id: str
    name: str

    def __repr__(self) -> str:
        return f"<block {self.name}>"


class Schedule:
    """Transforms a PrimFunc step by step. Each step either keeps the meaning or raises ScheduleError, which
    names the user's line."""

    def __init__(self, func: PrimFunc) -> None:
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
        #: id -> the loop variable or block name that this schedule gave out under it.
        self._given: dict[str, Var | str] = {}

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

    def copy(self) -> Schedule:
        """A schedule with the same program and trace, which goes its own way from here. Handles are good for
        both."""
        other = Schedule(self.original)
        other.adopt(self)
        return other

    def adopt(self, other: Schedule) -> None:
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

    # ---- looking at the program
    def get_block(self, block: str | int) -> BlockRV:
        """The block of that name, or the block at that position in program order (the form that traces
        hold)."""
        names = [b.name for _, b in self.func.blocks()]
        if isinstance(block, int) and not isinstance(block, bool) and 0 <= block < len(names):
            position = block
        elif isinstance(block, str) and block in names:
            position = names.index(block)
        else:
            reason = f"there is no block {block!r}; the blocks are {', '.join(names)}"
            raise ScheduleError("get_block", reason, span=user_span())
        return self._block("get_block", {"block": position}, names[position])

    def get_loops(self, block: BlockRV) -> list[LoopRV]:
        """The loops around a block, outermost first."""
        self._own("get_loops", block, BlockRV)
        path, _ = self._do("get_loops", lambda: find_block(self.func, block.name, "get_loops"))
        return self._loops("get_loops", {"block": block.id}, [f.var for f in path])

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

    # ---- loops
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
        if isinstance(at, LoopRV):
            self._apply("annotate", lambda: (primitives.annotate_loop(self.func, at.var, key, value), None))
        else:
            self._apply("annotate", lambda: (primitives.annotate_block(self.func, at.name, key, value), None))
        self._record("annotate", {"at": at.id, "key": key, "value": value})

    # ---- blocks
    def compute_at(self, block: BlockRV, loop: LoopRV) -> list[LoopRV]:
        """See `primitives.compute_at`: the block's new loops, one for each of its iteration variables."""
        return self._at("compute_at", block, loop, primitives.compute_at)

    def reverse_compute_at(self, block: BlockRV, loop: LoopRV) -> list[LoopRV]:
        """See `primitives.reverse_compute_at`: the block's new loops, one for each of its iteration
        variables."""
        return self._at("reverse_compute_at", block, loop, primitives.reverse_compute_at)

    def _at(
        self,
        name: str,
        block: BlockRV,
        loop: LoopRV,
        primitive: Callable[[PrimFunc, str, Var], tuple[PrimFunc, list[Var]]],
    ) -> list[LoopRV]:
        self._own(name, block, BlockRV)
        self._own(name, loop, LoopRV)
        new = self._apply(name, lambda: primitive(self.func, block.name, loop.var))
        return self._loops(name, {"block": block.id, "loop": loop.id}, new)

    def compute_inline(self, block: BlockRV) -> None:
        """See `primitives.compute_inline`."""
        self._own("compute_inline", block, BlockRV)
        self._apply("compute_inline", lambda: (primitives.compute_inline(self.func, block.name), None))
        self._record("compute_inline", {"block": block.id})

    def reverse_compute_inline(self, block: BlockRV) -> None:
        """See `primitives.reverse_compute_inline`."""
        self._own("reverse_compute_inline", block, BlockRV)
        self._apply(
            "reverse_compute_inline", lambda: (primitives.reverse_compute_inline(self.func, block.name), None)
        )
        self._record("reverse_compute_inline", {"block": block.id})

    def cache_read(
        self, block: BlockRV, index: int, scope: Scope, order: Sequence[int] | None = None
    ) -> BlockRV:
        """See `primitives.cache_read`: the copying block. `order` permutes the dimensions of the copy
        (packing)."""
        self._own("cache_read", block, BlockRV)
        name = self._apply(
            "cache_read", lambda: primitives.cache_read(self.func, block.name, index, scope, order)
        )
        args = {
            "block": block.id,
            "index": index,
            "scope": scope,
            "order": None if order is None else tuple(order),
        }
        return self._block("cache_read", args, name)

    def cache_write(self, block: BlockRV, index: int, scope: Scope) -> BlockRV:
        """See `primitives.cache_write`: the copying block."""
        self._own("cache_write", block, BlockRV)
        name = self._apply("cache_write", lambda: primitives.cache_write(self.func, block.name, index, scope))
        return self._block("cache_write", {"block": block.id, "index": index, "scope": scope}, name)

    def set_scope(self, block: BlockRV, index: int, scope: Scope) -> None:
        """See `primitives.set_scope`."""
        self._own("set_scope", block, BlockRV)
        self._apply("set_scope", lambda: (primitives.set_scope(self.func, block.name, index, scope), None))
        self._record("set_scope", {"block": block.id, "index": index, "scope": scope})

    def decompose_reduction(self, block: BlockRV, loop: LoopRV) -> BlockRV:
        """See `primitives.decompose_reduction`: the init block."""
        self._own("decompose_reduction", block, BlockRV)
        self._own("decompose_reduction", loop, LoopRV)
        name = self._apply(
            "decompose_reduction", lambda: primitives.decompose_reduction(self.func, block.name, loop.var)
        )
        return self._block("decompose_reduction", {"block": block.id, "loop": loop.id}, name)

    # ---- recording
    def _is_mine(self, handle: object) -> bool:
        if isinstance(handle, LoopRV):
            return self._given.get(handle.id) is handle.var
        return isinstance(handle, BlockRV) and self._given.get(handle.id) == handle.name

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
        self._given[handle.id] = name
        self._record(step, args, [handle.id], [name])
        return handle

    def _loops(self, step: str, args: dict[str, Any], variables: Sequence[Var]) -> list[LoopRV]:
        handles = [LoopRV(self._id("l"), v) for v in variables]
        self._given |= {h.id: h.var for h in handles}
        self._record(step, args, [h.id for h in handles], [v.name for v in variables])
        return handles


def _pair(r: tuple[PrimFunc, list[Var], Poly | None]) -> tuple[PrimFunc, tuple[list[Var], Poly | None]]:
    return r[0], (r[1], r[2])

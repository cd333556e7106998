"""What the search chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np

from ..arith import Knob, floor_div, poly, product
from ..ir import user_span
from .errors import ScheduleError
from .find import find_loop
from .handles import BlockRV, LoopRV
from .primitives import compute_locations
from .primitives.split import MAX_FACTOR
from .recorder import Recorder
from .trace import MAX_TEXT, Instruction, tile_names

T = TypeVar("T")
#: Factors of one tile: their constraint doubles with each.
MAX_TILES = 16


class Sample(Recorder):
    """Steps that leave a choice open. A number becomes a knob: one sketch for all of its values. A structure
    becomes a sketch for each of its alternatives; outside of a search the first is taken."""

    def sample_categorical(self, candidates: Sequence[int], name: str | None = None) -> Knob:
        """A knob: an integer that the search chooses. With it in a split, the schedule is that of a
        sketch.

        before: `for j in range(64): …` after `split(j, [None, sample_categorical([8, 16], "w")])`:
        `for j_0 in range(ceildiv(64, w)): for j_1 in range(w): …`

        Raises ScheduleError where the candidates are not integers from 1 to 2**31, and for a name that is
        taken, or like those of handles in traces (`b0`, `l3`).
        """
        chosen = f"k{len(self._knobs)}" if name is None else name
        self._free(chosen, "sample_categorical")
        knob = Knob(chosen, _candidates(candidates))
        self._knobs[chosen] = knob
        self._instructions.append(
            Instruction("sample_categorical", {"candidates": knob.domain}, (chosen,), (chosen,))
        )
        return knob

    def sample_perfect_tile(
        self, loop: LoopRV, n: int, max_innermost_factor: int = 16, names: Sequence[str] | None = None
    ) -> list[Knob | None]:
        """n factors for `split` whose product is the loop's extent. The first is None, what the others leave;
        each of the others is a knob over the extent's divisors, the last of at most
        `max_innermost_factor`. `names` are those of the n - 1 knobs.

        before: `for i in range(12): …` after `split(i, sample_perfect_tile(i, 2))`:
        `for i_0 in range(ceildiv(12, i_tile0)): for i_1 in range(i_tile0): …`, with i_tile0 one of the
        divisors 1, 2, 3, 4, 6 and 12

        Raises ScheduleError for a loop whose extent is not a number, and for n below 1 or above 16.
        """
        self._own("sample_perfect_tile", loop, LoopRV)
        at = self._do("sample_perfect_tile", lambda: find_loop(self.func, loop.var, "sample_perfect_tile"))
        extent = loop.var.extent.const

        def refuse(reason: str) -> ScheduleError:
            return ScheduleError("sample_perfect_tile", reason, self.func, at, user_span())

        if extent is None:
            raise refuse(
                f"loop {loop.var.name!r} runs {loop.var.extent!r} times, which is no number to divide"
            )
        if type(n) is not int or n < 1 or type(max_innermost_factor) is not int or max_innermost_factor < 1:
            given = f"{n!r} and {max_innermost_factor!r}"
            raise refuse(f"n and max_innermost_factor are integers of at least 1, got {given}")
        if n > MAX_TILES:
            raise refuse(f"a loop is cut into at most {MAX_TILES} factors, got {n}")
        if names is not None and (isinstance(names, str) or not isinstance(names, Sequence)):
            raise refuse(f"names are a list of the {n - 1} knobs' names, got {names!r}")
        chosen = tuple(names) if names is not None else tuple(tile_names(loop.var.name, n - 1, self._knobs))
        if len(chosen) != n - 1 or len(set(chosen)) != len(chosen):
            raise refuse(f"{n} factors have {n - 1} knobs with names of their own, got {list(chosen)}")
        for name in chosen:
            self._free(name, "sample_perfect_tile")
        divisors = [d for d in range(1, extent + 1) if extent % d == 0]
        most = [extent] * (n - 2) + [max_innermost_factor]
        knobs = [
            Knob(name, [d for d in divisors if d <= top]) for name, top in zip(chosen, most, strict=False)
        ]
        self._knobs |= {k.name: k for k in knobs}
        if len(knobs) > 1:
            inner = product(knobs)
            self.constraints.append(poly(extent) - floor_div(poly(extent), inner) * inner)
        args = {"loop": loop.id, "n": n, "max_innermost_factor": max_innermost_factor}
        self._record("sample_perfect_tile", args, chosen, chosen)
        return [None, *knobs]

    def sample_compute_location(self, block: BlockRV, decision: int | None = None) -> LoopRV:
        """A loop under which `compute_at` may move the block: of those of its readers, outermost first, the
        one at position `decision`, which the search chooses where it is None.

        Raises ScheduleError where the block can be moved nowhere.
        """
        self._own("sample_compute_location", block, BlockRV)
        found = self._do("sample_compute_location", lambda: compute_locations(self.func, block.name))
        if decision is None:
            decision = self._chooser.choose([v.name for v in found], f"where {block.name} is computed")
        if type(decision) is not int or not 0 <= decision < len(found):
            names = ", ".join(v.name for v in found)
            reason = f"decision {decision!r} is none of the {len(found)} places ({names})"
            raise ScheduleError("sample_compute_location", reason, span=user_span())
        args = {"block": block.id, "decision": decision}
        return self._loops("sample_compute_location", args, [found[decision]])[0]

    def sample_structure(self, options: Sequence[T]) -> T:
        """One of the options, whatever they are: an order of loops, whether to pack. The search makes a
        sketch for each. Only what is done with the option enters the trace."""
        if isinstance(options, str) or not isinstance(options, Sequence) or not options:
            raise ScheduleError(
                "sample_structure",
                f"options are a list with something in it, got {options!r}",
                span=user_span(),
            )
        return options[self._chooser.choose([_label(o) for o in options], "structure")]

    def _free(self, name: str, step: str) -> None:
        fine = isinstance(name, str) and name.isidentifier() and len(name) <= MAX_TEXT
        if not fine or name in self._knobs:
            reason = f"{name!r} is taken, or no identifier of at most {MAX_TEXT} characters"
            raise ScheduleError(step, reason, span=user_span())
        if name[0] in self._counts and name[1:].isdecimal():
            reason = f"{name!r} is how traces name handles; give the knob another name"
            raise ScheduleError(step, reason, span=user_span())


def _candidates(values: object) -> list[int]:
    """The integers that were given, also as NumPy's."""
    fine = isinstance(values, Iterable) and not isinstance(values, str)
    chosen = [int(v) if isinstance(v, np.integer) else v for v in values] if fine else []  # type: ignore[attr-defined]
    if not chosen or any(type(v) is not int or not 1 <= v <= MAX_FACTOR for v in chosen):
        reason = f"candidates are a list of integers from 1 to 2**31, got {values!r}"
        raise ScheduleError("sample_categorical", reason, span=user_span())
    return chosen


def _label(option: object) -> str:
    """An option of a structure, for people."""
    if isinstance(option, LoopRV):
        return option.var.name
    if isinstance(option, BlockRV):
        return option.name
    if isinstance(option, list | tuple):
        return " ".join(map(_label, option))
    return getattr(option, "__name__", None) or str(option)

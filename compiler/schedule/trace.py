"""Traces: what was done to a program, replayable on any program that is equal up to names."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import rfc8785

from ..ir import PrimFunc
from ..ir.expr import SCOPES
from .errors import TraceError
from .index_json import read_map
from .pad_number import MAX_INTEGER, is_plain
from .steps import STEPS, ArgKind

if TYPE_CHECKING:
    from .schedule import Schedule

#: Raised when the meaning of a step changes; a reader refuses what it does not know.
TRACE_VERSION = 1
MAX_STEPS = 1000
#: Characters of a name.
MAX_TEXT = 100

Json = Any


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step. Arguments are plain values; blocks, loops and knobs are the names (`b0`, `l3`, `k1`) that
    earlier steps gave.

    hints: for people, the names that the outputs had in the program that was scheduled.
    """

    name: str
    args: Mapping[str, Json]
    outputs: tuple[str, ...]
    hints: tuple[str, ...] = ()

    def to_json(self, hints: bool = True) -> dict[str, Json]:
        defaults = STEPS[self.name].defaults or {}
        args = {k: _plain(v) for k, v in self.args.items() if not (k in defaults and defaults[k] == v)}
        out: dict[str, Json] = {"do": self.name, **args}
        if self.outputs:
            out["out"] = list(self.outputs)
        if hints and self.hints:
            out["hints"] = list(self.hints)
        return out


def _plain(v: Json) -> Json:
    return [_plain(x) for x in v] if isinstance(v, tuple) else v


@dataclass(frozen=True, slots=True)
class Trace:
    """A sequence of instructions. With a `sample_categorical` in it, its knobs are open and the trace is that
    of a sketch."""

    instructions: tuple[Instruction, ...] = ()

    def to_json(self, *, hints: bool = True) -> dict[str, Json]:
        """JSON values. Without hints the form is canonical: equal for traces that do the same."""
        return {"version": TRACE_VERSION, "steps": [i.to_json(hints) for i in self.instructions]}

    def canonical_json(self) -> str:
        """RFC 8785 text without hints: what identifies a candidate."""
        return rfc8785.dumps(self.to_json(hints=False)).decode()

    @staticmethod
    def from_json(data: Json, at: str = "") -> Trace:
        """Reads `to_json`'s form, which may come from anywhere. Raises TraceError with a JSON pointer."""
        if not isinstance(data, dict) or set(data) != {"version", "steps"}:
            raise TraceError("a trace is an object with the fields 'version' and 'steps'", at)
        if type(data["version"]) is not int or data["version"] != TRACE_VERSION:
            raise TraceError(
                f"version {data['version']!r} is not known; this program reads {TRACE_VERSION}",
                f"{at}/version",
            )
        steps = data["steps"]
        if not isinstance(steps, list) or len(steps) > MAX_STEPS:
            raise TraceError(f"steps must be an array of at most {MAX_STEPS}", f"{at}/steps")
        read = tuple(_instruction(s, f"{at}/steps/{n}") for n, s in enumerate(steps))
        _check_given_once(read, at)
        return Trace(read)

    @property
    def knobs(self) -> tuple[str, ...]:
        """The names of the open knobs."""
        return tuple(
            k for i in self.instructions if STEPS[i.name].out in ("knob", "knobs") for k in i.outputs
        )

    def resolve(self, config: Mapping[str, int]) -> Trace:
        """The trace with every knob replaced by its integer. Raises TraceError for a knob without a value, or
        one outside its domain."""
        out: list[Instruction] = []
        for i in self.instructions:
            if i.name == "sample_categorical":
                knob = i.outputs[0]
                if config.get(knob) not in i.args["candidates"]:
                    raise TraceError(
                        f"knob {knob!r} takes one of {list(i.args['candidates'])}, got {config.get(knob)!r}"
                    )
            elif i.name == "sample_perfect_tile":
                for knob in i.outputs:
                    value = config.get(knob)
                    if type(value) is not int or value < 1:
                        raise TraceError(f"knob {knob!r} takes an integer of at least 1, got {value!r}")
            else:
                out.append(replace(i, args={k: _resolved(i.name, k, v, config) for k, v in i.args.items()}))
        return Trace(tuple(out))

    def apply(self, func: PrimFunc) -> Schedule:
        """A new schedule of `func` with every step done. Raises ScheduleError where a step is not legal,
        TraceError where it refers to something that no earlier step gave."""
        from .replay import replay

        return replay(self, func)

    def script(self) -> str:
        """The Python that a person would write."""
        from .python import script

        return script(self)


def tile_names(loop: str, count: int, taken: Container[str]) -> list[str]:
    """The names of a loop's `count` factors, where nobody chose others."""
    numbered = (f"{loop[: MAX_TEXT - 20]}_tile{n}" for n in itertools.count())
    return list(itertools.islice((name for name in numbered if name not in taken), count))


def _check_given_once(steps: Sequence[Instruction], at: str) -> None:
    given: set[str] = set()
    for n, i in enumerate(steps):
        for m, name in enumerate(i.outputs):
            if name in given:
                raise TraceError(f"{name!r} is given a second time", f"{at}/steps/{n}/out/{m}")
            given.add(name)


def _resolved(step: str, key: str, v: Json, config: Mapping[str, int]) -> Json:
    if STEPS[step].args[key] != "factors":
        return v
    return tuple(config[x] if isinstance(x, str) else x for x in v)


def _instruction(data: Json, at: str) -> Instruction:
    if not isinstance(data, dict) or not isinstance(data.get("do"), str) or data["do"] not in STEPS:
        known = ", ".join(STEPS)
        what = data.get("do") if isinstance(data, dict) else data
        raise TraceError(f"unknown step {what!r}; known: {known}", at)
    name = data["do"]
    step = STEPS[name]
    args: dict[str, Json] = {}
    for key in data:
        if key not in step.args and key not in ("do", "out", "hints"):
            raise TraceError(f"{name} has no argument {key!r}; known: {', '.join(step.args)}", f"{at}/{key}")
    for key, kind in step.args.items():
        if key in data:
            args[key] = _argument(data[key], kind, f"{at}/{key}")
        elif step.defaults is not None and key in step.defaults:
            args[key] = step.defaults[key]
        else:
            raise TraceError(f"{name} lacks the argument {key!r}", at)
    outputs = _names(data.get("out", []), f"{at}/out")
    counts = {
        "none": (0, 0),
        "loops": (0, MAX_STEPS),
        "knobs": (0, 100),
        "blocks": (0, MAX_STEPS),
    }.get(step.out, (1, 1))
    if not counts[0] <= len(outputs) <= counts[1]:
        raise TraceError(f"{name} gives {step.out}, but names {len(outputs)} outputs", f"{at}/out")
    hints = data.get("hints", [])
    if (
        not isinstance(hints, list)
        or (len(hints) != len(outputs) and hints)
        or not all(isinstance(h, str) and h.isidentifier() for h in hints)
    ):
        raise TraceError("hints are identifiers, one for each output", f"{at}/hints")
    return Instruction(name, args, outputs, tuple(hints))


def _names(data: Json, at: str) -> tuple[str, ...]:
    if not isinstance(data, list) or not all(
        isinstance(x, str) and x.isidentifier() and len(x) <= MAX_TEXT for x in data
    ):
        raise TraceError("expected an array of identifiers", at)
    return tuple(data)


def _argument(v: Json, kind: ArgKind, at: str) -> Json:
    if kind in ("block", "loop", "target", "text"):
        if not isinstance(v, str) or not v or len(v) > MAX_TEXT:
            raise TraceError(f"expected a {kind}'s name, got {v!r}", at)
        return v
    if kind == "loops":
        return _names(v, at)
    if kind == "int":
        return _integer(v, at)
    if kind == "scope":
        if v not in SCOPES:
            raise TraceError(f"unknown scope {v!r}; known: {', '.join(SCOPES)}", at)
        return v
    if kind == "value":
        if type(v) not in (str, int):
            raise TraceError(f"expected a string or an integer, got {v!r}", at)
        return v if isinstance(v, str) else _integer(v, at)
    if kind in ("order", "number") and v is None:
        return None
    if kind == "number":
        if not is_plain(v):
            raise TraceError(f"expected a number, got {v!r}", at)
        return v
    if not isinstance(v, Sequence) or isinstance(v, str) or len(v) > 100_000:
        raise TraceError(f"expected an array, got {v!r}", at)
    if kind == "map":
        return read_map(v, at)
    if kind == "factors":
        return tuple(
            x if x is None or isinstance(x, str) else _integer(x, f"{at}/{n}") for n, x in enumerate(v)
        )
    return tuple(_integer(x, f"{at}/{n}") for n, x in enumerate(v))


def _integer(v: Json, at: str) -> int:
    if type(v) is not int or abs(v) >= MAX_INTEGER:
        raise TraceError(f"expected an integer, got {v!r}", at)
    return v

"""A trace as the Python that a person would write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any

from .index_expr import lambda_text
from .pad_number import number_of
from .steps import STEPS
from .trace import Instruction, Trace, tile_names


def script(trace: Trace, schedule: str = "sch") -> str:
    """One statement for each step; outputs that no later step uses are `_`, and a name is used once."""
    names: dict[str, str] = {}
    taken: set[str] = {schedule, "_", "float"}
    used = {x for i in trace.instructions for x in _references(i)}
    lines: list[str] = []
    loops: dict[str, str] = {}
    knobs: list[str] = []
    for i in trace.instructions:
        lines.append(_line(i, names, taken, used, schedule, _chosen_names(i, loops, knobs)))
        loops |= dict(zip(i.outputs, i.hints, strict=False))
        knobs += i.outputs if STEPS[i.name].out in ("knob", "knobs") else ()
    return "\n".join(line for line in lines if line) + "\n"


def _references(i: Instruction) -> list[str]:
    out: list[str] = []
    for key, kind in STEPS[i.name].args.items():
        v = i.args[key]
        if kind in ("block", "loop", "target"):
            out.append(v)
        elif kind in ("loops", "factors"):
            out += [x for x in v if isinstance(x, str)]
    return out


def _line(
    i: Instruction,
    names: dict[str, str],
    taken: set[str],
    used: set[str],
    schedule: str,
    more: list[str],
) -> str:
    call = f"{schedule}.{i.name}({', '.join([*_arguments(i, names), *more])})"
    live = [o in used for o in i.outputs]
    if not any(live) and i.name.startswith("get_"):
        return ""
    if not i.outputs:
        return call
    hints = i.hints or i.outputs
    outputs = [
        _name(o, h, names, taken) if alive else "_"
        for o, h, alive in zip(i.outputs, hints, live, strict=True)
    ]
    if not any(live):
        return call
    if STEPS[i.name].out == "knobs":
        # The first factor is None: what the others leave.
        outputs.insert(0, "_")
    target = ", ".join(outputs) + (
        "," if len(outputs) == 1 and STEPS[i.name].out in ("blocks", "loops") else ""
    )
    return f"{target} = {call}"


def _name(output: str, hint: str, names: dict[str, str], taken: set[str]) -> str:
    name, n = hint, 1
    while name in taken or iskeyword(name):
        name, n = f"{hint}_{n}", n + 1
    taken.add(name)
    names[output] = name
    return name


def _arguments(i: Instruction, names: dict[str, str]) -> list[str]:
    step = STEPS[i.name]
    defaults = step.defaults or {}
    out: list[str] = []
    for key, kind in step.args.items():
        v: Any = i.args[key]
        if key in defaults and defaults[key] == v:
            continue
        if i.name == "get_block" and i.hints:
            text = repr(i.hints[0])
        elif kind in ("block", "loop", "target"):
            text = names.get(v, v)
        elif kind == "loops":
            out += [names.get(x, x) for x in v]
            continue
        elif kind == "map":
            text = lambda_text(v)
        elif kind == "number" and isinstance(v, str):
            number = number_of(v)
            text = f"float({v!r})" if isinstance(number, float) else repr(number)
        elif kind == "factors":
            text = "[" + ", ".join(names.get(x, x) if isinstance(x, str) else repr(x) for x in v) + "]"
        else:
            text = repr(list(v)) if isinstance(v, tuple) else repr(v)
        out.append(f"{key}={text}" if kind in ("factors", "order") or key in defaults else text)
    return out


def _chosen_names(i: Instruction, loops: Mapping[str, str], knobs: Sequence[str]) -> list[str]:
    """The argument that names the knobs, where they are not those that a schedule would give them."""
    given = list(i.outputs)
    if STEPS[i.name].out == "knob" and given != [f"k{len(knobs)}"]:
        return [f"name={given[0]!r}"]
    if STEPS[i.name].out == "knobs" and given != tile_names(loops.get(i.args["loop"], ""), len(given), knobs):
        return [f"names={given!r}"]
    return []

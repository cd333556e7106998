"""WORKLOAD on the command line: an operator's JSON, a file with JSON, or `file.py:function` returning a
PrimFunc; where a known one is meant, its key."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .exits import CommandError, Exit

if TYPE_CHECKING:
    from ...compiler.ir import PrimFunc

Workload = Annotated[
    str,
    typer.Argument(
        help='An operator such as \'{"op": "matmul", "m": 64, "n": 64, "k": 64, "dtype": "float32"}\', '
        "a file.json with one, or file.py:function that returns a PrimFunc.",
        show_default=False,
    ),
]

_HELP = "As for `tilewright tune`, or the workload's key as lists show it, or its first 8 digits or more."
KnownWorkload = Annotated[str, typer.Argument(help=_HELP, show_default=False)]
WHOLE_KEY = 64
"""Hexadecimal digits of a workload's key, a SHA-256."""
_KEY = re.compile(rf"[0-9a-f]{{8,{WHOLE_KEY}}}")


def is_key(workload: str) -> bool:
    """Whether a workload is said by its key, or the start of it. A file of that name comes first."""
    return _KEY.fullmatch(workload) is not None and not Path(workload).exists()


def spec_of(workload: str) -> dict[str, Any]:
    """The workload as the API takes it. Raises CommandError."""
    if _is_python(workload):
        from ...compiler import ir

        return ir.to_json(_call(workload))
    return _json_of(workload)


def func_of(workload: str) -> PrimFunc:
    """The workload as a program. Raises CommandError."""
    if _is_python(workload):
        return _call(workload)
    from ...compiler import ir, topi

    spec = _json_of(workload)
    try:
        return topi.create(spec) if "op" in spec else ir.from_json(spec)
    except (topi.OperatorError, ir.VerifyError) as error:
        raise CommandError(f"workload: {error}", Exit.USAGE) from error


def _is_python(workload: str) -> bool:
    return ".py:" in workload and not workload.lstrip().startswith("{")


def _json_of(workload: str) -> dict[str, Any]:
    text = workload
    if not workload.lstrip().startswith("{"):
        try:
            text = Path(workload).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(
                f"workload {workload!r} is neither JSON (it would begin with a brace), nor file.py:function, "
                "nor a file that can be read",
                Exit.USAGE,
            ) from error
    try:
        spec = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"workload: not JSON: {error}", Exit.USAGE) from error
    if not isinstance(spec, dict):
        raise CommandError("workload: expected a JSON object with a key 'op' or 'tilewright'", Exit.USAGE)
    return spec


def _call(workload: str) -> PrimFunc:
    """Run the user's file and call its function. What it raises is the user's to see, as it is."""
    from ...compiler.ir import PrimFunc

    path, _, function = workload.rpartition(":")
    name = f"_tilewright_workload_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise CommandError(f"workload {workload!r}: there is no file {path}", Exit.USAGE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    make = getattr(module, function, None)
    if not callable(make):
        own = {k: v for k, v in vars(module).items() if getattr(v, "__module__", None) == name}
        known = sorted(k for k, v in own.items() if callable(v) and not k.startswith("_"))
        raise CommandError(
            f"workload {workload!r}: {path} has no function {function!r}; "
            f"it has {', '.join(known) or 'none'}",
            Exit.USAGE,
        )
    func = make()
    if not isinstance(func, PrimFunc):
        raise CommandError(
            f"workload {workload!r}: {function} returned {type(func).__name__}, expected a PrimFunc",
            Exit.USAGE,
        )
    return func

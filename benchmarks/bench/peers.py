"""The peers that are installed, each asked what it has for an operator."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

from .measure import Contender

#: Peer -> the modules that it needs.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "numpy": ("numpy",),
    "torch": ("torch",),
    "onnxruntime": ("onnxruntime", "onnx"),
    "tvm": ("tvm", "tvm_ffi"),
}


def missing() -> list[str]:
    """The peers that are not installed."""
    return [n for n, needs in NEEDS.items() if any(importlib.util.find_spec(m) is None for m in needs)]


def versions() -> dict[str, str]:
    """The version of every peer that is there."""
    return {n: importlib.import_module(n).__version__ for n in NEEDS if n not in missing()}


def contenders(arguments: dict[str, Any], threads: int) -> dict[str, Contender]:
    """What NumPy, PyTorch and onnxruntime have for an operator with its defaults, by name; TVM's is tuned,
    see peers_tvm."""
    absent = missing()
    made: dict[str, Contender] = {}
    for name in ("numpy", "torch", "onnxruntime"):
        if name not in absent:
            made |= importlib.import_module(f".peers_{name}", __package__).contenders(arguments, threads)
    return made

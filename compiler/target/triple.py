"""LLVM's target triples, ``architecture-vendor-system-environment``, as far as a target needs them."""

import re

from .errors import TargetError

_ARCHITECTURES = {
    "x86_64": "x86_64",
    "amd64": "x86_64",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "riscv64": "riscv64",
}
GENERAL = {"x86_64": "x86-64", "aarch64": "cortex-a53", "riscv64": "generic-rv64"}
"""The processor that a triple without mcpu means: code for it runs on every one of its architecture."""


_SYSTEMS = {"apple": "darwin", "darwin": "darwin", "macosx": "darwin", "windows": "windows", "linux": "linux"}


def system_of(triple: str) -> str:
    """The system of a triple, as far as objects of one are no objects of another: linux, darwin or windows,
    and "" for others.

    >>> system_of("arm64-apple-macosx")
    'darwin'
    """
    return next((system for word, system in _SYSTEMS.items() if word in triple), "")


def architecture_of(triple: str) -> str:
    """The architecture of a triple. Raises TargetError for one that is none, or of an unknown architecture.

    >>> architecture_of("arm64-apple-macosx")
    'aarch64'
    """
    if not re.fullmatch(r"\w+(-[\w.]+){1,3}", triple, re.ASCII):
        raise TargetError(
            f"mtriple={triple!r}: must be of the form architecture-system, as in aarch64-linux-gnu"
        )
    word = triple.partition("-")[0]
    if word not in _ARCHITECTURES:
        raise TargetError(
            f"mtriple={triple!r}: unknown architecture {word!r}; known: {', '.join(_ARCHITECTURES)}"
        )
    return _ARCHITECTURES[word]

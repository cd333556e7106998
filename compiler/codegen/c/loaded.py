"""Compiled C in this process."""

from __future__ import annotations

import ctypes
import weakref
from _ctypes import dlclose
from collections.abc import Iterable
from pathlib import Path

from ...target import Target
from ...target.runs import refusal
from ..errors import BuildError
from .compile import compile_assembly, compile_shared, temporary_folder


class LoadedLibrary:
    """Machine code that is loaded while this lives: its text, its shared library and the functions'
    addresses.
    """

    def __init__(self, text: str, target: Target, code: bytes, functions: Iterable[str]) -> None:
        self.text = text
        self.target = target
        self.code = code
        with temporary_folder() as folder:
            path = Path(folder, "kernel.so")
            path.write_bytes(code)
            try:
                # The mapping outlives the file.
                library = ctypes.CDLL(str(path))
            except OSError as e:
                raise BuildError(f"the shared library could not be loaded: {e}") from e
        weakref.finalize(self, dlclose, library._handle).atexit = False
        self._addresses = {name: _address(library, name) for name in functions}

    def address(self, name: str) -> int:
        """Address of a function. KeyError for one that was not asked for."""
        return self._addresses[name]

    def assembly(self) -> str:
        """The machine code as assembly text, made anew by the compiler at each call. Raises BuildError."""
        return compile_assembly(self.text, self.target)


def compile_c(text: str, target: Target, functions: Iterable[str]) -> LoadedLibrary:
    """Compiles C text and loads it into this process. The functions named get addresses.

    Raises BuildError when this machine lacks a feature of the target, when there is no C compiler, and when
    it refuses the text.
    """
    if (reason := refusal(target)) is not None:
        raise BuildError(f"{reason}; its C text can be compiled where it can")
    return LoadedLibrary(text, target, compile_shared(text, target), functions)


def _address(library: ctypes.CDLL, name: str) -> int:
    try:
        found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        raise BuildError(f"the C text defines no function {name!r}") from None
    assert found is not None
    return found

"""Exported modules, loaded without the compiler."""

from __future__ import annotations

import ctypes
import weakref
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ..target import Target, TargetError
from ..target.runs import refusal
from . import archive
from .errors import LoadError
from .metadata import MetadataError, functions_of, read, symbols_of
from .module import Module
from .objects import ObjectError, load_objects
from .pool import SET_THREADS, keep_for_ever, obey, parallel_symbols

_ELF_SHARED = 3
_MACH_O_SHARED = 6


def load_module(path: str | Path) -> Module:
    """The module that ``module.export(path)`` wrote, whatever it is called now.

    The digest inside guards against damage, not against malice: the file holds machine code, which runs when
    it is called. Raises LoadError for a file that was not exported, was cut off or changed, or holds code
    that this machine cannot run, and OSError for one that cannot be read.
    """
    path = Path(path)
    file = path.read_bytes()
    try:
        what = read(file)
        target = Target.parse(what.get("target", {}))
        if (reason := refusal(target)) is not None:
            raise LoadError(f"{path}: {reason}")
        addresses, keep = _load(path, file, symbols_of(what), target.num_threads > 1)
        return Module(functions_of(what, lambda source: SavedCode(source, target, addresses, keep)))
    except (MetadataError, TargetError, ObjectError, ValueError) as error:
        raise LoadError(f"{path}: {error}") from error


class SavedCode:
    """Machine code from a file, with the text it was made of."""

    def __init__(self, text: str, target: Target, addresses: dict[str, int], keep: object) -> None:
        self.text = text
        self.target = target
        self._addresses = addresses
        self._keep = keep  # the code is unloaded when this goes

    def address(self, name: str) -> int:
        """Address of a function. KeyError for one that the file does not name."""
        return self._addresses[name]

    def assembly(self) -> str:
        """The machine code as assembly text, generated anew from the text at each call."""
        from ..codegen.registry import assembly_of

        return assembly_of(self.text, self.target)


def _load(path: Path, file: bytes, names: list[str], is_parallel: bool) -> tuple[dict[str, int], object]:
    if _is_shared(file):
        return _load_shared(path, file, names, is_parallel)
    objects = archive.unpack(file) if file.startswith(archive.MAGIC) else [file]
    # Of the pools inside nothing is used: all kernels of a process share one.
    imports = parallel_symbols() if is_parallel else {}
    return load_objects(objects, names, libraries=True, imports=imports)


def _is_shared(file: bytes) -> bool:
    if file.startswith(b"\x7fELF"):
        return int.from_bytes(file[16:18], "little") == _ELF_SHARED
    if file.startswith(b"\xcf\xfa\xed\xfe"):
        return int.from_bytes(file[12:16], "little") == _MACH_O_SHARED
    return False


def _load_shared(
    path: Path, file: bytes, names: list[str], is_parallel: bool
) -> tuple[dict[str, int], object]:
    """The functions' addresses, and what keeps them loaded.

    A copy is loaded that has no name any more: of a path that was loaded before, the system gives what was
    there then. Where no copy can be made or run (no temporary folder, or one without programs), the file.
    """
    try:
        with TemporaryDirectory(prefix="tilewright-") as folder:
            copy = Path(folder, "kernels.so")
            copy.write_bytes(file)
            library = _Library(copy)
    except OSError:
        try:
            library = _Library(path.resolve())
        except OSError as error:
            raise ObjectError(str(error)) from error
    if is_parallel:
        library.share_settings()
    return {name: library.address(name) for name in names}, library


class _Library:
    """A shared object that is loaded while this lives."""

    def __init__(self, path: Path) -> None:
        from _ctypes import dlclose

        self._library = ctypes.CDLL(str(path))
        weakref.finalize(self, dlclose, self._library._handle).atexit = False

    def share_settings(self) -> None:
        """Its pool uses as many threads as this process's. Never unloaded, since threads may be in it."""
        with suppress(AttributeError):  # no loop was parallel
            set_threads = getattr(self._library, SET_THREADS)
            set_threads.argtypes, set_threads.restype = [ctypes.c_int64], None
            keep_for_ever(self)
            obey(set_threads)

    def address(self, name: str) -> int:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise ObjectError(f"defines no function {name!r}") from error
        return ctypes.cast(function, ctypes.c_void_p).value or 0

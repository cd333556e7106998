"""Modules written to files: objects, archives and shared objects."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..runtime import Function
from ..runtime.archive import pack
from ..runtime.metadata import describe, seal
from ..target import Target
from ..target.host import architecture
from ..target.triple import system_of
from .errors import BuildError
from .lowered import Lowered
from .registry import CodeGenerator, ObjectEmitter, savable_kinds
from .version import CODEGEN_VERSION

SUFFIXES = (".o", ".a", ".so")
_LINK_SECONDS = 60
_EMULATIONS = {"x86_64": "elf_x86_64", "aarch64": "aarch64linux", "riscv64": "elf64lriscv"}
"""lld's names of ELF for each architecture."""


@dataclass(frozen=True, slots=True)
class Export:
    """Writes the functions of one module to a file."""

    generator: CodeGenerator
    lowered: tuple[Lowered, ...]
    target: Target

    def __call__(self, path: Path, functions: Mapping[str, Function]) -> None:
        """Raises BuildError for a kind that cannot be saved, an unknown suffix, and a missing linker."""
        if not isinstance(self.generator, ObjectEmitter):
            raise BuildError(
                f"modules of the kind {self.target.kind!r} cannot be saved; "
                f"kinds that can be: {', '.join(savable_kinds())}"
            )
        if path.suffix not in SUFFIXES:
            raise BuildError(f"export: {path.name!r} must end in {' or '.join(SUFFIXES)}")
        linker = _linker(self.target) if path.suffix == ".so" else []
        metadata = describe(functions, self.target, CODEGEN_VERSION)
        code = self.generator.emit_object(self.lowered, self.target, metadata)
        match path.suffix:
            case ".a":
                code = pack([("kernels.o", code, [s for one in self.lowered for s in one.symbols])])
            case ".so":
                code = _linked(code, linker, _options(self.target))
        _write(path, seal(code))


def _linker(target: Target) -> list[str]:
    """The command that makes a shared object for the target's machine, up to the names of the files."""
    if system_of(target.triple) == "windows":
        raise BuildError("export: a shared object for Windows cannot be linked; export to .o or .a")
    tried = []
    for name, options in _candidates(target):
        tried.append(name)
        if (found := shutil.which(name)) is not None:
            return [found, *options]
    raise BuildError(
        f"export: no linker for {target.triple} was found, of {', '.join(tried)}; "
        "install one, or export to .o or .a, which need none"
    )


def _candidates(target: Target) -> list[tuple[str, list[str]]]:
    own = target.architecture == architecture()
    if system_of(target.triple) == "darwin":
        return [("cc" if own else f"{target.triple}-cc", ["-dynamiclib"])]
    shared = ["-shared"]
    lld = ("ld.lld", [*shared, "-m", _EMULATIONS[target.architecture]])
    if own:
        return [("ld", shared), lld, ("cc", [*shared, "-nostdlib"])]
    prefix = f"{target.architecture}-linux-gnu-"
    return [(f"{prefix}ld", shared), lld, (f"{prefix}gcc", [*shared, "-nostdlib"])]


def _options(target: Target) -> list[str]:
    if target.kind == "c":
        return ["-lm"]
    # Threads of a pool are in its code until the process ends.
    is_elf = target.num_threads > 1 and system_of(target.triple) == "linux"
    return ["-z", "nodelete"] if is_elf else []


def _linked(code: bytes, linker: Sequence[str], options: Sequence[str]) -> bytes:
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, result = Path(folder, "kernels.o"), Path(folder, "kernels.so")
            source.write_bytes(code)
            command = [*linker, "-o", str(result), str(source), *options]
            done = subprocess.run(command, capture_output=True, text=True, timeout=_LINK_SECONDS)
            if done.returncode:
                raise BuildError(f"export: the linker failed: {done.stderr.strip()}", " ".join(command))
            return result.read_bytes()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"export: the linker failed: {error}") from error


def _write(path: Path, code: bytes) -> None:
    """All of the file or nothing: who loads it at the same time sees the old one or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        os.chmod(name, 0o755 if path.suffix == ".so" else 0o644)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise

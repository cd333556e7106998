"""C to machine code: the compiler is run in a folder that is gone afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from ...target import Target
from ...target.host import architecture
from ..errors import BuildError

#: Names under which a C compiler is looked for, in this order.
COMPILERS = ("cc", "gcc", "clang")
#: Seconds after which a compiler is stopped.
TIME_LIMIT = 120.0
#: Error lines of the compiler that a BuildError repeats.
_LINES = 3
_MARCH = {"aarch64": "-march=armv8-a", "riscv64": "-march=rv64gc"}
#: Without avx512vl: with it, gcc 12 makes a load under a constant mask a blend that reads the whole vector,
#: also what lies behind the array.
_AVX512 = "avx512f avx512cd avx512dq avx512bw avx512ifma avx512vbmi"
#: The x86 features that plain C profits from; by LLVM's names, which are those of gcc's switches too.
_X86_SWITCHES = frozenset(
    f"sse3 ssse3 sse4.1 sse4.2 popcnt lzcnt bmi bmi2 movbe avx f16c fma avx2 {_AVX512}".split()
)


def find_compiler(target: Target | None = None) -> str:
    """The path of the C compiler, for this machine unless the target is of another architecture. Raises
    BuildError where there is none.
    """
    if target is not None and target.architecture != architecture():
        return _cross_compiler(target)
    for name in COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise BuildError(
        f"no C compiler was found; looked for {', '.join(COMPILERS)} on the PATH. Install one of them, or "
        "build for the target kind 'llvm', which needs none; the C text itself needs none either"
    )


def _cross_compiler(target: Target) -> str:
    name = f"{target.architecture}-linux-gnu-gcc"
    path = shutil.which(name)
    if path is None:
        raise BuildError(
            f"no C compiler for {target.architecture} was found; looked for {name} on the PATH. The C text "
            "itself needs none"
        )
    return path


def compile_shared(text: str, target: Target) -> bytes:
    """The shared library of C text. Raises BuildError with the compiler's first error lines."""
    return _compile(text, target, "kernel.so", ["-shared", "-fPIC"], ["-lm"])


def compile_object(text: str, target: Target) -> bytes:
    """The relocatable object of C text. Raises BuildError."""
    return _compile(text, target, "kernel.o", ["-c", "-fPIC"], [])


def compile_assembly(text: str, target: Target) -> str:
    """The assembly of C text. Raises BuildError."""
    return _compile(text, target, "kernel.s", ["-S", "-fPIC"], []).decode()


def flags(target: Target) -> list[str]:
    """The switches for a target: its features and no others, and whether products may be contracted."""
    contract = "fast" if target.math == "reassoc" else "off"
    # Neither errno nor the exception flags are anything that a kernel promises.
    # What -O3 adds for loops and not the rest of it: see VECTOR_LOOP.
    out = ["-O2", "-ftree-vectorize", "-fvect-cost-model=dynamic", "-std=c11", f"-ffp-contract={contract}"]
    out += ["-fno-math-errno", "-fno-trapping-math"]
    if target.architecture != "x86_64":
        return [*out, _MARCH[target.architecture]]
    out.append("-march=x86-64")
    out += [f"-m{f}" for f in target.features if f in _X86_SWITCHES]
    return [*out, f"-mprefer-vector-width={target.vector_bytes * 8}"]


def _compile(text: str, target: Target, out: str, options: list[str], libraries: list[str]) -> bytes:
    compiler = find_compiler(target)
    with temporary_folder() as folder:
        source = Path(folder, "kernel.c")
        source.write_text(text, encoding="utf-8")
        command = [compiler, *flags(target), *options, "-o", out, source.name, *libraries]
        _run(command, folder, text)
        return Path(folder, out).read_bytes()


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder that goes afterwards. Raises BuildError where no file can be written or no program started."""
    try:
        with TemporaryDirectory(prefix="tilewright-c-") as folder:
            yield folder
    except OSError as e:
        raise BuildError(f"a C compiler cannot be used here: {e.strerror or e}") from e


def _run(command: list[str], folder: str, text: str) -> None:
    """Runs the compiler, which leaves its own temporary files in the folder too."""
    # A compiler that was found without a PATH needs one to find its assembler and linker.
    environment = {"PATH": os.defpath, **os.environ, "TMPDIR": folder, "LC_ALL": "C"}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            _, errors = process.communicate(timeout=TIME_LIMIT)
        except BaseException as e:
            _kill(process)
            if isinstance(e, subprocess.TimeoutExpired):
                reason = f"the C compiler was stopped after {TIME_LIMIT:g} s: unroll less"
                raise BuildError(reason) from None
            raise
    if process.returncode != 0:
        raise _refusal(Path(command[0]).name, process.returncode, errors, text)


def _kill(process: subprocess.Popen[str]) -> None:
    """Ends the compiler and the programs that it runs itself."""
    try:
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        return
    for p in family:
        try:
            p.kill()
        except psutil.NoSuchProcess:
            continue


def _refusal(compiler: str, status: int, errors: str, text: str) -> BuildError:
    lines = [line.strip() for line in errors.splitlines() if "error" in line.lower()] or errors.splitlines()
    reason = "\n  ".join(lines[:_LINES]) or f"it ended with status {status}"
    found = re.search(r"kernel\.c:(\d+):", reason)
    source = text.splitlines()
    number = int(found[1]) if found else 0
    line = source[number - 1].strip() if 0 < number <= len(source) else None
    return BuildError(f"the C compiler {compiler} refused the kernel: {reason}", line)

"""LLVM text to machine code in this process.

A kernel arrives in SSA form with its register tile spelt out, so that no optimisation pass is run: SROA and
instcombine cost 0.5 ms of 4.4 ms on a 138-line matmul and change nothing. The object is linked by one LLJIT
per process (0.05 ms a load, against 0.45 ms more for an MCJIT engine each).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Any

from ...runtime.objects import ObjectError, load_objects
from ...runtime.pool import PARALLEL, parallel_symbols
from ...target import Target
from ...target.features import known_features
from ...target.host import architecture, host_cpu
from ...target.runs import refusal
from .pool import DECLARATION

_LIBM = {
    *("exp", "exp2", "exp10", "log", "log2", "log10", "pow", "powi", "frexp", "ldexp", "modf"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "sincos", "sincospi"),
}
"""The intrinsics that LLVM turns into calls of libm."""


class BuildError(Exception):
    """A program that cannot become machine code: what was wrong, and the offending line of LLVM text if
    known.
    """

    def __init__(self, message: str, line: str | None = None) -> None:
        super().__init__(message, line)
        self.message = message
        self.line = line

    def __str__(self) -> str:
        return self.message if self.line is None else f"{self.message}\n  {self.line}"


class LoadedObject:
    """Machine code that is loaded while this lives: its text, its object and its functions' addresses."""

    __slots__ = ("_addresses", "_keep", "code", "target", "text")

    def __init__(
        self, text: str, target: Target, code: bytes, addresses: dict[str, int], keep: object
    ) -> None:
        self.text = text
        self.target = target
        self.code = code
        self._addresses = addresses
        self._keep = keep  # the code is unloaded when this goes

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions that have addresses."""
        return tuple(self._addresses)

    def address(self, name: str) -> int:
        """Address of a function. KeyError for one that was not asked for."""
        return self._addresses[name]

    def assembly(self) -> str:
        """The machine code as assembly text, generated anew at each call."""
        return emit_assembly(self.text, self.target)


def compile_ir(text: str, target: Target, functions: Iterable[str]) -> LoadedObject:
    """Compile LLVM text and load it into this process.

    ``text`` names no triple and no data layout. The functions named get addresses. Raises BuildError when
    this machine lacks a feature of the target, when the text is wrong or defines no function of such a name,
    and when it declares a library function.
    """
    _check_loadable(target)
    return load_object(text, target, functions, emit_object(text, target))


def load_object(text: str, target: Target, functions: Iterable[str], code: bytes) -> LoadedObject:
    """Load into this process what `emit_object` made of the text. Raises BuildError, as `compile_ir` does."""
    _check_loadable(target)
    addresses, keep = _load(code, tuple(functions), text, target)
    return LoadedObject(text, target, code, addresses, keep)


def emit_object(text: str, target: Target, library: str = "") -> bytes:
    """The relocatable object of LLVM text, for any target, whatever this machine is. Raises BuildError.

    library: text of functions that kernels call, which may itself call C's library.
    """
    machine = _machine(target)
    with _parsed(text, machine, target.has_fma, library) as module:
        return bytes(machine.emit_object(module))


def joined(texts: Iterable[str]) -> str:
    """Texts that define different functions as one text, which declares each function once.

    (Linking them as modules costs as much again, and LLVM 22 crashes on the masked stores of some.)
    """
    lines = [line for text in texts for line in text.splitlines()]
    declared = sorted({line for line in lines if line.startswith("declare")})
    return "\n".join([*declared, *(line for line in lines if not line.startswith("declare"))]) + "\n"


def emit_assembly(text: str, target: Target) -> str:
    """The assembly of LLVM text, for any target, whatever this machine is. Raises BuildError."""
    machine = _machine(target)
    with _parsed(text, machine, target.has_fma) as module:
        return str(machine.emit_assembly(module))


def _check_loadable(target: Target) -> None:
    if (reason := refusal(target)) is not None:
        raise BuildError(f"{reason}; its assembly and object can be emitted")


def _machine(target: Target) -> Any:
    """LLVM's code generator for a processor with these features and no other of the known ones.

    Without a triple the code is for this machine's system where it could run here, so that it can be loaded.
    """
    import llvmlite.binding as llvm

    own = target.architecture == architecture() and not target.attribute("mtriple")
    triple = llvm.get_process_triple() if own else target.triple
    return _machine_of(triple, target.architecture, target.mcpu, target.features)


@lru_cache(maxsize=8)
def _machine_of(triple: str, arch: str, mcpu: str, features: tuple[str, ...]) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    switches = [("+" if f in features else "-") + f for f in known_features(arch)]
    if arch == architecture():
        switches += _unknown_and_lacking(llvm, arch, features)
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=mcpu, features=",".join(switches), opt=2, reloc="pic", codemodel="small"
    )


def _unknown_and_lacking(llvm: Any, arch: str, features: tuple[str, ...]) -> list[str]:
    """Switches off what the processor's name implies and this machine lacks (a hypervisor may hide it).

    Only where the code could run here at all: an object for another machine is the same wherever it is made.
    """
    host = host_cpu()
    if not set(features) <= host.features:
        return []
    try:
        reported = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not say on some systems
        return []
    known = set(known_features(arch))
    return [f"-{name}" for name, there in sorted(reported.items()) if not there and name not in known]


@contextmanager
def _parsed(text: str, machine: Any, has_fma: bool, library: str = "") -> Iterator[Any]:
    """The text as a verified module for the machine, in a context of its own.

    In the global context its constants and types would stay for ever. The module is closed here, since the
    collector, which may find both in a cycle with a traceback, might close the context first.
    """
    import llvmlite.binding as llvm

    _refuse_calls(text, has_fma)
    if library:
        defined = f"declare void @{PARALLEL}("
        text = joined([*(line for line in text.splitlines() if not line.startswith(defined)), library])
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
    except RuntimeError as error:
        raise _parse_error(str(error), text) from error
    with closing(module):
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        try:
            module.verify()
        except RuntimeError as error:
            raise _parse_error(str(error), text) from error
        yield module


def _refuse_calls(text: str, has_fma: bool) -> None:
    """Refuses declared functions that would be a call from the innermost loop: libm's, lane by lane."""
    for line in text.splitlines():
        if not line.startswith("declare") or line == DECLARATION:
            continue
        name = re.search(r"@([\w.]+)", line)
        intrinsic = re.match(r"llvm\.(\w+)", name[1]) if name else None
        if intrinsic is None or intrinsic[1] in _LIBM or (intrinsic[1] == "fma" and not has_fma):
            raise BuildError("a kernel may call no library function", line)


def _parse_error(message: str, text: str) -> BuildError:
    found = re.search(r"<string>:(\d+):\d+: error: (.*)", message)
    if found is None:  # the verifier: a reason, then the instructions
        reason, _, instructions = message.strip().partition("\n")
        return BuildError(f"LLVM refused the module: {reason}", instructions.strip() or None)
    lines = text.splitlines()
    number = int(found[1])
    return BuildError(
        f"LLVM refused line {number}: {found[2]}", lines[number - 1].strip() if number <= len(lines) else None
    )


def _load(code: bytes, names: Sequence[str], text: str, target: Target) -> tuple[dict[str, int], object]:
    imports = parallel_symbols() if DECLARATION in text else {}
    try:
        return load_objects([code], names, imports=imports)
    except ObjectError as error:
        raise _link_error(str(error), text, target) from error


def _link_error(message: str, text: str, target: Target) -> BuildError:
    calls = set(re.findall(r"([\w.]+)@(?:PLT|GOTPCREL)", emit_assembly(text, target)))
    if calls:
        return BuildError(f"the object could not be loaded; it calls {', '.join(sorted(calls))}: {message}")
    return BuildError(f"the object could not be loaded: {message}")

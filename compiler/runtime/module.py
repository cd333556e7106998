"""Kernels by name, as they are built, saved and loaded together."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..target import Target
from .device_api import Device
from .errors import CallError
from .function import Function, SourceInfo, WorkspaceInfo
from .params import ParamInfo

Array = np.ndarray[Any, Any]


class Exporter(Protocol):
    """What writes a module to a file: the code generator's part of saving."""

    def __call__(self, path: Path, functions: Mapping[str, Function]) -> None: ...


class Module:
    """Compiled functions by name. One that holds a single function is called as that function.

    ``module(a, b, c)`` reads its inputs and writes its outputs in place; of several functions one is chosen
    by ``module["name"]``. See Function for arguments and errors.
    """

    def __init__(self, functions: Mapping[str, Function], exporter: Exporter | None = None) -> None:
        """functions: at least one. exporter: without it the module cannot be saved."""
        self._functions = dict(functions)
        self._exporter = exporter
        only = next(iter(functions.values())) if len(functions) == 1 else None
        self._call: Callable[..., None] = self._several if only is None else only.__call__

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions' names, in the order in which they were given."""
        return tuple(self._functions)

    def __getitem__(self, name: str) -> Function:
        """A function. Raises KeyError, whose text lists the names there are."""
        if name not in self._functions:
            raise UnknownFunction(name, self.functions)
        return self._functions[name]

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __call__(self, *arrays: Array) -> None:
        """Run the only function. Raises ArgumentError, and CallError where there are several."""
        self._call(*arrays)

    def bind(self, *arrays: Array) -> Callable[[], None]:
        """As Function.bind, of the only function."""
        return self._only("bound").bind(*arrays)

    def with_constants(self, constants: Mapping[str, Any]) -> "Module":
        """The module with its constants bound: a call takes the other arrays.

        constants: arrays by the names of the parameters that were declared constant, all of them; of a module
        of several functions, such a mapping for each function that is to be bound. Copies are made, and
        packed as the kernels read them, once. A module with other constants comes of `with_constants` again.
        Raises ArgumentError, and CallError for code that cannot run here.
        """
        functions = dict(self._functions)
        if len(functions) == 1:
            name, only = next(iter(functions.items()))
            functions[name] = only.with_constants(constants)
        elif not isinstance(constants, Mapping):
            raise TypeError(
                f"constants of several functions ({', '.join(functions)}) are a mapping for each, by its "
                f"name, got {type(constants).__name__}"
            )
        else:
            for name, given in constants.items():
                functions[name] = self[name].with_constants(given)
        return Module(functions, self._exporter)

    @property
    def constants(self) -> tuple[ParamInfo, ...]:
        """The parameters of the only function that are constant, and not bound yet."""
        return self._only("asked for its constants").constants

    @property
    def func_name(self) -> str:
        """The name of the only function."""
        return self._only("named").name

    @property
    def params(self) -> tuple[ParamInfo, ...]:
        """The parameters of the only function."""
        return self._only("asked for its parameters").params

    @property
    def workspaces(self) -> tuple[WorkspaceInfo, ...]:
        """The workspaces of the only function."""
        return self._only("asked for its workspaces").workspaces

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the sizes that a call of the only function reads off its arrays."""
        return self._only("asked for its sizes").sizes

    @property
    def schedule_source(self) -> SourceInfo:
        """How the schedule of the only function was found."""
        return self._only("asked for its schedule").schedule_source

    @property
    def script(self) -> str:
        """The scheduled programs as text, one after the other."""
        return "\n\n".join(f.script for f in self._functions.values())

    @property
    def device(self) -> Device:
        """Where the functions' arguments are."""
        return next(iter(self._functions.values())).device

    @property
    def target(self) -> Target:
        """The target it was compiled for."""
        return next(iter(self._functions.values())).target

    def source(self) -> str:
        """The text that the code generator gave for each function, one after the other."""
        return "\n".join(f.source() for f in self._functions.values())

    def assembly(self) -> str:
        """The machine code as assembly text, one function after the other."""
        return "\n".join(f.assembly() for f in self._functions.values())

    def header(self) -> str:
        """A C header for the functions as an exported file defines them."""
        from .header import header

        return header(self._unbound(), self.target)

    def export(self, path: str | Path) -> Path:
        """Write the functions to one file that ``tilewright.load_module`` reads, and return its path.

        The suffix says what: ``.o`` a relocatable object, ``.a`` an archive of it, ``.so`` a shared object,
        which needs a linker. Constants are not saved: bind them where the file was loaded, with
        `with_constants`. A C program uses it with the text that `header` gives. Raises BuildError for a
        module of a kind that cannot be saved, for another suffix and where no linker is found.
        """
        path = Path(path)
        if self._exporter is None:
            raise CallError(f"export: {self!r} was not made by build and has nothing to save")
        self._exporter(path, self._unbound())
        return path

    def __repr__(self) -> str:
        if len(self._functions) == 1:
            only = next(iter(self._functions.values()))
            return f"Module({only}, {only.schedule_source.kind} schedule, {self.target})"
        return f"Module({', '.join(map(str, self._functions.values()))}, {self.target})"

    def _unbound(self) -> dict[str, Function]:
        return {name: f.unbound for name, f in self._functions.items()}

    def _only(self, what: str) -> Function:
        if len(self._functions) != 1:
            raise CallError(
                f"a module of {len(self)} functions cannot be {what} itself; choose one by its name: "
                + ", ".join(f"module[{name!r}]" for name in self._functions)
            )
        return next(iter(self._functions.values()))

    def _several(self, *arrays: Array) -> None:
        self._only("called")


class UnknownFunction(KeyError):
    """A name that no function of a module has."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name, names)
        self.name = name
        self.names = tuple(names)

    def __str__(self) -> str:
        return f"there is no function {self.name!r}; the functions are {', '.join(self.names)}"

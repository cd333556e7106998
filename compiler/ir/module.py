"""IRModule: several tensor programs by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import VerifyError
from .from_json import from_json
from .func import PrimFunc
from .json import FORMAT, Json, to_json
from .json_values import array, fields
from .verify import verify

#: Of one module that is read; real ones hold a few.
MAX_FUNCTIONS = 256


@dataclass(frozen=True, slots=True, eq=False)
class IRModule:
    """Programs by name, in an order. A name is that of its PrimFunc; `verify_module` says so of any module,
    and `IRModule.of` makes no other."""

    functions: dict[str, PrimFunc]

    @staticmethod
    def of(*functions: PrimFunc) -> IRModule:
        """The module of these programs, in this order. Raises VerifyError for two of one name."""
        module = IRModule({})
        for f in functions:
            module = module.with_function(f)
        return module

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self.functions)

    def __iter__(self) -> Iterator[PrimFunc]:
        """The programs, in order."""
        return iter(self.functions.values())

    def __len__(self) -> int:
        return len(self.functions)

    def __contains__(self, name: object) -> bool:
        return name in self.functions

    def __getitem__(self, name: str) -> PrimFunc:
        """The program of that name. Raises KeyError with the names that there are."""
        if name not in self.functions:
            raise KeyError(f"no program is named {name!r}; there are: {', '.join(self.functions) or 'none'}")
        return self.functions[name]

    def with_function(self, func: PrimFunc, *, replace: bool = False) -> IRModule:
        """A copy with `func` behind the others; with `replace`, in the place of the one of its name.

        Raises VerifyError for a name that is taken, or with `replace` for one that is not.
        """
        if (func.name in self.functions) is not replace:
            raise VerifyError(
                f"no program is named {func.name!r}" if replace else f"two programs are named {func.name!r}"
            )
        return IRModule({**self.functions, func.name: func})

    def __str__(self) -> str:
        from .printer import script

        return script(self)


def verify_module(module: IRModule, at: str = "") -> None:
    """Raises VerifyError unless the module holds programs, each under its own name and each one that may run
    (see `verify`)."""
    if not module.functions:
        raise VerifyError("a module holds at least one program", at)
    for name, f in module.functions.items():
        if f.name != name:
            raise VerifyError(f"the program {f.name!r} stands under the name {name!r}", at)
        verify(f, at)


def module_to_json(module: IRModule) -> dict[str, Json]:
    """The module as plain JSON values: its programs, with their names, in order."""
    return {"tilewright": FORMAT, "functions": [to_json(f) for f in module]}


def module_from_json(data: Any, *, at: str = "") -> IRModule:
    """The module, verified. Each mistake is a VerifyError with a JSON pointer, also two programs of one name
    and one without a name. `at` is the pointer of `data` in a larger document."""
    d = fields(data, at, {"tilewright", "functions"}, set())
    if type(d["tilewright"]) is not int or d["tilewright"] != FORMAT:
        raise VerifyError(
            f"format {d['tilewright']!r} is not known; this program reads {FORMAT}", f"{at}/tilewright"
        )
    items = array(d["functions"], f"{at}/functions")
    if not 1 <= len(items) <= MAX_FUNCTIONS:
        raise VerifyError(
            f"a module holds 1 to {MAX_FUNCTIONS} programs, got {len(items)}", f"{at}/functions"
        )
    module = IRModule({})
    for i, item in enumerate(items):
        here = f"{at}/functions/{i}"
        if isinstance(item, dict) and "name" not in item:
            raise VerifyError("the field 'name' is missing", here)
        func = from_json(item, at=here)
        if func.name in module:
            raise VerifyError(f"two programs are named {func.name!r}", f"{here}/name")
        module = module.with_function(func)
    return module

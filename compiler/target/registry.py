"""Back ends by the kind of target they serve: the built-in ones, and those that other distributions add.

Another distribution adds one by an entry point of the group ``tilewright.backends`` whose name is the kind
and whose object is a Backend. Nothing is imported before its kind is asked for; a back end that cannot be had
leaves the others as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

from .errors import TargetError
from .kind import KINDS, TargetKind

GROUP = "tilewright.backends"


@dataclass(frozen=True, slots=True)
class Backend:
    """All that a kind of target needs.

    kind: its name and attributes. generator: a CodeGenerator (see codegen.registry), or where it is as
    ``module:name``, imported on first use. device: a DeviceAPI (see runtime.device_api) or where it is, of
    the same name as the kind; None where the code runs on the CPU's memory. With several devices the kind has
    an attribute ``device``, an integer, that says which one the code is for.
    """

    kind: TargetKind
    generator: object
    device: object | None = None


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """A back end as it is found: its kind, the distribution it came with, and what is wrong with it, if
    anything is.
    """

    name: str
    distribution: str
    error: str | None = None


OWN = "tilewright"
_PACKAGE = __name__.rpartition(".target.")[0]
BUILTIN = {
    "c": Backend(KINDS["c"], f"{_PACKAGE}.codegen.c:generator"),
    "llvm": Backend(KINDS["llvm"], f"{_PACKAGE}.codegen.llvm.generator:generator"),
}
"""The back ends of this distribution."""


def known_kinds() -> tuple[str, ...]:
    """The names of all back ends, sorted, without loading any."""
    return tuple(sorted({*BUILTIN, *_found()}))


def backend(name: object) -> Backend:
    """The back end of a kind. Raises TargetError for one that is not registered, registered twice, or broken,
    with the distributions concerned.
    """
    if not isinstance(name, str):
        raise TargetError(f"target: 'kind' is a string, not {type(name).__name__}")
    points = _found().get(name, ())
    sources = [*([OWN] if name in BUILTIN else []), *(_distribution(p) for p in points)]
    if not sources:
        raise TargetError(
            f"no code generator for {name!r}; registered: {', '.join(known_kinds())}; to add one: install a "
            f"package with an entry point {name!r} in the group {GROUP!r}"
        )
    if len(sources) > 1:
        raise TargetError(
            f"the back end {name!r} is defined twice, by {' and by '.join(sources)}: uninstall one of them"
        )
    return BUILTIN[name] if name in BUILTIN else _loaded(points[0])


def kind_of(name: object) -> TargetKind:
    """The kind of that name. Raises TargetError."""
    if isinstance(name, str) and name in KINDS and name not in _found():
        return KINDS[name]
    return backend(name).kind


def backends() -> tuple[BackendStatus, ...]:
    """Every back end by name, with what is wrong with those that cannot be used. Loads them all."""
    return tuple(_status(name) for name in known_kinds())


def resolve(what: object) -> Any:
    """What a Backend's field means: the thing itself, or the one that ``module:name`` says where to find."""
    if not isinstance(what, str):
        return what
    module, _, name = what.partition(":")
    return getattr(import_module(module), name)


def forget() -> None:
    """Look for distributions anew: for a process that installs one while it runs."""
    _found.cache_clear()
    _loaded.cache_clear()


def _status(name: str) -> BackendStatus:
    points = _found().get(name, ())
    source = ", ".join([*([OWN] if name in BUILTIN else []), *(_distribution(p) for p in points)])
    try:
        backend(name)
    except TargetError as error:
        return BackendStatus(name, source, str(error))
    return BackendStatus(name, source)


@lru_cache(maxsize=1)
def _found() -> Mapping[str, tuple[metadata.EntryPoint, ...]]:
    return _by_name(metadata.entry_points(group=GROUP))


def _by_name(points: Iterable[metadata.EntryPoint]) -> dict[str, tuple[metadata.EntryPoint, ...]]:
    found: dict[str, tuple[metadata.EntryPoint, ...]] = {}
    for point in points:
        found[point.name] = (*found.get(point.name, ()), point)
    return found


@lru_cache(maxsize=64)
def _loaded(point: metadata.EntryPoint) -> Backend:
    source = f"the back end {point.name!r} of {_distribution(point)} ({point.value})"
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # foreign code: it must not take the other kinds along
        raise TargetError(f"{source} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(loaded, Backend):
        raise TargetError(f"{source} is a {type(loaded).__name__}, not a Backend")
    if loaded.kind.name != point.name:
        raise TargetError(f"{source} is of the kind {loaded.kind.name!r}: the two names must be the same")
    return loaded


def _distribution(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unnamed distribution"

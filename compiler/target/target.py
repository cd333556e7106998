"""What kernels are compiled for: a value that the rules of the compiler read in place of the machine."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Self

import rfc8785

from .attributes import PROCESSOR, parse_words
from .cpus import ALIASES, CPUS, Cpu
from .errors import TargetError
from .features import (
    apply_mattr,
    check_base,
    has_fma,
    mattr_between,
    vector_bytes,
    vector_registers,
    with_needs,
)
from .hardware import Hardware
from .host import host_cpu
from .kind import TargetKind
from .registry import kind_of, known_kinds
from .triple import GENERAL, architecture_of


@dataclass(frozen=True, slots=True)
class Target:
    """A target with every default filled in: equal targets make equal code from equal programs.

    ``mcpu`` is a processor of the table, never "host"; ``features`` are all its features that change code,
    sorted; ``l1d``, ``l2`` and ``l3`` are bytes, 0 for a cache that is not there. ``math`` is "reassoc"
    where float reductions may be summed in another order, which vector sums need, and a product may be
    rounded together with the sum it goes into, also outside of reductions; "strict" where neither may be.
    ``attributes`` are those of its kind alone, by name. A kind without processors has "" for mcpu, no
    features and no caches.
    """

    kind: str
    mcpu: str
    features: tuple[str, ...]
    num_threads: int
    math: str
    l1d: int
    l2: int
    l3: int
    attributes: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, spec: "str | Mapping[str, Any] | Target", host: Hardware | None = None) -> "Target":
        """The target that a description means.

        A description is ``llvm -mcpu=x86-64-v3 -num-threads=1``, a mapping such as ``{"kind": "llvm",
        "mcpu": "host"}``, the same as JSON text, or a Target. "host", the default of mcpu, is the machine
        that the given Hardware describes, or without one this machine. Raises TargetError.
        """
        if isinstance(spec, Target):
            return spec
        if isinstance(spec, str):
            text = spec.strip()
            given = _parse_json(text) if text.startswith("{") else parse_words(text)
        elif isinstance(spec, Mapping):
            given = dict(spec)
        else:
            raise TargetError(f"a target is a string, a mapping or a Target, not {type(spec).__name__}")
        return cls._of(given, host)

    @classmethod
    def _of(cls, given: dict[str, Any], host: Hardware | None) -> Self:
        name = given.pop("kind", None)
        if name is None:
            raise TargetError(f"target: 'kind' is missing; known kinds: {', '.join(known_kinds())}")
        kind = kind_of(name)
        try:
            return cls._of_kind(kind, given, host)
        except TargetError as error:
            raise TargetError(f"target {kind.name}: {error}") from error

    @classmethod
    def _of_kind(cls, kind: TargetKind, given: dict[str, Any], host: Hardware | None) -> Self:
        own = {a.name: a for a in kind.attributes}
        known = {**PROCESSOR, **own} if kind.processor else own
        for name in given:
            if name not in known:
                raise TargetError(
                    f"unknown attribute {name!r}; known attributes: {', '.join(known) or 'none'}"
                )
        values = {name: a.check(given.get(name, a.default)) for name, a in known.items()}
        attributes = tuple((name, _frozen(values[name])) for name in sorted(own))
        if not kind.processor:
            return cls(kind.name, "", (), 1, "strict", 0, 0, 0, attributes)
        cpu = _cpu(given.get("mcpu"), values.get("mtriple", ""), values["mcpu"], host)
        return cls(
            kind=kind.name,
            mcpu=cpu.name,
            features=tuple(sorted(_features(cpu, values["features"], values["mattr"]))),
            num_threads=values["num-threads"],
            math=values["math"],
            l1d=_first(values["l1d"], cpu.l1d),
            l2=_first(values["l2"], cpu.l2),
            l3=_first(values["l3"], cpu.l3),
            attributes=attributes,
        )

    def to_json(self) -> dict[str, Any]:
        """The description with every default filled in; ``parse`` gives the same target back on any
        machine.
        """
        processor = {
            "mcpu": self.mcpu,
            "features": list(self.features),
            "num-threads": self.num_threads,
            "math": self.math,
            "l1d": self.l1d,
            "l2": self.l2,
            "l3": self.l3,
        }
        own = {name: list(v) if isinstance(v, tuple) else v for name, v in self._told()}
        return {"kind": self.kind, **(processor if self.mcpu else {}), **own}

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON (RFC 8785), in hexadecimal digits."""
        return _key(self)

    def __str__(self) -> str:
        """The description as one line of words; ``parse`` gives the same target back on any machine."""
        words = [self.kind]
        if self.mcpu:
            mattr = mattr_between(CPUS[self.mcpu].features, frozenset(self.features))
            words += [
                f"-mcpu={self.mcpu}",
                *([f"-mattr={mattr}"] if mattr else []),
                f"-num-threads={self.num_threads}",
                f"-math={self.math}",
                f"-l1d={self.l1d}",
                f"-l2={self.l2}",
                f"-l3={self.l3}",
            ]
        return " ".join([*words, *(_word(name, value) for name, value in self._told())])

    def attribute(self, name: str) -> Any:
        """The value of one of its kind's own attributes. Raises KeyError for another name."""
        return dict(self.attributes)[name]

    @property
    def unmeasured(self) -> str | None:
        """Why candidates for it cannot be measured; None where they can."""
        if kind_of(self.kind).confined:
            return None
        return (
            f"target {self.kind}: building a candidate takes files and a compiler, which a measuring process "
            "has not; tune for llvm and build the schedule for this target, or measure outside"
        )

    @property
    def triple(self) -> str:
        """LLVM's triple: the one given as ``mtriple``, or Linux on the processor's architecture."""
        return dict(self.attributes).get("mtriple") or f"{self.architecture}-unknown-linux-gnu"

    @property
    def architecture(self) -> str:
        """Architecture of the processor: x86_64, aarch64 or riscv64; "" for a kind without processors."""
        return CPUS[self.mcpu].architecture if self.mcpu else ""

    @property
    def vector_bytes(self) -> int:
        """Bytes of one machine vector register: 64, 32 or 16, and 8 where there are only scalar ones."""
        if not self.mcpu:
            return kind_of(self.kind).vector_bytes
        return vector_bytes(self.architecture, frozenset(self.features))

    @property
    def vector_registers(self) -> int:
        """Number of machine vector registers: 32 or 16."""
        if not self.mcpu:
            return kind_of(self.kind).vector_registers
        return vector_registers(self.architecture, frozenset(self.features))

    @property
    def has_fma(self) -> bool:
        """Whether a fused multiply-add is one instruction."""
        return has_fma(self.architecture, frozenset(self.features))

    def _told(self) -> list[tuple[str, Any]]:
        """Its kind's own attributes that are not at their defaults."""
        defaults = {a.name: _frozen(a.check(a.default)) for a in kind_of(self.kind).attributes}
        return [(name, value) for name, value in self.attributes if value != defaults[name]]

    def lanes(self, dtype_bits: int) -> int:
        """Elements of this width in one machine vector, at least 1."""
        return max(1, self.vector_bytes * 8 // max(dtype_bits, 8))


def _parse_json(text: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(text, object_pairs_hook=_once_each)
    except json.JSONDecodeError as error:
        raise TargetError(f"target: not JSON: {error}") from error
    except RecursionError as error:
        raise TargetError("target: JSON nested too deeply") from error
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in given:
            raise TargetError(f"target: {name!r} is given twice")
        given[name] = value
    return given


def _cpu(given: str | None, triple: str, name: str, host: Hardware | None) -> Cpu:
    architecture = architecture_of(triple) if triple else None
    if architecture is not None and given is None:
        return CPUS[GENERAL[architecture]]
    if name == "host":
        cpu = host_cpu() if host is None else host.cpu
    else:
        name = ALIASES.get(name, name)
        if name not in CPUS:
            raise TargetError(f"unknown mcpu {name!r}; known: host, {', '.join(CPUS)}")
        cpu = CPUS[name]
    if architecture not in (None, cpu.architecture):
        raise TargetError(f"mtriple={triple!r} is of {architecture} and mcpu={name!r} of {cpu.architecture}")
    return cpu


def _features(cpu: Cpu, listed: list[str] | None, mattr: str) -> frozenset[str]:
    if listed is not None and mattr:
        raise TargetError("give 'features', the whole list, or 'mattr', the changes, not both")
    if listed is None:
        features = apply_mattr(cpu.architecture, cpu.features, mattr)
    else:
        features = with_needs(cpu.architecture, listed)
    check_base(cpu.architecture, features)
    return features


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _word(name: str, value: Any) -> str:
    match value:
        case bool():
            text = "true" if value else "false"
        case tuple():
            text = ",".join(value)
        case _:
            text = str(value)
    return shlex.quote(f"-{name}={text}")


def _first(given: int | None, default: int) -> int:
    return default if given is None else given


@lru_cache(maxsize=256)
def _key(target: Target) -> str:
    return sha256(rfc8785.dumps(target.to_json())).hexdigest()

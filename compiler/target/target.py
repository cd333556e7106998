"""What kernels are compiled for: a value that the rules of the compiler read in place of the machine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Self

import rfc8785

from .attributes import ATTRIBUTES, KINDS, parse_words
from .cpus import ALIASES, CPUS, Cpu
from .errors import TargetError
from .features import apply_mattr, has_fma, mattr_between, vector_bytes, vector_registers, with_needs
from .hardware import Hardware
from .host import host_cpu


@dataclass(frozen=True, slots=True)
class Target:
    """A target with every default filled in: equal targets make equal code from equal programs.

    ``mcpu`` is a processor of the table, never "host"; ``features`` are all its features that change code,
    sorted; ``l1d``, ``l2`` and ``l3`` are bytes, 0 for a cache that is not there. ``math`` is "reassoc"
    where float reductions may be summed in another order, which vector sums need, and "strict" where they
    may not.
    """

    kind: str
    mcpu: str
    features: tuple[str, ...]
    num_threads: int
    math: str
    l1d: int
    l2: int
    l3: int

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
        kind = given.pop("kind", None)
        if kind is None:
            raise TargetError(f"target: 'kind' is missing; known kinds: {', '.join(KINDS)}")
        if kind not in KINDS:
            raise TargetError(f"unknown target kind {kind!r}; known kinds: {', '.join(KINDS)}")
        for name in given:
            if name not in ATTRIBUTES:
                raise TargetError(
                    f"target {kind}: unknown attribute {name!r}; known attributes: {', '.join(ATTRIBUTES)}"
                )
        values = {name: a.check(given.get(name, a.default)) for name, a in ATTRIBUTES.items()}
        if values["num-threads"] > 1:
            raise TargetError(
                f"target {kind}: num-threads={values['num-threads']}: "
                "only 1 is possible until there is a thread pool"
            )
        cpu = _cpu(values["mcpu"], host)
        return cls(
            kind=kind,
            mcpu=cpu.name,
            features=tuple(sorted(_features(cpu, values["features"], values["mattr"]))),
            num_threads=values["num-threads"],
            math=values["math"],
            l1d=_first(values["l1d"], cpu.l1d),
            l2=_first(values["l2"], cpu.l2),
            l3=_first(values["l3"], cpu.l3),
        )

    def to_json(self) -> dict[str, Any]:
        """The description with every default filled in; ``parse`` gives the same target back on any
        machine.
        """
        return {
            "kind": self.kind,
            "mcpu": self.mcpu,
            "features": list(self.features),
            "num-threads": self.num_threads,
            "math": self.math,
            "l1d": self.l1d,
            "l2": self.l2,
            "l3": self.l3,
        }

    @property
    def key(self) -> str:
        """SHA-256 of the canonical JSON (RFC 8785), in hexadecimal digits."""
        return _key(self)

    def __str__(self) -> str:
        """The description as one line of words; ``parse`` gives the same target back on any machine."""
        mattr = mattr_between(CPUS[self.mcpu].features, frozenset(self.features))
        words = [
            self.kind,
            f"-mcpu={self.mcpu}",
            *([f"-mattr={mattr}"] if mattr else []),
            f"-num-threads={self.num_threads}",
            f"-math={self.math}",
            f"-l1d={self.l1d}",
            f"-l2={self.l2}",
            f"-l3={self.l3}",
        ]
        return " ".join(words)

    @property
    def architecture(self) -> str:
        """Architecture of the processor: x86_64 or aarch64."""
        return CPUS[self.mcpu].architecture

    @property
    def vector_bytes(self) -> int:
        """Bytes of one machine vector register: 64, 32 or 16."""
        return vector_bytes(self.architecture, frozenset(self.features))

    @property
    def vector_registers(self) -> int:
        """Number of machine vector registers: 32 or 16."""
        return vector_registers(self.architecture, frozenset(self.features))

    @property
    def has_fma(self) -> bool:
        """Whether a fused multiply-add is one instruction."""
        return has_fma(self.architecture, frozenset(self.features))

    def lanes(self, dtype_bits: int) -> int:
        """Elements of this width in one machine vector, at least 1."""
        return max(1, self.vector_bytes * 8 // max(dtype_bits, 8))


def _parse_json(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise TargetError(f"target: not JSON: {error}") from error
    return dict(value)


def _cpu(name: str, host: Hardware | None) -> Cpu:
    if name == "host":
        return host_cpu() if host is None else host.cpu
    name = ALIASES.get(name, name)
    if name not in CPUS:
        raise TargetError(f"target llvm: unknown mcpu {name!r}; known: host, {', '.join(CPUS)}")
    return CPUS[name]


def _features(cpu: Cpu, listed: list[str] | None, mattr: str) -> frozenset[str]:
    if listed is None:
        return apply_mattr(cpu.architecture, cpu.features, mattr)
    if mattr:
        raise TargetError("target llvm: give 'features', the whole list, or 'mattr', the changes, not both")
    return with_needs(cpu.architecture, listed)


def _first(given: int | None, default: int) -> int:
    return default if given is None else given


@lru_cache(maxsize=256)
def _key(target: Target) -> str:
    return sha256(rfc8785.dumps(target.to_json())).hexdigest()

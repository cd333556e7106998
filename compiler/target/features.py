"""Processor features that change generated code, by LLVM's names, and what they imply.

Only these features are part of a target. Features that no kernel uses (protection keys, shadow stacks, cache
control) differ between two virtual machines on the same processor, and would split their records for nothing.
"""

from collections.abc import Iterable

from .errors import TargetError

# feature -> what it needs. The closure upwards is switched on with it, the closure downwards off with it.
_X86_NEEDS: dict[str, tuple[str, ...]] = {
    "sse": (),
    "sse2": ("sse",),
    "sse3": ("sse2",),
    "ssse3": ("sse3",),
    "sse4.1": ("ssse3",),
    "sse4.2": ("sse4.1",),
    "popcnt": (),
    "lzcnt": (),
    "bmi": (),
    "bmi2": (),
    "movbe": (),
    "gfni": ("sse2",),
    "avx": ("sse4.2",),
    "f16c": ("avx",),
    "fma": ("avx",),
    "avx2": ("avx",),
    "avxifma": ("avx2",),
    "avxneconvert": ("avx2",),
    "avxvnni": ("avx2",),
    "avxvnniint8": ("avx2",),
    "avxvnniint16": ("avx2",),
    "avx512f": ("avx2", "f16c", "fma"),
    "avx512cd": ("avx512f",),
    "avx512dq": ("avx512f",),
    "avx512bw": ("avx512f",),
    "avx512vl": ("avx512f",),
    "avx512ifma": ("avx512f",),
    "avx512vbmi": ("avx512bw",),
    "avx512vbmi2": ("avx512bw",),
    "avx512vnni": ("avx512f",),
    "avx512bitalg": ("avx512bw",),
    "avx512vpopcntdq": ("avx512f",),
    "avx512vp2intersect": ("avx512f",),
    "avx512bf16": ("avx512bw",),
    "avx512fp16": ("avx512bw",),
    "amx-tile": (),
    "amx-int8": ("amx-tile",),
    "amx-bf16": ("amx-tile",),
    "amx-fp16": ("amx-tile",),
}
_AARCH64_NEEDS: dict[str, tuple[str, ...]] = {
    "neon": (),
    "fullfp16": ("neon",),
    "dotprod": ("neon",),
    "bf16": ("neon",),
    "i8mm": ("neon",),
    "sve": ("fullfp16",),
    "sve2": ("sve",),
}
# The letters of the ISA manual, and its names of more than one letter. Vectors of a fixed length need to know
# the least length of the machine's registers: v promises 128 bits, zvl256b and zvl512b more.
_RISCV64_NEEDS: dict[str, tuple[str, ...]] = {
    "m": (),
    "a": (),
    "f": (),
    "d": ("f",),
    "c": (),
    "zba": (),
    "zbb": (),
    "zbs": (),
    "zfhmin": ("f",),
    "zfh": ("zfhmin",),
    "v": ("d",),
    "zvl256b": ("v",),
    "zvl512b": ("zvl256b",),
    "zvfhmin": ("v", "zfhmin"),
    "zvfh": ("zvfhmin", "zfh"),
}
_NEEDS = {"x86_64": _X86_NEEDS, "aarch64": _AARCH64_NEEDS, "riscv64": _RISCV64_NEEDS}

ARCHITECTURES = tuple(_NEEDS)


def known_features(architecture: str) -> tuple[str, ...]:
    """All features of an architecture that a target may name, sorted."""
    return tuple(sorted(_NEEDS[architecture]))


def with_needs(architecture: str, features: Iterable[str]) -> frozenset[str]:
    """The features together with everything they need.

    >>> sorted(with_needs("aarch64", ["sve"]))
    ['fullfp16', 'neon', 'sve']
    """
    needs = _NEEDS[architecture]
    found: set[str] = set()
    todo = list(features)
    while todo:
        feature = todo.pop()
        if feature not in needs:
            raise TargetError(
                f"unknown feature {feature!r} of {architecture}; "
                f"known features: {', '.join(known_features(architecture))}"
            )
        if feature not in found:
            found.add(feature)
            todo += needs[feature]
    return frozenset(found)


def without(architecture: str, features: Iterable[str], off: Iterable[str]) -> frozenset[str]:
    """The features less those switched off and less all that need one of those."""
    dropped = set(off)
    with_needs(architecture, dropped)  # refuses unknown names
    return frozenset(f for f in features if not with_needs(architecture, [f]) & dropped)


def apply_mattr(architecture: str, base: Iterable[str], mattr: str) -> frozenset[str]:
    """The base features changed by LLVM's notation, left to right: ``+avx2,-fma``."""
    features = frozenset(base)
    for word in filter(None, (w.strip() for w in mattr.split(","))):
        sign, name = word[0], word[1:]
        if sign == "+":
            features |= with_needs(architecture, [name])
        elif sign == "-":
            features = without(architecture, features, [name])
        else:
            raise TargetError(f"mattr: {word!r} must start with + or -, as in +{word},-fma")
    return features


def check_base(architecture: str, features: Iterable[str]) -> None:
    """Raises TargetError for features without which there is no code that computes as it should."""
    if architecture == "x86_64" and "sse2" not in features:
        # The x87 registers that are left hold more digits, and what rounds by adding a large number does not.
        raise TargetError("the feature 'sse2' must be on: floats of x86_64 are computed with it")


def mattr_between(base: frozenset[str], features: frozenset[str]) -> str:
    """The shortest list of changes, in LLVM's notation, from the base to the features ("" when none)."""
    changes = [f"-{f}" for f in sorted(base - features)] + [f"+{f}" for f in sorted(features - base)]
    return ",".join(changes)


def vector_bytes(architecture: str, features: frozenset[str]) -> int:
    """Bytes of one machine vector register; of a scalar one where there are no vectors."""
    match architecture:
        case "x86_64":
            return 64 if "avx512f" in features else 32 if "avx" in features else 16
        case "riscv64":
            widths = {"zvl512b": 64, "zvl256b": 32, "v": 16}
            return next((bytes_ for name, bytes_ in widths.items() if name in features), 8)
        case _:
            return 16


def vector_registers(architecture: str, features: frozenset[str]) -> int:
    """Number of architectural vector registers."""
    return 32 if architecture != "x86_64" or "avx512f" in features else 16


def has_fma(architecture: str, features: frozenset[str]) -> bool:
    """Whether a fused multiply-add is one instruction (else LLVM calls a library)."""
    match architecture:
        case "x86_64":
            return "fma" in features
        case "riscv64":
            return "d" in features
        case _:
            return True

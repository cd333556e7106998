"""What a target's processor does in one instruction, and what LLVM would call a library for elsewhere."""

from __future__ import annotations

from ...target import Target


def has_half(target: Target) -> bool:
    """Whether float16 and float32 are converted into each other, in vectors too."""
    features = target.features
    match target.architecture:
        case "x86_64":
            return "f16c" in features
        case "aarch64":
            return True
        case "riscv64":
            vectors = "v" not in features or "zvfh" in features or "zvfhmin" in features
            return vectors and ("zfh" in features or "zfhmin" in features)
    return False


def has_rounding(target: Target) -> bool:
    """Whether floats are rounded to whole numbers."""
    return target.architecture == "aarch64" or "sse4.1" in target.features


def scaled_bytes(target: Target) -> frozenset[int]:
    """The sizes of vectors of floats that are multiplied by powers of two, into denormal numbers too."""
    if "avx512f" not in target.features:
        return frozenset()
    return frozenset({16, 32, 64} if "avx512vl" in target.features else {64})

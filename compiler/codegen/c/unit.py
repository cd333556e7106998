"""Kernels as one C file."""

from __future__ import annotations

from collections.abc import Iterable

from ...target import Target
from .emitter import Kernel

_UNROLL = """\
#if defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL_PRAGMA(text) _Pragma(#text)
#define UNROLL(n) UNROLL_PRAGMA(GCC unroll n)
#else
#define UNROLL(n)
#endif
"""


def translation_unit(kernels: Iterable[Kernel], target: Target) -> str:
    """Headers, the helper functions that the kernels use, each once, and the kernels: C11."""
    kernels = tuple(kernels)
    helpers: dict[str, str] = {}
    for k in kernels:
        helpers.update(k.helpers)
    body = [*helpers.values(), *(k.text for k in kernels)]
    text = "\n".join(body)
    headers = [f"#include <{h}.h>" for h in ("math", "stdbool", "stdint", "string")]
    parts = ["\n".join(headers) + "\n"]
    if target.math == "strict":
        # Compilers that do not know it do not contract either where they are asked for C11.
        parts.append("#pragma STDC FP_CONTRACT OFF\n")
    if "UNROLL(" in text:
        parts.append(_UNROLL)
    return "\n".join([*parts, *body])

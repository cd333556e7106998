"""Kernels as one C file."""

from __future__ import annotations

from collections.abc import Iterable

from ...target import Target
from .emitter import Kernel

#: gcc 12 selects wrongly (`c ? a : b` with c of another width) in a loop that it makes vectors of after
#: unrolling the loops inside early. It unrolls a vector loop only when asked to, or at -O3; with VECTOR_LOOP
#: it makes vectors of that loop itself, and unrolls what is around it later.
_MACROS = """\
#if defined(__GNUC__) && !defined(__clang__)
#define PRAGMA(text) _Pragma(#text)
#define UNROLL(n) PRAGMA(GCC unroll n)
#define VECTOR_LOOP PRAGMA(GCC unroll 1)
#elif defined(__clang__)
#define UNROLL(n) _Pragma("clang loop unroll(full)")
#define VECTOR_LOOP
#else
#define UNROLL(n)
#define VECTOR_LOOP
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
    if "VECTOR_LOOP" in text or "UNROLL(" in text:
        parts.append(_MACROS)
    return "\n".join([*parts, *body])

"""Names of the user's program as C identifiers."""

from __future__ import annotations

import re

#: What every name of a helper function begins with.
PREFIX = "tw_"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_KEYWORDS = _words(
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
    "volatile while asm typeof bool true false main"
)
_MATH = _words(
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim "
    "floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint "
    "lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh "
    "sqrt tan tanh tgamma trunc"
)
_STRING = _words(
    "memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn strerror strlen strncat "
    "strncmp strncpy strpbrk strrchr strspn strstr strtok strxfrm"
)
#: What the headers <math.h> and <string.h> declare (C11, 7.12 and 7.24): a kernel of such a name would
#: contradict them.
_LIBRARY = frozenset(f + suffix for f in _MATH for suffix in ("", "f", "l")) | _STRING
_MACRO = re.compile(
    r"U?INT(MAX|PTR|\d|_)\w*|\w+_(MIN|MAX)|U?int\w*_t|u?int\w*_t|(float|double|size|ptrdiff|wchar)_t|"
    r"HUGE_VAL[FL]?|INFINITY|NAN|NULL|FP_\w+|MATH_\w+|math_errhandling|is\w+|signbit|fpclassify|"
    r"alignas|alignof|noreturn|offsetof|linux|unix|UNROLL|VECTOR_LOOP|PRAGMA"
)


def identifier(name: str) -> str:
    """The name as a C identifier that means nothing else in a kernel's text."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name) or "v"
    if word[0].isdigit() or word[0] == "_":
        word = "v" + word
    taken = word in _KEYWORDS or word in _LIBRARY or word.startswith(PREFIX) or _MACRO.fullmatch(word)
    return word + "_" if taken else word

"""What programs that differ in their extents alone share."""

from __future__ import annotations

import hashlib
import re

from .func import PrimFunc
from .json import canonical_json

# Of the canonical text: extents; shapes; constant terms of indices, such as the ends of a padded row;
# immediates, such as the reciprocal of a mean. Strides are factors of variables and stay.
_EXTENT = re.compile(r'"extent":(\d+)')
_SIZES = re.compile(r'("extent":|"shape":|(?<=\[)-?\d+(?=\]))(\d+|\[[-\d,]*\])?')
_CONST = re.compile(r'(\["const","\w+",)"[^"]*"')


def structure(func: PrimFunc) -> tuple[str, tuple[int, ...]]:
    """A hash that programs share which have the same loops, blocks, accesses and dtypes over other extents
    and with other constants; and the extents of the program, in an order that is common to them."""
    text = canonical_json(func)
    extents = tuple(int(n) for n in _EXTENT.findall(text))
    without = _CONST.sub(r"\1?", _SIZES.sub(_key_alone, text))
    return hashlib.sha256(without.encode()).hexdigest(), extents


def _key_alone(found: re.Match[str]) -> str:
    key = found.group(1)
    if key != '"shape":':
        return f"{key}?" if key.startswith('"') else "?"
    return key + "?" * (1 + (found.group(2) or "").count(","))

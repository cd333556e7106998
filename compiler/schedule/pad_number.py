"""Numbers that fill padding, and how a trace holds them."""

from __future__ import annotations

from math import isfinite

import numpy as np

#: What fills padding: a number of the buffer's dtype, "inf", "-inf" or "nan", or an integer's digits.
PadValue = int | float | str

#: Integers in JSON are below this, from where on its numbers leave some out.
MAX_INTEGER = 2**53
_NAMED = ("inf", "-inf", "nan")


def plain_number(value: PadValue | None) -> PadValue | None:
    """A number that JSON has: infinities and NaN as their names, large integers as their digits."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and not isfinite(plain):
        return str(plain)
    return str(plain) if isinstance(plain, int) and abs(plain) >= MAX_INTEGER else plain


def number_of(value: object) -> object:
    """What `plain_number` was given; any other text stays as it is."""
    if not isinstance(value, str):
        return value
    if value in _NAMED:
        return float(value)
    digits = value.removeprefix("-")
    fine = digits.isascii() and digits.isdigit() and len(digits) <= 20 and str(int(value)) == value
    return int(value) if fine else value


def is_plain(value: object) -> bool:
    """Whether `plain_number` may give the value."""
    number = number_of(value)
    return isinstance(number, bool | int | float) and value == plain_number(number)

"""How references are written into code, for the kinds that LLVM makes for kernels with the small code model.

Numbers and formulas: x86-64 psABI (table 4.9), ELF for the Arm 64-bit Architecture (5.7), RISC-V ELF psABI
(Relocations). S is the address referred to, A the addend, P the address of the reference.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from ..errors import BuildError

Apply = Callable[[bytearray, int, int, int], None]
"""Writes into the bytes, at an index, a reference at address P to the address S + A."""

_WORD = struct.Struct("<I")
X86_64, AARCH64, RISCV = 62, 183, 243

RISCV_PCREL_HI20, RISCV_PCREL_LO12_I, RISCV_PCREL_LO12_S = 23, 24, 25
"""The lower parts name the instruction that holds the upper part, of whose target they are a part."""


def _fits(value: int, bits: int) -> int:
    """A signed number of so many bits, as it is written. Raises BuildError."""
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise BuildError(f"the program is too large: a reference spans {value} bytes")
    return value & (1 << bits) - 1


def _change(code: bytearray, at: int, keep: int, bits: int) -> None:
    (word,) = _WORD.unpack_from(code, at)
    _WORD.pack_into(code, at, word & keep | bits)


def _absolute64(code: bytearray, at: int, place: int, to: int) -> None:
    struct.pack_into("<Q", code, at, to)


def _relative32(code: bytearray, at: int, place: int, to: int) -> None:
    _WORD.pack_into(code, at, _fits(to - place, 32))


def _branch26(code: bytearray, at: int, place: int, to: int) -> None:
    _change(code, at, 0xFC000000, _fits(to - place >> 2, 26))


def _page21(code: bytearray, at: int, place: int, to: int) -> None:
    pages = _fits((to >> 12) - (place >> 12), 21)
    _change(code, at, 0x9F00001F, (pages & 3) << 29 | (pages >> 2) << 5)


def _low12(shift: int) -> Apply:
    def apply(code: bytearray, at: int, place: int, to: int) -> None:
        if to & (1 << shift) - 1:
            raise BuildError(f"a reference to {to:#x} is not aligned to {1 << shift}")
        _change(code, at, 0xFFC003FF, (to & 0xFFF) >> shift << 10)

    return apply


def _upper20(code: bytearray, at: int, place: int, to: int) -> None:
    _change(code, at, 0xFFF, _fits(to - place + 0x800 >> 12, 20) << 12)


def _call(code: bytearray, at: int, place: int, to: int) -> None:
    """auipc and jalr, in a row."""
    _upper20(code, at, place, to)
    _change(code, at + 4, 0xFFFFF, (to - place & 0xFFF) << 20)


def riscv_lower(kind: int, code: bytearray, at: int, distance: int) -> None:
    """The lower 12 bits of a distance, in an instruction that loads (I) or stores (S)."""
    low = distance & 0xFFF
    if kind == RISCV_PCREL_LO12_I:
        _change(code, at, 0xFFFFF, low << 20)
    else:
        _change(code, at, 0x1FFF07F, (low >> 5) << 25 | (low & 31) << 7)


KINDS: Mapping[int, Mapping[int, Apply]] = {
    # R_X86_64_64, PC32, PLT32
    X86_64: {1: _absolute64, 2: _relative32, 4: _relative32},
    # R_AARCH64_ABS64, PREL32, ADR_PREL_PG_HI21, ADD_ABS_LO12_NC, LDST8.., JUMP26, CALL26, LDST16/32/64/128
    AARCH64: {
        257: _absolute64,
        261: _relative32,
        275: _page21,
        277: _low12(0),
        278: _low12(0),
        282: _branch26,
        283: _branch26,
        284: _low12(1),
        285: _low12(2),
        286: _low12(3),
        299: _low12(4),
    },
    # R_RISCV_64, CALL, CALL_PLT, PCREL_HI20, 32_PCREL
    RISCV: {2: _absolute64, 18: _call, 19: _call, 23: _upper20, 57: _relative32},
}
"""Machine -> kind of relocation -> how it is written."""

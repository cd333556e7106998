"""Relocatable objects in ELF's 64-bit little-endian format, as far as LLVM writes it for kernels.

Field names and numbers: System V Application Binary Interface, chapters 4 and 5 (Object Files).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from ..errors import BuildError

SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR = 1, 2, 4
_SYMTAB, _RELA, _NOBITS = 2, 4, 8
_RELOCATABLE = 1
_SHN_UNDEF, _SHN_LORESERVE = 0, 0xFF00

_HEADER = struct.Struct("<4sBBBB8xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")


@dataclass(frozen=True, slots=True)
class Section:
    """`data` of a section without contents in the file (.bss) is None; `size` holds for both."""

    name: str
    flags: int
    alignment: int
    size: int
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Symbol:
    """`section` None: defined elsewhere."""

    name: str
    section: int | None
    value: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """At `offset` of `section` stands a reference to `symbol` + `addend`, written as `kind` says."""

    section: int
    offset: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True, slots=True)
class ObjectFile:
    machine: int
    flags: int
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]

    @classmethod
    def read(cls, code: bytes) -> Self:
        """Raises BuildError for what is no such object, or is cut off."""
        try:
            return cls._read(code)
        except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
            raise BuildError(f"the object is damaged: {error}") from error

    @classmethod
    def _read(cls, code: bytes) -> Self:
        magic, wide, order, _, _, kind, machine, *rest = _HEADER.unpack_from(code)
        if (magic, wide, order, kind) != (b"\x7fELF", 2, 1, _RELOCATABLE):
            raise BuildError("the object is no relocatable ELF of 64 bits, little-endian")
        _, _, _, table, flags, _, _, _, entry_size, count, names_at = rest
        heads = [_SECTION.unpack_from(code, table + n * entry_size) for n in range(count)]
        names = _contents(code, heads[names_at])
        sections = tuple(
            Section(
                _word(names, name), flags_, max(1, align), size,
                None if type_ == _NOBITS else _slice(code, offset, size),
            )
            for name, type_, flags_, _, offset, size, _, _, align, _ in heads
        )  # fmt: skip
        symbols: tuple[Symbol, ...] = ()
        for head in heads:
            if head[1] == _SYMTAB:
                symbols = _symbols(_contents(code, head), _contents(code, heads[head[6]]), sections)
        relocations = [
            Relocation(head[7], offset, info & 0xFFFFFFFF, symbols[info >> 32], addend)
            for head in heads
            if head[1] == _RELA
            for offset, info, addend in _RELOCATION.iter_unpack(_contents(code, head))
        ]
        return cls(machine, flags, sections, symbols, tuple(relocations))


def _symbols(table: bytes, names: bytes, sections: tuple[Section, ...]) -> tuple[Symbol, ...]:
    found = []
    for name, _, _, index, value, _ in _SYMBOL.iter_unpack(table):
        known = index != _SHN_UNDEF and index < _SHN_LORESERVE
        word = _word(names, name) or (sections[index].name if known else "")
        found.append(Symbol(word, index if known else None, value))
    return tuple(found)


def _contents(code: bytes, head: tuple[int, ...]) -> bytes:
    return _slice(code, head[4], head[5])


def _slice(code: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(code):
        raise ValueError(f"{size} bytes at {offset} are beyond its end")
    return code[offset : offset + size]


def _word(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode()


def executable_header(machine: int, flags: int, entry: int, program_headers: int) -> bytes:
    """The header of an executable whose program headers follow at once."""
    head = _HEADER.pack(
        b"\x7fELF", 2, 1, 1, 0, 2, machine, 1, entry, _HEADER.size, 0, flags, _HEADER.size, 56,
        program_headers, 64, 0, 0,
    )  # fmt: skip
    assert len(head) == HEADER_BYTES
    return head


HEADER_BYTES = _HEADER.size
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
"""type, flags, offset, virtual address, physical address, bytes in the file, bytes in memory, alignment"""

LOAD, STACK = 1, 0x6474E551
EXECUTE, WRITE, READ = 1, 2, 4

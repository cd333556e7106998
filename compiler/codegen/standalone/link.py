"""A static linker for one object: what ld makes of it with -static, without symbols and debugging."""

from __future__ import annotations

from ..errors import BuildError
from . import elf
from .elf import ObjectFile, Relocation, Section
from .relocate import (
    KINDS,
    RISCV,
    RISCV_PCREL_HI20,
    RISCV_PCREL_LO12_I,
    RISCV_PCREL_LO12_S,
    riscv_lower,
)

_BASE = 0x400000
_PAGE = 1 << 16  # AArch64's kernels may use pages of 64 KiB
_MOST_BYTES = 64 << 20


def linked(code: bytes, extra: tuple[str, bytes], entry: str) -> bytes:
    """An executable that begins at `entry`, of an object and of one function more, by its name and machine
    code. Raises BuildError for a symbol that neither defines, and for what is too large.
    """
    made = ObjectFile.read(code)
    kinds = KINDS.get(made.machine)
    if kinds is None:
        raise BuildError(f"no executable can be linked for ELF's machine {made.machine}")
    image = _Image(made, extra[1])
    places = {extra[0]: image.extra_at}
    for symbol in made.symbols:
        if symbol.name and symbol.section in image.at:
            places[symbol.name] = image.at[symbol.section] + symbol.value

    def target(relocation: Relocation) -> int:
        symbol = relocation.symbol
        if symbol.section is not None:
            if symbol.section not in image.at:
                raise BuildError(f"code refers to {symbol.name!r}, which is not loaded")
            return image.at[symbol.section] + symbol.value + relocation.addend
        if symbol.name not in places:
            raise BuildError(f"the code calls {symbol.name}, and a program of its own has no library")
        return places[symbol.name] + relocation.addend

    loaded = [r for r in made.relocations if r.section in image.at]
    is_riscv = made.machine == RISCV
    # Where the upper part of an address is made, and which address that is.
    upper = {
        image.at[r.section] + r.offset: target(r) for r in loaded if is_riscv and r.kind == RISCV_PCREL_HI20
    }
    for r in loaded:
        place, at = image.at[r.section] + r.offset, image.offset[r.section] + r.offset
        if is_riscv and r.kind in (RISCV_PCREL_LO12_I, RISCV_PCREL_LO12_S):
            there = target(r)
            riscv_lower(r.kind, image.bytes, at, upper[there] - there)
        elif r.kind in kinds:
            kinds[r.kind](image.bytes, at, place, target(r))
        else:
            raise BuildError(f"relocation {r.kind} of ELF's machine {made.machine} is not known")
    if entry not in places:
        raise BuildError(f"the program has no {entry}")
    return image.file(made, places[entry])


class _Image:
    """Where everything lies: headers and constants, then code, then what is written, each in pages of its own
    with no more rights than it needs. In the file they follow each other closely: addresses run ahead of
    offsets by one page more from one to the next.
    """

    def __init__(self, made: ObjectFile, extra: bytes) -> None:
        self.at: dict[int | None, int] = {}
        self.offset: dict[int, int] = {}
        self.bytes = bytearray(elf.HEADER_BYTES + 4 * elf.PROGRAM_HEADER.size)
        self._ahead = _BASE
        self._segments: list[tuple[int, int, int, int]] = []
        wanted = [(n, s) for n, s in enumerate(made.sections) if s.flags & elf.SHF_ALLOC and _is_needed(s)]
        wanted.sort(key=lambda one: one[1].data is None)
        for right, mask in (
            (elf.READ, 0),
            (elf.READ | elf.EXECUTE, elf.SHF_EXECINSTR),
            (elf.READ | elf.WRITE, elf.SHF_WRITE),
        ):
            start = len(self.bytes) if mask else 0
            for n, section in wanted:
                if section.flags & (elf.SHF_EXECINSTR | elf.SHF_WRITE) == mask:
                    self._place(n, section)
            if mask == elf.SHF_EXECINSTR:
                self._align(16)
                self.extra_at = self._ahead + len(self.bytes)
                self.bytes += extra
            self._segments.append((right, start, self._ahead + start, len(self.bytes) - start))
            self._ahead += _PAGE
        if len(self.bytes) > _MOST_BYTES:
            raise BuildError(f"the program has {len(self.bytes)} bytes, and the limit is {_MOST_BYTES}")

    def _align(self, to: int) -> None:
        self.bytes += bytes(-len(self.bytes) % to)

    def _place(self, number: int, section: Section) -> None:
        self._align(section.alignment)
        self.at[number] = self._ahead + len(self.bytes)
        self.offset[number] = len(self.bytes)
        self.bytes += bytes(section.size) if section.data is None else section.data

    def file(self, made: ObjectFile, entry: int) -> bytes:
        heads = [
            elf.PROGRAM_HEADER.pack(elf.LOAD, right, start, address, address, size, size, _PAGE)
            for right, start, address, size in self._segments
            if size
        ]
        heads.append(elf.PROGRAM_HEADER.pack(elf.STACK, elf.READ | elf.WRITE, 0, 0, 0, 0, 0, 16))
        head = elf.executable_header(made.machine, made.flags, entry, len(heads)) + b"".join(heads)
        self.bytes[: len(head)] = head
        return bytes(self.bytes)


def _is_needed(section: Section) -> bool:
    """Nothing here unwinds a stack."""
    return section.name != ".eh_frame" and section.size > 0

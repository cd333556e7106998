"""Objects for other processors: every operation of every dtype has instructions there, and calls nothing."""

import re
import struct
from dataclasses import replace

import pytest

from tilewright.compiler.codegen.llvm.jit import emit_assembly, emit_object
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.target import Target
from tilewright.compiler.target.cpus import CPUS

from .every_operation import DTYPES, conversions, operations, pairs, program

TARGETS = (
    "llvm -mcpu=cortex-a53",
    "llvm -mcpu=neoverse-n1",
    "llvm -mcpu=x86-64",
    "llvm -mcpu=sapphirerapids",
    *(f"llvm -mcpu={cpu}" for cpu in ("generic-rv64", "sifive-x280", "spacemit-x60") if cpu in CPUS),
)


def undefined_symbols(code: bytes) -> set[str]:
    """What a relocatable ELF object of 64 bits expects of others."""
    assert code[:6] == b"\x7fELF\x02\x01"
    (sections,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + n * size) for n in range(count)]
    found = set()
    for _, kind, _, _, offset, length, link, _, _, _ in headers:
        if kind != 2:  # the symbol table
            continue
        names = headers[link][4]
        for at in range(offset + 24, offset + length, 24):
            name, _, _, section = struct.unpack_from("<IBBH", code, at)
            if section == 0:
                found.add(code[names + name : code.index(0, names + name)].decode())
    return found


def test_a_call_of_a_library_is_seen_among_the_undefined_symbols() -> None:
    text = """define double @f(double %x) {
  %y = frem double %x, 3.0
  ret double %y
}"""
    for target in TARGETS:
        assert undefined_symbols(emit_object(text, Target.parse(target))) == {"fmod"}


@pytest.mark.parametrize("kind", ["serial", "vectorized"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_every_operation_and_conversion_has_instructions_of_its_own(
    target: str, dtype: str, kind: str
) -> None:
    parsed, (a, b) = Target.parse(target), pairs(dtype)
    for parts, inputs in ((operations(dtype), (a, b)), (conversions(), (a,))):
        text = lower(program(parts, inputs, kind), parsed, max_instructions=20_000).text
        assert undefined_symbols(emit_object(text, parsed)) == set()


def test_kernels_that_need_the_same_functions_stand_in_one_object() -> None:
    target, (a, b) = Target.parse("llvm -mcpu=cortex-a53"), pairs("float32")
    waves = {op: f for op, f in operations("float32").items() if op in ("sin", "cos", "pow")}
    texts = [
        lower(replace(program(waves, (a, b), "vectorized"), name=name), target).text
        for name in ("one", "llvm")
    ]
    lines = [line for text in texts for line in text.splitlines()]
    declared = dict.fromkeys(line for line in lines if line.startswith("declare"))
    joined = "\n".join([*declared, *(line for line in lines if not line.startswith("declare"))])
    assert undefined_symbols(emit_object(joined, target)) == set()


@pytest.mark.parametrize(
    ("target", "instructions"),
    [
        ("llvm -mcpu=x86-64", set()),
        ("llvm -mcpu=x86-64-v3", {"vcvtph2ps", "vcvtps2ph"}),
        ("llvm -mcpu=cortex-a53", {"fcvtl", "fcvtn"}),
    ],
)
def test_float16_is_converted_by_instructions_where_there_are_some(
    target: str, instructions: set[str]
) -> None:
    parsed, (a, b) = Target.parse(target), pairs("float16")
    add = {"add": operations("float16")["add"]}
    words = set(re.findall(r"^\t(\w+)", emit_assembly(
        lower(program(add, (a, b), "vectorized"), parsed).text, parsed), re.M))  # fmt: skip
    assert {w for w in words if w.startswith(("vcvt", "fcvt"))} == instructions

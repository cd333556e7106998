"""The table of processors against LLVM, which knows them too."""

import pytest

from tilewright.compiler.codegen.llvm.jit import emit_assembly
from tilewright.compiler.target import Target
from tilewright.compiler.target.cpus import ALIASES, CPUS, nearest
from tilewright.compiler.target.features import known_features


def multiply_add(lanes: int) -> str:
    vector = f"<{lanes} x float>"
    return f"""\
declare {vector} @llvm.fmuladd.v{lanes}f32({vector}, {vector}, {vector})
define void @f(ptr %a, ptr %b, ptr %c) {{
  %x = load {vector}, ptr %a, align 4
  %y = load {vector}, ptr %b, align 4
  %z = load {vector}, ptr %c, align 4
  %r = call {vector} @llvm.fmuladd.v{lanes}f32({vector} %x, {vector} %y, {vector} %z)
  store {vector} %r, ptr %c, align 4
  ret void
}}
"""


@pytest.mark.parametrize("name", CPUS)
def test_llvm_knows_the_processor_its_vectors_and_its_fused_multiply_add(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    target = Target.parse(f"llvm -mcpu={name}")
    assembly = emit_assembly(multiply_add(target.lanes(32)), target)
    match target.architecture:
        case "aarch64":
            register, fused = "v0", "fmla" in assembly
        case "riscv64":
            vectors = "v" in target.features
            register, fused = ("v8", "vfma" in assembly) if vectors else ("fa0", "fmadd.s" in assembly)
        case _:
            register = {64: "zmm", 32: "ymm", 16: "xmm"}[target.vector_bytes]
            fused = "vfmadd" in assembly
    # LLVM says on stderr that it does not know a processor or a feature.
    assert (register in assembly, fused, capfd.readouterr()) == (True, target.has_fma, ("", ""))


@pytest.mark.parametrize("name", CPUS)
def test_a_processor_has_a_first_level_cache_no_larger_than_its_second(name: str) -> None:
    cpu = CPUS[name]
    assert 0 < cpu.l1d <= cpu.l2


def test_every_other_name_leads_to_a_processor() -> None:
    assert set(ALIASES.values()) <= set(CPUS)


def test_a_processor_of_the_future_is_described_by_the_nearest_general_one() -> None:
    everything = frozenset(known_features("x86_64"))
    assert [
        nearest("x86_64", everything).name,
        nearest("x86_64", everything - {"avx512vl"}).name,
        nearest("x86_64", frozenset()).name,
        nearest("aarch64", frozenset(["neon", "sve"])).name,
    ] == ["x86-64-v4", "x86-64-v3", "x86-64", "cortex-a53"]

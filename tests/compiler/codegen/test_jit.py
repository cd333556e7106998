"""LLVM text to machine code in this process."""

import ctypes
import gc
import pickle

import numpy as np
import pytest

from tilewright.compiler.codegen.llvm.jit import (
    BuildError,
    compile_ir,
    emit_assembly,
    emit_object,
)
from tilewright.compiler.target import Target
from tilewright.compiler.target.cpus import CPUS
from tilewright.compiler.target.host import architecture
from tilewright.compiler.target.runs import missing_features

HOST = Target.parse("llvm")

ADD = """\
define void @add(ptr %a, ptr %b) {
  %x = load float, ptr %a, align 4
  %y = fadd float %x, 1.0
  store float %y, ptr %b, align 4
  ret void
}
"""

FILL = """\
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @fill(ptr %a, i64 %n) {
  call void @llvm.memset.p0.i64(ptr %a, i8 7, i64 %n, i1 false)
  ret void
}
"""

FOREIGN = "llvm -mcpu=neoverse-n1" if architecture() == "x86_64" else "llvm -mcpu=x86-64-v3"


def refusal(text: str, target: Target = HOST, functions: tuple[str, ...] = ("add",)) -> str:
    with pytest.raises(BuildError) as caught:
        compile_ir(text, target, functions)
    return str(caught.value)


def test_a_function_is_called_at_its_address() -> None:
    loaded = compile_ir(ADD, HOST, ["add"])
    a, b = np.array([41.0], np.float32), np.zeros(1, np.float32)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.address("add"))(
        a.ctypes.data, b.ctypes.data
    )
    assert b[0] == 42.0


def test_two_objects_may_define_the_same_name() -> None:
    first, second = compile_ir(ADD, HOST, ["add"]), compile_ir(ADD, HOST, ["add"])
    assert first.address("add") != second.address("add")


def test_objects_come_and_go_in_any_order() -> None:
    for _ in range(20):
        compile_ir(ADD, HOST, ["add"])
        refusal(ADD.replace("store float", "store double"))
    gc.collect()
    assert compile_ir(ADD, HOST, ["add"]).functions == ("add",)


def test_a_loaded_object_holds_its_text_and_target() -> None:
    loaded = compile_ir(ADD, HOST, ["add"])
    assert (loaded.text, loaded.target) == (ADD, HOST)


def test_memory_may_be_filled_by_the_system() -> None:
    loaded = compile_ir(FILL, HOST, ["fill"])
    array = np.zeros(100_000, np.uint8)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.address("fill"))(
        array.ctypes.data, array.nbytes
    )
    assert (array == 7).all()


def test_assembly_names_the_function() -> None:
    assert "\nadd:\n" in compile_ir(ADD, HOST, ["add"]).assembly()


def test_text_that_does_not_parse_is_refused_with_its_line() -> None:
    assert refusal(ADD.replace("fadd float %x", "fadd float %q")) == (
        "LLVM refused line 3: use of undefined value '%q'\n  %y = fadd float %q, 1.0"
    )


def test_text_of_a_wrong_type_is_refused_with_its_line() -> None:
    assert refusal(ADD.replace("store float", "store double")) == (
        "LLVM refused line 4: '%y' defined with type 'float' but expected 'double'\n"
        "  store double %y, ptr %b, align 4"
    )


def test_a_value_used_before_it_is_computed_is_refused_with_both_instructions() -> None:
    early = ADD.replace("  %x = load float, ptr %a, align 4\n", "").replace(
        "  ret void", "  %x = load float, ptr %a, align 4\n  ret void"
    )
    assert refusal(early) == (
        "LLVM refused the module: Instruction does not dominate all uses!\n"
        "  %x = load float, ptr %a, align 4\n  %y = fadd float %x, 1.000000e+00"
    )


def test_an_intrinsic_that_is_a_library_call_is_refused() -> None:
    line = "declare <8 x float> @llvm.exp.v8f32(<8 x float>)"
    assert refusal(f"{line}\n{ADD}") == f"a kernel may call no library function\n  {line}"


def test_a_function_from_outside_is_refused() -> None:
    line = "declare float @expf(float)"
    assert refusal(f"{line}\n{ADD}") == f"a kernel may call no library function\n  {line}"


def test_fma_is_refused_where_it_would_be_a_library_call() -> None:
    line = "declare float @llvm.fma.f32(float, float, float)"
    with pytest.raises(BuildError) as caught:
        emit_object(f"{line}\n{ADD}", Target.parse("llvm -mcpu=x86-64"))
    assert str(caught.value) == f"a kernel may call no library function\n  {line}"


def test_fma_is_accepted_where_it_is_an_instruction() -> None:
    line = "declare float @llvm.fma.f32(float, float, float)"
    assert emit_object(f"{line}\n{ADD}", Target.parse("llvm -mcpu=x86-64-v3")) != b""


def test_a_function_that_the_text_does_not_define_is_refused() -> None:
    assert refusal(ADD, functions=("sub",)) == "the object could not be loaded: Symbols not found: [ sub ]"


def test_code_for_another_architecture_is_not_loaded() -> None:
    target = Target.parse(FOREIGN)
    assert refusal(ADD, target) == (
        f"code for {target.mcpu} cannot run on this machine, which lacks {target.architecture}; "
        "its assembly and object can be emitted"
    )


def test_code_for_features_that_the_machine_lacks_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.compiler.target.runs.architecture", lambda: "x86_64")
    monkeypatch.setattr("tilewright.compiler.target.runs.host_cpu", lambda: CPUS["x86-64"])
    assert refusal(ADD, Target.parse("llvm -mcpu=x86-64 -mattr=+avx2")) == (
        "code for x86-64 cannot run on this machine, which lacks avx, avx2, sse3, sse4.1, sse4.2, ssse3; "
        "its assembly and object can be emitted"
    )


def test_the_machine_lacks_nothing_of_its_own_target() -> None:
    assert missing_features(HOST) == ()


@pytest.mark.parametrize(
    ("target", "instruction"),
    [
        ("llvm -mcpu=znver4", "vaddss"),
        ("llvm -mcpu=x86-64", "addss"),
        ("llvm -mcpu=neoverse-v2", "fadd"),
        ("llvm -mcpu=apple-m1", "fadd"),
    ],
)
def test_assembly_is_emitted_for_any_target(target: str, instruction: str) -> None:
    words = emit_assembly(ADD, Target.parse(target)).split()
    assert instruction in words


def test_a_feature_switched_off_is_not_used() -> None:
    assembly = emit_assembly(ADD, Target.parse("llvm -mcpu=znver4 -mattr=-avx"))
    assert ("vaddss" in assembly, "addss" in assembly) == (False, True)


def test_code_generation_says_nothing_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    compile_ir(ADD, HOST, ["add"])
    refusal(ADD, functions=("sub",))
    assert capfd.readouterr() == ("", "")


def test_a_build_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(BuildError("refused", "ret void")))
    assert (str(error), error.message, error.line) == ("refused\n  ret void", "refused", "ret void")


def test_an_object_is_the_same_each_time() -> None:
    target = Target.parse("llvm -mcpu=x86-64-v3")
    assert emit_object(ADD, target) == emit_object(ADD, target)

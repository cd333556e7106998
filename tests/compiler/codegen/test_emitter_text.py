"""The whole text of small kernels."""

from tilewright.compiler import te
from tilewright.compiler.codegen.lower import lower
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime import ParamInfo, WorkspaceInfo
from tilewright.compiler.schedule import Schedule
from tilewright.compiler.target import Target

AVX2 = Target.parse("llvm -mcpu=x86-64-v3")


def saxpy(n: int) -> PrimFunc:
    x, y = te.placeholder((n,), "float32", name="X"), te.placeholder((n,), "float32", name="Y")
    return te.create_prim_func([x, y, te.compute((n,), lambda i: x[i] * 2.0 + y[i], name="Z")], name="saxpy")


def test_a_serial_loop() -> None:
    assert lower(saxpy(100), AVX2).text == (
        "declare float @llvm.fmuladd.f32(float, float, float)\n"
        "define void @saxpy(ptr noalias %b0_X, ptr noalias %b1_Y, ptr noalias %b2_Z) nounwind {\n"
        "entry:\n"
        "  br label %h1\n"
        "h1:\n"
        "  %t2 = phi i64 [ 0, %entry ], [ %t9, %h1 ]\n"
        "  %t3 = getelementptr float, ptr %b0_X, i64 %t2\n"
        "  %t4 = load float, ptr %t3, align 4\n"
        "  %t5 = getelementptr float, ptr %b1_Y, i64 %t2\n"
        "  %t6 = load float, ptr %t5, align 4\n"
        "  %t7 = call float @llvm.fmuladd.f32(float %t4, float 0x4000000000000000, float %t6)\n"
        "  %t8 = getelementptr float, ptr %b2_Z, i64 %t2\n"
        "  store float %t7, ptr %t8, align 4\n"
        "  %t9 = add nuw nsw i64 %t2, 1\n"
        "  %t10 = icmp slt i64 %t9, 100\n"
        "  br i1 %t10, label %h1, label %x1\n"
        "x1:\n"
        "  ret void\n"
        "}\n"
    )


def test_a_masked_tail() -> None:
    sch = Schedule(saxpy(13))
    sch.vectorize(*sch.get_loops(sch.get_block("Z")))
    mask = "<8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 false, i1 false, i1 false>"
    v8 = "<8 x float>"
    assert lower(sch.func, AVX2).text == (
        f"declare {v8} @llvm.fmuladd.v8f32({v8}, {v8}, {v8})\n"
        f"declare {v8} @llvm.masked.load.v8f32.p0(ptr, i32 immarg, <8 x i1>, {v8})\n"
        f"declare void @llvm.masked.store.v8f32.p0({v8}, ptr, i32 immarg, <8 x i1>)\n"
        "define void @saxpy(ptr noalias %b0_X, ptr noalias %b1_Y, ptr noalias %b2_Z) nounwind {\n"
        "entry:\n"
        f"  %t1 = load {v8}, ptr %b0_X, align 4\n"
        f"  %t2 = load {v8}, ptr %b1_Y, align 4\n"
        f"  %t3 = call {v8} @llvm.fmuladd.v8f32({v8} %t1, {v8} splat (float 0x4000000000000000), {v8} %t2)\n"
        f"  store {v8} %t3, ptr %b2_Z, align 4\n"
        "  %t4 = getelementptr float, ptr %b0_X, i64 8\n"
        f"  %t5 = call {v8} @llvm.masked.load.v8f32.p0(ptr %t4, i32 4, {mask}, {v8} zeroinitializer)\n"
        "  %t6 = getelementptr float, ptr %b1_Y, i64 8\n"
        f"  %t7 = call {v8} @llvm.masked.load.v8f32.p0(ptr %t6, i32 4, {mask}, {v8} zeroinitializer)\n"
        f"  %t8 = call {v8} @llvm.fmuladd.v8f32({v8} %t5, {v8} splat (float 0x4000000000000000), {v8} %t7)\n"
        "  %t9 = getelementptr float, ptr %b2_Z, i64 8\n"
        f"  call void @llvm.masked.store.v8f32.p0({v8} %t8, ptr %t9, i32 4, {mask})\n"
        "  ret void\n"
        "}\n"
    )


def test_the_arguments_are_the_parameters_and_then_the_workspaces() -> None:
    a = te.placeholder((30,), "int16", name="A")
    b = te.compute((30,), lambda i: a[i] * 3, name="B")
    lowered = lower(
        te.create_prim_func([a, te.compute((30,), lambda i: b[i] + 1, name="C")], name="memcpy"), AVX2
    )
    assert (lowered.name, lowered.params, lowered.workspaces) == (
        "memcpy_",
        (ParamInfo("A", "int16", (30,), False), ParamInfo("C", "int16", (30,), True)),
        (WorkspaceInfo(60),),
    )


def test_equal_programs_give_equal_texts() -> None:
    first, second = (lower(saxpy(100), AVX2).text for _ in range(2))
    assert first == second


def test_a_masked_row_that_is_not_there_is_read_at_the_first_element() -> None:
    x = te.placeholder((4, 5), "float32", name="X")
    shifted = te.compute((4, 5), lambda i, j: te.if_then_else(i >= 1, x[i - 1, j], 0.0), name="Y")
    sch = Schedule(te.create_prim_func([x, shifted]))
    _, j = sch.get_loops(sch.get_block("Y"))
    _, lanes = sch.split(j, [None, 8])
    sch.vectorize(lanes)
    lines = [line.strip() for line in lower(sch.func, AVX2).text.splitlines()]
    read = next(line for line in lines if "@llvm.masked.load" in line and "call" in line)
    address = read.split("(ptr ")[1].split(",")[0]
    made = next(line for line in lines if line.startswith(f"{address} = "))
    assert made.startswith(f"{address} = select i1 ")
    assert made.endswith(", ptr %b0_X")

"""The program after each pass, as one text."""

import pytest

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.ir import PrimFunc, parse_script
from tilewright.compiler.schedule import Schedule


@pytest.fixture
def rows() -> PrimFunc:
    """S[i] = the sum over k of 2 A[i, k]; 4 x 6, in two stages."""
    a = te.placeholder((4, 6), "float32", name="A")
    b = te.compute((4, 6), lambda i, k: a[i, k] * 2, name="B")
    k = te.reduce_axis((0, 6), name="k")
    return te.create_prim_func(
        [a, te.compute((4,), lambda i: te.sum(b[i, k], axis=k), name="S")], name="rows"
    )


def tiled(rows: PrimFunc) -> Schedule:
    sch = Schedule(rows)
    i, k = sch.get_loops(sch.get_block("S"))
    k0, _ = sch.split(k, [None, 4])
    sch.reorder(k0, i)
    sch.compute_at(sch.get_block("B"), i)
    sch.vectorize(sch.get_loops(sch.get_block("B"))[-1])
    return sch


def test_a_dump_shows_the_program_after_each_pass(rows: PrimFunc) -> None:
    assert tw.dump(tiled(rows), "llvm -mcpu=x86-64-v3") == GOLDEN


def test_every_program_in_a_dump_reads_back(rows: PrimFunc) -> None:
    parts = tw.dump(tiled(rows), "llvm -mcpu=x86-64-v3").split("\n\n")
    programs = [p.split("\n", 1)[1] for p in parts if "\n" in p.rstrip("\n")]
    assert [str(parse_script(p, check=False)).rstrip("\n") for p in programs] == [
        p.rstrip("\n") for p in programs
    ]


def test_a_program_is_dumped_as_it_stands(rows: PrimFunc) -> None:
    first = tw.dump(rows).split("\n\n")[0]
    assert first == f"# rows\n{rows}".rstrip("\n")


def test_a_dump_ends_with_the_pass_that_refuses_the_program(rows: PrimFunc) -> None:
    sch = Schedule(rows)
    sch.set_scope(sch.get_block("B"), 0, "register")
    text = tw.dump(sch, "llvm -mcpu=x86-64-v3")
    *before, last = text.split("\n\n")
    assert last.startswith(
        "# CheckRegisters(most=65536): failed\n"
        "#   check_registers: register buffer B is indexed by loop 'i' in 'B'; "
        "unroll that loop, or move all that uses the buffer inside of it\n"
        "#   "
    )
    assert all(line.startswith("#") for line in last.splitlines())
    assert before[0].startswith("# rows\ndef rows(")
    assert before[-2].startswith("# Compact()")


def test_what_is_no_program_is_refused(rows: PrimFunc) -> None:
    with pytest.raises(TypeError, match=r"^dump takes a PrimFunc or a Schedule, got str$"):
        tw.dump(str(rows))  # type: ignore[arg-type]
    with pytest.raises(tw.compiler.target.TargetError):
        tw.dump(rows, "nothing")


GOLDEN = """\
# rows
def rows(A: float32[4, 6], S: float32[4]):
    B = alloc(float32[4, 6])
    for k_0 in range(2):
        for i in range(4):
            for B_i in range(1):
                for B_k in vectorized(4):
                    with block('B', i=spatial(i + B_i, 4), k=spatial(k_0 * 4 + B_k, 6)):
                        if k_0 * 4 + B_k < 6:
                            B[i, k] = A[i, k] * 2.0
            for k_1 in range(4):
                with block('S', i=spatial(i), k=reduce(k_0 * 4 + k_1, 6)):
                    if k_0 * 4 + k_1 < 6:
                        with init():
                            S[i] = 0.0
                        S[i] += B[i, k]

# CheckConcrete(): unchanged

# LowerInit()
def rows(A: float32[4, 6], S: float32[4]):
    B = alloc(float32[4, 6])
    for i in range(4):
        with block('S_init'):
            S[i] = 0.0
    for k_0 in range(2):
        for i in range(4):
            for B_i in range(1):
                for B_k in vectorized(4):
                    with block('B', i=spatial(i + B_i, 4), k=spatial(k_0 * 4 + B_k, 6)):
                        if k_0 * 4 + B_k < 6:
                            B[i, k] = A[i, k] * 2.0
            for k_1 in range(4):
                with block('S', i=spatial(i), k=reduce(k_0 * 4 + k_1, 6)):
                    if k_0 * 4 + k_1 < 6:
                        S[i] += B[i, k]

# LegalizeVectors(vector_bytes=32, unroll_limit=16): unchanged

# Simplify(threads=1)
def rows(A: float32[4, 6], S: float32[4]):
    B = alloc(float32[4, 6])
    for i in range(4):
        with block('S_init'):
            S[i] = 0.0
    for k_0 in range(2):
        for i in range(4):
            for B_k in vectorized(4):
                if k_0 * 4 + B_k < 6:
                    B[i, k_0 * 4 + B_k] = A[i, k_0 * 4 + B_k] * 2.0
            for k_1 in range(4):
                if k_0 * 4 + k_1 < 6:
                    S[i] += B[i, k_0 * 4 + k_1]

# CheckVectors(): unchanged

# CheckReads(): unchanged

# CheckSteps(): unchanged

# CheckOverlap(): unchanged

# CheckAhead(): unchanged

# Compact()
def rows(A: float32[4, 6], S: float32[4]):
    B = alloc(float32[1, 4])
    for i in range(4):
        with block('S_init'):
            S[i] = 0.0
    for k_0 in range(2):
        for i in range(4):
            for B_k in vectorized(4):
                with block('B', free=1):
                    if k_0 * 4 + B_k < 6:
                        B[0, B_k] = A[i, k_0 * 4 + B_k] * 2.0
            for k_1 in range(4):
                if k_0 * 4 + k_1 < 6:
                    S[i] += B[0, k_1]

# AlignStorage(): unchanged

# CheckRegisters(most=65536): unchanged
"""

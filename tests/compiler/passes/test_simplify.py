"""Simplify: what is left when extents are numbers."""

from dataclasses import replace

from tilewright.compiler.ir import IterKind, PrimFunc
from tilewright.compiler.passes.simplify import Simplify
from tilewright.compiler.schedule import Schedule


def test_loops_of_one_iteration_and_provable_predicates_vanish(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    (i,) = sch.get_loops(sch.get_block("B"))
    sch.split(i, [None, 10, 3])
    (i,) = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 1, 5, 1])
    assert str(Simplify().run(sch.func)) == (
        "def chain(A: float32[20], C: float32[20]):\n"
        "    B = alloc(float32[20])\n"
        "    for i_1 in range(10):\n"
        "        for i_2 in range(3):\n"
        "            if i_1 * 3 + i_2 < 20:\n"
        "                B[i_1 * 3 + i_2] = A[i_1 * 3 + i_2] * 2.0\n"
        "    for i_0_1 in range(4):\n"
        "        for i_2_1 in range(5):\n"
        "            C[i_0_1 * 5 + i_2_1] = B[i_0_1 * 5 + i_2_1] + 1.0\n"
    )


def test_of_predicates_that_imply_each_other_the_strongest_one_stays(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    (i,) = sch.get_loops(sch.get_block("C"))
    sch.split(i, [None, 8])
    _, block = sch.func.block("C")
    (p,) = block.predicates
    three = replace(block, predicates=(p, p + 3, p - 1))
    func = sch.func.rewrite(lambda s: three if s is block else s)
    assert [repr(p) for p in Simplify().run(func).block("C")[1].predicates] == ["i_0 * 8 + i_1 - 17"]


def test_blocks_that_never_run_vanish_with_their_loops(chain: PrimFunc) -> None:
    block = chain.block("B")[1]
    never = replace(block, predicates=(block.binds[0] + 1,))
    assert str(Simplify().run(chain.rewrite(lambda s: never if s is block else s))) == (
        "def chain(A: float32[20], C: float32[20]):\n"
        "    B = alloc(float32[20])\n"
        "    for i in range(20):\n"
        "        C[i] = B[i] + 1.0\n"
    )


def test_buffers_that_nobody_uses_vanish(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    sch.compute_inline(sch.get_block("B"))
    spare = replace(sch.func, allocs=chain.allocs)
    assert Simplify().run(spare).allocs == ()


def test_the_loops_become_the_iteration_variables(matmul: PrimFunc) -> None:
    sch = Schedule(matmul)
    sch.split(sch.get_loops(sch.get_block("C"))[2], [None, 4])
    block = Simplify().run(sch.func).block("C")[1]
    kinds = dict(zip((v.name for v in block.iters), block.kinds, strict=True))
    s, r = IterKind.SPATIAL, IterKind.REDUCE
    assert kinds == {"i": s, "j": s, "k_0": r, "k_1": r}


def test_parallel_loops_run_serially_on_one_thread(chain: PrimFunc) -> None:
    sch = Schedule(chain)
    sch.parallel(*sch.get_loops(sch.get_block("C")))
    assert "parallel" not in str(Simplify().run(sch.func))
    assert "parallel" in str(Simplify(threads=2).run(sch.func))

"""Programs as text, by their whole text."""

from tilewright.compiler import te, topi
from tilewright.compiler.ir import script
from tilewright.compiler.schedule import Schedule


def test_a_reduction_prints_its_init_beside_its_step(row_sums):
    assert script(row_sums) == (
        "def row_sums(A: float32[2, 3], S: float32[2]):\n"
        "    for i in range(2):\n"
        "        for k in range(3):\n"
        "            with block('S'):\n"
        "                with init():\n"
        "                    S[i] = 0.0\n"
        "                S[i] += A[i, k]\n"
    )


def test_a_convolution_prints_its_three_stages():
    func = topi.create(
        {
            "op": "conv2d",
            "ci": 4,
            "h": 6,
            "w": 6,
            "co": 8,
            "kh": 3,
            "kw": 3,
            "pad": 1,
            "bias": True,
            "activation": "relu",
        }
    )
    assert script(func) == (
        "def conv2d(X: float32[1, 4, 6, 6], W: float32[8, 4, 3, 3], B: float32[8], Y: float32[1, 8, 6, 6]):\n"
        "    pad = alloc(float32[1, 4, 8, 8])\n"
        "    conv = alloc(float32[1, 8, 6, 6])\n"
        "    for n in range(1):\n"
        "        for c in range(4):\n"
        "            for h in range(8):\n"
        "                for w in range(8):\n"
        "                    pad[n, c, h, w] = "
        "(X[n, c, h - 1, w - 1] if (0 < h and h < 7 and 0 < w and w < 7) else 0.0)\n"
        "    for n in range(1):\n"
        "        for o in range(8):\n"
        "            for h in range(6):\n"
        "                for w in range(6):\n"
        "                    for c in range(4):\n"
        "                        for y in range(3):\n"
        "                            for x in range(3):\n"
        "                                with block('conv'):\n"
        "                                    with init():\n"
        "                                        conv[n, o, h, w] = 0.0\n"
        "                                    conv[n, o, h, w] += W[o, c, y, x] * pad[n, c, h + y, w + x]\n"
        "    for n in range(1):\n"
        "        for o in range(8):\n"
        "            for h in range(6):\n"
        "                for w in range(6):\n"
        "                    Y[n, o, h, w] = max(conv[n, o, h, w] + B[o], 0.0)\n"
    )


def test_every_kind_of_node_prints(every_node):
    assert script(every_node) == (
        "def every_node(A: float32[8, 6], N: int32[8, 6], B: float32[8, 6]):\n"
        "    for i in range(8):\n"
        "        for j in range(6):\n"
        "            B[i, j] = (exp((A[i - 1, j] if (0 < i) else -1.5)) "
        "if (A[i, j] > 0.5) | not_((N[i, j] == 3)) "
        "else max(A[min(i + j, 7), i // 2 + j - ((i // 2 + j) // 6) * 6], float32(i * 6 + j))) "
        "/ float32(N[i, j] << 2 ^ not_(N[i, j]))\n"
    )


def test_constants_print_as_short_as_their_dtype_allows():
    a = te.placeholder((2,), "float32", name="A")
    b = te.compute((2,), lambda i: a[i] * 0.1 + 1e-5, name="B")
    assert (
        script(te.create_prim_func([a, b], name="f")).splitlines()[-1] == "        B[i] = A[i] * 0.1 + 1e-05"
    )


def test_a_statement_can_be_marked():
    sch = Schedule(topi.create({"op": "elementwise", "shape": [4], "activation": "relu"}))
    ((path, _block),) = sch.func.blocks()
    assert script(sch.func, path[0], "this loop") == (
        "def elementwise(X: float32[4], Y: float32[4]):\n"
        "    for i0 in range(4):\n"
        "    ^^^^^^^^^^^^^^^^^^^ this loop\n"
        "        Y[i0] = max(X[i0], 0.0)\n"
    )


def test_a_program_without_dimensions_prints_empty_indices():
    a = te.placeholder((3,), "float32", name="A")
    k = te.reduce_axis((0, 3), name="k")
    total = te.compute((), lambda: te.sum(a[k], axis=k), name="total")
    assert script(te.create_prim_func([a, total], name="f")) == (
        "def f(A: float32[3], total: float32[()]):\n"
        "    for k in range(3):\n"
        "        with block('total'):\n"
        "            with init():\n"
        "                total[()] = 0.0\n"
        "            total[()] += A[k]\n"
    )

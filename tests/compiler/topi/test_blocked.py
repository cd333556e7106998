"""Convolution over channels in blocks computes what the same convolution over whole channels does."""

import numpy as np
import pytest

import tilewright as tw
from tilewright.compiler import te, topi
from tilewright.compiler.target import Target


def blocked(a: np.ndarray, block: int) -> np.ndarray:
    n, c, h, w = a.shape
    return np.ascontiguousarray(a.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2))


@pytest.mark.parametrize("block", [8, 16])
def test_blocks_of_channels_give_what_whole_channels_give(block: int) -> None:
    rng = np.random.default_rng(0)
    ci, co, size = 2 * block, 3 * block, 9
    x = rng.standard_normal((2, ci, size, size), np.float32)
    w = rng.standard_normal((co, ci, 3, 3), np.float32)
    b = rng.standard_normal(co).astype(np.float32)
    options = {"stride": 2, "pad": 1, "activation": "relu"}
    results = []
    for layout in ("NCHW", f"NCHW{block}c"):
        whole = layout == "NCHW"
        xs = x if whole else blocked(x, block)
        ws = w.reshape(co // block, block, ci // block, block, 3, 3).transpose(0, 2, 4, 5, 3, 1)
        ws = w if whole else np.ascontiguousarray(ws)
        places = [te.placeholder(a.shape, "float32", name=m) for a, m in ((xs, "X"), (ws, "W"), (b, "B"))]
        y = topi.conv2d(*places, layout=layout, **options)
        out = np.empty([int(str(e)) for e in y.shape], np.float32)
        tw.build(te.create_prim_func([*places, y]), target=Target.parse("llvm"))(xs, ws, b, out)
        results.append(out)
    np.testing.assert_allclose(results[1], blocked(results[0], block), rtol=1e-4, atol=1e-4)


def test_blocks_that_do_not_fit_are_refused() -> None:
    x = te.placeholder((1, 2, 9, 9, 8), "float32", name="X")
    w = te.placeholder((2, 2, 3, 3, 16, 16), "float32", name="W")
    with pytest.raises(te.TensorError, match="do not hold blocks of 16 channels that fit"):
        topi.conv2d(x, w, layout="NCHW16c")
    with pytest.raises(te.TensorError, match="one group"):
        topi.conv2d(x, w, layout="NCHW8c", groups=2)


def test_other_letters_are_no_blocks() -> None:
    x = te.placeholder((1, 2, 9, 9, 8), "float32", name="X")
    with pytest.raises(te.TensorError):
        topi.conv2d(x, x, layout="NCHW0c")

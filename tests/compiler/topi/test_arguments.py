"""Operators called with tensors of a wrong rank, shape or dtype, and with attributes that mean nothing, say
which argument of which operator is wrong and what would be right; never an error from deeper inside."""

import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.build import build


def t(*shape, dtype="float32"):
    return te.placeholder(shape, dtype, name="T")


#: For each operator: how it is called with tensors of these shapes, and the shapes it takes.
CALLS = {
    "matmul": (topi.matmul, [(4, 5), (5, 6)]),
    "dense": (topi.dense, [(4, 5), (5, 6), (6,)]),
    "conv1d": (topi.conv1d, [(1, 2, 8), (3, 2, 3), (3,)]),
    "conv2d": (topi.conv2d, [(1, 2, 8, 8), (3, 2, 3, 3), (3,)]),
    "conv3d": (topi.conv3d, [(1, 2, 8, 8, 8), (3, 2, 3, 3, 3), (3,)]),
    "conv2d_transpose": (topi.conv2d_transpose, [(1, 2, 8, 8), (2, 3, 3, 3), (3,)]),
    "depthwise_conv2d": (topi.depthwise_conv2d, [(1, 2, 8, 8), (2, 3, 3), (2,)]),
    "pad2d": (lambda x: topi.pad2d(x, 1), [(1, 2, 8, 8)]),
    "pool1d": (lambda x: topi.pool1d(x, "max", 2), [(1, 2, 8)]),
    "pool2d": (lambda x: topi.pool2d(x, "max", 2), [(1, 2, 8, 8)]),
    "pool3d": (lambda x: topi.pool3d(x, "max", 2), [(1, 2, 8, 8, 8)]),
    "layer_norm": (topi.layer_norm, [(4, 5), (5,), (5,)]),
    "epilogue": (topi.epilogue, [(4, 5), (5,)]),
}
#: Operators that take a tensor of any rank.
ANY_RANK = {
    "add": (topi.add, [(4, 5), (4, 5)]),
    "broadcast": (lambda a, b: topi.broadcast(a, b, "add"), [(4, 5), (5,)]),
    "unary": (lambda x: topi.unary(x, "relu"), [(4, 5)]),
    "softmax": (topi.softmax, [(4, 5)]),
    "reduce": (lambda x: topi.reduce(x, "sum"), [(4, 5)]),
    "cumulative": (topi.cumulative, [(4, 5)]),
    "transpose": (lambda x: topi.transpose(x, [1, 0]), [(4, 5)]),
}
BAD_RANKS = [
    (op, f, shapes, place, bad)
    for op, (f, shapes) in CALLS.items()
    for place, shape in enumerate(shapes)
    for bad in ((), (*shape, 1))
    # A batch of matrices is a matrix product too, and rows are whatever comes before the columns.
    if not (op == "matmul" and bad) and not (op in ("layer_norm", "epilogue") and place == 0)
]


@pytest.mark.parametrize(
    ("op", "f", "shapes", "place", "bad"), BAD_RANKS, ids=lambda x: getattr(x, "__name__", str(x))[:30]
)
def test_a_tensor_of_a_wrong_rank_is_named(op, f, shapes, place, bad):
    given = [t(*(bad if n == place else shape)) for n, shape in enumerate(shapes)]
    with pytest.raises(te.TensorError) as e:
        f(*given)
    argument = (["a", "b"] if op == "matmul" else ["x", "weight", "bias"])[place]
    if op in ("layer_norm", "epilogue"):
        argument = {"layer_norm": ["x", "gamma", "beta"], "epilogue": ["x", "bias"]}[op][place]
    message, at = str(e.value).split("\n")
    assert message.startswith(f"topi.{op}: {argument!r} must have ")
    assert message.endswith(f", got {given[place]!r}") and at.startswith("  at test_arguments.py:")


@pytest.mark.parametrize("op", [*CALLS, *ANY_RANK])
def test_what_is_no_tensor_is_named(op):
    f, shapes = {**CALLS, **ANY_RANK}[op]
    for place in range(len(shapes)):
        given = ["T" if n == place else t(*shape) for n, shape in enumerate(shapes)]
        with pytest.raises(te.TensorError, match=rf"^topi\.{op}: '\w+' must be a tensor, got str\n"):
            f(*given)


IMAGE, KERNEL = t(1, 2, 8, 8), t(3, 2, 3, 3)
REFUSED = {
    "an unknown output dtype": (
        lambda: topi.matmul(t(4, 5), t(5, 6), out_dtype="half"),
        "unknown dtype 'half'; known: int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, "
        "float32, float64, bfloat16, bool",
    ),
    "an empty stride": (
        lambda: topi.conv2d(IMAGE, KERNEL, stride=[]),
        "topi.conv2d: 'stride' must be an integer or 2 integers, got []",
    ),
    "three strides": (
        lambda: topi.conv2d(IMAGE, KERNEL, stride=(1, 1, 1)),
        "topi.conv2d: 'stride' must be an integer or 2 integers, got (1, 1, 1)",
    ),
    "a stride of floats": (
        lambda: topi.conv2d(IMAGE, KERNEL, stride=(1, 1.5)),
        "topi.conv2d: 'stride' must hold integers, got (1, 1.5)",
    ),
    "a stride of zero": (
        lambda: topi.conv2d(IMAGE, KERNEL, stride=0),
        "topi.conv2d: 'stride' must be at least 1, got 0",
    ),
    "an empty padding": (
        lambda: topi.pad2d(IMAGE, ()),
        "topi.pad2d: 'pad' must be an integer or 2 integers, got ()",
    ),
    "a negative padding": (
        lambda: topi.conv2d(IMAGE, KERNEL, pad=-1),
        "topi.conv2d: 'pad' must be at least 0, got -1",
    ),
    "an empty dilation": (
        lambda: topi.depthwise_conv2d(IMAGE, t(2, 3, 3), dilation=[]),
        "topi.depthwise_conv2d: 'dilation' must be an integer or 2 integers, got []",
    ),
    "no groups": (
        lambda: topi.conv2d(IMAGE, KERNEL, groups=0),
        "topi.conv2d: 'groups' must be at least 1, got 0",
    ),
    "an unknown layout": (
        lambda: topi.conv2d(IMAGE, KERNEL, layout="NCHWc"),
        "topi.conv2d: 'layout' must be one of NCHW, NHWC, got 'NCHWc'",
    ),
    "an unknown activation": (
        lambda: topi.conv2d(IMAGE, KERNEL, activation="swish"),
        "topi.conv2d: 'activation' must be one of none, relu, relu6, gelu, sigmoid, tanh, silu, got 'swish'",
    ),
    "channels that do not fit": (
        lambda: topi.conv2d(IMAGE, t(3, 5, 3, 3)),
        "topi.conv2d: 2 input and 3 output channels in 1 groups do not fit T: float32[3, 5, 3, 3]",
    ),
    "a kernel that is too large": (
        lambda: topi.conv1d(t(1, 2, 4), t(3, 2, 5)),
        "topi.conv1d: a kernel of 5 does not fit into 4 with the padding 0",
    ),
    "a bias of another length": (
        lambda: topi.conv2d(IMAGE, KERNEL, t(2)),
        "topi.conv2d: 'bias' must have 3 elements, one for each output channel, got T: float32[2]",
    ),
    "weights of another dtype": (
        lambda: topi.conv2d(IMAGE, t(3, 2, 3, 3, dtype="float16")),
        "topi.conv2d: T: float32[1, 2, 8, 8] and T: float16[3, 2, 3, 3] are of different dtypes",
    ),
    "an output padding beyond the stride": (
        lambda: topi.conv2d_transpose(IMAGE, t(2, 3, 3, 3), output_pad=1),
        "topi.conv2d_transpose: 'output_pad' must be below 'stride' (1), got 1",
    ),
    "a padding of everything": (
        lambda: topi.conv2d_transpose(t(1, 2, 1, 1), t(2, 3, 3, 3), pad=2),
        "topi.conv2d_transpose: the padding 2, 2 leaves nothing of the output of T: float32[1, 2, 1, 1]",
    ),
    "an empty window": (
        lambda: topi.pool2d(IMAGE, "max", []),
        "topi.pool2d: 'window' must be an integer or 2 integers, got []",
    ),
    "a window of padding": (
        lambda: topi.pool2d(IMAGE, "max", 2, pad=2),
        "topi.pool2d: 'pad' must be smaller than the window, got 2 for 2",
    ),
    "an unknown pooling": (
        lambda: topi.pool2d(IMAGE, "min", 2),
        "topi.pool2d: 'function' must be one of max, avg, got 'min'",
    ),
    "a pool of bools": (
        lambda: topi.pool1d(t(1, 2, 8, dtype="bool"), "max", 2),
        "topi.pool1d: 'x' must hold numbers, got T: bool[1, 2, 8]",
    ),
    "inner extents that differ": (
        lambda: topi.matmul(t(4, 5), t(6, 7)),
        "topi.matmul: T: float32[4, 5] has 5 columns and T: float32[6, 7] has 6 rows",
    ),
    "batches that differ": (
        lambda: topi.matmul(t(2, 4, 5), t(3, 5, 6)),
        "topi.matmul: the batch dimensions of T: float32[2, 4, 5] and T: float32[3, 5, 6] differ",
    ),
    "dense weights stored the other way round": (
        lambda: topi.dense(t(4, 5), t(6, 5)),
        "topi.dense: T: float32[4, 5] has 5 columns and T: float32[6, 5] takes 6",
    ),
    "shapes that do not broadcast": (
        lambda: topi.add(t(4, 5), t(4)),
        "topi.add: the shapes of T: float32[4, 5] and T: float32[4] do not broadcast: 5 and 4 in dimension 1",
    ),
    "an unknown broadcast": (
        lambda: topi.broadcast(t(4), t(4), "hypot"),
        "topi.broadcast: 'function' must be one of add, subtract, multiply, divide, floor_divide, remainder, "
        "maximum, minimum, less, equal, got 'hypot'",
    ),
    "no axes": (
        lambda: topi.reduce(t(4, 5), "sum", []),
        "topi.reduce: 'axes' must be one dimension or several, got []",
    ),
    "an axis beyond the rank": (
        lambda: topi.reduce(t(4, 5), "sum", [2]),
        "topi.reduce: 'axes' must hold dimensions from -2 to 1, got [2]",
    ),
    "an axis twice": (
        lambda: topi.reduce(t(4, 5), "sum", [1, -1]),
        "topi.reduce: 'axes' holds a dimension twice: [1, -1]",
    ),
    "a reduction of one number": (
        lambda: topi.reduce(t(), "sum"),
        "topi.reduce: 'x' must have a dimension to reduce, got T: float32[]",
    ),
    "a mean of integers": (
        lambda: topi.reduce(t(4, dtype="int32"), "mean"),
        "topi.reduce: 'x' must hold floats, got T: int32[4]",
    ),
    "all of numbers": (
        lambda: topi.reduce(t(4), "all"),
        "topi.reduce: 'x' must hold booleans for 'all', got T: float32[4]",
    ),
    "a sum of booleans": (
        lambda: topi.reduce(t(4, dtype="bool"), "sum"),
        "topi.reduce: 'x' must hold numbers for 'sum', got T: bool[4]",
    ),
    "a dtype for a maximum": (
        lambda: topi.reduce(t(4), "max", out_dtype="float64"),
        "topi.reduce: 'out_dtype' is for sums, products and means, not for 'max'",
    ),
    "a cumulative sum of one number": (
        lambda: topi.cumulative(t()),
        "topi.cumulative: 'x' must have at least 1 dimension, got T: float32[]",
    ),
    "a cumulative sum along two axes": (
        lambda: topi.cumulative(t(4, 5), axis=[0, 1]),
        "topi.cumulative: 'axis' must be one dimension, got [0, 1]",
    ),
    "an empty order": (
        lambda: topi.transpose(t(4, 5), []),
        "topi.transpose: 'axes' must order the 2 dimensions of T: float32[4, 5], got []",
    ),
    "softmax of one number": (
        lambda: topi.softmax(t()),
        "topi.softmax: 'x' must have 1 to 8 dimensions, got T: float32[]",
    ),
    "softmax of integers": (
        lambda: topi.softmax(t(4, 5, dtype="int8")),
        "topi.softmax: 'x' must hold floats, got T: int8[4, 5]",
    ),
    "gelu of integers": (
        lambda: topi.unary(t(4, dtype="int8"), "gelu"),
        "topi.unary: 'x' must hold floats, got T: int8[4]",
    ),
    "gamma of another length": (
        lambda: topi.layer_norm(t(4, 5), t(4)),
        "topi.layer_norm: 'gamma' must have 5 elements, one for each column, got T: float32[4]",
    ),
    "a bias along no dimension": (
        lambda: topi.epilogue(t(4, 5), t(5), axis=2),
        "topi.epilogue: 'bias' T: float32[5] does not run along the dimension 2 of T: float32[4, 5]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_refusal_of(name):
    call, message = REFUSED[name]
    with pytest.raises((te.TensorError, te.TypeMismatch)) as e:
        call()
    first, at = str(e.value).split("\n")
    assert first == message and at.startswith("  at test_arguments.py:")


def run(params, *inputs):
    func = te.create_prim_func(params)
    out = interpret.poisoned(func.params[-1])
    build(func)(*inputs, out)
    return out


def test_a_matmul_of_int8_does_not_overflow():
    a = np.array([[-44, -20], [-126, 6]], "int8")
    b = np.array([[24, -75], [127, -101]], "int8")
    A, B = (te.placeholder((2, 2), "int8", name=n) for n in "AB")
    assert run([A, B, topi.matmul(A, B)], a, b).tolist() == [[-3596, 5320], [-2262, 8844]]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("out", [None, "int8", "int16", "uint8"])
def test_a_matmul_of_the_whole_range_wraps_only_into_the_dtype_asked_for(dtype, out):
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a, b = (rng.integers(info.min, info.max, (64, 64), dtype=dtype, endpoint=True) for _ in range(2))
    A, B = (te.placeholder((64, 64), dtype, name=n) for n in "AB")
    got = run([A, B, topi.matmul(A, B, out_dtype=out)], a, b)
    want = (a.astype("int64") @ b.astype("int64")).astype(out or "int32")
    assert got.dtype == want.dtype and np.array_equal(got, want)


INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
INTEGER_OPERATORS = {
    "matmul": lambda d: topi.matmul(t(4, 5, dtype=d), t(5, 6, dtype=d)),
    "dense": lambda d: topi.dense(t(4, 5, dtype=d), t(5, 6, dtype=d)),
    "conv1d": lambda d: topi.conv1d(t(1, 2, 8, dtype=d), t(3, 2, 3, dtype=d), pad=1),
    "conv2d": lambda d: topi.conv2d(t(1, 2, 4, 4, dtype=d), t(3, 2, 3, 3, dtype=d), pad=1),
    "conv2d_transpose": lambda d: topi.conv2d_transpose(t(1, 2, 3, 3, dtype=d), t(2, 3, 3, 3, dtype=d)),
    "depthwise_conv2d": lambda d: topi.depthwise_conv2d(t(1, 2, 4, 4, dtype=d), t(2, 3, 3, dtype=d)),
    "max pool": lambda d: topi.pool2d(t(1, 2, 4, 4, dtype=d), "max", 3, pad=1),
    "avg pool": lambda d: topi.pool2d(t(1, 2, 4, 4, dtype=d), "avg", 3, pad=1),
    "add": lambda d: topi.add(t(4, dtype=d), t(4, dtype=d)),
    "relu": lambda d: topi.unary(t(4, dtype=d), "relu"),
    "transpose": lambda d: topi.transpose(t(4, 5, dtype=d), [1, 0]),
    "sum": lambda d: topi.reduce(t(4, 5, dtype=d), "sum", 1),
    "prod": lambda d: topi.reduce(t(4, 5, dtype=d), "prod", 1),
    "min": lambda d: topi.reduce(t(4, 5, dtype=d), "min", 1),
    "argmax": lambda d: topi.reduce(t(4, 5, dtype=d), "argmax", 1),
    "cumulative": lambda d: topi.cumulative(t(4, 5, dtype=d)),
}
WIDENED = {"matmul", "dense", "conv1d", "conv2d", "conv2d_transpose", "depthwise_conv2d", "sum", "prod"}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", INTEGER_OPERATORS)
def test_the_declared_dtype_is_that_of_the_buffer_and_of_the_array(op, dtype):
    y = INTEGER_OPERATORS[op](dtype)
    want = (
        "int32"
        if op == "argmax" or ((op in WIDENED and "8" in dtype) or ("16" in dtype and op in WIDENED))
        else dtype
    )
    func = te.create_prim_func([*_placeholders(y), y])
    arrays = interpret.random_inputs(func, seed=1)
    expected = interpret.expected(func, arrays)
    module = build(func)
    module(*arrays)
    assert (
        str(y.dtype) == str(func.params[-1].dtype) == module.params[-1].dtype == str(arrays[-1].dtype) == want
    )
    assert interpret.check(expected, arrays).message == ""


def _placeholders(y):
    found, todo = [], [y]
    while todo:
        x = todo.pop(0)
        if x.stage is None and x not in found:
            found.append(x)
        todo += [] if x.stage is None else list(x.stage.inputs)
    return found


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_the_mean_of_integers_at_the_ends_of_their_range_is_rounded_down(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.max, info.max, info.max - 1, info.min, info.min, info.min + 1], dtype)[None, None]
    X = te.placeholder(x.shape, dtype, name="X")
    got = run([X, topi.pool1d(X, "avg", 2)], x)
    want = [info.max, (info.max - 1 + info.min) // 2, (2 * info.min + 1) // 2]
    assert got[0, 0].tolist() == want


@pytest.mark.parametrize(
    ("x", "activation", "message"),
    [
        (
            t(4)[0],
            "swish",
            "'activation' must be one of none, relu, relu6, gelu, sigmoid, tanh, silu, got 'swish'",
        ),
        (t(4), "relu", "'x' must be an element such as X[i], got the tensor 'T', which must be indexed"),
        (t(4, dtype="int8")[0], "gelu", "'gelu' is not for int8"),
        (t(4, dtype="bool")[0], "relu", "'relu' is not for bool"),
    ],
)
def test_an_activation_of_something_else_is_refused(x, activation, message):
    with pytest.raises(te.TensorError) as e:
        topi.activate(x, activation)
    assert str(e.value).startswith(f"topi.activate: {message}\n  at ")

"""Programs to interpret, by both interpreters."""

from tilewright.compiler import interpret, te

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def elementwise(element, *dtypes, n=64):
    """A program over 1-d inputs of the given dtypes: element(x, y, …) at each index."""
    xs = [te.placeholder((n,), dtype, name=f"X{d}") for d, dtype in enumerate(dtypes)]
    return te.create_prim_func(
        [*xs, te.compute((n,), lambda i: element(*(x[i] for x in xs)), name="Y")], name="f"
    )


def reference(func, *inputs):
    """(outputs, tolerances) of the one output."""
    arrays = interpret.random_inputs(func, 0)
    for a, x in zip(arrays, inputs, strict=False):
        a[...] = x
    e = interpret.expected(func, arrays)
    return e.outputs[0], e.tolerances[0]


def agree(func, seed=0):
    """Runs the scalar interpreter and checks it against the reference."""
    arrays = interpret.random_inputs(func, seed)
    expected = interpret.expected(func, arrays)
    interpret.run(func, arrays)
    return interpret.check(expected, arrays)

"""Programs from strangers: each mistake is refused by its whole text and at its place."""

import copy

import pytest

from tilewright.compiler.ir import VerifyError, from_json, to_json

BLOCK = "/body/0/body/0/body/0/block"


@pytest.fixture
def document(row_sums):
    return to_json(row_sums)


def refusal(document, *changes, at=""):
    """What from_json says of a copy of the document with (path, value) changes; None deletes."""
    data = copy.deepcopy(document)
    for path, value in changes:
        steps = path.strip("/").split("/")
        *parents, last = [int(p) if p.isdigit() else p.replace("~1", "/") for p in steps]
        target = data
        for p in parents:
            target = target[p]
        if value is None:
            del target[last]
        else:
            target[last] = value
    with pytest.raises(VerifyError) as e:
        from_json(data, at=at)
    return e.value.message, e.value.pointer


CASES = {
    "an unknown format": (
        ("tilewright", 2),
        "format 2 is not known; this program reads 1",
        "/tilewright",
    ),
    "an unknown field": (
        ("extra~1field", 1),
        "unknown field 'extra/field'; known: allocs, body, name, params, sizes, tilewright",
        "/extra~1field",
    ),
    "a missing field": (("params", None), "the field 'params' is missing", ""),
    "a body that is no array": (("body", {}), "expected an array, got an object", "/body"),
    "an empty body": (("body", []), "a body must hold at least one statement", "/body"),
    "an unknown dtype": (
        ("params/0/dtype", "float12"),
        "unknown dtype 'float12'; known: int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, "
        "float32, float64, bfloat16, bool",
        "/params/0/dtype",
    ),
    "an unknown scope": (
        ("params/0/scope", "shared"),
        "unknown scope 'shared'; known: global, local, register",
        "/params/0/scope",
    ),
    "a shape of 0": (
        ("params/0/shape/1", 0),
        "an extent must be at least 1, got 0",
        "/params/0/shape/1",
    ),
    "a loop without an extent": (("body/0/for", {}), "the field 'extent' is missing", "/body/0/for"),
    "a loop of extent 0": (
        ("body/0/for/extent", 0),
        "an extent must be at least 1, got 0",
        "/body/0/for/extent",
    ),
    "an unknown loop kind": (
        ("body/0/kind", "gpu"),
        "unknown loop kind 'gpu'; known: serial, parallel, vectorized, unrolled, thread",
        "/body/0/kind",
    ),
    "a name that is no identifier": (
        ("name", "a b"),
        "a name must be an identifier of at most 1000 characters, got 'a b'",
        "/name",
    ),
    "a buffer that does not exist": (
        (f"{BLOCK}/buffer", 7),
        "there is no buffer 7; there are 2",
        f"{BLOCK}/buffer",
    ),
    "a variable that does not exist": (
        (f"{BLOCK}/indices/0", [[1, 9]]),
        "there is no variable 9 here; 4 are declared before",
        f"{BLOCK}/indices/0/0/1",
    ),
    "an unknown operation": (
        (f"{BLOCK}/value/0", "madd"),
        "unknown operation 'madd'; known: abs, add, and, cast, ceil, const, cos, eq, erf, exp, floor, "
        "floordiv, "
        "floormod, ge, gelu, gt, in_bounds, index, le, load, log, lt, max, min, mul, ne, neg, not, or, pow, "
        "round, rsqrt, "
        "select, shl, shr, sigmoid, sin, sqrt, sub, tanh, truediv, truncdiv, truncmod, xor",
        f"{BLOCK}/value/0",
    ),
    "a wrong number of operands": (
        (f"{BLOCK}/value", ["add", ["const", "float32", "0x0.0p+0"]]),
        "'add' takes 2 operands, got 1",
        f"{BLOCK}/value",
    ),
    "operands of two dtypes": (
        (f"{BLOCK}/value/2", ["const", "int32", "1"]),
        "the operands differ in dtype: float32 and int32",
        f"{BLOCK}/value",
    ),
    "an operation that its dtype has not": (
        (f"{BLOCK}/value/2", ["shl", ["const", "float32", "0x0.0p+0"], ["const", "float32", "0x0.0p+0"]]),
        "'shl' takes integers, got float32",
        f"{BLOCK}/value/2/1",
    ),
    "a condition that is no bool": (
        (
            f"{BLOCK}/value/2",
            [
                "select",
                ["const", "int8", "1"],
                ["const", "float32", "0x0.0p+0"],
                ["const", "float32", "0x0.0p+0"],
            ],
        ),
        "a condition must be a bool, got int8",
        f"{BLOCK}/value/2/1",
    ),
    "an immediate that is no number": (
        (f"{BLOCK}/init/2", "zero"),
        "'zero' is not a float32 immediate",
        f"{BLOCK}/init/2",
    ),
    "an immediate that is no string": (
        (f"{BLOCK}/init/2", 0),
        "an immediate is written as a string, got an integer",
        f"{BLOCK}/init/2",
    ),
    "an immediate beyond every float": (
        (f"{BLOCK}/init/2", "0x1p99999"),
        "'0x1p99999' is not a float32 immediate",
        f"{BLOCK}/init/2",
    ),
    "an immediate that its dtype would round": (
        (f"{BLOCK}/init/2", "0x1.999999999999ap-4"),
        "'0x1.999999999999ap-4' is not a value of float32; the nearest is '0x1.99999a0000000p-4'",
        f"{BLOCK}/init/2",
    ),
    "an integer that does not fit": (
        (f"{BLOCK}/init", ["const", "int8", "128"]),
        "128 does not fit into int8",
        f"{BLOCK}/init/2",
    ),
    "an index beyond JSON's integers": (
        (f"{BLOCK}/indices/0", 2**53),
        f"expected an integer below 2**53, got {2**53}",
        f"{BLOCK}/indices/0",
    ),
    "a division by a variable": (
        (f"{BLOCK}/indices/0", [[1, ["floordiv", 4, [[1, 2]]]]]),
        "the divisor must be a positive constant, or one of sizes",
        f"{BLOCK}/indices/0/0/1/2",
    ),
    "a minimum that may be negative": (
        (f"{BLOCK}/indices/0", [[1, ["min", [[2, 2], [-1]], 0]]]),
        "cannot prove that min(i * 2 - 1, 0) is not negative",
        f"{BLOCK}/indices/0/0/1",
    ),
    "a read out of bounds": (
        (f"{BLOCK}/value/2/3", [[1, 3], [1]]),
        "block 'S' reads 'A' at k + 1 in dimension 1, which may leave [0, 3)",
        "",
    ),
    "a write out of bounds": (
        (f"{BLOCK}/indices/0", [[-1, 2]]),
        "block 'S' reads 'S', which it writes, at another place than the one it writes",
        "",
    ),
    "a wrong number of indices": (
        (f"{BLOCK}/value/2", ["load", 0, [[1, 2]]]),
        "block 'S' reads 'A' with 1 indices; it has 2 dimensions",
        "",
    ),
    "a binding out of range": (
        (f"{BLOCK}/iters/0/bind", [[2, 0]]),
        "block 'S': the binding of 'i', i * 2, may be above [0, 2)",
        "",
    ),
    "an init without a reduction": (
        (f"{BLOCK}/iters/1/kind", "spatial"),
        "block 'S' has an init but no reduce variable",
        "",
    ),
    "an init of another dtype": (
        (f"{BLOCK}/init", ["const", "int8", "0"]),
        "block 'S': the init is int8, but 'S' is float32",
        "",
    ),
    "a reduction that subtracts": (
        (f"{BLOCK}/value/0", "sub"),
        "block 'S' has reduce variables, so that its value must be one of add, and, max, min, mul, or, xor "
        "of 'S' and a term",
        "",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_from_json_refuses(document, name):
    change, message, pointer = CASES[name]
    assert refusal(document, change) == (message, pointer)


def test_a_pointer_starts_where_the_document_stands_in_a_larger_one(document):
    assert refusal(document, ("tilewright", 2), at="/workload")[1] == "/workload/tilewright"


def test_the_message_and_the_place_print_together(document):
    document["tilewright"] = 2
    with pytest.raises(VerifyError) as e:
        from_json(document)
    assert str(e.value) == "format 2 is not known; this program reads 1 (at /tilewright)"


def test_an_array_is_no_program():
    with pytest.raises(VerifyError) as e:
        from_json([])
    assert str(e.value) == "expected an object, got an array"


def test_deep_nesting_is_refused_before_it_exhausts_the_stack(document):
    value = ["const", "float32", "0x0.0p+0"]
    for _ in range(5000):
        value = ["neg", value]
    assert _innermost(document, value) == "nested deeper than 100"


def test_many_nodes_are_refused(document):
    value = ["const", "float32", "0x0.0p+0"]
    for _ in range(15):
        value = ["add", value, value]
    assert _innermost(document, value) == "more than 20000 nodes"


def _innermost(document, value):
    document["body"][0]["body"][0]["body"][0]["block"]["value"][2] = value
    with pytest.raises(VerifyError) as e:
        from_json(document)
    return e.value.message


def test_huge_buffers_are_refused(document):
    assert refusal(document, ("params/0/shape", [2**30, 2**30])) == (
        f"the buffers hold {2**62 + 8} bytes; at most {2**34} are allowed",
        "",
    )

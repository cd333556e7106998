"""Elementary functions emitted as polynomials, in units of the last place of the exact result."""

import ctypes
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilewright.compiler.codegen.llvm.abilities import scaled_bytes
from tilewright.compiler.codegen.llvm.jit import LoadedObject, compile_ir
from tilewright.compiler.codegen.llvm.math import MAX_ULP, MAX_ULP_OF_DOUBLE, MathEmitter
from tilewright.compiler.interpret import functions as interpret_functions
from tilewright.compiler.target import Target
from tilewright.compiler.target.runs import missing_features

Array = np.ndarray[Any, Any]

FUNCTIONS = tuple(f for f in MAX_ULP if f != "pow")
NUMPY: dict[str, Any] = {"float": np.float32, "double": np.float64}
WANTED = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64")
TARGETS = tuple(target for target in WANTED if not missing_features(Target.parse(target)))
"""With and without fused multiply-add, where this machine is an x86; the machine itself everywhere."""

EDGES = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1.0,
    -1.0,
    0.55,
    -0.55,
    88.7,
    88.8,
    -87.4,
    -103.9,
    -104.1,
    9.1,
    4.0,
]

EXACT: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "log": np.log,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "tanh": np.tanh,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "gelu": interpret_functions.FUNCTIONS["gelu"],
}
REFERENCE_ERROR = {"erf": 1.0, "gelu": 3.0}
"""What references that are doubles themselves may be wrong by."""
LONG_DOUBLE_IS_LONGER = np.finfo(np.longdouble).nmant > 60


def text_of(
    function: str,
    element: str,
    lanes: int | None,
    has_fma: bool,
    scaled: frozenset[int] = frozenset(),
) -> str:
    """A kernel ``map(in, out, n)`` that applies the function to n elements, a multiple of the lanes; pow
    takes its exponents from ``in`` behind the n bases.
    """
    lines: list[str] = []

    def put(instruction: str) -> str:
        lines.append(f"  %v{len(lines)} = {instruction}")
        return f"%v{len(lines) - 1}"

    emitter = MathEmitter(put, element, lanes, has_fma=has_fma, scaled_bytes=scaled)
    operands = ("%x", "%y") if function == "pow" else ("%x",)
    result = getattr(emitter, function)(*operands)
    vector = element if lanes is None else f"<{lanes} x {element}>"
    return "\n".join(
        [
            *sorted(emitter.declarations),
            "define void @map(ptr %in, ptr %out, i64 %n) {",
            "entry:",
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [0, %entry], [%next, %loop]",
            f"  %p = getelementptr {element}, ptr %in, i64 %i",
            f"  %q = getelementptr {element}, ptr %out, i64 %i",
            f"  %x = load {vector}, ptr %p, align 4",
            f"  %r = getelementptr {element}, ptr %p, i64 %n",
            f"  %y = load {vector}, ptr %r, align 4",
            *lines,
            f"  store {vector} {result}, ptr %q, align 4",
            f"  %next = add i64 %i, {lanes or 1}",
            "  %more = icmp ult i64 %next, %n",
            "  br i1 %more, label %loop, label %exit",
            "exit:",
            "  ret void",
            "}",
        ]
    )


def loaded(function: str, element: str, lanes: int | None, target: str = "llvm") -> LoadedObject:
    parsed = Target.parse(target)
    text = text_of(function, element, lanes, parsed.has_fma, scaled_bytes(parsed))
    return compile_ir(text, parsed, ["map"])


def computed(kernel: LoadedObject, x: Array, y: Array | None = None) -> Array:
    """The function of each element; their number is a multiple of every number of lanes used here."""
    assert len(x) % 16 == 0
    out = np.empty_like(x)
    given = np.concatenate([x, x if y is None else y])
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    prototype(kernel.address("map"))(given.ctypes.data, out.ctypes.data, len(x))
    return out


def exact(function: str, x: Array) -> Array:
    """The function in a wider format: double for float, long double for double where there is one."""
    longer = x.dtype == np.float64 and function not in REFERENCE_ERROR
    with np.errstate(all="ignore"):
        return EXACT[function](x.astype(np.longdouble if longer else np.float64))


def worst_ulp(got: Array, expected: Array) -> float:
    """The largest distance in units of the last place; inf where only one of the two is NaN or infinite."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(got.dtype)
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(got.dtype).max)).astype(expected.dtype)
        distance = np.abs(got.astype(expected.dtype) - expected) / unit
    plain = np.isfinite(got) & np.isfinite(rounded)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return float(np.max(np.where(plain, distance, np.where(same, 0.0, np.inf))))


def samples(dtype: Any, count: int = 160_000) -> Array:
    """Every sign and exponent evenly, the ranges where functions bend closely, and the edges."""
    rng = np.random.default_rng(20)
    bits = np.dtype(dtype).itemsize * 8
    whole = rng.integers(0, 2**bits, count, dtype=f"u{bits // 8}").view(dtype)
    ranges = ((-760.0, 720.0), (-110.0, 90.0), (-20.0, 20.0), (-6.0, 6.0), (-1.1, 1.1), (0.98, 1.02))
    near = [rng.uniform(low, high, count // 4) for low, high in ranges]
    all_of = np.concatenate(
        [whole.astype(dtype), *(part.astype(dtype) for part in near), np.array(EDGES, dtype)]
    )
    return np.concatenate([all_of, np.ones(-len(all_of) % 16, dtype)])


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_floats_are_within_the_stated_ulp(function: str, target: str) -> None:
    lanes = Target.parse(target).lanes(32)
    x = samples(np.float32)
    error = worst_ulp(computed(loaded(function, "float", lanes, target), x), exact(function, x))
    assert error <= MAX_ULP[function]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_doubles_are_within_the_stated_ulp(function: str, target: str) -> None:
    lanes = Target.parse(target).lanes(64)
    x = samples(np.float64)
    error = worst_ulp(computed(loaded(function, "double", lanes, target), x), exact(function, x))
    reference_error = REFERENCE_ERROR.get(function, 0.0 if LONG_DOUBLE_IS_LONGER else 1.0)
    assert error <= MAX_ULP_OF_DOUBLE[function] + reference_error


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_exponent_of_a_float_is_within_the_stated_ulp(function: str) -> None:
    steps = np.arange(0, 2**32, 16_411, dtype=np.uint64).astype(np.uint32)
    x = np.concatenate([steps, steps[: -len(steps) % 16]]).view(np.float32)
    error = worst_ulp(computed(loaded(function, "float", 16), x), exact(function, x))
    assert error <= MAX_ULP[function]


@pytest.mark.slow
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_251st_float_is_within_the_stated_ulp(function: str, target: str) -> None:
    kernel = loaded(function, "float", 16, target)
    for start in range(0, 2**32, 2**28):
        x = np.arange(start, start + 2**28, 251, dtype=np.uint64).astype(np.uint32)
        x = x[: len(x) // 16 * 16].view(np.float32)
        assert worst_ulp(computed(kernel, x), exact(function, x)) <= MAX_ULP[function]


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_number_of_lanes_gives_the_same_bits_as_a_scalar(function: str, element: str) -> None:
    x = samples(NUMPY[element], 1600)
    scalar = computed(loaded(function, element, None), x)
    for lanes in (1, 2, 8, 16):
        np.testing.assert_array_equal(computed(loaded(function, element, lanes), x), scalar)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        ("exp", [1.0, 1.0, np.inf, 0.0, np.nan]),
        ("log", [-np.inf, -np.inf, np.inf, np.nan, np.nan]),
        ("erf", [0.0, -0.0, 1.0, -1.0, np.nan]),
        ("tanh", [0.0, -0.0, 1.0, -1.0, np.nan]),
        ("sigmoid", [0.5, 0.5, 1.0, 0.0, np.nan]),
        ("sqrt", [0.0, -0.0, np.inf, np.nan, np.nan]),
        ("rsqrt", [np.inf, -np.inf, 0.0, np.nan, np.nan]),
        ("gelu", [0.0, -0.0, np.inf, -0.0, np.nan]),
        ("sin", [0.0, -0.0, np.nan, np.nan, np.nan]),
        ("cos", [1.0, 1.0, np.nan, np.nan, np.nan]),
    ],
)
@pytest.mark.parametrize("element", ["float", "double"])
def test_zeros_infinities_and_nan_have_the_values_of_ieee(
    function: str, values: list[float], element: str
) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan] + [1.0] * 11, NUMPY[element])
    got = computed(loaded(function, element, 16), x)[:5]
    np.testing.assert_array_equal(got, np.array(values, NUMPY[element]))
    np.testing.assert_array_equal(
        np.signbit(got[:4]), np.signbit(values[:4]) | np.isnan(got[:4]) & np.signbit(got[:4])
    )


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("function", ["erf", "tanh", "sin"])
def test_odd_functions_are_odd_to_the_bit(function: str, element: str) -> None:
    x = samples(NUMPY[element], 1600)
    kernel = loaded(function, element, 8)
    np.testing.assert_array_equal(computed(kernel, -x), -computed(kernel, x))


@pytest.mark.parametrize(("element", "low"), [("float", -103.9), ("double", -745.1)])
def test_exp_reaches_the_smallest_denormal(element: str, low: float) -> None:
    x = np.full(16, low, NUMPY[element])
    assert computed(loaded("exp", element, 8), x)[0] == np.finfo(NUMPY[element]).smallest_subnormal


def test_no_function_calls_a_library() -> None:
    calls = {
        (function, element, called)
        for function in MAX_ULP
        for element in ("float", "double")
        for called in re.findall(r"(?:call|jmp)\w*\s+(\S+)", loaded(function, element, 8).assembly())
        if not called.startswith((".LBB", '"tw.', "tw."))
    }
    assert calls == set()


def near_multiples_of_half_pi(dtype: Any) -> Array:
    """Numbers of every size next to a multiple of π/2, where what is left of them has the fewest digits."""
    rng = np.random.default_rng(5)
    top = np.finfo(dtype).maxexp - 1
    with np.errstate(over="ignore"):
        parts = [
            np.arange(1, 4001) * (np.pi / 2),
            rng.integers(1, 2**40, 4000) * (np.pi / 2),
            np.pi / 2 * 2.0 ** rng.integers(0, top, 4000),
            rng.integers(500_000, 520_000, 4000) * (np.pi / 2),
            # The hardest double of all, after Kahan.
            np.full(16, 6381956970095103.0 * 2.0**797 if top > 127 else 1.0),
        ]
        x = np.concatenate(parts).astype(dtype)
    return np.concatenate([x, np.nextafter(x, 0), -x])


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("function", ["sin", "cos"])
@pytest.mark.parametrize("target", TARGETS)
def test_sines_next_to_multiples_of_half_pi_are_within_the_stated_ulp(
    function: str, element: str, target: str
) -> None:
    if element == "double" and not LONG_DOUBLE_IS_LONGER:
        pytest.skip("no reference is exact enough")
    x = near_multiples_of_half_pi(NUMPY[element])
    lanes = Target.parse(target).lanes(32 if element == "float" else 64)
    error = worst_ulp(computed(loaded(function, element, lanes, target), x), exact(function, x))
    assert error <= MAX_ULP[function]


def test_the_hardest_double_has_the_sine_that_is_known() -> None:
    x = np.full(16, 6381956970095103.0 * 2.0**797)
    # Of all doubles the nearest to a multiple of π/2 (Kahan; its cosine in Muller, Elementary Functions).
    assert computed(loaded("cos", "double", 8), x)[0] == -4.68716592425462761112e-19
    assert computed(loaded("sin", "double", 8), x)[0] == 1.0


def bases_and_exponents(dtype: Any) -> tuple[Array, Array]:
    """Every special value with every one; powers of every size; negative bases with whole exponents."""
    rng = np.random.default_rng(3)
    f, n = np.finfo(dtype), 16_000
    edges = [0.0, 1.0, 2.0, 3.0, 0.5, 1 / 3, 7.0, f.max, f.tiny, f.smallest_subnormal, 1 + f.eps, np.inf]
    edges += [1e10, 2.0**f.nmant, 2.0**f.nmant + 1, 2.0 ** (f.nmant + 1) - 1, 2.0 ** (f.nmant + 1), 64.0]
    signed = np.array([*edges, *(-e for e in edges), np.nan], dtype)
    a, b = (x.ravel() for x in np.meshgrid(signed, signed))
    whole = rng.integers(0, 2**f.bits, n, dtype=f"u{f.bits // 8}").view(dtype)
    size = np.abs(np.where(np.isfinite(whole), whole, 1))
    with np.errstate(all="ignore"):
        to = (rng.uniform(-1.08 * f.maxexp, 1.05 * f.maxexp, n) / np.log2(size.astype(float))).astype(dtype)
    near = rng.uniform(0.9, 1.1, n).astype(dtype)
    x = np.concatenate([a, size, near, rng.uniform(0, 10, n).astype(dtype), -size])
    y = np.concatenate(
        [b, to, rng.uniform(-6000, 6000, n), rng.uniform(-300, 300, n), rng.integers(-5, 6, n)]
    )
    end = len(x) // 16 * 16
    return x[:end], y[:end].astype(dtype)


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("target", TARGETS)
def test_powers_are_within_the_stated_ulp_with_the_special_values_of_c(element: str, target: str) -> None:
    x, y = bases_and_exponents(NUMPY[element])
    wide = np.longdouble if element == "double" else np.float64
    lanes = Target.parse(target).lanes(32 if element == "float" else 64)
    got = computed(loaded("pow", element, lanes, target), x, y)
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(wide), y.astype(wide))
    slack = 0.0 if element == "float" or LONG_DOUBLE_IS_LONGER else 1.0
    assert worst_ulp(got, wanted) <= MAX_ULP["pow"] + slack
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(wanted)[number])


@pytest.mark.parametrize("element", ["float", "double"])
def test_powers_of_every_number_of_lanes_have_the_bits_of_a_scalar(element: str) -> None:
    x, y = bases_and_exponents(NUMPY[element])
    scalar = computed(loaded("pow", element, None), x, y)
    for lanes in (1, 2, 8, 16):
        np.testing.assert_array_equal(computed(loaded("pow", element, lanes), x, y), scalar)


def test_without_fused_multiply_add_none_is_declared() -> None:
    with_fma, without = (text_of("exp", "float", 8, has_fma) for has_fma in (True, False))
    assert ("@llvm.fma." in with_fma, "@llvm.fma." in without) == (True, False)


def test_an_element_without_functions_is_refused_naming_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"^no elementary functions of half; known: float, double$"):
        MathEmitter(str, "half", 8, has_fma=True)

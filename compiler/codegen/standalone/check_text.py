"""The comparison of an output with what is expected, as LLVM text: the rules of interpret.check, element by
element."""

from __future__ import annotations

from ..errors import BuildError

_INFINITY = "0x7FF0000000000000"


def check_function(dtype: str) -> str:
    """`void tw.check.DTYPE(got, want, tolerance, n, report, parameter)`: makes this output's worst
    element the report's where it is worse, and counts the elements that are wrong."""
    return _TEXT.format(
        dtype=dtype, load="\n".join(f"  {line}" for line in _loaded(dtype)), infinity=_INFINITY
    )


def _loaded(dtype: str) -> list[str]:
    """Gives %g and %w, the elements as float64, %same, and %far, how far from each other they are at least
    where they are not the same."""
    if dtype.startswith(("float", "bfloat")):
        return [*_float(dtype), "%w = load double, ptr %wp.f", *_FLOAT_RULE, "%far = fadd double 0.0, 0.0"]
    if dtype == "bool":
        # By its byte: a poisoned element is neither 0 nor 1.
        return [*_integers("i8", "uitofp"), "%far = fadd double 0.0, 0.0"]
    unsigned = dtype.startswith("uint")
    bits = dtype.lstrip("uint")
    if bits not in ("8", "16", "32", "64"):
        raise BuildError(f"no program of its own can check an output of {dtype}")
    return [*_integers(f"i{bits}", "uitofp" if unsigned else "sitofp"), "%far = fadd double 1.0, 0.0"]


def _integers(kind: str, convert: str) -> list[str]:
    return [
        f"%gp = getelementptr {kind}, ptr %got, i64 %n",
        f"%wq = getelementptr {kind}, ptr %want, i64 %n",
        f"%gi = load {kind}, ptr %gp, align 1",
        f"%wi = load {kind}, ptr %wq, align 1",
        f"%g = {convert} {kind} %gi to double",
        f"%w = {convert} {kind} %wi to double",
        f"%same = icmp eq {kind} %gi, %wi",
    ]


_FLOAT_RULE = [
    "%equal = fcmp oeq double %g, %w",
    "%gnan = fcmp uno double %g, %g",
    "%wnan = fcmp uno double %w, %w",
    "%bothnan = and i1 %gnan, %wnan",
    "%same = or i1 %equal, %bothnan",
]


def _float(dtype: str) -> list[str]:
    match dtype:
        case "float64":
            return ["%gp = getelementptr double, ptr %got, i64 %n", "%g = load double, ptr %gp, align 1"]
        case "float32":
            return [
                "%gp = getelementptr float, ptr %got, i64 %n",
                "%gf = load float, ptr %gp, align 1",
                "%g = fpext float %gf to double",
            ]
        case "bfloat16":
            return [
                *_HALF_BITS,
                "%wide = shl i32 %bits, 16",
                "%gf = bitcast i32 %wide to float",
                "%g = fpext float %gf to double",
            ]
        case "float16":
            return [*_HALF_BITS, *_HALF]
    raise BuildError(f"no program of its own can check an output of {dtype}")


_HALF_BITS = [
    "%gp = getelementptr i16, ptr %got, i64 %n",
    "%gh = load i16, ptr %gp, align 1",
    "%bits = zext i16 %gh to i32",
]
# Without an instruction that converts, LLVM would call a library. The exponent is moved by a product with
# 2**112, which is exact for every finite half, subnormal ones too; infinities and NaN keep all ones.
_HALF = [
    "%sign.bits = and i32 %bits, 32768",
    "%sign = shl i32 %sign.bits, 16",
    "%rest = and i32 %bits, 32767",
    "%moved = shl i32 %rest, 13",
    "%small = bitcast i32 %moved to float",
    "%small.d = fpext float %small to double",
    "%finite.d = fmul double %small.d, 0x46F0000000000000",
    "%finite.f = fptrunc double %finite.d to float",
    "%finite = bitcast float %finite.f to i32",
    "%special = or i32 %moved, 2139095040",
    "%is.special = icmp uge i32 %rest, 31744",
    "%magnitude = select i1 %is.special, i32 %special, i32 %finite",
    "%all = or i32 %magnitude, %sign",
    "%gf = bitcast i32 %all to float",
    "%g = fpext float %gf to double",
]

_TEXT = """\
define internal void @tw.check.{dtype}(ptr %got, ptr %want, ptr %tolerance, i64 %count, ptr %report,
    i64 %output) noinline {{
entry:
  %bad.at = getelementptr i64, ptr %report, i64 1
  %output.at = getelementptr i64, ptr %report, i64 2
  %index.at = getelementptr i64, ptr %report, i64 3
  %got.at = getelementptr i64, ptr %report, i64 4
  %want.at = getelementptr i64, ptr %report, i64 5
  %tolerance.at = getelementptr i64, ptr %report, i64 6
  br label %test
test:
  %n = phi i64 [ 0, %entry ], [ %m, %next ]
  %go = icmp ult i64 %n, %count
  br i1 %go, label %look, label %out
look:
  %wp.f = getelementptr double, ptr %want, i64 %n
  %tp = getelementptr double, ptr %tolerance, i64 %n
{load}
  %t = load double, ptr %tp
  %d = fsub double %g, %w
  %a = call double @llvm.fabs.f64(double %d)
  %lost = fcmp uno double %a, %a
  %a.known = select i1 %lost, double {infinity}, double %a
  %is.near = fcmp olt double %a.known, %far
  %distance = select i1 %is.near, double %far, double %a.known
  %q = fdiv double %distance, %t
  %q.same = select i1 %same, double 0.0, double %q
  %undecided = fcmp oeq double %t, {infinity}
  %ratio = select i1 %undecided, double 0.0, double %q.same
  %wrong = fcmp ugt double %ratio, 1.0
  %one = zext i1 %wrong to i64
  %bad = load i64, ptr %bad.at
  %bad.more = add i64 %bad, %one
  store i64 %bad.more, ptr %bad.at
  %worst = load double, ptr %report
  %worse = fcmp ugt double %ratio, %worst
  br i1 %worse, label %take, label %next
take:
  store double %ratio, ptr %report
  store i64 %output, ptr %output.at
  store i64 %n, ptr %index.at
  store double %g, ptr %got.at
  store double %w, ptr %want.at
  store double %t, ptr %tolerance.at
  br label %next
next:
  %m = add i64 %n, 1
  br label %test
out:
  ret void
}}"""

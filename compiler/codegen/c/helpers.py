"""The small functions that a kernel's text begins with: those that it uses, each for the dtypes it needs."""

from __future__ import annotations

from ...ir import DType
from .dtypes import short, unsigned_type, value_type
from .names import PREFIX
from .narrow import NARROW


class Helpers:
    """Functions by name, in an order in which each stands behind those it calls."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def index(self, op: str) -> str:
        """`min` or `max` of two indices."""
        sign = "<" if op == "min" else ">"
        body = f"    return a {sign} b ? a : b;\n"
        return self._add(f"{PREFIX}{op}", "int64_t", "int64_t a, int64_t b", body)

    def operation(self, op: str, dtype: DType) -> str:
        """A function of values of one dtype: the name of its helper."""
        kind, wide = value_type(dtype), unsigned_type(dtype) if dtype.is_int else ""
        name = f"{PREFIX}{op}_{short(dtype)}"
        both = f"{kind} a, {kind} b"
        if op in ("min", "max"):
            sign = "<" if op == "min" else ">"
            nan = "a != a || " if dtype.is_float else ""
            note = "NaN where one of them is NaN" if nan else ""
            return self._add(name, kind, both, f"    return {nan}a {sign} b ? a : b;\n", note)
        if op == "abs":
            body = f"    return a < 0 ? ({kind})(0u - ({wide})a) : a;\n"
            return self._add(name, kind, f"{kind} a", body, "the lowest integer wraps to itself")
        if op in ("shl", "shr"):
            return self._shift(name, op, dtype, kind, wide)
        if op in ("floordiv", "floormod", "truncdiv", "truncmod"):
            return self._division(name, op, dtype, kind, wide)
        if op == "rsqrt":
            f = "sqrt" if dtype.bits == 64 else "sqrtf"
            one = "1.0" if dtype.bits == 64 else "1.0f"
            return self._add(name, kind, f"{kind} x", f"    return {one} / {f}(x);\n")
        if op == "gelu":
            return self._gelu(name, dtype, kind)
        assert op == "sigmoid"
        return self._sigmoid(name, dtype, kind)

    def whole(self, source: DType, target: DType) -> str:
        """A float as an int32, int64 or uint64, towards 0."""
        kind, wanted = value_type(source), value_type(target)
        name = f"{PREFIX}{short(target)}_of_{short(source)}"
        f = "" if source.bits == 64 else "f"
        note = "beyond the range, where C says nothing, some integer"
        if target.code == "uint":
            inner = self.whole(source, DType("int", 64))
            body = (
                f"    if (x >= 9223372036854775808.0{f} && x < 18446744073709551616.0{f})\n"
                "        return (uint64_t)x;\n"
                f"    return (uint64_t){inner}(x);\n"
            )
            return self._add(name, wanted, f"{kind} x", body, note)
        low, high = {
            (32, 32): ("x >= -2147483648.0f", "2147483648.0f"),
            (32, 64): ("x > -2147483649.0", "2147483648.0"),
            (64, 32): ("x >= -9223372036854775808.0f", "9223372036854775808.0f"),
            (64, 64): ("x >= -9223372036854775808.0", "9223372036854775808.0"),
        }[target.bits, source.bits]
        body = f"    return {low} && x < {high} ? ({wanted})x : INT{target.bits}_MIN;\n"
        return self._add(name, wanted, f"{kind} x", body, note)

    def narrow(self, name: str) -> str:
        """One of the conversions of 16-bit floats."""
        needs, text = NARROW[name]
        for n in needs:
            self.narrow(n)
        full = PREFIX + name
        self.texts.setdefault(full, text)
        return full

    def _shift(self, name: str, op: str, dtype: DType, kind: str, wide: str) -> str:
        inside = f"({wide})b < {dtype.bits}u"
        if op == "shl":
            body = f"    return {inside} ? ({kind})(({wide})a << b) : 0;\n"
        elif dtype.code == "uint":
            body = f"    return {inside} ? ({kind})(a >> b) : 0;\n"
        else:
            body = f"    return ({kind})(a >> ({inside} ? b : {dtype.bits - 1}));\n"
        return self._add(name, kind, f"{kind} a, {kind} b", body, "any b: as if bit by bit")

    def _division(self, name: str, op: str, dtype: DType, kind: str, wide: str) -> str:
        quotient, note = op.endswith("div"), "0 where b is 0"
        sign = "/" if quotient else "%"
        if dtype.code == "uint":
            body = f"    return b == 0 ? 0 : ({kind})(a {sign} b);\n"
            return self._add(name, kind, f"{kind} a, {kind} b", body, note)
        # The lowest integer by -1 is no int: it wraps around to itself.
        by_minus_one = f"({kind})(0u - ({wide})a)" if quotient else "0"
        body = f"    if (b == 0)\n        return 0;\n    if (b == -1)\n        return {by_minus_one};\n"
        if op == "floordiv":
            body += (
                f"    {kind} q = ({kind})(a / b), r = ({kind})(a % b);\n"
                f"    return r != 0 && (r < 0) != (b < 0) ? ({kind})(q - 1) : q;\n"
            )
            note = f"rounded down; {note}"
        elif op == "floormod":
            body += (
                f"    {kind} r = ({kind})(a % b);\n"
                f"    return r != 0 && (r < 0) != (b < 0) ? ({kind})(r + b) : r;\n"
            )
            note = f"of the sign of b; {note}"
        else:
            body += f"    return ({kind})(a {sign} b);\n"
        return self._add(name, kind, f"{kind} a, {kind} b", body, note)

    def _sigmoid(self, name: str, dtype: DType, kind: str) -> str:
        f = "" if dtype.bits == 64 else "f"
        body = (
            "    if (x >= 0)\n"
            f"        return 1.0{f} / (1.0{f} + exp{f}(-x));\n"
            f"    {kind} e = exp{f}(x);\n"
            f"    return e / (1.0{f} + e);\n"
        )
        return self._add(name, kind, f"{kind} x", body, "exp of what is not positive does not overflow")

    def _gelu(self, name: str, dtype: DType, kind: str) -> str:
        note = "max(x, 0) - a * erfc(a / sqrt(2)) / 2: 1 + erf would lose the digits of a negative x"
        body = (
            "    double a = fabs(x), z = a * 0x1.6a09e667f3bcdp-1;\n"
            "    if (!(a < 40))\n"
            f"        return x < 0 ? -0.0{'' if dtype.bits == 64 else 'f'} : x;\n"
        )
        if dtype.bits == 32:
            body += "    float below = (float)(0.5 * a * erfc(z));\n    return (x < 0 ? -0.0f : x) - below;\n"
        else:
            # What the product with the root has lost, times the slope of erfc.
            body += (
                "    double lost = fma(a, 0x1.6a09e667f3bcdp-1, -z) - a * 0x1.bdd3413b26456p-55;\n"
                "    double q = erfc(z) - lost * 0x1.20dd750429b6dp+0 * exp(-z * z);\n"
                "    return (x < 0 ? -0.0 : x) - 0.5 * a * q;\n"
            )
        return self._add(name, kind, f"{kind} x", body, note)

    def _add(self, name: str, kind: str, arguments: str, body: str, note: str = "") -> str:
        comment = f"/* {note} */\n" if note else ""
        text = f"{comment}static inline {kind} {name}({arguments})\n{{\n{body}}}\n"
        self.texts.setdefault(name, text)
        return name

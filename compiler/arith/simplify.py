"""Division, minimum, bounds and substitution of polynomials, each keeping the normal form.

Sources of the identities: ceil(ceil(a/b)/c) = ceil(a/(b*c)) for positive integers; floor((q*b + r)/b) = q +
floor(r/b).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from .effort import spend
from .poly import Atom, Fn, FnOp, IntoPoly, Knob, Monomial, Poly, Size, Var, poly
from .remainders import moving_terms, take_remainders

#: Answers kept of what schedules ask again and again: of 800 proofs that tracing a convolution's sketches
#: takes, 140 are different.
_KNOWN = 4096


class NotProvable(ValueError):
    """A sign that a construction needs could not be proved."""


def _divide_terms(a: Poly, b: Poly) -> tuple[Poly, Poly]:
    """(q, r) with a == q*b + r, where q takes every term that the monomial b divides."""
    if len(b.terms) != 1:
        return (poly(1), poly(0)) if a == b else (poly(0), a)
    ((b_monomial, b_coefficient),) = b.terms.items()
    q: dict[Monomial, int] = {}
    r: dict[Monomial, int] = {}
    for m, c in a.terms.items():
        rest = list(m)
        try:
            for x in b_monomial:
                rest.remove(x)
        except ValueError:
            r[m] = c
            continue
        whole, part = divmod(c, b_coefficient)
        if whole:
            q[tuple(rest)] = q.get(tuple(rest), 0) + whole
        if part:
            r[m] = r.get(m, 0) + part
    return Poly(q), Poly(r)


def floor_div(a: IntoPoly, b: IntoPoly, *, sure: bool = False) -> Poly:
    """floor(a / b) for b >= 1, any sign of a. NotProvable when a may be negative without a known bound;
    `sure`: the caller knows that a is at least 0, as inside of an atom that exists."""
    a, b = poly(a), poly(b)
    if b.const == 1:
        return a
    if a.const is not None and b.const is not None:
        return poly(a.const // b.const)
    q, r = _divide_terms(a, b)
    low = lower(r)
    if not r.terms:
        return q
    if proven_negative(-low - 1):
        return q if proven_negative(r - b) else q + poly(Fn("floordiv", r, b))
    if sure and not q.terms:
        return poly(Fn("floordiv", r, b))
    if sure and (low.const is None or b.const is None):
        return poly(Fn("floordiv", a, b))
    if q.terms and proven_negative(-lower(a) - 1):
        return poly(Fn("floordiv", a, b))
    if low.const is None or b.const is None:
        raise NotProvable(f"cannot prove that {r!r} is not negative in a floor division by {b!r}")
    shift = -(low.const // b.const)
    return q - shift + floor_div(r + b * shift, b)


def floor_mod(a: IntoPoly, b: IntoPoly) -> Poly:
    """a - b * floor(a / b)."""
    return poly(a) - floor_div(a, b) * b


def ceil_div(a: IntoPoly, b: IntoPoly) -> Poly:
    """ceil(a / b) for a >= 0 and b >= 1."""
    a, b = poly(a), poly(b)
    if b.const == 1:
        return a
    if a.const is not None and b.const is not None:
        return poly(-(-a.const // b.const))
    q, r = _divide_terms(a, b)
    if not r.terms:
        return q
    if isinstance(inner := r.atom, Fn) and inner.op == "ceildiv":
        return q + ceil_div(inner.a, inner.b * b)
    if any(c < 0 for c in r.terms.values()):
        q, r = poly(0), a
    if r.const is not None and b.const is not None:
        return q + -(-r.const // b.const)
    return q + poly(Fn("ceildiv", r, b))


def minimum(a: IntoPoly, b: IntoPoly, *, sure: bool = False) -> Poly:
    """min(a, b); both must be proved at least 0 where neither is proved the smaller one, unless the caller is
    `sure`."""
    return _minimum(poly(a), poly(b), sure)


@lru_cache(_KNOWN)
def _minimum(a: Poly, b: Poly, sure: bool) -> Poly:
    d = a - b
    if d.const is not None:
        return a if d.const <= 0 else b
    if proven_negative(d - 1):
        return a
    if proven_negative(-d - 1):
        return b
    if not sure and not (proven_negative(-lower(a) - 1) and proven_negative(-lower(b) - 1)):
        raise NotProvable(f"cannot prove that min({a!r}, {b!r}) is not negative")
    if _holds("min", b, a):
        return b
    if _holds("min", a, b):
        return a
    return poly(Fn("min", a, b))


def _holds(op: FnOp, p: Poly, q: Poly) -> bool:
    """Whether `q` is one of the nested minima, or maxima, that `p` is: taking it again changes nothing."""
    a = p.atom
    return type(a) is Fn and a.op == op and (a.a == q or a.b == q or _holds(op, a.a, q) or _holds(op, a.b, q))


def maximum(a: IntoPoly, b: IntoPoly, *, sure: bool = False) -> Poly:
    """max(a, b); one of them must be proved at least 0 where neither is proved the larger one, unless the
    caller is `sure`."""
    return _maximum(poly(a), poly(b), sure)


@lru_cache(_KNOWN)
def _maximum(a: Poly, b: Poly, sure: bool) -> Poly:
    d = a - b
    if d.const is not None:
        return a if d.const >= 0 else b
    if proven_negative(-d - 1):
        return a
    if proven_negative(d - 1):
        return b
    if not sure and not (proven_negative(-lower(a) - 1) or proven_negative(-lower(b) - 1)):
        raise NotProvable(f"cannot prove that max({a!r}, {b!r}) is not negative")
    if _holds("max", b, a):
        return b
    if _holds("max", a, b):
        return a
    return poly(Fn("max", a, b))


def not_negative(p: IntoPoly) -> Poly:
    """`p`, or max(p, 0) where it is not proved to be at least 0: the extent of a loop, which may be empty."""
    p = poly(p)
    return p if proven_negative(-lower(p) - 1) else maximum(p, 0)


def _take_mods(p: Poly, of_vars: bool = True) -> tuple[Poly, list[tuple[Poly, Poly, Poly]]]:
    """`p` as a rest plus multiples of remainders: every k * (x - n * (x // n)) that stands in it, as
    (k, x, n), where k has no variables. Remainders of what has variables, or of sizes alone."""
    mods: list[tuple[Poly, Poly, Poly]] = []
    for m, c in list(p.terms.items()):
        found = False
        for a in m:
            if type(a) is not Fn or a.op != "floordiv" or bool(a.vars) != of_vars or found:
                continue
            for x, n in _divided(a, p):
                k = _multiple(m, c, a, n)
                if k is None:
                    continue
                rest = p - (x - poly(a) * n) * k
                if moving_terms(rest) < moving_terms(p) - 1:
                    p, found = rest, True
                    mods.append((k, x, n))
                    break
    return p, mods


def _divided(f: Fn, p: Poly) -> Iterator[tuple[Poly, Poly]]:
    """(x, n) for which f is x // n: what f divides, and the quotients by less that stand in p, since
    x // (b * n) is (x // b) // n."""
    yield f.a, f.b
    if not f.b.const:
        return
    for g in p.atoms():
        if type(g) is Fn and g is not f and g.op == "floordiv" and g.a == f.a and g.b.const:
            n, rest = divmod(f.b.const, g.b.const)
            if not rest and n > 1:
                yield poly(g), poly(n)


def _multiple(m: Monomial, c: int, a: Fn, n: Poly) -> Poly | None:
    """k, where c * m is a term of -k * n * a."""
    of_n, c_n = next(iter(n.terms.items()))
    rest = list(m)
    try:
        for x in (a, *of_n):
            rest.remove(x)
    except ValueError:
        return None
    if c % c_n or any(type(x) is Var or (type(x) is Fn and x.vars) for x in rest):
        return None
    return Poly({tuple(rest): -c // c_n})


def _largest_remainder(x: Poly, n: Poly) -> Poly:
    """A bound of x - n * (x // n)."""
    top, reach = n - 1, _bound(x, True)
    if not top.sizes() and not reach.sizes():
        return minimum(top, reach, sure=True)
    return reach if proven_negative(reach - top - 1) else top


def _bound(p: Poly, up: bool) -> Poly:
    spend(len(p.terms) + 1)
    out = poly(0)
    if any(type(a) is Fn and a.op == "floordiv" for m in p.terms for a in m):
        p, mods = _take_mods(p)
        for k, x, n in mods:
            if all(c > 0 for c in k.terms.values()) == up:
                out = out + _largest_remainder(x, n) * k
        p, parts = take_remainders(p)
        for times, x, by in parts:
            if (times > 0) == up:
                reach = _bound(x, True).const
                out = out + (by - 1 if reach is None else min(by - 1, reach)) * times
    for m, c in p.terms.items():
        term = poly(c)
        for a in m:
            high = (c > 0) == up
            if type(a) is Var:
                term = term * (_reached(a.extent) - 1 if high else 0)
            elif type(a) is Fn and a.vars:
                bound = _fn_bound(a, high)
                # Two lower bounds below 0 would make a positive product.
                term = term * (bound if high or len(m) == 1 or proven_negative(-bound - 1) else 0)
            else:
                term = term * poly(a)
        out = out + term
    return out


def _reached(extent: Poly) -> Poly:
    """The extent of a variable that has a value: max(e, 0) is e there."""
    a = extent.atom
    if type(a) is not Fn or a.op != "max":
        return extent
    return a.a if a.b.const == 0 else a.b if a.a.const == 0 else extent


def _over_reached(p: Poly, variables: frozenset[Var]) -> Poly:
    """`p` with the extents of its variables where these have values."""
    open_: dict[Atom, Poly] = {}
    for v in variables:
        a = v.extent.atom
        if type(a) is Fn and a.op == "max":
            open_[a] = _reached(v.extent)
    return substitute(p, open_) if open_ else p


def _fn_bound(a: Fn, high: bool) -> Poly:
    # What a function is of is not below 0 (of max: one of the two), but the bound of it may be.
    x, y = _not_below_zero(_bound(a.a, high)), _not_below_zero(_bound(a.b, high))
    if a.op == "floordiv":
        by = _bound(a.b, not high)
        if high and by.const is None:
            # Of what is just below a multiple: (q*b + r) // b <= q - 1 for r < 0.
            q, r = _divide_terms(x, by)
            if q.terms and proven_negative(r):
                return q - 1
        return floor_div(x, by, sure=True)
    if a.op == "ceildiv":
        return ceil_div(x, _bound(a.b, not high))
    return minimum(x, y, sure=True) if a.op == "min" else maximum(x, y, sure=True)


def _not_below_zero(bound: Poly) -> Poly:
    """A bound of something that is at least 0."""
    return poly(0) if proven_negative(bound) else bound


def upper(p: IntoPoly) -> Poly:
    """The largest value over the ranges of the variables, as a polynomial over knobs and sizes (exact
    for affine p)."""
    p = poly(p)
    variables = p.vars()
    return _bound(_over_reached(p, variables), True) if variables else p


def lower(p: IntoPoly) -> Poly:
    """The smallest value over the ranges of the variables, as a polynomial over knobs and sizes (exact
    for affine p)."""
    p = poly(p)
    variables = p.vars()
    return _bound(_over_reached(p, variables), False) if variables else p


def proven_negative(p: IntoPoly) -> bool:
    """Whether p < 0 whatever the variables (in range), the knobs (at least 1) and the sizes (at least 0) are.
    Variables whose range is empty have no values for which it could be wrong."""
    p = poly(p)
    known = p.const
    return known < 0 if known is not None else _proven_negative(p)


@lru_cache(_KNOWN)
def _proven_negative(p: Poly) -> bool:
    u = upper(p)
    if u.const is not None:
        return u.const < 0
    if any(type(a) is Fn and a.op == "floordiv" for m in u.terms for a in m):
        # Remainders of sizes, once the others have cancelled.
        u, mods = _take_mods(u, of_vars=False)
        for k, _, n in mods:
            if all(c > 0 for c in k.terms.values()):
                u = u + (n - 1) * k
    # Products of a positive and a negative knob term cannot be compared here; and a Fn may be 0, so that one
    # term that is surely below 0 must stand in the sum.
    if any(c > 0 for c in u.terms.values()):
        return _slack_negative(u)
    return any(all(type(a) is Knob for a in m) for m in u.terms)


def _slack_negative(u: Poly) -> bool:
    """Knobs are at least 1: replacing each knob by 1 + slack may turn the signs (k - 2*k*f + 1 is
    negative)."""
    if any(type(a) not in (Knob, Size) for m in u.terms for a in m):
        return False
    slack: dict[Atom, Poly] = {a: poly(a) + 1 for m in u.terms for a in m if type(a) is Knob}
    if not slack:
        return False
    shifted = substitute(u, slack)
    return shifted.terms.get((), 0) < 0 and all(c < 0 for c in shifted.terms.values())


def substitute(p: Poly, values: Mapping[Atom, Poly]) -> Poly:
    """`p` with atoms replaced by polynomials, also inside a `Fn`."""
    kept: dict[Monomial, int] = {}
    out: Poly | None = None
    for m, c in p.terms.items():
        for a in m:
            if a in values or type(a) is Fn:
                break
        else:
            kept[m] = c
            continue
        term = poly(c)
        for a in m:
            if a in values:
                term = term * values[a]
            elif type(a) is Fn:
                term = term * _substitute_fn(a, values)
            else:
                term = term * poly(a)
        out = term if out is None else out + term
    if out is None:
        return p
    return out + Poly(kept) if kept else out


def _substitute_fn(f: Fn, values: Mapping[Atom, Poly]) -> Poly:
    x, y = substitute(f.a, values), substitute(f.b, values)
    if x is f.a and y is f.b:
        return poly(f)
    if y.const == 0 and f.op in ("floordiv", "ceildiv"):
        # By a size that is 0: of an instance that does not exist.
        return poly(0)
    if f.op == "floordiv":
        return floor_div(x, y, sure=True)
    if f.op == "ceildiv":
        return ceil_div(x, y)
    return minimum(x, y, sure=True) if f.op == "min" else maximum(x, y, sure=True)


def evaluate(p: Poly, values: Mapping[Atom, int]) -> int:
    """The integer that `p` is when every variable, knob and size has a value."""
    total = 0
    for m, c in p.terms.items():
        for a in m:
            c *= _evaluate_fn(a, values) if type(a) is Fn else values[a]
        total += c
    return total


def _evaluate_fn(f: Fn, values: Mapping[Atom, int]) -> int:
    x, y = evaluate(f.a, values), evaluate(f.b, values)
    match f.op:
        case "floordiv":
            return x // y
        case "ceildiv":
            return -(-x // y)
        case "min":
            return min(x, y)
    return max(x, y)

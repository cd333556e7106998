"""Index polynomials and conditions on them as C writes them, in int64_t."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...arith import Atom, Fn, Poly
from .dtypes import LESS, PREFIX, PRIMARY, PRODUCT, SUM, Text, at_least
from .helpers import Helpers


class Indices:
    """Polynomials over atoms whose names are known: `names` holds loops and sizes by atom."""

    def __init__(self, helpers: Helpers, names: Mapping[Atom, str]) -> None:
        self._helpers = helpers
        self._names = names

    def index(self, p: Poly) -> Text:
        """The polynomial; its first term is a positive one where there is any."""
        if p.const is not None:
            return Text(str(p.const), PRIMARY if p.const >= 0 else PREFIX)
        terms = sorted(p.terms.items(), key=lambda t: (t[1] < 0, not t[0], -len(t[0]), -abs(t[1])))
        if len(terms) == 1:
            return self._term(*terms[0])
        text = ""
        for m, c in terms:
            if text and c < 0:
                text += f" - {at_least(self._term(m, -c), PRODUCT)}"
            else:
                text += f"{' + ' if text else ''}{at_least(self._term(m, c), PRODUCT)}"
        return Text(text, SUM)

    def negative(self, p: Poly) -> Text:
        """p < 0, with what is subtracted brought to the other side."""
        left = Poly({m: c for m, c in p.terms.items() if c > 0})
        right = Poly({m: -c for m, c in p.terms.items() if c < 0})
        if left.const == 1:
            return Text(f"{at_least(self.index(right), SUM)} > 1", LESS)
        return Text(f"{at_least(self.index(left), SUM)} < {at_least(self.index(right), SUM)}", LESS)

    def all_negative(self, conditions: Sequence[Poly]) -> str:
        """Every polynomial is below 0; "true" for none."""
        return " && ".join(self.negative(p).text for p in conditions) or "true"

    def smaller(self, a: Text, b: Text) -> Text:
        """min(a, b)"""
        return Text(f"{self._helpers.index('min')}({a.text}, {b.text})")

    def _term(self, m: tuple[Atom, ...], c: int) -> Text:
        if not m:
            return Text(str(c))
        factors = [self._atom(a) for a in m]
        if len(factors) == 1 and c == 1:
            return factors[0]
        texts = [at_least(f, PRIMARY) for f in factors]
        if abs(c) != 1:
            texts.append(str(abs(c)))
        sign = "-" if c < 0 else ""
        return Text(sign + " * ".join(texts), PRODUCT if len(texts) > 1 else PREFIX)

    def _atom(self, a: Atom) -> Text:
        if not isinstance(a, Fn):
            return Text(self._names[a])
        x, y = self.index(a.a), self.index(a.b)
        if a.op in ("min", "max"):
            return Text(f"{self._helpers.index(a.op)}({x.text}, {y.text})")
        if a.op == "ceildiv":
            x = Text(f"{at_least(x, SUM)} + {at_least(self.index(a.b - 1), PRODUCT)}", SUM)
        if a.b.const is None:
            # A size may be 0, where nothing of what this measures is used; it must not trap.
            y = Text(f"{self._helpers.index('max')}({y.text}, 1)")
        # Neither is negative, so that C's division rounds down.
        return Text(f"{at_least(x, PRIMARY)} / {at_least(y, PRIMARY)}", PRODUCT)

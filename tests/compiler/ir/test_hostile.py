"""Programs from outside that would take for ever, or mean something else than they seem to, are refused with
a pointer."""

from typing import Any

import pytest

from tilewright.compiler import topi
from tilewright.compiler.ir import VerifyError, from_json, to_json


@pytest.fixture
def program() -> Any:
    return to_json(topi.create({"op": "matmul", "m": 2, "n": 2, "k": 2}))


def block_of(program: Any) -> Any:
    return program["body"][0]["body"][0]["body"][0]["body"][0]["block"]


def refusal(program: Any) -> str:
    with pytest.raises(VerifyError) as caught:
        from_json(program)
    return str(caught.value)


AT = "/body/0/body/0/body/0/body/0/block"


@pytest.mark.parametrize("text", ["0.1", "10", "1.5", "abc", "0x1p0", "-0", "+inf", "Infinity"])
def test_a_float_immediate_has_one_spelling(program: Any, text: str) -> None:
    block_of(program)["init"] = ["const", "float32", text]
    assert refusal(program) == (
        "a float32 immediate is written as float.hex() does, such as '0x1.8p+0', or inf, -inf, nan; "
        f"got {text!r} (at {AT}/init/2)"
    )


def test_the_format_is_an_integer(program: Any) -> None:
    program["tilewright"] = True
    assert refusal(program) == "format True is not known; this program reads 1 (at /tilewright)"


def test_a_power_of_an_index_is_refused(program: Any) -> None:
    block_of(program)["indices"][0] = [[1, *([3] * 180)]]
    assert refusal(program) == f"a term has at most 8 factors, got 180 (at {AT}/indices/0/0)"


def test_a_long_index_is_refused(program: Any) -> None:
    block_of(program)["indices"][0] = [[1, 3]] * 65
    assert refusal(program) == f"an index has at most 64 terms, got 65 (at {AT}/indices/0)"


def test_a_product_of_sums_is_refused_before_it_is_multiplied_out(program: Any) -> None:
    # Divided by 1 an atom is the sum itself: eight of them would have thousands of terms.
    total = ["floordiv", [[1, 3], [1, 4], [1, 5], [1]], 1]
    block_of(program)["indices"][0] = [[1, *([total] * 8)]]
    assert refusal(program) == f"an index has at most 64 terms, got 84 (at {AT}/indices/0/0)"

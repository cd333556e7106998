"""The inputs and poisoned outputs of a check, and what has no reference."""

import hashlib

import numpy as np
import pytest

from tilewright.compiler import interpret, te, topi
from tilewright.compiler.schedule import Schedule

from .interpreted import FLOATS, INTEGERS, elementwise


def test_inputs_are_the_same_on_every_machine():
    func = te.create_prim_func(
        [
            a := te.placeholder((3, 5), "float32", name="A"),
            n := te.placeholder((5,), "int16", name="N"),
            te.compute((3, 5), lambda i, j: a[i, j] + te.cast(n[j], "float32"), name="C"),
        ]
    )
    text = b"".join(x.tobytes() for x in interpret.random_inputs(func, 42))
    assert hashlib.sha256(text).hexdigest() == GOLDEN_INPUTS


GOLDEN_INPUTS = "78df88ac28d10554053f550697bf8ff5c73275cd13e19b2702275633b20c2e42"


def test_inputs_of_another_seed_differ():
    func = topi.create({"op": "add", "shape": [4]})
    one, two = interpret.random_inputs(func, 1), interpret.random_inputs(func, 2)
    assert not np.array_equal(one[0], two[0]) and not np.array_equal(one[0], one[1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_outputs_of_floats_are_poisoned_with_not_a_number(dtype):
    func = elementwise(lambda x: x, dtype)
    assert np.isnan(interpret.random_inputs(func, 0)[1].astype(np.float64)).all()


@pytest.mark.parametrize("dtype", (*INTEGERS, "bool"))
def test_outputs_of_integers_are_poisoned_with_a_pattern(dtype):
    func = elementwise(lambda x: x, dtype)
    assert set(interpret.random_inputs(func, 0)[1].view(np.uint8).tolist()) == {0xA5}


def test_the_inputs_stay_as_they_were():
    func = topi.create({"op": "matmul", "m": 3, "n": 4, "k": 5})
    arrays = interpret.random_inputs(func, 0)
    before = [a.copy() for a in arrays]
    interpret.expected(func, arrays)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays, before, strict=True))


def test_a_scheduled_program_has_no_reference():
    sch = Schedule(topi.create({"op": "add", "shape": [8]}))
    sch.split(*sch.get_loops(sch.get_block("Y")), factors=[None, 4])
    with pytest.raises(interpret.NotPlain) as e:
        interpret.expected(sch.func, interpret.random_inputs(sch.func, 0))
    assert str(e.value) == (
        "'add' is not an unscheduled program: the block 'Y' is not bound to one loop for each of its "
        "iteration variables"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays[:2], "'add' has 3 parameters, got 2 arrays"),
        (lambda arrays: [arrays[0][:4], *arrays[1:]], "the parameter 'A' is float32[8], got float32[4]"),
        (
            lambda arrays: [arrays[0].astype(np.float64), *arrays[1:]],
            "the parameter 'A' is float32[8], got float64[8]",
        ),
    ],
)
@pytest.mark.parametrize("f", [interpret.expected, interpret.run])
def test_arrays_that_do_not_fit_are_refused(f, change, message):
    func = topi.create({"op": "add", "shape": [8]})
    with pytest.raises(ValueError) as e:
        f(func, change(interpret.random_inputs(func, 0)))
    assert str(e.value) == message

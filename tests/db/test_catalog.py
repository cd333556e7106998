import time

import pytest

from tilewright.db import Conflict, InvalidValue, NotFound
from tilewright.db.records import Hardware, Target, Workload


def test_a_workload_is_read_as_it_was_put(store):
    put = store.put_workload("k", "conv", '{"a": 1}', "for i in range(4): ...")
    assert (
        put
        == store.workload("k")
        == Workload("k", "conv", '{"a": 1}', "for i in range(4): ...", put.created_at)
    )


def test_a_workload_put_twice_keeps_its_first_names(store):
    first = store.put_workload("k", "conv", '{"a": 1}', "for i in range(4): ...")
    assert store.put_workload("k", "other", '{"a": 1, "name": "b"}', "for j in range(4): ...") == first


def test_a_target_is_read_as_it_was_put(store):
    put = store.put_target("k", '{"kind": "llvm"}')
    assert put == store.target("k") == Target("k", '{"kind": "llvm"}', put.created_at)


def test_a_target_key_with_another_description_is_a_conflict(store):
    store.put_target("k", '{"kind": "llvm"}')
    with pytest.raises(Conflict):
        store.put_target("k", '{"kind": "c"}')


def test_facts_of_known_hardware_are_replaced(store):
    first = store.put_hardware("k", '{"governor": "powersave"}')
    assert store.put_hardware("k", '{"governor": "performance"}') == store.hardware("k")
    assert store.hardware("k") == Hardware("k", '{"governor": "performance"}', first.created_at)


def test_hardware_is_listed_in_the_order_of_its_first_report(store):
    for key in ("b", "a", "b"):
        store.put_hardware(key, "{}")
        time.sleep(0.005)  # the database's clock tells milliseconds
    assert [each.key for each in store.hardwares()] == ["b", "a"]


@pytest.mark.parametrize("noun", ["workload", "target", "hardware"])
def test_an_unknown_key_is_named(store, noun):
    with pytest.raises(NotFound) as caught:
        getattr(store, noun)("nowhere")
    assert str(caught.value) == f"there is no {noun} 'nowhere'"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("", "program: must not be empty"),
        ('{"x": NaN}', "program: is not JSON: NaN is not a JSON number"),
        (
            "{",
            "program: is not JSON: Expecting property name enclosed in double quotes",
        ),
        ('"\ud800"', "program: holds half of a surrogate pair and is no Unicode text"),
        ('"\0"', "program: holds a NUL character"),
        ("[" * 100_000, "program: is not JSON: maximum recursion depth exceeded while decoding a JSON array"),
    ],
)
def test_a_program_that_is_no_strict_json_is_refused(store, program, reason):
    with pytest.raises(InvalidValue) as caught:
        store.put_workload("k", "conv", program, "")
    assert str(caught.value).startswith(reason)

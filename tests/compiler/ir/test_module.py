"""Several programs by name: as values, as text, as JSON."""

import copy
import json

import pytest

from tilewright.compiler import topi
from tilewright.compiler.ir import (
    IRModule,
    PrimFunc,
    ScriptError,
    VerifyError,
    module_from_json,
    module_to_json,
    parse_module,
    script,
    structural_equal,
    verify_module,
)


def named(name: str, **request: object) -> PrimFunc:
    f = topi.create({"op": "elementwise", "shape": [4], "activation": "relu", **request})
    return PrimFunc(name, f.params, f.allocs, f.body)


@pytest.fixture
def module() -> IRModule:
    return IRModule.of(named("one"), named("two", shape=[3, 2], dtype="int8"))


def test_a_module_is_its_programs_in_their_order(module: IRModule) -> None:
    assert module.names == ("one", "two")
    assert [f.name for f in module] == ["one", "two"]
    assert (len(module), "one" in module, "three" in module) == (2, True, False)
    assert module["two"].params[0].dtype.code == "int"


def test_an_unknown_name_lists_the_known_ones(module: IRModule) -> None:
    with pytest.raises(KeyError, match=r"no program is named 'three'; there are: one, two"):
        module["three"]


def test_a_function_is_added_to_a_copy(module: IRModule) -> None:
    more = module.with_function(named("three"))
    assert (module.names, more.names) == (("one", "two"), ("one", "two", "three"))


def test_a_function_takes_the_place_of_the_one_of_its_name(module: IRModule) -> None:
    more = module.with_function(named("one", shape=[9]), replace=True)
    assert more.names == ("one", "two")
    assert more["one"].params[0].shape[0].const == 9
    assert module["one"].params[0].shape[0].const == 4


def test_two_programs_of_one_name_are_refused(module: IRModule) -> None:
    for make in (lambda: module.with_function(named("one")), lambda: IRModule.of(*module, named("two"))):
        with pytest.raises(VerifyError, match=r"^two programs are named '(one|two)'$"):
            make()
    with pytest.raises(VerifyError, match=r"^no program is named 'three'$"):
        module.with_function(named("three"), replace=True)


def test_a_module_prints_its_programs_and_reads_back(module: IRModule) -> None:
    text = str(module)
    assert text == (
        "def one(X: float32[4], Y: float32[4]):\n"
        "    for i0 in range(4):\n"
        "        Y[i0] = max(X[i0], 0.0)\n"
        "\n"
        "def two(X: int8[3, 2], Y: int8[3, 2]):\n"
        "    for i0 in range(3):\n"
        "        for i1 in range(2):\n"
        "            Y[i0, i1] = max(X[i0, i1], 0)\n"
    )
    read = parse_module(text)
    assert (script(read), structural_equal(read, module), read.names) == (text, True, module.names)


def test_a_text_with_two_programs_of_one_name_is_refused_at_the_second(module: IRModule) -> None:
    with pytest.raises(ScriptError) as e:
        parse_module(str(module) + str(module))
    assert str(e.value) == "line 9, column 1: two programs are named 'one'"
    with pytest.raises(ScriptError, match=r"^line 1, column 1: expected a program such as"):
        parse_module("# nothing\n")


def test_a_module_survives_json(module: IRModule) -> None:
    read = module_from_json(json.loads(json.dumps(module_to_json(module))))
    assert (script(read), structural_equal(read, module)) == (script(module), True)


REFUSED = {
    "no object": (lambda d: [], "expected an object, got an array", "/m"),
    "another format": (
        lambda d: {**d, "tilewright": 9},
        "format 9 is not known; this program reads 1",
        "/m/tilewright",
    ),
    "an unknown field": (
        lambda d: {**d, "x": 1},
        "unknown field 'x'; known: functions, tilewright",
        "/m/x",
    ),
    "no programs": (
        lambda d: {**d, "functions": []},
        "a module holds 1 to 256 programs, got 0",
        "/m/functions",
    ),
    "a program without a name": (
        lambda d: d["functions"][1].pop("name") and d,
        "the field 'name' is missing",
        "/m/functions/1",
    ),
    "two of one name": (
        lambda d: d["functions"][1].update(name="one") or d,
        "two programs are named 'one'",
        "/m/functions/1/name",
    ),
    "a program that is none": (
        lambda d: d["functions"][0]["params"][0].update(dtype="float12") or d,
        "unknown dtype 'float12'; known: ",
        "/m/functions/0/params/0/dtype",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_document_that_is_no_module_is_refused_at_its_place(module: IRModule, case: str) -> None:
    change, message, pointer = REFUSED[case]
    with pytest.raises(VerifyError) as e:
        module_from_json(change(copy.deepcopy(module_to_json(module))), at="/m")
    assert e.value.message.startswith(message)
    assert e.value.pointer == pointer


def test_a_module_is_verified_with_its_names(module: IRModule) -> None:
    verify_module(module)
    with pytest.raises(VerifyError, match=r"^the program 'one' stands under the name 'other'$"):
        verify_module(IRModule({"other": module["one"]}))
    with pytest.raises(VerifyError, match=r"^a module holds at least one program$"):
        verify_module(IRModule({}))

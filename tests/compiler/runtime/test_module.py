"""Modules of one function and of several."""

from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import te
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import IRModule, PrimFunc
from tilewright.compiler.runtime import CallError, Module
from tilewright.compiler.schedule import Schedule


def scaled(by: float, n: int = 6, name: str = "scaled") -> PrimFunc:
    a = te.placeholder((n,), "float32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * by, name="B")], name=name)


def result(function: Any, n: int = 6) -> list[float]:
    x, y = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
    function(x, y)
    values: list[float] = y.tolist()
    return values


def pair() -> Module:
    return tilewright.build({"twice": scaled(2), "thrice": Schedule(scaled(3, 5))})


def test_functions_are_called_by_their_names() -> None:
    module = pair()
    assert (module.functions, result(module["twice"]), result(module["thrice"], 5)) == (
        ("twice", "thrice"),
        [0, 2, 4, 6, 8, 10],
        [0, 3, 6, 9, 12],
    )


def test_the_functions_of_an_ir_module_are_built() -> None:
    module = tilewright.build(IRModule({"half": scaled(0.5), "same": scaled(1.0)}))
    assert (module.functions, result(module["half"])) == (("half", "same"), [0, 0.5, 1, 1.5, 2, 2.5])


def test_a_module_of_one_function_is_called_as_that_function() -> None:
    module = tilewright.build(scaled(2))
    assert (module.functions, module.func_name, result(module), result(module["scaled"])) == (
        ("scaled",),
        "scaled",
        [0, 2, 4, 6, 8, 10],
        [0, 2, 4, 6, 8, 10],
    )


def test_an_unknown_name_lists_the_names_there_are() -> None:
    with pytest.raises(KeyError) as caught:
        pair()["matmul"]
    assert str(caught.value) == "there is no function 'matmul'; the functions are twice, thrice"


def test_a_module_is_a_collection_of_names() -> None:
    module = pair()
    assert (list(module), len(module), "twice" in module, "matmul" in module) == (
        ["twice", "thrice"],
        2,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("use", "word"),
    [
        (lambda m: m(1), "called"),
        (lambda m: m.bind(1), "bound"),
        (lambda m: m.params, "asked for its parameters"),
        (lambda m: m.workspaces, "asked for its workspaces"),
        (lambda m: m.schedule_source, "asked for its schedule"),
        (lambda m: m.func_name, "named"),
    ],
)
def test_a_module_of_several_functions_is_used_by_name(use: Any, word: str) -> None:
    with pytest.raises(CallError) as caught:
        use(pair())
    assert str(caught.value) == (
        f"a module of 2 functions cannot be {word} itself; choose one by its name: "
        "module['twice'], module['thrice']"
    )


def test_a_module_shows_its_programs_its_text_and_its_machine_code() -> None:
    module = pair()
    assert [
        *(line for line in module.script.splitlines() if line.startswith("def ")),
        *(line.partition("(")[0] for line in module.source().splitlines() if line.startswith("define")),
        *(line for line in module.assembly().splitlines() if line in ("twice:", "thrice:")),
    ] == [
        "def twice(A: float32[6], B: float32[6]):",
        "def thrice(A: float32[5], B: float32[5]):",
        "define void @twice",
        "define void @thrice",
        "twice:",
        "thrice:",
    ]


def test_each_function_says_how_its_schedule_was_found() -> None:
    module = pair()
    assert [module[name].schedule_source.kind for name in module] == ["default", "scheduled"]


def test_a_module_says_what_it_holds() -> None:
    module = pair()
    assert repr(module) == (
        "Module(twice(A: float32[6], B: float32[6] out), thrice(A: float32[5], B: float32[5] out), "
        f"{module.target})"
    )


def test_names_that_are_one_in_the_code_are_refused() -> None:
    with pytest.raises(BuildError) as caught:
        tilewright.build({"fé": scaled(1), "fü": scaled(2)})
    assert str(caught.value) == "the functions 'fé' and 'fü' would both be 'f_' in the code"


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({}, "build takes at least one function, got none"),
        ({"f": 3}, "build: 'f' is a int, not a PrimFunc or a Schedule by its name"),
        ({3: scaled(1)}, "build: 3 is a PrimFunc, not a PrimFunc or a Schedule by its name"),
        ([scaled(1)], "build takes a PrimFunc, a Schedule, an IRModule or a mapping of them, got list"),
    ],
)
def test_what_is_no_function_by_its_name_is_refused(what: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        tilewright.build(what)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["f-1", "", "a b"])
def test_a_name_that_no_program_could_have_is_refused(name: str) -> None:
    with pytest.raises(ValueError) as caught:
        tilewright.build({name: scaled(1)})
    assert str(caught.value) == f"build: a function's name must be an identifier, got {name!r}"


def test_a_header_declares_every_function_for_c() -> None:
    a = te.placeholder((2, 3), "bool", name="int")
    func = te.create_prim_func(
        [a, te.compute((2, 3), lambda i, j: te.cast(a[i, j], "int8"), name="Bé")], name="fé"
    )
    module = tilewright.build({"fé": func, "scaled": scaled(2)}, "llvm -mcpu=x86-64")
    assert module.header() == (
        f"/* Compiled by Tilewright for {module.target} */\n"
        "#ifndef TILEWRIGHT_F__SCALED_H\n"
        "#define TILEWRIGHT_F__SCALED_H\n"
        "\n"
        "#include <stdint.h>\n"
        "\n"
        "#ifdef __cplusplus\n"
        'extern "C" {\n'
        "#endif\n"
        "\n"
        "/* fé\n"
        " * int_: bool[2, 3]\n"
        " * B_: int8[2, 3], written\n"
        " */\n"
        "void f_(const uint8_t *int_, int8_t *B_);\n"
        "\n"
        "/* scaled\n"
        " * A: float32[6]\n"
        " * B: float32[6], written\n"
        " */\n"
        "void scaled(const float *A, float *B);\n"
        "\n"
        "#ifdef __cplusplus\n"
        "}\n"
        "#endif\n"
        "#endif /* TILEWRIGHT_F__SCALED_H */\n"
    )

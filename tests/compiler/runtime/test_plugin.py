"""Back ends that other distributions add."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import te
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.codegen.registry import savable_kinds
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.target import Target, TargetError, backends
from tilewright.compiler.target.registry import known_kinds

Site = Any  # of conftest

SCRIPT = """\
import numpy, tilewright
from tilewright import te
a = te.placeholder((5, 3), "float32", name="A")
func = te.create_prim_func([a, te.compute((5, 3), lambda i, j: a[i, j] * 2.0 + 1.0, name="B")], name="line")
device = tilewright.device("pyref", 1)
x = tilewright.NDArray.from_numpy(numpy.arange(15, dtype="f4").reshape(5, 3), device)
y = tilewright.NDArray.empty((5, 3), "float32", device)
module = tilewright.build(func, {"kind": "pyref", "device": 1})
module(x, y)
print(y, (y.numpy() == x.numpy() * 2 + 1).all())
"""


def product(m: int, n: int, k: int, dtype: str = "float32", name: str = "product") -> PrimFunc:
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r, dtype=dtype), name="C")
    return te.create_prim_func([a, b, c], name=name)


def on_device(array: np.ndarray[Any, Any]) -> tilewright.NDArray:
    return tilewright.NDArray.from_numpy(array, tilewright.device("pyref"))


def refusal(spec: Any) -> str:
    with pytest.raises(TargetError) as caught:
        tilewright.build(product(2, 2, 2), spec)
    return str(caught.value)


def test_a_back_end_of_another_distribution_serves_its_kind_in_a_fresh_process(
    site: Site, tmp_path: Path
) -> None:
    site.install_example()
    path = os.pathsep.join([*site.search, os.environ.get("PYTHONPATH", ""), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.stdout, done.stderr) == ("NDArray(float32[5, 3] on pyref(1)) True\n", "")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
def test_its_kernels_compute_what_numpy_computes(pyref: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-5, 5, shape).astype(dtype) for shape in ((5, 7), (7, 3)))
    c = on_device(np.zeros((5, 3), dtype))
    tilewright.build(product(5, 3, 7, dtype), pyref)(on_device(a), on_device(b), c)
    np.testing.assert_array_equal(c.numpy(), a @ b)


def test_its_own_attributes_have_types_and_defaults(pyref: str) -> None:
    target = Target.parse("pyref -steps=8 -strict=true")
    assert (target.to_json(), str(target), Target.parse(target.to_json()), target.attribute("order")) == (
        {"kind": "pyref", "steps": 8, "strict": True},
        "pyref -steps=8 -strict=true",
        target,
        "forward",
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("pyref -steps=many", "target pyref: steps='many': must be an integer of at least 1"),
        ("pyref -strict=maybe", "target pyref: strict='maybe': must be true or false"),
        ("pyref -order=random", "target pyref: order='random': must be 'forward'"),
        (
            "pyref -mcpu=host",
            "target pyref: unknown attribute 'mcpu'; known attributes: device, order, steps, strict",
        ),
    ],
)
def test_a_wrong_attribute_of_its_own_is_refused(pyref: str, spec: str, message: str) -> None:
    assert refusal(spec) == message


def test_its_code_generator_reads_the_target(pyref: str) -> None:
    with pytest.raises(BuildError, match=r"^product takes more than the 100 steps allowed$"):
        tilewright.build(product(5, 5, 5), "pyref -steps=100")


def test_its_kernels_take_no_array_of_the_host(pyref: str) -> None:
    a = np.zeros((2, 2), np.float32)
    with pytest.raises(TypeError) as caught:
        tilewright.build(product(2, 2, 2), pyref)(a, a, a.copy())
    assert str(caught.value) == (
        "product: argument 1, 'A': is on cpu(0), the kernel runs on pyref(0); "
        "pass NDArray.from_numpy(A, tilewright.device('pyref', 0))"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("A",), "takes 3 arrays (A, B, C), got 1"),
        (("A", "none", "A"), "argument 2, 'B': expected a numpy.ndarray, got builtins.NoneType"),
        (("int8", "A", "A"), "argument 1, 'A': expected dtype float32, got int8"),
    ],
)
@pytest.mark.parametrize("call", ["__call__", "bind"])
def test_a_wrong_argument_is_told_as_for_the_cpu(
    pyref: str, call: str, arguments: tuple[str, ...], message: str
) -> None:
    given: dict[str, Any] = {
        "A": on_device(np.zeros((2, 2), np.float32)),
        "int8": on_device(np.zeros((2, 2), np.int8)),
        "none": None,
    }
    function = tilewright.build(product(2, 2, 2), pyref)["product"]
    with pytest.raises(TypeError) as caught:
        getattr(function, call)(*(given[name] for name in arguments))
    assert str(caught.value) == f"product: {message}"


def test_sizes_that_are_open_are_refused(pyref: str) -> None:
    n = te.var("n")
    a = te.placeholder((n,), "float32", name="A")
    with pytest.raises(BuildError, match=r"^A: sizes must be known when a program is built for pyref$"):
        tilewright.build(te.create_prim_func([a, te.compute((n,), lambda i: a[i], name="B")]), pyref)


def test_a_kernel_of_the_cpu_takes_no_array_of_the_device(pyref: str) -> None:
    a = on_device(np.zeros((2, 2), np.float32))
    with pytest.raises(TypeError) as caught:
        tilewright.build(product(2, 2, 2))(a, a, a)
    assert str(caught.value) == (
        "product: argument 1, 'A': is on pyref(0), the kernel runs on cpu(0); "
        "pass A.to(tilewright.device('cpu', 0))"
    )


def test_its_modules_cannot_be_saved_and_the_kinds_that_can_are_named(pyref: str, tmp_path: Path) -> None:
    module = tilewright.build(product(2, 2, 2), pyref)
    with pytest.raises(BuildError) as caught:
        module.export(tmp_path / "product.o")
    assert (str(caught.value), list(tmp_path.glob("*.o"))) == (
        f"modules of the kind 'pyref' cannot be saved; kinds that can be: {', '.join(savable_kinds())}",
        [],
    )
    assert ("llvm" in savable_kinds(), "pyref" in savable_kinds()) == (True, False)


def test_it_is_listed_with_its_distribution(pyref: str) -> None:
    found = {b.name: (b.distribution, b.error) for b in backends()}
    assert (found["pyref"], found["llvm"]) == (("tilewright-pyref", None), ("tilewright", None))


def test_nothing_is_imported_before_its_kind_is_asked_for(site: Site) -> None:
    (site.folder / "broken_late.py").write_text("raise SystemError('imported')\n")
    site.install("late", {"late": "broken_late:backend"})
    assert ("late" in known_kinds(), Target.parse("llvm").kind) == (True, "llvm")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1 / 0", "cannot be loaded: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit('needs more')", "cannot be loaded: SystemExit: needs more"),
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("other = 1", "cannot be loaded: AttributeError: module 'broken_one' has no attribute 'backend'"),
        ("backend = 3", "is a int, not a Backend"),
        (
            "from tilewright.compiler.target import Backend, TargetKind\n"
            "backend = Backend(TargetKind('two'), 'm:g')",
            "is of the kind 'two': the two names must be the same",
        ),
    ],
)
def test_a_broken_back_end_is_an_error_of_its_kind_alone(site: Site, text: str, reason: str) -> None:
    (site.folder / "broken_one.py").write_text(f"{text}\n")
    site.install("one-kind", {"one": "broken_one:backend"})
    message = f"the back end 'one' of one-kind (broken_one:backend) {reason}"
    assert (refusal("one"), [b.error for b in backends() if b.error]) == (message, [message])
    assert tilewright.build(product(2, 2, 2)).target.kind == "llvm"


def test_a_code_generator_that_is_missing_is_an_error_before_anything_is_lowered(site: Site) -> None:
    (site.folder / "broken_gen.py").write_text(
        "from tilewright.compiler.target import Backend, TargetKind\n"
        "backend = Backend(TargetKind('gen'), 'broken_gen:nothing')\n"
    )
    site.install("gen", {"gen": "broken_gen:backend"})
    assert refusal("gen") == (
        "the code generator of 'gen' cannot be loaded: module 'broken_gen' has no attribute 'nothing'"
    )


def test_a_kind_that_two_distributions_define_is_refused_naming_both(pyref: str, site: Site) -> None:
    site.install("another-pyref", {"pyref": "another:backend"})
    problem = refusal("pyref")
    first, second = sorted(["tilewright-pyref", "another-pyref"], key=problem.index)
    assert problem == (
        f"the back end 'pyref' is defined twice, by {first} and by {second}: uninstall one of them"
    )
    assert [b.error for b in backends() if b.name == "pyref"] == [problem]


def test_a_kind_of_our_own_that_another_distribution_defines_too_is_refused(site: Site) -> None:
    site.install("usurper", {"llvm": "usurper:backend"})
    assert refusal("llvm") == (
        "the back end 'llvm' is defined twice, by tilewright and by usurper: uninstall one of them"
    )


def test_an_unknown_kind_names_the_plug_ins_too(pyref: str) -> None:
    assert refusal("cudaa") == (
        "no code generator for 'cudaa'; registered: c, llvm, pyref; to add one: install a package with an "
        "entry point 'cudaa' in the group 'tilewright.backends'"
    )


def test_an_unknown_kind_is_refused_before_anything_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.compiler.codegen.llvm.generator.lower", pytest.fail)
    assert refusal("cudaa").startswith("no code generator for 'cudaa'; registered: c, llvm; to add one: ")

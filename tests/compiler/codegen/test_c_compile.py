"""C compiled and loaded, and what is said where that cannot be."""

import errno
import gc
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from own_processes import own_children

import tilewright as tw
from tilewright.compiler import te
from tilewright.compiler.codegen.c import compile as c_compile
from tilewright.compiler.codegen.c import generator
from tilewright.compiler.codegen.c.loaded import compile_c
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.target import Target

HOST = Target.parse("c")
needs_a_compiler = pytest.mark.skipif(
    not any(map(shutil.which, c_compile.COMPILERS)), reason="there is no C compiler"
)


@pytest.fixture
def double() -> PrimFunc:
    """B = 2 A."""
    a = te.placeholder((5,), "float32", name="A")
    return te.create_prim_func([a, te.compute((5,), lambda i: a[i] * 2.0, name="B")], name="double_it")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@needs_a_compiler
def test_a_program_is_built_for_c_as_for_llvm(double: PrimFunc) -> None:
    x, y = np.arange(5, dtype="f4"), np.empty(5, "f4")
    module = tw.build(double, "c")
    module(x, y)
    assert (y.tolist(), module.target.kind) == ([0, 2, 4, 6, 8], "c")
    assert "* 2.0f;" in module.source()
    assert "double_it:" in module.assembly()


@needs_a_compiler
def test_nothing_is_left_in_the_folder_for_temporary_files(double: PrimFunc, temporary: Path) -> None:
    generator.load(generator.lower(double, HOST), HOST)
    with pytest.raises(BuildError):
        compile_c("void f(void) { undeclared(); }}", HOST, ["f"])
    assert list(temporary.iterdir()) == []


@needs_a_compiler
def test_a_library_is_unloaded_when_it_goes(double: PrimFunc) -> None:
    library = generator.load(generator.lower(double, HOST), HOST)
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("only Linux says what is loaded")
    name = "tilewright-c-"
    before = maps.read_text().count(name)
    del library
    gc.collect()
    assert maps.read_text().count(name) < before


@needs_a_compiler
def test_a_text_that_the_compiler_refuses_is_an_error_with_its_words_and_the_line() -> None:
    with pytest.raises(BuildError) as caught:
        compile_c("void f(void)\n{\n    int x = nothing;\n}\n", HOST, ["f"])
    assert "refused the kernel: kernel.c:3:13: error:" in caught.value.message
    assert "nothing" in caught.value.message
    assert caught.value.line == "int x = nothing;"


@needs_a_compiler
def test_a_function_that_is_not_there_is_an_error() -> None:
    with pytest.raises(BuildError, match="the C text defines no function 'g'"):
        compile_c("void f(void) {}", HOST, ["g"])


def test_without_a_compiler_there_is_still_the_text(
    double: PrimFunc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    lowered = generator.lower(double, HOST)
    assert "void double_it(const float *restrict A, float *restrict B)" in lowered.text
    with pytest.raises(BuildError) as caught:
        generator.load(lowered, HOST)
    assert str(caught.value) == (
        "no C compiler was found; looked for cc, gcc, clang on the PATH. Install one of them, or build for "
        "the target kind 'llvm', which needs none; the C text itself needs none either"
    )


def test_a_compiler_that_takes_too_long_is_stopped_with_its_children(
    double: PrimFunc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, temporary: Path
) -> None:
    compiler = tmp_path / "bin" / "cc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\n/bin/sleep 60 &\n/bin/sleep 60\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent))
    monkeypatch.setattr(c_compile, "TIME_LIMIT", 0.3)
    known = set(own_children(recursive=True))
    with pytest.raises(BuildError, match=r"the C compiler was stopped after 0\.3 s: unroll less"):
        generator.load(generator.lower(double, HOST), HOST)
    deadline = time.monotonic() + 5
    while left := [p for p in set(own_children(recursive=True)) - known if p.is_running()]:
        assert time.monotonic() < deadline, left
    assert list(temporary.iterdir()) == [compiler.parent]


def test_a_broken_compiler_is_named_with_its_status(
    double: PrimFunc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nexit 3\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="the C compiler cc refused the kernel: it ended with status 3"):
        generator.load(generator.lower(double, HOST), HOST)


@needs_a_compiler
def test_where_no_file_may_be_written_it_is_a_build_error(
    double: PrimFunc, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(BuildError, match="a C compiler cannot be used here: File too large"):
        generator.load(generator.lower(double, HOST), HOST)


def test_code_for_another_machine_is_not_loaded(double: PrimFunc) -> None:
    other = "neoverse-n1" if HOST.architecture == "x86_64" else "x86-64"
    target = Target.parse(f"c -mcpu={other}")
    with pytest.raises(BuildError) as caught:
        generator.load(generator.lower(double, target), target)
    assert str(caught.value).startswith(f"code for {other} cannot run on this machine, which lacks ")


def test_the_compiler_gets_the_targets_features_and_no_others() -> None:
    switches = c_compile.flags(Target.parse("c -mcpu=x86-64-v2 -mattr=+fma -math=strict"))
    assert "-mfma" in switches and "-mavx2" not in switches and "-ffp-contract=off" in switches
    assert "-mprefer-vector-width=256" in switches and "-march=x86-64" in switches

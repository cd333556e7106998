"""Modules saved to files and loaded again."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from saved_kernels import DTYPES, SUFFIXES, any_length, check_product, copied, pair, product, scaled

import tilewright
from tilewright import te
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.runtime.arrays import numpy_dtype

NEEDS_CC = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


# ---- saved and loaded ----
def test_a_loaded_module_computes_what_the_saved_one_does(exported: Path) -> None:
    module = tilewright.load_module(exported)
    for name in module:
        check_product(module[name])


def test_a_loaded_module_is_what_was_saved(exported: Path) -> None:
    saved, loaded = pair(), tilewright.load_module(exported)
    for name in saved:
        a, b = saved[name], loaded[name]
        assert (
            *(b.name, b.symbol, b.params, b.workspaces, b.target, b.script, b.source()),
            *(b.schedule_source, b.assembly()),
        ) == (
            *(a.name, a.symbol, a.params, a.workspaces, a.target, a.script, a.source()),
            *(a.schedule_source, a.assembly()),
        )
    assert (loaded.functions, loaded.header()) == (saved.functions, saved.header())


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_keeps_its_name(tmp_path: Path, dtype: str) -> None:
    module = tilewright.load_module(tilewright.build(copied(dtype)).export(tmp_path / "copied.o"))
    x = np.array([[0, 1, 1, 0, 1]] * 3).astype(numpy_dtype(dtype))
    y = np.zeros_like(x)
    module(x, y)
    np.testing.assert_array_equal(x, y)
    assert [p.dtype for p in module.params] == [dtype, dtype]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_sizes_known_at_the_call_stay_so(tmp_path: Path, suffix: str) -> None:
    saved = tilewright.build(any_length())
    loaded = tilewright.load_module(saved.export(tmp_path / f"k{suffix}"))
    for n in (1, 0, 17, 2000):
        a, total = (np.arange(n * 6) % 11).astype("f4").reshape(n, 6), np.full(n, np.nan, np.float32)
        loaded(a, total)
        np.testing.assert_array_equal(total, 2 * a.sum(1))
    assert (loaded.params, loaded.sizes, loaded.workspaces) == (saved.params, ("n",), saved.workspaces)
    assert "void any_length(const float *A, float *S, int64_t n, void *workspace0);" in loaded.header()


def test_a_loaded_module_checks_its_arguments(exported: Path) -> None:
    a = np.zeros((5, 3), np.float32)
    with pytest.raises(ValueError, match=r"^small: argument 2, 'B': expected shape \(3, 7\), got \(5, 3\)$"):
        tilewright.load_module(exported)["small"](a, a, a)


def test_a_file_is_loaded_twice_and_moved_meanwhile(exported: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copy(exported, tmp_path / "renamed.bin"))
    first = tilewright.load_module(copy)
    copy.unlink()
    check_product(first["small"])
    check_product(tilewright.load_module(exported)["small"])


@pytest.mark.parametrize("kind", ["llvm", pytest.param("c", marks=NEEDS_CC)])
@pytest.mark.parametrize("name", ["tilewright_metadata", "tw_metadata", "metadata", "memset", "main"])
def test_a_function_may_have_any_name(tmp_path: Path, kind: str, name: str) -> None:
    module = tilewright.load_module(tilewright.build({name: scaled(3.0)}, kind).export(tmp_path / "k.o"))
    x, y = np.arange(40, dtype="f4"), np.empty(40, "f4")
    module[name](x, y)
    np.testing.assert_array_equal(y, 3 * x)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_was_written_anew_is_loaded_anew(tmp_path: Path, suffix: str) -> None:
    x, loaded, found = np.arange(40, dtype="f4"), [], []
    for factor in (3.0, 5.0):
        path = tilewright.build(scaled(factor)).export(tmp_path / f"k{suffix}")
        loaded.append(tilewright.load_module(path))
    for module in loaded:
        y = np.empty(40, "f4")
        module(x, y)
        found.append(y)
    np.testing.assert_array_equal(found, [3 * x, 5 * x])


@pytest.mark.skipif(".so" not in SUFFIXES, reason="no linker")
def test_linking_without_a_temporary_folder_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(BuildError, match=r"^export: the linker failed: .*No such file or directory"):
        tilewright.build(scaled(3.0)).export(tmp_path / "k.so")


@pytest.mark.skipif(".so" not in SUFFIXES, reason="no linker")
def test_a_shared_object_needs_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tilewright.build(scaled(3.0)).export(tmp_path / "k.so")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    x, y = np.arange(40, dtype="f4"), np.empty(40, "f4")
    tilewright.load_module(path)(x, y)
    np.testing.assert_array_equal(y, 3 * x)


def test_the_same_module_gives_the_same_file(tmp_path: Path) -> None:
    files = [pair().export(tmp_path / f"{n}.a").read_bytes() for n in range(2)]
    assert files[0] == files[1]


LOADING = """\
import sys
import numpy
import tilewright
module = tilewright.load_module(sys.argv[1])
a, b = numpy.ones((5, 3), "f4"), numpy.ones((3, 7), "f4")
c = numpy.zeros((5, 7), "f4")
module["small"](a, b, c)
parts = ("arith", "build", "codegen.llvm", "codegen.lower", "codegen.registry", "interpret", "ir", "passes")
parts += ("schedule", "space", "te", "topi")
names = tuple(f"tilewright.compiler.{part}" for part in parts)
print((c == 3).all(), [m for m in sys.modules if m.startswith(names)])
"""


def test_a_fresh_process_loads_a_module_without_the_compiler(exported: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING, str(exported)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert (done.stdout, done.stderr) == ("True []\n", "")


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_modules_of_the_kind_c_are_saved_with_what_they_call(tmp_path: Path, suffix: str) -> None:
    a = te.placeholder((4, 3), "float32", name="A")
    waves = te.create_prim_func([a, te.compute((4, 3), lambda i, j: te.sin(te.exp(a[i, j])), name="B")])
    saved = tilewright.build({"waves": waves, "small": product()}, "c")
    loaded = tilewright.load_module(saved.export(tmp_path / f"k{suffix}"))
    check_product(loaded["small"])
    x, y = np.linspace(-1, 1, 12, dtype="f4").reshape(4, 3), np.empty((4, 3), "f4")
    loaded["waves"](x, y)
    np.testing.assert_allclose(y, np.sin(np.exp(x)), rtol=1e-5)
    assert (loaded.source(), loaded.target) == (saved.source(), saved.target)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_function_of_the_kind_c_keeps_its_own_constants(tmp_path: Path, suffix: str) -> None:
    factors = {"thrice": 3.0, "fivefold": 5.0, "sevenfold": 7.0}
    saved = tilewright.build({name: scaled(factor) for name, factor in factors.items()}, "c")
    loaded = tilewright.load_module(saved.export(tmp_path / f"k{suffix}"))
    x, found = np.arange(40, dtype="f4"), []
    for name in factors:
        y = np.empty(40, "f4")
        loaded[name](x, y)
        found.append(y)
    np.testing.assert_array_equal(found, [factor * x for factor in factors.values()])


def test_c_for_another_machine_needs_its_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    foreign = "neoverse-n1" if os.uname().machine == "x86_64" else "haswell"
    module = tilewright.build(product(), f"c -mcpu={foreign}")
    architecture = module.target.architecture
    with pytest.raises(BuildError) as caught:
        module.export(tmp_path / "k.o")
    assert (str(caught.value), "void product(" in module.source()) == (
        f"no C compiler for {architecture} was found; looked for {architecture}-linux-gnu-gcc on the PATH. "
        "The C text itself needs none",
        True,
    )


@NEEDS_CC
def test_a_compiler_is_found_and_works_without_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler where the system looks without a PATH")
    x, y = np.arange(40, dtype="f4"), np.empty(40, "f4")
    tilewright.build(scaled(3.0), "c")(x, y)
    np.testing.assert_array_equal(y, 3 * x)


# ---- writing ----
def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"^export: 'k\.dll' must end in \.o or \.a or \.so$"):
        tilewright.build(product()).export(tmp_path / "k.dll")


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "k.o").mkdir()
    with pytest.raises(IsADirectoryError):
        tilewright.build(product()).export(tmp_path / "k.o")
    assert [p.name for p in tmp_path.iterdir()] == ["k.o"]


def test_a_missing_linker_is_named_with_the_ways_that_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    module = tilewright.build(product(), "llvm -mtriple=x86_64-linux-gnu")
    with pytest.raises(BuildError) as caught:
        module.export(tmp_path / "k.so")
    tried = "ld, ld.lld, cc" if os.uname().machine == "x86_64" else "x86_64-linux-gnu-ld, ld.lld, "
    assert str(caught.value).startswith(
        f"export: no linker for x86_64-linux-gnu was found, of {tried}"
    ) and str(caught.value).endswith("install one, or export to .o or .a, which need none")


def test_a_linker_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tilewright.build(product())
    for name in ("ld", "ld.lld", "cc"):
        fake = tmp_path / name
        fake.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
        fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(BuildError, match=r"^export: the linker failed: no space left"):
        module.export(tmp_path / "k.so")


def test_a_loaded_module_is_not_saved_again(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(tilewright.CallError, match=r"was not made by build and has nothing to save$"):
        tilewright.load_module(exported).export(tmp_path / "again.o")

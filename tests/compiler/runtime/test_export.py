"""Modules saved to files, loaded again, and called from C."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright
from tilewright import te
from tilewright.compiler.codegen.errors import BuildError
from tilewright.compiler.ir import PrimFunc
from tilewright.compiler.runtime import LoadError, Module
from tilewright.compiler.runtime.archive import pack, unpack
from tilewright.compiler.runtime.arrays import numpy_dtype
from tilewright.compiler.runtime.metadata import seal
from tilewright.compiler.schedule import Schedule

SUFFIXES = (".o", ".a", ".so") if shutil.which("ld") or shutil.which("cc") else (".o", ".a")


def product(m: int = 5, n: int = 7, k: int = 3, dtype: str = "float32", name: str = "product") -> PrimFunc:
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r, dtype=dtype), name="C")
    return te.create_prim_func([a, b, c], name=name)


def with_workspace() -> Schedule:
    """A product whose left side is doubled first, into a workspace."""
    a, b = te.placeholder((40, 30), "float32", name="A"), te.placeholder((30, 20), "float32", name="B")
    d = te.compute((40, 30), lambda i, j: a[i, j] * 2.0, name="D")
    r = te.reduce_axis((0, 30), name="k")
    c = te.compute((40, 20), lambda i, j: te.sum(d[i, r] * b[r, j], axis=r), name="C")
    return Schedule(te.create_prim_func([a, b, c], name="doubled"))


def any_length() -> Schedule:
    """A sum over rows of as many as there are, through a workspace as long."""
    n = te.var("n")
    a = te.placeholder((n, 6), "float32", name="A")
    d = te.compute((n, 6), lambda i, j: a[i, j] * 2.0, name="D")
    r = te.reduce_axis((0, 6), name="k")
    return Schedule(
        te.create_prim_func(
            [a, te.compute((n,), lambda i: te.sum(d[i, r], axis=r), name="S")], name="any_length"
        )
    )


def copied(dtype: str) -> PrimFunc:
    a = te.placeholder((3, 5), dtype, name="A")
    return te.create_prim_func([a, te.compute((3, 5), lambda i, j: a[i, j], name="B")], name="copied")


def builds(dtype: str) -> bool:
    try:
        tilewright.build(copied(dtype))
    except BuildError:
        return False
    return True


DTYPES = [
    dtype
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64")
    if builds(dtype)
]


def pair() -> Module:
    return tilewright.build({"small": product(), "fé": product(8, 16, 4), "doubled": with_workspace()})


def check_product(function: Any) -> None:
    (m, k), (_, n) = (p.shape for p in function.params[:2])
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    function(a, b, c)
    np.testing.assert_array_equal(c, (2 if function.name == "doubled" else 1) * (a @ b))


@pytest.fixture(scope="module", params=SUFFIXES)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of each sort."""
    return pair().export(tmp_path_factory.mktemp("exported") / f"kernels{request.param}")


def refusal(path: Path) -> str:
    with pytest.raises(LoadError) as caught:
        tilewright.load_module(path)
    problem = str(caught.value)
    assert problem.startswith(f"{path}: ")
    return problem.removeprefix(f"{path}: ")


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


# ---- files that are refused ----
@pytest.mark.parametrize(
    "content",
    [b"", b"not a module\n" * 100, b"\x7fELF\x02\x01\x01" + bytes(500), b"!<arch>\n"],
    ids=["empty", "text", "elf", "archive"],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.o"
    path.write_bytes(content)
    assert refusal(path) == "is no module that Tilewright exported"


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tilewright.load_module(tmp_path / "nothing.o")


@pytest.mark.parametrize("part", range(1, 12))
def test_a_file_that_is_cut_off_is_refused(exported: Path, tmp_path: Path, part: int) -> None:
    whole = exported.read_bytes()
    path = tmp_path / f"cut{exported.suffix}"
    path.write_bytes(whole[: len(whole) * part // 12])
    assert refusal(path) in (
        "is no module that Tilewright exported",
        "is cut off",
        "is damaged, or was changed after it was exported",
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_file_with_another_bit_is_refused(exported: Path, tmp_path: Path, seed: int) -> None:
    damaged = bytearray(exported.read_bytes())
    rng = np.random.default_rng(seed)
    damaged[int(rng.integers(len(damaged)))] ^= 1 << int(rng.integers(8))
    path = tmp_path / f"damaged{exported.suffix}"
    path.write_bytes(damaged)
    assert refusal(path) in (
        "is no module that Tilewright exported",
        "is damaged, or was changed after it was exported",
    )


def test_a_file_with_something_behind_it_is_refused(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / f"longer{exported.suffix}"
    path.write_bytes(exported.read_bytes() + b"\n")
    assert refusal(path) == "is damaged, or was changed after it was exported"


def test_several_modules_in_one_file_are_refused(exported: Path, tmp_path: Path) -> None:
    path = tmp_path / "both.a"
    path.write_bytes(exported.read_bytes() * 2)
    assert refusal(path) == "holds several modules, linked together; load the files they were exported to"


def resealed(path: Path, old: bytes, new: bytes) -> None:
    """Other metadata of the same length, as another version of the exporter would have sealed them."""
    file = path.read_bytes()
    assert len(old) == len(new) and file.count(old) == 1
    path.write_bytes(seal(file.replace(old, new)))


def test_another_format_is_refused_naming_both(tmp_path: Path) -> None:
    path = tilewright.build(product()).export(tmp_path / "k.o")
    resealed(path, b'{"format":1,', b'{"format":7,')
    assert refusal(path) == "has format 7; this version reads format 1"


def test_metadata_without_a_field_are_refused(tmp_path: Path) -> None:
    path = tilewright.build(product()).export(tmp_path / "k.o")
    resealed(path, b'"symbol":', b'"symbal":')
    assert refusal(path) == "has incomplete metadata: 'symbol'"


def test_metadata_that_name_another_function_are_refused(tmp_path: Path) -> None:
    path = tilewright.build(product()).export(tmp_path / "k.o")
    resealed(path, b'"symbol":"product"', b'"symbol":"prodoct"')
    assert "prodoct" in refusal(path)


def test_code_for_features_that_the_machine_lacks_is_refused(
    exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilewright.compiler.target.cpus import CPUS

    monkeypatch.setattr("tilewright.compiler.target.runs.host_cpu", lambda: CPUS["x86-64"])
    target = pair().target
    if target.architecture == "x86_64" and "avx" in target.features:
        problem = refusal(exported)
        assert problem.startswith(f"code for {target.mcpu} cannot run on this machine, which lacks avx")


# ---- archives ----
def test_an_archive_gives_its_members_back() -> None:
    objects = [("one.o", b"abc", ["f"]), ("two.o", b"defg", ["g", "h"]), ("three.o", b"", [])]
    assert unpack(pack(objects)) == [b"abc", b"defg", b""]


@pytest.mark.parametrize(
    ("archive", "problem"),
    [
        (b"\x7fELF", "not an archive"),
        (pack([("one.o", b"abcdef", ["f"])])[:-1], "the member at byte 78 is cut off"),
        (pack([]) + b"rubbish", "no member begins at byte 72"),
    ],
)
def test_a_broken_archive_is_refused(archive: bytes, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        unpack(archive)
    assert str(caught.value) == problem


# ---- called from C ----
DRIVER = """\
#include <stdio.h>
#include "kernels.h"
static float A[40 * 30], B[30 * 20], C[40 * 20];
static _Alignas(64) char space[40 * 30 * 4];
int main(void) {
  for (int i = 0; i < 40 * 30; ++i) A[i] = i % 7 - 3;
  for (int i = 0; i < 30 * 20; ++i) B[i] = i % 5 - 2;
  doubled(A, B, C, space);
  for (int i = 0; i < 40 * 20; ++i) printf("%g\\n", C[i]);
  return 0;
}
"""


def c_result() -> list[float]:
    a = (np.arange(1200) % 7 - 3).reshape(40, 30)
    b = (np.arange(600) % 5 - 2).reshape(30, 20)
    values: list[float] = (2 * (a @ b)).ravel().tolist()
    return values


def driven(folder: Path, compiler: str, kernels: str, runner: list[str]) -> list[float]:
    (folder / "driver.c").write_text(DRIVER)
    options = ["-std=c11", "-Wall", "-Werror", "-static"] if runner else ["-std=c11", "-Wall", "-Werror"]
    command = [compiler, *options, "-o", "driver", "driver.c", kernels]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    done = subprocess.run(
        [*runner, str(folder / "driver")], check=True, capture_output=True, text=True, timeout=60
    )
    return [float(line) for line in done.stdout.split()]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("suffix", [".o", ".a"])
def test_a_c_program_calls_the_exported_functions(tmp_path: Path, suffix: str) -> None:
    module = pair()
    module.export(tmp_path / f"kernels{suffix}")
    (tmp_path / "kernels.h").write_text(module.header())
    assert driven(tmp_path, "cc", f"kernels{suffix}", []) == c_result()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_two_exported_objects_go_into_one_program(tmp_path: Path) -> None:
    module = tilewright.build({"doubled": with_workspace()})
    module.export(tmp_path / "kernels.o")
    tilewright.build(product()).export(tmp_path / "others.o")
    (tmp_path / "kernels.h").write_text(module.header())
    subprocess.run(["cc", "-shared", "-o", "x.so", "kernels.o", "others.o"], cwd=tmp_path, check=True)
    assert refusal(tmp_path / "x.so") == (
        "holds several modules, linked together; load the files they were exported to"
    )


# ---- other machines ----
CROSS = {
    "aarch64": "llvm -mtriple=aarch64-linux-gnu",
    "riscv64": "llvm -mtriple=riscv64-linux-gnu",
    "riscv64 with vectors": "llvm -mtriple=riscv64-linux-gnu -mattr=+v",
    "x86_64 of 2003": "llvm -mtriple=x86_64-linux-gnu",
}
MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243}  # of the ELF header


@pytest.mark.parametrize("name", CROSS)
@pytest.mark.parametrize("suffix", [".o", ".a"])
def test_code_for_any_machine_is_exported_on_any_machine(tmp_path: Path, name: str, suffix: str) -> None:
    module = tilewright.build(with_workspace(), CROSS[name])
    file = module.export(tmp_path / f"kernels{suffix}").read_bytes()
    code = unpack(file)[0] if suffix == ".a" else file
    assert (code[:4], int.from_bytes(code[18:20], "little")) == (
        b"\x7fELF",
        MACHINES[name.partition(" ")[0]],
    )


@pytest.mark.parametrize("name", [n for n in CROSS if not n.startswith(os.uname().machine)])
def test_code_for_another_machine_is_neither_called_nor_loaded_here(tmp_path: Path, name: str) -> None:
    module = tilewright.build(product(), CROSS[name])
    a, b, c = (np.ones(p.shape, np.float32) for p in module.params)
    architecture = name.partition(" ")[0]
    reason = f"code for {module.target.mcpu} cannot run on this machine, which lacks {architecture}"
    for use in (module, module.bind, module["product"]):
        with pytest.raises(tilewright.CallError) as caught:
            use(a, b, c)
        assert str(caught.value) == (
            f"product: {reason}; export it with module.export(path), and load it there"
        )
    assert refusal(module.export(tmp_path / "kernels.o")) == reason


@pytest.mark.parametrize("name", ["aarch64", "riscv64", "riscv64 with vectors"])
def test_code_for_another_machine_computes_the_same_there(tmp_path: Path, name: str) -> None:
    architecture = name.partition(" ")[0]
    compiler = shutil.which(f"{architecture}-linux-gnu-gcc")
    emulator = shutil.which(f"qemu-{architecture}") or shutil.which(f"qemu-{architecture}-static")
    if compiler is None or emulator is None:
        pytest.skip(f"needs {architecture}-linux-gnu-gcc and qemu-{architecture}")
    module = tilewright.build({"doubled": with_workspace()}, CROSS[name])
    module.export(tmp_path / "kernels.o")
    (tmp_path / "kernels.h").write_text(module.header())
    options = ["-cpu", "rv64,v=true"] if "vectors" in name else []
    assert driven(tmp_path, compiler, "kernels.o", [emulator, *options]) == c_result()


@pytest.mark.parametrize("name", CROSS)
@pytest.mark.parametrize("function", ["exp", "tanh", "erf", "log", "floor", "round", "sqrt", "abs"])
def test_code_for_another_machine_calls_no_library(name: str, function: str) -> None:
    a = te.placeholder((37,), "float32", name="A")
    func = te.create_prim_func([a, te.compute((37,), lambda i: getattr(te, function)(a[i]), name="B")])
    assembly = tilewright.build(func, CROSS[name]).assembly()
    calls = [line.split()[0] for line in assembly.splitlines() if line.startswith("\t")]
    assert not {"call", "callq", "bl", "tail"} & set(calls)

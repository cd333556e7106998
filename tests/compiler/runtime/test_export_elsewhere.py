"""Saved modules called from C, and on other machines."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from saved_kernels import pair, product, refusal, with_workspace

import tilewright
from tilewright import te
from tilewright.compiler.runtime.archive import unpack

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

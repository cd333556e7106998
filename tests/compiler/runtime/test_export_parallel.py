"""Saved modules with parallel loops: they hold the thread pool, and need nothing of Tilewright's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from parallel_kernels import doubled
from saved_kernels import SUFFIXES

import tilewright as tw
from tilewright import topi

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
DRIVER = """\
#include <stdio.h>
#include "kernels.h"
static float A[64 * 33], B[64 * 33], C[40 * 20], D[40 * 20];
int main(void) {
  for (int i = 0; i < 64 * 33; ++i) A[i] = i;
  for (int i = 0; i < 40 * 20; ++i) C[i] = i;
  for (int turn = 0; turn < 100; ++turn) {
    tilewright_set_num_threads(turn % 4);
    doubled(A, B);
    other(C, D);
    for (int i = 0; i < 64 * 33; ++i) if (B[i] != 2 * A[i]) return 1;
    for (int i = 0; i < 40 * 20; ++i) if (D[i] != 2 * C[i]) return 2;
    B[turn] = D[turn] = -1;
  }
  puts("right");
  return 0;
}
"""


def call(kernel: tw.Module) -> None:
    a = np.random.default_rng(0).random((64, 33), np.float32)
    for _ in range(20):
        b = np.full_like(a, np.nan)
        kernel(a, b)
        np.testing.assert_array_equal(b, 2 * a)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_saved_module_runs_on_threads(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"kernels{suffix}"
    tw.build(doubled(64, 33), "llvm -num-threads=3").export(path)
    kernel = tw.load_module(path)
    call(kernel)
    try:
        tw.set_num_threads(1)
        call(kernel)
    finally:
        tw.set_num_threads(None)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_loaded_modules_come_and_go(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"kernels{suffix}"
    tw.build(doubled(64, 33), "llvm -num-threads=3").export(path)
    for _ in range(5):
        call(tw.load_module(path))


@pytest.mark.skipif(sys.platform != "linux", reason="threads are listed in /proc")
@pytest.mark.parametrize("suffix", [".o", ".a"])
def test_objects_use_the_threads_of_their_process(tmp_path: Path, suffix: str) -> None:
    module = tw.build(doubled(64, 33), "llvm -num-threads=3")
    call(module)
    threads = len(os.listdir("/proc/self/task"))
    module.export(tmp_path / f"kernels{suffix}")
    call(tw.load_module(tmp_path / f"kernels{suffix}"))
    assert len(os.listdir("/proc/self/task")) == threads


@needs_cc
@pytest.mark.parametrize("suffix", [".o", ".a", ".so"])
def test_a_c_program_has_one_pool_for_all_its_objects(tmp_path: Path, suffix: str) -> None:
    one = tw.build({"doubled": doubled(64, 33)}, "llvm -num-threads=3")
    two = tw.build({"other": doubled(40, 20)}, "llvm -num-threads=2")
    one.export(tmp_path / f"libone{suffix}")
    two.export(tmp_path / f"libtwo{suffix}")
    header = one.header() + two.header()
    assert header.count("void tilewright_set_num_threads(int64_t n);") == 2
    (tmp_path / "kernels.h").write_text(header)
    (tmp_path / "driver.c").write_text(DRIVER)
    files = [f"libone{suffix}", f"libtwo{suffix}"]
    command = ["cc", "-std=c11", "-Wall", "-Werror", "-pthread", "-o", "driver", "driver.c", *files]
    subprocess.run([*command, "-Wl,-rpath,$ORIGIN"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([str(tmp_path / "driver")], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "right\n")


@pytest.mark.parametrize(
    "target",
    [
        "llvm -mtriple=aarch64-linux-gnu",
        "llvm -mtriple=riscv64-linux-gnu",
        "llvm -mtriple=x86_64-linux-gnu",
        "llvm -mtriple=aarch64-apple-darwin",
        "llvm -mtriple=x86_64-pc-windows-msvc",
    ],
)
def test_objects_for_other_machines_hold_the_pool(tmp_path: Path, target: str) -> None:
    tw.build(doubled(64, 33), f"{target} -num-threads=3").export(tmp_path / "kernels.o")
    code = (tmp_path / "kernels.o").read_bytes()
    assert b"tilewright_parallel" in code
    assert (b"pthread_create" in code) is ("linux" in target)


@pytest.mark.parametrize("target", ["llvm -num-threads=2", pytest.param("c -num-threads=2", marks=needs_cc)])
def test_a_header_declares_the_threads_where_the_file_has_them(tmp_path: Path, target: str) -> None:
    """A target of several threads makes no loop parallel by itself, and C runs parallel loops in place."""
    name = "tilewright_set_num_threads"
    small = topi.create({"op": "add", "shape": [3]})
    for func, is_parallel in ((small, False), (doubled(64, 33), target.startswith("llvm"))):
        module = tw.build(func, target)
        path = module.export(tmp_path / "kernels.o")
        assert (name.encode() in path.read_bytes(), name in module.header()) == (is_parallel, is_parallel)
        assert tw.load_module(path).header() == module.header()


def test_a_module_without_parallel_loops_holds_no_pool(tmp_path: Path) -> None:
    tw.build(doubled(64, 33)).export(tmp_path / "kernels.o")
    assert b"tilewright_parallel" not in (tmp_path / "kernels.o").read_bytes()

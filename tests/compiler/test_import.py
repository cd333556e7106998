"""What importing the package loads."""

import os
import subprocess
import sys

import pytest

HEAVY = ("llvmlite", "numpy", "xgboost", "sklearn", "sqlalchemy", "fastapi", "httpx", "archspec", "psutil")


def loaded(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print([m for m in {HEAVY} if m in sys.modules])"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    return done.stdout.strip()


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded("import tilewright") == "[]"


@pytest.mark.parametrize("name", ["te", "topi", "build", "Schedule", "Module", "NDArray", "load_module"])
def test_llvm_is_loaded_on_first_use(name: str) -> None:
    assert "llvmlite" not in loaded(f"import tilewright; tilewright.{name}")

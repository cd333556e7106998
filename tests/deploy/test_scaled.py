from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import tilewright

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_the_scaled_form_needs_nothing_of_the_tests(tmp_path: Path) -> None:
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    said = subprocess.run(
        [sys.executable, "-P", "-c", "import scaled; print(scaled.PostgresServer.__module__)"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}/deploy:{Path(tilewright.__file__).parents[1]}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout, said.stderr) == (0, "postgres_server\n", "")

"""The scripts of benchmarks/, in their shortest form."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def _run(script: str, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_kernels_are_compared_written_and_not_tuned_twice(tmp_path: Path) -> None:
    files = {n: tmp_path / f"out.{n}" for n in ("json", "markdown", "plot")}
    words = [
        "--workloads",
        "W7,I8row",
        "--rounds",
        "6",
        "--placements",
        "2",
        "--store",
        str(tmp_path / "s.db"),
    ]
    _run("kernels.py", *words, "--trials", "2", *(w for n, f in files.items() for w in (f"--{n}", str(f))))
    told = json.loads(files["json"].read_text())
    first, second = told["results"]
    assert [first["workload"], second["workload"]] == ["W7", "I8row"]
    assert first["trials"] == 2 and len(first["samples"]["tuned"]) == 6
    assert set(told["limits"]["1"]["bandwidth"]) >= {"L1", "memory"} and told["commit"]
    assert files["markdown"].read_text().count("\n| W7 |") == 1
    assert ET.parse(files["plot"]).getroot().tag.endswith("svg")
    _run("kernels.py", *words, "--trials", "0", "--json", str(files["json"]))
    assert [r["trials"] for r in json.loads(files["json"].read_text())["results"]] == [0, 0]

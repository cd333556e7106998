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
        "W7,I8t",
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
    assert [first["workload"], second["workload"]] == ["W7", "I8t"]
    assert first["trials"] == 2 and len(first["samples"]["tuned"]) == 6
    assert set(told["limits"]["1"]["bandwidth"]) >= {"L1", "memory"} and told["commit"]
    assert files["markdown"].read_text().count("\n| W7 |") == 1
    assert ET.parse(files["plot"]).getroot().tag.endswith("svg")
    _run("kernels.py", *words, "--trials", "0", "--json", str(files["json"]))
    assert [r["trials"] for r in json.loads(files["json"].read_text())["results"]] == [0, 0]


@pytest.mark.slow
def test_the_default_is_set_beside_the_tuned_kernel(tmp_path: Path) -> None:
    store = ["--store", str(tmp_path / "s.db")]
    table = tmp_path / "table.md"
    words = ["--workloads", "W7", "--trials", "2", "--rounds", "3", *store, "--markdown", str(table)]
    # Exit status 1 says that a limit is missed, which a loaded machine may do.
    subprocess.run(
        [sys.executable, str(BENCHMARKS / "defaults.py"), *words], check=False, capture_output=True
    )
    assert table.read_text().splitlines()[-1].startswith("| W7 | depthwise 128x28x28, 3x3, NHWC |")


@pytest.mark.slow
def test_times_for_the_fit_are_collected_in_portions(tmp_path: Path) -> None:
    file = tmp_path / "times.jsonl"
    words = ["--collect", str(file), "--workloads", "W7", "--seconds", "0"]
    _run("fit_default.py", *words)
    once = file.read_text().splitlines()
    _run("fit_default.py", *words)
    twice = file.read_text().splitlines()
    assert twice[: len(once)] == once and len(twice) > len(once)
    configs = {json.dumps([x["sketch"], x["config"]]) for x in map(json.loads, twice)}
    assert len(configs) == len(twice)
    assert "1 workloads" in _run("fit_default.py", "--fit", str(file))

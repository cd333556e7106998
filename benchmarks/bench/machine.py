"""What a report says of the machine and the code, and the environment in which peers run at their best."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

_COUNTS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TVM_NUM_THREADS")


def restart_with_threads(threads: int) -> None:
    """Libraries read these once, when they load. A setting that holds NumPy's BLAS to an older processor is
    dropped: peers run at their best."""
    counts = {n: str(threads) for n in _COUNTS}
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_") or k in counts}
    if any(os.environ.get(k) != v for k, v in counts.items()) or len(clean) != len(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**clean, **counts})


def commit() -> str:
    """The commit of the working tree, with a + when it has changes; `unknown` outside of a checkout."""
    git = ["git", "-C", str(Path(__file__).parent)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    dirty = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=False)
    return (head.stdout.strip() or "unknown") + ("+" if dirty.stdout.strip() else "")


def facts() -> dict[str, Any]:
    """Processor, system, versions, commit."""
    import llvmlite
    import numpy

    from tilewright.compiler.target import detect

    hardware = detect().facts
    return {
        "machine": hardware.get("model_name") or platform.processor(),
        "microarchitecture": hardware.get("mcpu"),
        "processors": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "llvmlite": llvmlite.__version__,
        "commit": commit(),
    }

"""The number of threads that every library in this process uses."""

from __future__ import annotations

import importlib.util


def use_threads(count: int) -> None:
    """Sets it for the libraries that are loaded with more; PyTorch and onnxruntime hear of it in
    their calls."""
    if importlib.util.find_spec("threadpoolctl") is not None:
        import threadpoolctl

        threadpoolctl.threadpool_limits(count)

"""The layers of well-known networks, from the shapes in models.json."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from .workloads import Workload

_NAMES = {"resnet50": "R50", "resnet50_v1": "R50v1", "mobilenet_v2": "MN2", "bert_base": "BERT"}
#: What follows a convolution in the network, once batch normalisation is folded into weights and bias.
_ACTIVATION = {"resnet50": "relu", "resnet50_v1": "relu", "mobilenet_v2": "relu6"}


@lru_cache
def facts() -> dict[str, Any]:
    """models.json."""
    read: dict[str, Any] = json.loads((Path(__file__).parent / "models.json").read_text())
    return read


def models(names: tuple[str, ...] = ("resnet50", "mobilenet_v2", "bert_base")) -> tuple[Workload, ...]:
    """The unique layers of the networks, in their order; convolutions in NCHW, dense weights stored [n, k],
    as frameworks store them."""
    return tuple(w for name in names for w in _layers(name))


def suite() -> tuple[Workload, ...]:
    """The operator suite, and the layers of the first ResNet-50 that the second lacks."""
    families = ((k, v["fields"], v["shapes"]) for k, v in facts()["suite"].items())
    found = [
        Workload(f"{k}-{n}", _title(op), op)
        for k, fields, shapes in families
        for n, op in enumerate(_family(k, dict(zip(fields, s, strict=True))) for s in shapes)
    ]
    return (*found, *models(("resnet50_v1",)))


def multiply_adds(kind: str, row: dict[str, int]) -> int:
    """Multiply-adds of one layer, by its formula."""
    if kind == "conv2d":
        out = [(row[d] + 2 * row["pad"] - row[k]) // row["stride"] + 1 for d, k in (("h", "kh"), ("w", "kw"))]
        return out[0] * out[1] * row["co"] * (row["ci"] // row["groups"]) * row["kh"] * row["kw"]
    return row.get("b", 1) * row["m"] * row["n"] * row.get("k", 0)


def rows(name: str) -> Iterator[tuple[str, dict[str, int]]]:
    """(kind of layer, its fields) for each unique layer of a network."""
    for kind, entries in facts()[name].items():
        for entry in entries:
            yield kind, dict(zip(facts()["fields"][kind], entry, strict=True))


def _layers(name: str) -> Iterator[Workload]:
    for number, (kind, row) in enumerate(rows(name)):
        count = row.pop("count")
        op = _layer(kind, row, _ACTIVATION.get(name, "none"))
        yield Workload(f"{_NAMES[name]}-{number:02}", _title(op), op, count)


def _layer(kind: str, row: dict[str, int], activation: str) -> dict[str, Any]:
    if kind == "conv2d" and row["groups"] == row["ci"] > 1:
        kept = {k: row[k] for k in ("h", "w", "kh", "kw", "stride", "pad")}
        return {"op": "depthwise_conv2d", "c": row["ci"], **kept, "bias": True, "activation": activation}
    if kind == "conv2d":
        return {"op": "conv2d", **row, "bias": True, "activation": activation}
    if kind == "dense":
        return {"op": "dense", **row, "bias": True, "weights": "nk"}
    if kind == "gelu":
        return {"op": "elementwise", "shape": [row["m"], row["n"]], "activation": "gelu"}
    return {"op": kind, **row}


def _family(name: str, f: dict[str, int]) -> dict[str, Any]:
    """The operator of one shape of the suite."""
    window = {"stride": f.get("stride", 1), "pad": f.get("pad", 0)}
    channels = {"n": f.get("N", 1), "ci": f.get("CI", 0), "co": f.get("CO", 0)}
    size = {d.lower(): f[d] for d in "DHW" if d in f}
    kernel = {f"k{d}": f.get("K", 0) for d in size}
    match name:
        case "C1D":
            return {"op": "conv1d", **channels, "w": f["L"], "kw": f["K"], **window}
        case "C2D":
            return {"op": "conv2d", **channels, **size, **kernel, **window}
        case "C3D":
            return {"op": "conv3d", **channels, **size, **kernel, **window}
        case "GRP" | "DIL":
            more = {"dilation": f["dil"], "groups": f.get("groups", 1)}
            return {"op": "conv2d", **channels, **size, **kernel, **window, **more}
        case "DEP":
            return {"op": "depthwise_conv2d", "n": f["N"], "c": f["C"], **size, **kernel, **window}
        case "T2D":
            return {"op": "conv2d_transpose", **channels, **size, **kernel, **window}
        case "GMM":
            return {"op": "batch_matmul", "b": f["B"], "m": f["M"], "n": f["N"], "k": f["K"]}
        case "NRM":
            return {"op": "norm", "shape": [f["B"], f["M"], f["N"]]}
        case "SFM":
            return {"op": "softmax", "m": f["M"], "n": f["N"]}
    raise ValueError(f"unknown family {name!r}")


def _title(op: dict[str, Any]) -> str:
    name = op["op"]
    if name in ("elementwise", "norm"):
        return f"{op.get('activation', name)} {'x'.join(map(str, op['shape']))}"
    if name in ("softmax", "layer_norm"):
        return f"{name.replace('_', ' ')} {op['m']}x{op['n']}"
    if name in ("dense", "batch_matmul"):
        return f"{name.replace('_', ' ')} {'x'.join(str(op[d]) for d in ('b', 'm', 'n', 'k') if d in op)}"
    size = "x".join(str(op[d]) for d in ("d", "h", "w") if d in op)
    kernel = "x".join(str(op[f"k{d}"]) for d in ("d", "h", "w") if d in op)
    ends = f"{op['c']}x{size}" if "c" in op else f"{op['ci']}x{size} -> {op['co']}"
    more = [f"{k} {op[k]}" for k in ("stride", "dilation", "groups") if op.get(k, 1) != 1]
    return ", ".join([f"{name.replace('_conv2d', '')} {ends}, {kernel}", *more])

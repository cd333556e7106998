"""What an exported file says about itself: JSON inside of the object, with a digest of the whole file."""

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

from ..target import Target
from .dims import freeze
from .function import Function, LoadedCode, SourceInfo, WorkspaceInfo
from .packing import PackInfo
from .params import ParamInfo

FORMAT = 1
"""Version of the JSON. A reader refuses those it does not know."""

PACKING_FORMAT = 2
"""Version for modules with a function that packs constants before the calls."""

_MAGIC = b"\x93Tilewright\n"
_DIGEST = 32
_HEAD = len(_MAGIC) + 4 + _DIGEST
# magic | length of the JSON, 4 bytes, little-endian | SHA-256 of the file with these 32 bytes 0 | JSON


class MetadataError(ValueError):
    """Bytes that are no exported file, or not as they were exported."""


def describe(functions: Mapping[str, Function], target: Target, codegen: str) -> bytes:
    """The metadata of a module, not sealed yet: what its object has to hold."""
    what = {
        "format": FORMAT if all(f.pack is None for f in functions.values()) else PACKING_FORMAT,
        "codegen": codegen,
        "target": target.to_json(),
        "functions": [_plain(name, f) for name, f in functions.items()],
    }
    text = json.dumps(what, separators=(",", ":")).encode("ascii")
    return _MAGIC + len(text).to_bytes(4, "little") + bytes(_DIGEST) + text


def seal(file: bytes) -> bytes:
    """The file with its digest filled in, by which `read` sees that it is whole."""
    at = _place(file)
    start = at + _HEAD - _DIGEST
    return file[:start] + _digest(file, start) + file[start + _DIGEST :]


def read(file: bytes) -> dict[str, Any]:
    """The metadata of an exported file. Raises MetadataError for a file that is none, was cut off or changed,
    or has a format that this version does not read.
    """
    at = _place(file)
    start = at + _HEAD - _DIGEST
    if file[start : start + _DIGEST] != _digest(file, start):
        raise MetadataError("is damaged, or was changed after it was exported")
    length = int.from_bytes(file[at + len(_MAGIC) : at + len(_MAGIC) + 4], "little")
    try:
        what: dict[str, Any] = json.loads(file[at + _HEAD : at + _HEAD + length])
    except ValueError as error:
        raise MetadataError(f"has metadata that are not JSON: {error}") from error
    known = (FORMAT, PACKING_FORMAT)
    if not isinstance(what, dict) or what.get("format") not in known:
        found = what.get("format") if isinstance(what, dict) else None
        raise MetadataError(f"has format {found!r}; this version reads the formats {known[0]} and {known[1]}")
    return what


def symbols_of(what: Mapping[str, Any]) -> list[str]:
    """The functions' names in the code. Raises MetadataError."""
    try:
        names = [str(f["symbol"]) for f in what["functions"]]
        names += [str(f["pack"]["symbol"]) for f in what["functions"] if "pack" in f]
    except (KeyError, TypeError) as error:
        raise MetadataError(f"has incomplete metadata: {error}") from error
    if not names:
        raise MetadataError("holds no functions")
    return names


def functions_of(what: Mapping[str, Any], code: Callable[[str], LoadedCode]) -> dict[str, Function]:
    """The functions that the metadata describe; code: from a function's source text to its code. Raises
    MetadataError.
    """
    try:
        return {f["name"]: _function(f, code(f["source"])) for f in what["functions"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise MetadataError(f"has incomplete metadata: {error}") from error


def _plain(name: str, f: Function) -> dict[str, Any]:
    packing = {} if f.pack is None else {"pack": _plain_pack(f, f.pack)}
    return packing | {
        "name": name,
        "symbol": f.symbol,
        "params": list(map(_plain_param, f.params)),
        "sizes": f.sizes,
        "workspaces": [w.bytes for w in f.workspaces],
        "script": f.script,
        "schedule_source": {"kind": f.schedule_source.kind, "reason": f.schedule_source.reason},
        "source": f.source(),
    }


def _plain_param(p: ParamInfo) -> dict[str, Any]:
    constant = {"is_constant": True} if p.is_constant else {}
    return {"name": p.name, "dtype": p.dtype, "shape": p.shape, "is_output": p.is_output} | constant


def _plain_pack(f: Function, pack: PackInfo) -> dict[str, Any]:
    return {
        "symbol": pack.symbol,
        "params": [p.name for p in pack.params],
        "workspaces": pack.workspaces,
        "packed": [n for n, w in enumerate(f.workspaces) if w.is_packed],
        "consumed": pack.consumed,
    }


def _pack(f: Mapping[str, Any], params: list[ParamInfo]) -> PackInfo | None:
    if "pack" not in f:
        return None
    p = f["pack"]
    by_name = {x.name: x for x in params}
    reads = tuple(by_name[name] for name in p["params"])
    return PackInfo(p["symbol"], reads, tuple(p["workspaces"]), tuple(p["consumed"]))


def _function(f: Mapping[str, Any], code: LoadedCode) -> Function:
    params = [
        ParamInfo(
            p["name"], p["dtype"], tuple(map(freeze, p["shape"])), p["is_output"], p.get("is_constant", False)
        )
        for p in f["params"]
    ]
    packed = f.get("pack", {}).get("packed", ())
    return Function(
        f["name"],
        params,
        [WorkspaceInfo(freeze(w), n in packed) for n, w in enumerate(f["workspaces"])],
        code,
        symbol=f["symbol"],
        sizes=f["sizes"],
        script=f["script"],
        schedule_source=SourceInfo(f["schedule_source"]["kind"], f["schedule_source"]["reason"]),
        pack=_pack(f, params),
    )


def _place(file: bytes) -> int:
    at = file.find(_MAGIC)
    if at < 0:
        raise MetadataError("is no module that Tilewright exported")
    if file.find(_MAGIC, at + 1) >= 0:
        raise MetadataError("holds several modules, linked together; load the files they were exported to")
    if at + _HEAD > len(file):
        raise MetadataError("is cut off")
    return at


def _digest(file: bytes, start: int) -> bytes:
    whole = sha256(file[:start])
    whole.update(bytes(_DIGEST))
    whole.update(file[start + _DIGEST :])
    return whole.digest()

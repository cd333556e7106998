"""What a request's body may be: JSON, of a bounded size and depth, with nothing in it that no store can
hold."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import BodyTooLarge, InvalidRequest, MalformedJson, NotJson, ServiceError
from .problems import respond
from .single_header import single_header

# Parsing more than this would hold up the event loop for longer than a request should wait.
_PARSE_IN_THREAD = 64 << 10
_ARTIFACTS = "/v1/artifacts/"
_JSON, _BYTES = "application/json", "application/octet-stream"


class TooDeep(InvalidRequest):
    code, title = "json-too-deep", "The body's JSON is nested too deeply"


class BodyLimits:
    """ASGI middleware: refuses a body that is too large, not JSON, or JSON that this server does not take."""

    def __init__(self, app: ASGIApp, max_bytes: int, max_depth: int, max_artifact_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        self._max_artifact_bytes = max_artifact_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in ("POST", "PUT", "PATCH", "DELETE"):
            await self._app(scope, receive, send)
            return
        # Of any method: those that there are not are refused for that, not for what they bring.
        is_artifact = scope["path"].startswith(_ARTIFACTS)
        try:
            body = await self._read(scope["method"], Headers(scope=scope), receive, is_artifact)
            if body is None:
                return
            if is_artifact:
                pass  # bytes, which nobody reads here
            elif len(body) > _PARSE_IN_THREAD:
                await run_in_threadpool(check_json, body, self._max_depth)
            elif body:
                check_json(body, self._max_depth)
        except ServiceError as error:
            await respond(error, scope)(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _read(self, method: str, headers: Headers, receive: Receive, is_artifact: bool) -> bytes | None:
        """The whole body, or None when the client went away before its end."""
        most = self._max_artifact_bytes if is_artifact else self._max_bytes
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > most:
            raise _too_large(most)
        chunks: list[bytes] = []
        size = 0
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > most:
                raise _too_large(most)
            chunks.append(chunk)
            more = message.get("more_body", False)
        body = b"".join(chunks)
        if body and (not is_artifact or method == "PUT"):
            _check_media_type(single_header(headers, "Content-Type"), _BYTES if is_artifact else _JSON)
            _check_encoding(single_header(headers, "Content-Encoding") or "")
        return body


def _too_large(most: int) -> BodyTooLarge:
    return BodyTooLarge(f"a body may have at most {most} bytes")


def check_json(body: bytes, max_depth: int) -> None:
    """Raise MalformedJson or TooDeep unless `body` is JSON that means the same to every reader.

    Refused beside syntax errors: NaN and Infinity, numbers beyond float64, a name that stands twice in one
    object, unpaired surrogates and NUL (no database holds them).
    """
    try:
        text = body.decode("utf-8")
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_no_duplicates
        )
        if "\\u" in text:
            _check_characters(value)
    except UnicodeDecodeError as error:
        raise MalformedJson(f"the body must be UTF-8: byte {error.start} is not") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(
            f"the body must be JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from None
    except RecursionError:
        raise _too_deep(max_depth) from None
    except ValueError as error:
        raise MalformedJson(f"the body must be JSON: {error}") from None
    _check_depth(value, max_depth)


def _check_media_type(media_type: str | None, wanted: str) -> None:
    if media_type is None:
        raise NotJson(f"the body has no Content-Type; it must be {wanted}")
    name, *parameters = (part.strip().lower() for part in media_type.split(";"))
    if name != wanted:
        raise NotJson(f"the body's Content-Type is {name[:80]!r}; it must be {wanted}")
    for parameter in parameters:
        if parameter.startswith("charset=") and parameter.strip('"').removeprefix("charset=") != "utf-8":
            raise NotJson(f"the body must be UTF-8, its Content-Type says {parameter[:80]!r}")


def _check_encoding(encoding: str) -> None:
    if encoding.strip().lower() not in ("", "identity"):
        raise NotJson(f"the body's Content-Encoding is {encoding[:80]!r}; it must be sent as it is")


def _check_depth(value: Any, max_depth: int) -> None:
    level = [value]
    for _ in range(max_depth + 1):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise _too_deep(max_depth)


def _too_deep(max_depth: int) -> TooDeep:
    return TooDeep(f"the body's arrays and objects may be nested at most {max_depth} deep")


def _check_characters(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    if "\\u0000" in text.replace("\\\\", ""):
        raise ValueError("a string holds the character NUL")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a string holds half of a surrogate pair") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is beyond what a 64-bit float holds")
    return number


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the name {name[:80]!r} stands twice in one object")
            seen.add(name)
    return made


def _replay(body: bytes, receive: Receive) -> Receive:
    """A receive that gives the body once more, and what comes after it (the disconnect) as it comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again

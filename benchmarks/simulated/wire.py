"""HTTP/1.1 over one kept connection, as little of it as these benchmarks need: a client that costs little
beside the server that it measures."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit


class Connection:
    """One connection to a server, made when it is first used and again after it broke."""

    def __init__(self, url: str, token: str = "") -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None and parts.port is not None
        self._host, self._port = parts.hostname, parts.port
        authorization = f"Authorization: Bearer {token}\r\n" if token else ""
        self._head = f"Host: {parts.netloc}\r\n{authorization}"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def call(
        self, method: str, path: str, body: Any = None, headers: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers in lower case, and body. OSError and EOFError where the connection breaks."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port)
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        kind = f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n" if data else ""
        self._writer.write(f"{method} {path} HTTP/1.1\r\n{self._head}{kind}{headers}\r\n".encode() + data)
        try:
            return await self._answer()
        except (OSError, EOFError):
            self.close()
            raise

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def _answer(self) -> tuple[int, dict[str, str], bytes]:
        assert self._reader is not None
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            if name:
                headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", "0"))
        return int(first.split(" ", 2)[1]), headers, await self._reader.readexactly(length) if length else b""

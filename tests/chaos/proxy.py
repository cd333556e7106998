"""A network that can be bad: HTTP/1.1 from workers and clients to the API, through a process of ours."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from dataclasses import dataclass
from typing import Literal

from ledger import Ledger

Weather = Literal["calm", "drop", "delay", "stall", "cut"]
_CUT_EVERY = 0.4
_LONGEST_DELAY = 1.5


@dataclass(frozen=True, slots=True)
class _Message:
    head: bytes
    body: bytes
    first: list[str]
    headers: dict[str, str]

    @property
    def whole(self) -> bytes:
        return self.head + self.body


class Proxy:
    """Use as a context. The weather may be set at any time.

    `drop` aborts connections and takes none, `delay` holds each message for up to 1.5 s, `stall` holds all
    until it is over, `cut` lets the server answer and often delivers half of it, or nothing.
    """

    def __init__(self, ledger: Ledger, seed: int, port: int = 0) -> None:
        self.port = port
        self.upstream = 0
        self._ledger = ledger
        self._weather: Weather = "calm"
        self._random = random.Random(seed)
        self._open: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def set(self, weather: Weather) -> None:
        self._weather = weather
        if weather == "drop":
            self._loop.call_soon_threadsafe(self._abort_all)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        self._abort_all()
        # A connection that was taken as the server closed has a task later than the others.
        while left := asyncio.all_tasks(self._loop):
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(asyncio.sleep(0))  # for what their ends have scheduled
        self._loop.close()

    def _abort_all(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # With its task, of which the loop itself keeps no more than a weak reference.
        self._open[writer] = asyncio.current_task()
        upstream = None
        # A connection that breaks, on either side, is what this is for.
        with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
            try:
                if self._weather != "drop":
                    answers, upstream = await asyncio.open_connection("127.0.0.1", self.upstream)
                    while await self._exchange(reader, writer, answers, upstream):
                        pass
            finally:
                del self._open[writer]
                writer.transport.abort()
                if upstream is not None:
                    upstream.transport.abort()

    async def _exchange(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> bool:
        """One request and its answer; whether the connection may be used again."""
        asked = await _read(reader)
        await self._hold()
        upstream.write(asked.whole)
        said = await _read(answers)
        method, path, *_ = asked.first
        self._ledger.saw(method, path, asked.headers, asked.body, int(said.first[1]), said.body)
        await self._hold()
        if self._weather == "cut" and self._random.random() < _CUT_EVERY:
            if self._random.random() < 0.5:
                writer.write(said.whole[: len(said.whole) // 2])
                await writer.drain()
            return False
        writer.write(said.whole)
        await writer.drain()
        return said.headers.get("connection", "").lower() != "close"

    async def _hold(self) -> None:
        if self._weather == "delay":
            await asyncio.sleep(self._random.uniform(0, _LONGEST_DELAY))
        while self._weather == "stall":
            await asyncio.sleep(0.05)


async def _read(reader: asyncio.StreamReader) -> _Message:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    return _Message(head, await reader.readexactly(length) if length else b"", first.split(" ", 2), headers)

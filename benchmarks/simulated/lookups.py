"""How many best-known schedules a second one server process tells, and how long each takes.

`python -m simulated.lookups URL TOKEN_FILE SECONDS CONNECTIONS PATH…`: the client, a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict
from itertools import cycle

import psutil

from .latencies import Summary
from .wire import Connection

ROUNDS = 5


async def ask(
    url: str, token: str, paths: list[str], seconds: float, connections: int, conditional: bool
) -> list[float]:
    """A closed loop: each connection asks again as soon as it was answered. The seconds of each call."""
    took: list[float] = []
    ends = time.monotonic() + seconds
    statuses: set[int] = set()

    async def one(first: int) -> None:
        http = Connection(url, token)
        tags: dict[str, str] = {}
        for path in cycle(paths[first:] + paths[:first]):
            begun = time.monotonic()
            if begun >= ends:
                break
            headers = f"If-None-Match: {tags[path]}\r\n" if path in tags else ""
            status, said, _ = await http.call("GET", path, headers=headers)
            took.append(time.monotonic() - begun)
            statuses.add(status)
            if conditional:
                tags[path] = said["etag"]
        http.close()

    await asyncio.gather(*(one(n % len(paths)) for n in range(connections)))
    if not statuses <= {200, 304}:
        raise RuntimeError(f"the server answered {sorted(statuses)}")
    return took


async def cost(seconds: float, connections: int, length: int) -> list[float]:
    """The client against a server that does nothing: answers of `length` bytes that are always the same."""
    body = b"x" * length
    answer = b"HTTP/1.1 200 OK\r\netag: x\r\ncontent-length: %d\r\n\r\n" % length + body

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(answer)
        except (EOFError, OSError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        return await ask(f"http://127.0.0.1:{port}", "", ["/"], seconds, connections, False)


def main() -> None:
    said = json.load(sys.stdin)
    length, seconds = said.pop("length"), said["seconds"]
    server = psutil.Process(said.pop("pid"))
    took: dict[str, list[float]] = {"200": [], "304": []}
    spent = dict.fromkeys(took, 0.0)
    for _ in range(ROUNDS):  # in turn, so that what else the machine does meets both
        for kind in took:
            before = sum(server.cpu_times()[:2])
            asked = ask(**{**said, "seconds": seconds / ROUNDS}, conditional=kind == "304")
            took[kind] += asyncio.run(asked)
            spent[kind] += sum(server.cpu_times()[:2]) - before
    took["client alone"] = asyncio.run(cost(seconds, said["connections"], length))
    rows = {kind: asdict(Summary.of(each, seconds)) for kind, each in took.items()}
    json.dump({"rows": rows, "spent": {kind: spent[kind] / len(took[kind]) for kind in spent}}, sys.stdout)


if __name__ == "__main__":
    main()

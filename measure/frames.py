"""JSON values over a byte stream, each behind its length: four bytes, big-endian."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

_HEAD = struct.Struct(">I")
_READ = 1 << 16

MAX_FRAME = 64 << 20
"""The longest frame either side of the fork server reads."""


class FrameError(ValueError):
    """The bytes are not frames: too long, or not JSON."""


def encode(value: Any) -> bytes:
    """One frame. Raises ValueError for a number that is not finite."""
    data = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return _HEAD.pack(len(data)) + data


def send(stream: socket.socket, value: Any) -> None:
    stream.sendall(encode(value))


def write(descriptor: int, value: Any) -> None:
    """Writes one frame to a blocking descriptor."""
    data = memoryview(encode(value))
    while data:
        data = data[os.write(descriptor, data) :]


def receive(stream: socket.socket) -> Any | None:
    """The next value, waiting for it; None when the other side closed."""
    reader = FrameReader(MAX_FRAME)
    while True:
        # Not a byte more than this frame: what follows belongs to the next call.
        data = stream.recv(min(reader.missing, _READ))
        if not data:
            return None
        for value in reader.feed(data):
            return value


class FrameReader:
    """Takes bytes as they come and gives the values that are complete."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    @property
    def missing(self) -> int:
        """Bytes that the head, or then the body, of the current frame still lacks; at least 1."""
        if len(self._buffer) < _HEAD.size:
            return _HEAD.size - len(self._buffer)
        return max(1, _HEAD.size + int(_HEAD.unpack_from(self._buffer)[0]) - len(self._buffer))

    def feed(self, data: bytes) -> Iterator[Any]:
        """Gives every value before it raises FrameError, for a frame over the limit or a body not JSON."""
        self._buffer += data
        while len(self._buffer) >= _HEAD.size:
            (length,) = _HEAD.unpack_from(self._buffer)
            if length > self._limit:
                raise FrameError(f"a frame of {length} bytes, over the limit of {self._limit}")
            end = _HEAD.size + length
            if len(self._buffer) < end:
                break
            body = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            yield _parse(body)


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a frame that is not JSON: {error}") from None

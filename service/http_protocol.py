"""The web server's reading of HTTP, whose refusals are problem documents as all others are."""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .errors import MEDIA_TYPE, HeadTooLarge, NotHttp, ServiceError, answer

MOST_HEAD_BYTES = 64 << 10


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol; beside that, it bounds a request's line and headers, which the parser keeps however
    long they are."""

    _in_head = False
    _head_bytes = 0
    _other_ended = False
    _too_long = False

    def data_received(self, data: bytes) -> None:
        self._other_ended = False
        super().data_received(data)
        if not self._in_head or self._other_ended or self.transport.is_closing():
            return  # how many bytes are of a head that followed another request is not known
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes = True, 0

    def on_message_complete(self) -> None:
        self._other_ended = True
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._in_head = False
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MOST_HEAD_BYTES:
            self._too_long = True
            raise _too_large()  # the parser ends by it, and asks for the response below
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(
            _too_large()
            if self._too_long
            else NotHttp("what was sent is no HTTP/1.1 request: its line, a header or its framing is wrong")
        )

    def _refuse(self, error: ServiceError) -> None:
        """Answer, unless an answer has begun, and close: where the next request begins is not known."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            made = answer(error, secrets.token_hex(16))
            body = json.dumps(made.body).encode()
            lines = [
                f"HTTP/1.1 {made.status} {HTTPStatus(made.status).phrase}",
                f"content-type: {MEDIA_TYPE}",
                f"content-length: {len(body)}",
                f"x-trace-id: {made.body['trace_id']}",
                "connection: close",
            ]
            self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.transport.close()


def _too_large() -> HeadTooLarge:
    return HeadTooLarge(f"a request's line and headers may have at most {MOST_HEAD_BYTES} bytes together")

"""The steps of the doctor that reach for the server."""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from ..measure.exits import Exit
from ..measure.messages import PROTOCOL, NotATilewright, SourceUnreachable
from .doctor import Step, Trouble, Warned
from .transport import ApiError, InsecureToken, Transport

__all__ = ["NetworkSteps"]

_CONNECT_SECONDS = 5.0
_SOON_SECONDS = 24 * 3600.0
_SKEW_SECONDS = 5.0
_SCOPES = ("worker", "admin")


@dataclass(slots=True)
class NetworkSteps:
    """How far a worker of this name and with this token gets at this address."""

    url: str
    token: str | None
    insecure_http: bool
    timeout: float
    name: str = ""
    _transport: Transport | None = field(default=None, init=False)
    _said: dict[str, Any] = field(default_factory=dict, init=False)

    def steps(self) -> list[Step]:
        return [
            Step("address", self.address),
            Step("connection", self.connection, ("address",)),
            Step("encryption", self.encryption, ("connection",)),
            Step("server", self.server, ("encryption",)),
            Step("protocol", self.protocol, ("server",)),
            Step("token accepted", self.accepted, ("server", "token")),
            Step("clock", self.clock, ("token accepted",)),
            Step("name", self.free, ("token accepted",)),
        ]

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def address(self) -> str:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        try:
            found = socket.getaddrinfo(host, self._port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Trouble(
                f"the name {host!r} leads nowhere: {error.strerror or error}", Exit.UNREACHABLE
            ) from error
        return f"{host} is {', '.join(dict.fromkeys(str(entry[4][0]) for entry in found))}"

    def connection(self) -> str:
        host = urlsplit(self.url).hostname or ""
        try:
            with socket.create_connection((host, self._port), timeout=_CONNECT_SECONDS):
                return f"{host}:{self._port} accepts connections"
        except OSError as error:
            reason = "no answer within 5 s" if isinstance(error, TimeoutError) else str(error)
            raise Trouble(f"nothing answers at {host}:{self._port}: {reason}", Exit.UNREACHABLE) from error

    def encryption(self) -> str | Warned:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return "none: the address is http"
        try:
            with (
                socket.create_connection((host, self._port), timeout=_CONNECT_SECONDS) as plain,
                ssl.create_default_context().wrap_socket(plain, server_hostname=host) as secured,
            ):
                return f"{secured.version()}, with a certificate that this machine trusts"
        except OSError as error:
            raise Trouble(
                f"no trusted encryption at {host}:{self._port}: {error}", Exit.UNREACHABLE
            ) from error

    def server(self) -> str:
        try:
            self._transport = Transport(
                self.url, self.token, insecure_http=self.insecure_http, timeout=self.timeout
            )
            self._said = self._transport.request("GET", "/version").json()
        except InsecureToken as error:
            raise Trouble(str(error), Exit.UNAUTHORIZED) from error
        except (NotATilewright, SourceUnreachable, ApiError, ValueError) as error:
            raise Trouble(str(error), Exit.UNREACHABLE) from error
        return f"tilewright {self._said.get('version')}"

    def protocol(self) -> str:
        spoken = self._said.get("protocol")
        if not isinstance(spoken, int) or not PROTOCOL <= spoken <= PROTOCOL + 1:
            raise Trouble(
                f"the server's protocol is {spoken} and this worker's {PROTOCOL}; a server speaks its own "
                "and the one before: install the server's version of tilewright here",
                Exit.VERSION_REFUSED,
            )
        return f"{PROTOCOL}, and the server's {spoken}"

    def accepted(self) -> str | Warned:
        assert self._transport is not None, "this step stands on the server's"
        sent = time.time()
        try:
            self._said = self._transport.request("GET", "/v1/token").json()
        except (NotATilewright, SourceUnreachable) as error:
            raise Trouble(str(error), Exit.UNREACHABLE) from error
        except ApiError as error:
            code = Exit.UNAUTHORIZED if error.status in (401, 403) else Exit.UNREACHABLE
            raise Trouble(str(error), code) from error
        self._said["sent"] = sent
        token = self._said["token"]
        if not set(token["scopes"]) & set(_SCOPES):
            raise Trouble(
                f"token {token['name']!r} has scope {', '.join(token['scopes'])}: a worker needs worker",
                Exit.UNAUTHORIZED,
            )
        pool = f", pool {token['pool']}" if token["pool"] else ""
        found = f"{token['name']!r}, scope {', '.join(token['scopes'])}{pool}"
        if token["expires_at"] is None:
            return f"{found}, does not expire"
        left = token["expires_at"] - self._said["now"]
        words = f"{found}, expires in {left / 3600:.1f} h"
        return Warned(f"{words}; a worker ends with 3 then") if left < _SOON_SECONDS else words

    def clock(self) -> str | Warned:
        skew = self._said["sent"] - self._said["now"]
        words = f"this machine's is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the server's; "
        words += "no lease depends on it"
        return Warned(words) if abs(skew) > _SKEW_SECONDS else words

    def free(self) -> str | Warned:
        """Whether a worker may attach under its name, and whose session it would end."""
        assert self._transport is not None, "this step stands on the server's"
        try:
            known = self._transport.request("GET", f"/v1/workers/{quote(self.name, safe='')}").json()
        except (NotATilewright, SourceUnreachable) as error:
            raise Trouble(str(error), Exit.UNREACHABLE) from error
        except ApiError as error:
            if error.code == "not-found":
                return f"{self.name!r} is new to the server"
            if "/" in self.name:
                return Warned(f"{self.name!r} holds a slash: over HTTP it is spoken of by its id alone")
            raise Trouble(str(error), Exit.UNREACHABLE) from error
        state, reason = known["state"], known["reason"]
        words = f"{self.name!r} is {state}" + (f": {reason}" if reason else "")
        if state == "retired":
            raise Trouble(f"{words}; a removed name is not used again, choose another", Exit.SETTINGS)
        if state == "offline":
            return words
        return Warned(f"{words}; a worker that attaches under it ends the session that has it")

    @property
    def _port(self) -> int:
        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)

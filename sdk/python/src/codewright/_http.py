"""HTTP/1.1 without input and output: requests as bytes, and parsers that both the sync and the async client feed.

The standard library has no async client, and importing `httpx` takes longer than the 100 ms that this package may take.
A request has its own connection, which suits a server on the same machine.
"""

from __future__ import annotations

import json
from base64 import b64encode
from urllib.parse import quote, urlencode, urlsplit

MAX_HEAD = 64 * 1024
MAX_BODY = 256 * 1024 * 1024
MAX_EVENT = 16 * 1024 * 1024


class CodewrightError(Exception):
    """The server refused a call, or could not be reached (`status` is then `None`)."""

    def __init__(self, message: str, status: int | None = None, body: object = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class BrokenConnection(CodewrightError):
    """The connection failed before the reply was complete."""


def refusal(method: str, path: str, status: int, body: object) -> CodewrightError:
    """Returns the error of a reply."""
    message = body if isinstance(body, str) else None
    if isinstance(body, dict):
        data = body.get("data")
        texts = [data.get("message") if isinstance(data, dict) else None, body.get("message"), body.get("name")]
        message = next((text for text in texts if isinstance(text, str) and text), None)
    return CodewrightError(f"{method} {path} failed ({status}): {message or 'no reason given'}", status, body)


class Target:
    """The address of a server."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"`{base_url}` is not the address of a server, such as http://localhost:4096")
        self.is_secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.is_secure else 80)
        self.prefix = parts.path.rstrip("/")
        self.authority = parts.netloc.rpartition("@")[2]


def query_text(query: dict[str, object]) -> str:
    """Returns a query; lists repeat the name, and mappings become `name[key]`."""
    pairs: list[tuple[str, str]] = []

    def add(name: str, value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{name}[{key}]", inner)
        elif isinstance(value, (list, tuple)):
            for item in value:
                add(name, item)
        elif isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif value is not None:
            pairs.append((name, str(value)))

    for name, value in query.items():
        add(name, value)
    return urlencode(pairs)


def basic(username: str, password: str) -> str:
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


def request_bytes(target: Target, method: str, path: str, headers: dict[str, str], body: object) -> bytes:
    """Returns a request. A body that is not `None` is sent as JSON."""
    content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    lines = {"host": target.authority, "connection": "close", "accept": "*/*", **headers}
    if body is not None:
        lines["content-type"] = "application/json"
    if body is not None or method != "GET":
        lines["content-length"] = str(len(content))
    for name, value in lines.items():
        if "\r" in value or "\n" in value:
            raise ValueError(f"the header `{name}` has a line break")
    head = [f"{method} {target.prefix}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items())]
    return "\r\n".join([*head, "", ""]).encode("latin-1", "replace") + content


class Reply:
    """Parses a reply from the bytes that arrive."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.is_done = False
        self._buffer = b""
        self._state = "head"
        self._left = 0
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Takes bytes; none mean that the connection has ended."""
        if not data:
            if self._state != "close":
                raise BrokenConnection("the connection ended before the reply was complete")
            self.is_done = True
            return
        self._buffer += data
        while self._step():
            pass

    def take(self) -> bytes:
        """Returns the bytes of the body since the last call."""
        data = b"".join(self._body)
        self._body.clear()
        return data

    @property
    def has_head(self) -> bool:
        return self._state != "head"

    def _step(self) -> bool:
        match self._state:
            case "head":
                return self._head()
            case "length" | "chunk":
                piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
                self._body.append(piece)
                self._left -= len(piece)
                if self._left == 0:
                    self._enter("end" if self._state == "chunk" else "done")
                return bool(self._buffer) and not self.is_done
            case "close":
                self._body.append(self._buffer)
                self._buffer = b""
                return False
            case "size" | "end" | "trailer":
                return self._line()
        return False

    def _enter(self, state: str) -> None:
        self._state = state
        self.is_done = state == "done"

    def _line(self) -> bool:
        line, found, rest = self._buffer.partition(b"\r\n")
        if not found:
            if len(self._buffer) > MAX_HEAD:
                raise BrokenConnection("the reply has a line that is too long")
            return False
        self._buffer = rest
        if self._state == "end":
            self._enter("size")
        elif self._state == "trailer":
            self._enter("trailer" if line else "done")
        else:
            try:
                self._left = int(line.split(b";")[0], 16)
            except ValueError:
                raise BrokenConnection("the reply has an invalid chunk") from None
            self._enter("chunk" if self._left > 0 else "trailer")
        return not self.is_done

    def _head(self) -> bool:
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            if len(self._buffer) > MAX_HEAD:
                raise BrokenConnection("the head of the reply is too long")
            return False
        self._buffer = rest
        first, *lines = head.decode("latin-1").split("\r\n")
        try:
            self.status = int(first.split(" ")[1])
        except (IndexError, ValueError):
            raise BrokenConnection("the reply is not HTTP") from None
        if 100 <= self.status < 200:
            return True
        self.headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = self.headers.get("content-length", "")
        if self.status in (204, 304):
            self._enter("done")
        elif self.headers.get("transfer-encoding", "").lower() == "chunked":
            self._enter("size")
        elif length.isdigit():
            self._left = int(length)
            self._enter("length" if self._left > 0 else "done")
        else:
            self._enter("close")
        return bool(self._buffer) and not self.is_done


def decode(reply: Reply, body: bytes) -> object:
    """Returns the value of a body: JSON, a text, bytes, or an empty mapping."""
    if not body:
        return {}
    kind = reply.headers.get("content-type", "").lower()
    if "json" in kind:
        return json.loads(body)
    if kind.startswith("text/"):
        return body.decode("utf-8", "replace")
    if reply.status >= 400:
        return body.decode("utf-8", "replace")
    return body


class Frames:
    """Parses an event stream from the bytes that arrive: pairs of the id and the data of an event."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[tuple[str | None, object]]:
        self._buffer += data
        # A carriage return at the end may belong to a line end that is not complete.
        complete = self._buffer[:-1] if self._buffer.endswith(b"\r") else self._buffer
        pieces = complete.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n")
        self._buffer = pieces.pop() + self._buffer[len(complete) :]
        if len(self._buffer) > MAX_EVENT:
            raise BrokenConnection("an event of the stream is too large")
        return [event for piece in pieces if (event := self._event(piece.decode("utf-8", "replace"))) is not None]

    @staticmethod
    def _event(text: str) -> tuple[str | None, object] | None:
        identity: str | None = None
        data: list[str] = []
        for line in text.split("\n"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name == "id":
                identity = value
        if not data:
            return None
        joined = "\n".join(data)
        try:
            return identity, json.loads(joined)
        except ValueError:
            return identity, joined


def directory_header(directory: str) -> str:
    return quote(directory, safe="")

"""The sync client."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ._calls import Request, Route, place
from ._client import (
    ATTEMPTS, FIRST_PAUSE, LONGEST_PAUSE, QUIET, SILENCE, BaseClient, event_request, idle_event, is_end, is_final, is_type,
)
from ._http import MAX_BODY, BrokenConnection, CodewrightError, Frames, Reply, decode, refusal

if TYPE_CHECKING:
    from ._sync import Calls
    from .types import Event, PermissionRequest
else:
    Calls = object


class Connection:
    """A connection with a request that was sent."""

    def __init__(self, client: Client, data: bytes, deadline: float) -> None:
        self._end = time.monotonic() + deadline
        target = client._target
        self._socket: socket.socket | None = None
        try:
            self._socket = socket.create_connection((target.host, target.port), timeout=min(deadline, 30.0))
            if target.is_secure:
                import ssl

                self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=target.host)
            self._socket.sendall(data)
        except OSError as error:
            self.close()
            raise BrokenConnection(f"cannot reach {client.base_url}: {error}") from error

    def receive(self, timeout: float | None = None) -> bytes:
        """Returns the next bytes. Without a timeout the deadline of the request counts."""
        assert self._socket is not None
        left = self._end - time.monotonic() if timeout is None else timeout
        if left <= 0:
            raise BrokenConnection("the server did not answer in time")
        self._socket.settimeout(left)
        try:
            return self._socket.recv(65536)
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokenConnection(f"the connection failed: {error}") from error

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


class EventStream:
    """An iterator of events that survives broken connections."""

    def __init__(self, client: Client, request: Request) -> None:
        self._client = client
        self._request = request
        self._connection: Connection | None = None
        self._frames = Frames()
        self._reply = Reply()
        self._waiting: list[tuple[str | None, Any]] = []
        self._last: str | None = None
        self._failures = 0
        self._is_closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        event = self.read(None)
        if self._is_closed:
            raise StopIteration
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream. Another thread that reads it gets the end within a second."""
        self._is_closed = True
        self._disconnect()

    def has_session(self, session_id: str) -> bool:
        return self._request.query.get("sessionID") in (None, session_id)

    def read(self, timeout: float | None) -> Any:
        """Returns the next event, or `None` after the timeout."""
        while not self._is_closed:
            try:
                if self._waiting:
                    return self._pop()
                if self._connection is None:
                    self._connect()
                self._receive(timeout)
            except TimeoutError:
                return None
            except BrokenConnection as error:
                self._retry(error)
            except CodewrightError as error:
                if is_final(error.status):
                    self.close()
                    raise
                self._retry(error)
        return None

    def _pop(self) -> Any:
        identity, event = self._waiting.pop(0)
        self._last = identity if identity is not None else self._last
        # A stream that only greets makes no progress.
        if not is_type(event, "server.connected"):
            self._failures = 0
        return event

    def _connect(self) -> None:
        resumed = {} if self._last is None else {"last_event_id": self._last}
        data = self._client._bytes(self._request, accept="text/event-stream", **resumed)
        self._frames, self._reply = Frames(), Reply()
        self._connection = Connection(self._client, data, SILENCE)
        while not self._reply.has_head:
            self._feed()
        if self._reply.status != 200:
            while not self._reply.is_done:
                self._feed()
            body = decode(self._reply, self._reply.take())
            raise refusal("GET", self._request.path, self._reply.status, body)

    def _feed(self) -> None:
        assert self._connection is not None
        try:
            self._reply.feed(self._connection.receive())
        except TimeoutError:
            raise BrokenConnection("the event stream did not begin in time") from None

    def _receive(self, timeout: float | None) -> None:
        end = None if timeout is None else time.monotonic() + timeout
        silent = time.monotonic() + SILENCE
        while not self._waiting:
            self._waiting = self._frames.feed(self._reply.take())
            if self._waiting or self._is_closed:
                return
            if self._reply.is_done or self._connection is None:
                raise BrokenConnection("the server ended the stream")
            now = time.monotonic()
            if end is not None and now >= end:
                raise TimeoutError
            if now >= silent:
                raise BrokenConnection("the event stream is silent")
            try:
                # Short waits notice `close` of another thread.
                self._reply.feed(self._connection.receive(min(1.0, silent - now, 1.0 if end is None else end - now)))
                silent = time.monotonic() + SILENCE
            except TimeoutError:
                continue

    def _retry(self, error: CodewrightError) -> None:
        self._disconnect()
        if self._is_closed:
            return
        self._failures += 1
        if self._failures > ATTEMPTS:
            self.close()
            raise error
        time.sleep(min(FIRST_PAUSE * 2.0 ** (self._failures - 1), LONGEST_PAUSE))

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Client(BaseClient, Calls):
    """The sync client: `client.session.create(title="First")`. Every failure raises `CodewrightError`.

    Calls have the names of the API in the style of Python; their parameters have the names of the API.
    """

    def _start(self, route: Route, parameters: dict[str, Any]) -> Any:
        request = place(route, parameters)
        if route.verb == "SSE":
            return EventStream(self, request)
        connection = Connection(self, self._bytes(request), self._deadline(request))
        reply, body = Reply(), bytearray()
        try:
            while not reply.is_done:
                reply.feed(connection.receive())
                body += reply.take()
                if len(body) > MAX_BODY:
                    raise BrokenConnection("the reply is too large")
        except TimeoutError:
            raise CodewrightError(f"{request.method} {request.path} had no answer in time") from None
        finally:
            connection.close()
        value = decode(reply, bytes(body))
        if reply.status >= 400:
            raise refusal(request.method, request.path, reply.status, value)
        return value

    def events(self, *, session_id: str | None = None, directory: str | None = None) -> EventStream:
        """Iterates over the events of a directory or session, until `close`. Raises if the server stays away."""
        return EventStream(self, event_request(session_id, directory))

    def turn(self, *, sessionID: str, directory: str | None = None, **prompt: Any) -> Iterator[Event]:
        """Sends a prompt (`parts`, `agent`, `model`, …) and yields the events of its session until that is idle.

        The last event is `session.idle`, also if the connection breaks meanwhile.
        """
        is_sent = is_idle = False
        with self.events(session_id=sessionID, directory=directory) as stream:
            while True:
                event = stream.read(QUIET if is_idle else None)
                if event is None:
                    yield idle_event(sessionID)  # type: ignore[misc]
                    return
                if is_type(event, "server.connected"):
                    if is_sent:
                        status = self.session.status(directory=directory).get(sessionID)
                        is_idle = status is None or status["type"] == "idle"
                    else:
                        self.session.prompt_async(sessionID=sessionID, directory=directory, **prompt)
                    is_sent = True
                    continue
                yield event
                if is_end(event, sessionID):
                    return

    def answer_permissions(
        self, decide: Callable[[PermissionRequest], str | None], stream: EventStream, *, directory: str | None = None
    ) -> None:
        """Answers permission requests of a stream until that is closed. `decide` returns `once`, `always`, `reject` or
        `None`, which leaves a request to another client."""

        seen: set[str] = set()

        def answer(request: PermissionRequest) -> None:
            if request["id"] in seen or not stream.has_session(request["sessionID"]):
                return
            seen.add(request["id"])
            reply = decide(request)
            if reply is None:
                return
            try:
                self.permission.reply(requestID=request["id"], directory=directory, reply=reply)  # type: ignore[arg-type]
            except CodewrightError as error:
                # Another client answered meanwhile.
                if error.status != 404:
                    raise

        for event in stream:
            if is_type(event, "permission.asked"):
                answer(event["properties"])
            elif is_type(event, "server.connected"):
                for request in self.permission.list(directory=directory):
                    answer(request)

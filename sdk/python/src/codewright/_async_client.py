"""The async client, which belongs to asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ._calls import Request, Route, place
from ._client import (
    ATTEMPTS, FIRST_PAUSE, LONGEST_PAUSE, QUIET, SILENCE, BaseClient, event_request, idle_event, is_end, is_final, is_type,
)
from ._http import MAX_BODY, BrokenConnection, CodewrightError, Frames, Reply, decode, refusal

if TYPE_CHECKING:
    from ._async import Calls
    from .types import Event, PermissionRequest
else:
    Calls = object


class AsyncClient(BaseClient, Calls):
    """The async client: `await client.session.create(title="First")`. Every failure raises `CodewrightError`.

    Calls have the names of the API in the style of Python; their parameters have the names of the API.
    """

    def _start(self, route: Route, parameters: dict[str, Any]) -> Any:
        request = place(route, parameters)
        return self._stream(request) if route.verb == "SSE" else self._send(request)

    async def _send(self, request: Request) -> Any:
        reply, body = Reply(), bytearray()
        try:
            async with asyncio.timeout(self._deadline(request)):
                reader, writer = await self._connect(self._bytes(request))
                try:
                    while not reply.is_done:
                        reply.feed(await self._read(reader))
                        body += reply.take()
                        if len(body) > MAX_BODY:
                            raise BrokenConnection("the reply is too large")
                finally:
                    writer.close()
        except TimeoutError:
            raise CodewrightError(f"{request.method} {request.path} had no answer in time") from None
        value = decode(reply, bytes(body))
        if reply.status >= 400:
            raise refusal(request.method, request.path, reply.status, value)
        return value

    async def _connect(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        target = self._target
        try:
            async with asyncio.timeout(30.0):
                reader, writer = await asyncio.open_connection(target.host, target.port, ssl=target.is_secure or None)
                writer.write(data)
                await writer.drain()
                return reader, writer
        except TimeoutError:
            raise BrokenConnection(f"cannot reach {self.base_url} in time") from None
        except OSError as error:
            raise BrokenConnection(f"cannot reach {self.base_url}: {error}") from error

    @staticmethod
    async def _read(reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read(65536)
        except OSError as error:
            raise BrokenConnection(f"the connection failed: {error}") from error

    async def _stream(self, request: Request) -> AsyncGenerator[Any]:
        """Yields events over broken connections."""
        last: str | None = None
        failures = 0
        while True:
            try:
                async with aclosing(self._frames(request, last)) as frames:
                    async for identity, event in frames:
                        last = identity if identity is not None else last
                        # A stream that only greets makes no progress.
                        if not is_type(event, "server.connected"):
                            failures = 0
                        yield event
            except CodewrightError as error:
                if is_final(error.status):
                    raise
                failures += 1
                if failures > ATTEMPTS:
                    raise
            await asyncio.sleep(min(FIRST_PAUSE * 2.0 ** (failures - 1), LONGEST_PAUSE))

    async def _frames(self, request: Request, last: str | None) -> AsyncGenerator[tuple[str | None, Any]]:
        """Yields the events of one connection, and raises at its end."""
        resumed = {} if last is None else {"last_event_id": last}
        reader, writer = await self._connect(self._bytes(request, accept="text/event-stream", **resumed))
        frames, reply, body = Frames(), Reply(), b""
        try:
            while not reply.is_done:
                try:
                    data = await asyncio.wait_for(self._read(reader), SILENCE)
                except TimeoutError:
                    raise BrokenConnection("the event stream is silent") from None
                reply.feed(data)
                if reply.has_head and reply.status != 200:
                    body += reply.take()
                    continue
                for event in frames.feed(reply.take()):
                    yield event
        finally:
            writer.close()
        if reply.status != 200:
            raise refusal("GET", request.path, reply.status, decode(reply, body))
        raise BrokenConnection("the server ended the stream")

    def events(self, *, session_id: str | None = None, directory: str | None = None) -> AsyncGenerator[Event]:
        """Iterates over the events of a directory or session. Raises if the server stays away."""
        return self._stream(event_request(session_id, directory))

    async def turn(self, *, sessionID: str, directory: str | None = None, **prompt: Any) -> AsyncGenerator[Event]:
        """Sends a prompt (`parts`, `agent`, `model`, …) and yields the events of its session until that is idle.

        The last event is `session.idle`, also if the connection breaks meanwhile.
        """
        is_sent = is_idle = False
        async with aclosing(self.events(session_id=sessionID, directory=directory)) as stream:
            pending: asyncio.Task[Any] | None = None
            try:
                while True:
                    pending = pending or asyncio.ensure_future(anext(stream))
                    done, _ = await asyncio.wait([pending], timeout=QUIET if is_idle else None)
                    if not done:
                        yield idle_event(sessionID)  # type: ignore[misc]
                        return
                    event, pending = pending.result(), None
                    if is_type(event, "server.connected"):
                        if is_sent:
                            status = (await self.session.status(directory=directory)).get(sessionID)
                            is_idle = status is None or status["type"] == "idle"
                        else:
                            await self.session.prompt_async(sessionID=sessionID, directory=directory, **prompt)
                        is_sent = True
                        continue
                    yield event
                    if is_end(event, sessionID):
                        return
            finally:
                if pending is not None:
                    pending.cancel()
                    await asyncio.wait([pending])

    async def answer_permissions(
        self,
        decide: Callable[[PermissionRequest], str | None | Awaitable[str | None]],
        *,
        session_id: str | None = None,
        directory: str | None = None,
    ) -> None:
        """Answers permission requests until the task is cancelled. `decide` returns `once`, `always`, `reject` or
        `None`, which leaves a request to another client."""
        seen: set[str] = set()

        async def answer(request: PermissionRequest) -> None:
            if request["id"] in seen or session_id not in (None, request["sessionID"]):
                return
            seen.add(request["id"])
            reply = decide(request)
            if reply is not None and not isinstance(reply, str):
                reply = await reply
            if reply is None:
                return
            try:
                await self.permission.reply(requestID=request["id"], directory=directory, reply=reply)  # type: ignore[arg-type]
            except CodewrightError as error:
                # Another client answered meanwhile.
                if error.status != 404:
                    raise

        async for event in self.events(session_id=session_id, directory=directory):
            if is_type(event, "permission.asked"):
                await answer(event["properties"])  # type: ignore[arg-type]
            elif is_type(event, "server.connected"):
                for request in await self.permission.list(directory=directory):
                    await answer(request)

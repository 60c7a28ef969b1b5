"""A server with a client, and tools for a client."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from ._server import Server, start_server
from ._sync_client import Client

if TYPE_CHECKING:
    from ._async_client import AsyncClient
    from ._tools import Tool, ToolServer


@contextmanager
def start(**options: Any) -> Iterator[Client]:
    """Starts a server with the options of `start_server`, and yields its client."""
    with start_server(**options) as server:
        yield Client(server.url, password=server.password, directory=place(options))


@asynccontextmanager
async def start_async(**options: Any) -> AsyncIterator[AsyncClient]:
    """Starts a server with the options of `start_server`, and yields its async client."""
    import asyncio

    from ._async_client import AsyncClient

    server: Server = await asyncio.to_thread(start_server, **options)
    try:
        yield AsyncClient(server.url, password=server.password, directory=place(options))
    finally:
        await asyncio.to_thread(server.close)


def place(options: Mapping[str, Any]) -> str:
    return os.path.abspath(options.get("directory") or os.getcwd())


@contextmanager
def serve_tools(client: Client, name: str, tools: Mapping[str, Tool], *, directory: str | None = None) -> Iterator[ToolServer]:
    """Offers tools to the sessions of a directory. The names of the tools begin with `name`."""
    from ._tools import ToolServer

    with ToolServer(name, tools) as server:
        server.check(client.mcp.add(directory=directory, name=name, config=server.config))  # type: ignore[arg-type]
        try:
            yield server
        finally:
            client.mcp.disconnect(directory=directory, name=name)


@asynccontextmanager
async def serve_tools_async(
    client: AsyncClient, name: str, tools: Mapping[str, Tool], *, directory: str | None = None
) -> AsyncIterator[ToolServer]:
    """Offers tools to the sessions of a directory. Tools run in threads. The names of the tools begin with `name`."""
    from ._tools import ToolServer

    with ToolServer(name, tools) as server:
        server.check(await client.mcp.add(directory=directory, name=name, config=server.config))  # type: ignore[arg-type]
        try:
            yield server
        finally:
            await client.mcp.disconnect(directory=directory, name=name)

"""The client of the Codewright server.

    import codewright

    with codewright.start() as client:
        session = client.session.create(title="First")
        answer = client.session.prompt(sessionID=session["id"], parts=[{"type": "text", "text": "Hello"}])
        print(codewright.text_of(answer))

`AsyncClient` and `start_async` are the same for asyncio. Types of all values are in `codewright.types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._http import BrokenConnection, CodewrightError
from ._parts import text_of, to_markdown, tool_calls

if TYPE_CHECKING:
    from . import types
    from ._async_client import AsyncClient
    from ._server import Server, start_server
    from ._start import serve_tools, serve_tools_async, start, start_async
    from ._sync_client import Client, EventStream
    from ._tools import Tool, ToolServer

__version__ = "0.1.0"
__all__ = [
    "AsyncClient", "BrokenConnection", "Client", "CodewrightError", "EventStream", "Server", "Tool", "ToolServer",
    "serve_tools", "serve_tools_async", "start", "start_async", "start_server", "text_of", "to_markdown", "tool_calls", "types",
]

# Modules are imported when they are used, so that the import of the package is fast.
_PLACES = {
    "AsyncClient": "_async_client", "Client": "_sync_client", "EventStream": "_sync_client", "Server": "_server",
    "start_server": "_server", "Tool": "_tools", "ToolServer": "_tools", "serve_tools": "_start",
    "serve_tools_async": "_start", "start": "_start", "start_async": "_start",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "types":
        return import_module(".types", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

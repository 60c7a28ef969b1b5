"""Tools of this program for the agent: functions that the model of a session can call.

The tools are an MCP server on a port of this machine. The rules of the user about permissions apply to them.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from ._http import CodewrightError

MAX_BODY = 8 * 1024 * 1024
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")


class Tool(NamedTuple):
    """A function with its description and the JSON Schema of its arguments, an object."""

    description: str
    parameters: Mapping[str, Any]
    execute: Callable[[dict[str, Any]], Any]


class ToolServer:
    """Serves tools until `close`. An error of a tool becomes the failure of the call."""

    def __init__(self, name: str, tools: Mapping[str, Tool]) -> None:
        self.name = name
        self._tools = dict(tools)
        self._token = secrets.token_urlsafe(24)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of an MCP server, for `client.mcp.add`."""
        return {"type": "remote", "url": self.url, "oauth": False, "headers": {"Authorization": f"Bearer {self._token}"}}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self, status: Mapping[str, Any]) -> None:
        """Raises if the reply of `client.mcp.add` does not say that these tools are connected."""
        own = status.get(self.name, {})
        if own.get("status") != "connected":
            self.close()
            raise CodewrightError(f"the server of the tools is not connected: {own.get('error', own.get('status'))}")

    def is_trusted(self, authorization: str) -> bool:
        return hmac.compare_digest(authorization.encode(), f"Bearer {self._token}".encode())

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        params = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                wanted = params.get("protocolVersion")
                version = wanted if wanted in VERSIONS else VERSIONS[0]
                info = {"name": self.name, "version": "1"}
                return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
            case "ping":
                return {"result": {}}
            case "tools/list":
                return {"result": {"tools": [
                    {"name": name, "description": tool.description, "inputSchema": {"type": "object", **tool.parameters}}
                    for name, tool in self._tools.items()
                ]}}
            case "tools/call":
                return self._call(params)
        return {"error": {"code": -32601, "message": f"unknown method `{message.get('method')}`"}}

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            return {"error": {"code": -32602, "message": f"there is no tool `{params.get('name')}`"}}
        try:
            result = tool.execute(params.get("arguments") or {})
        except Exception as error:
            return {"result": {"content": [{"type": "text", "text": str(error) or type(error).__name__}], "isError": True}}
        text = result if isinstance(result, str) else json.dumps(result)
        return {"result": {"content": [{"type": "text", "text": text}]}}


def handler(tools: ToolServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_POST(self) -> None:
            if not tools.is_trusted(self.headers.get("authorization", "")):
                return self.reply(401)
            length = self.headers.get("content-length", "")
            if not length.isdigit() or int(length) > MAX_BODY:
                return self.reply(413)
            try:
                message = json.loads(self.rfile.read(int(length)))
            except ValueError:
                return self.reply(400)
            if not isinstance(message, dict) or "id" not in message:
                return self.reply(202)
            self.reply(200, {"jsonrpc": "2.0", "id": message["id"], **tools.answer(message)})

        def do_GET(self) -> None:
            self.reply(405)

        def reply(self, status: int, body: object = None) -> None:
            content = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            if status >= 400:
                # The body of the request may be unread.
                self.send_header("connection", "close")
                self.close_connection = True
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler

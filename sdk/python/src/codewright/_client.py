"""What both clients have in common: their options and the namespaces of calls."""

from __future__ import annotations

from typing import Any, Self

from ._calls import Request, Route, python_name, tree
from ._http import Target, basic, directory_header, query_text, request_bytes

DEADLINE = 60.0
SLOW_DEADLINE = 3600.0
# Seconds without a byte after which a stream counts as broken. The server sends a heartbeat every ten seconds.
SILENCE = 60.0
# Reconnections in a row that bring no event before a stream raises.
ATTEMPTS = 10
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
# Seconds without an event after which a session that is idle has no more events to repeat.
QUIET = 0.5


class Namespace:
    """Calls with a common beginning, such as `client.session`."""

    def __init__(self, client: BaseClient, calls: dict[str, Any]) -> None:
        self._client = client
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        found = self._calls.get(name)
        if found is None:
            raise AttributeError(f"there is no call `{name}`; this namespace has {', '.join(sorted(self._calls))}")
        if isinstance(found, dict):
            return Namespace(self._client, found)
        return lambda **parameters: self._client._start(found, parameters)

    def __dir__(self) -> list[str]:
        return sorted(self._calls)


class BaseClient:
    def __init__(
        self,
        base_url: str = "http://localhost:4096",
        *,
        password: str | None = None,
        username: str = "opencode",
        directory: str | None = None,
        headers: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self._options: dict[str, Any] = {
            "password": password,
            "username": username,
            "directory": directory,
            "headers": headers,
            "timeout": timeout,
        }
        self.base_url = base_url
        self._target = Target(base_url)

    def with_options(self, **options: Any) -> Self:
        """Returns a client with other options: `password`, `username`, `directory`, `headers` or `timeout` in seconds."""
        return type(self)(self.base_url, **{**self._options, **options})

    def __getattr__(self, name: str) -> Any:
        found = tree().get(name)
        if found is None:
            raise AttributeError(f"there is no call `{name}`")
        return Namespace(self, found)

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *tree()])

    def call(self, name: str, /, **parameters: Any) -> Any:
        """Calls an operation by its name in the API, such as `session.prompt`."""
        node: Any = tree()
        for part in map(python_name, name.split(".")):
            node = node.get(part) if isinstance(node, dict) else None
        if not isinstance(node, Route):
            raise AttributeError(f"there is no call `{name}`")
        return self._start(node, parameters)

    def _start(self, route: Route, parameters: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _bytes(self, request: Request, **headers: str) -> bytes:
        merged = {name.lower(): value for name, value in (self._options["headers"] or {}).items()}
        if self._options["password"] is not None:
            merged.setdefault("authorization", basic(self._options["username"], self._options["password"]))
        if self._options["directory"] is not None:
            merged["x-opencode-directory"] = directory_header(self._options["directory"])
        merged.update({name.replace("_", "-"): value for name, value in headers.items()})
        query = query_text(request.query)
        return request_bytes(self._target, request.method, request.path + ("?" + query if query else ""), merged, request.body)

    def _deadline(self, request: Request) -> float:
        given = self._options["timeout"]
        return given if given is not None else SLOW_DEADLINE if request.is_slow else DEADLINE


def event_request(session_id: str | None, directory: str | None) -> Request:
    query: dict[str, object] = {"sessionID": session_id, "directory": directory}
    return Request("GET", "/event", query, None, False)


def is_type(event: Any, kind: str) -> bool:
    return isinstance(event, dict) and event.get("type") == kind


def is_end(event: Any, session_id: str) -> bool:
    return is_type(event, "session.idle") and event["properties"].get("sessionID") == session_id


def idle_event(session_id: str) -> dict[str, Any]:
    return {"id": "", "type": "session.idle", "properties": {"sessionID": session_id}}


def is_final(status: int | None) -> bool:
    """Whether a reply to a stream is not worth another attempt."""
    return status is not None and 400 <= status < 500 and status != 429
